"""Installs the package in the tree on a disk image without booting it, as builders of cloud images do."""

import os
import shutil
from contextlib import ExitStack

from .commands import VmError, run
from .furnish import write
from .layouts import mounted
from .recipes import TREES

# The layouts of which the whole tree is on one filesystem that fills the disk
LAYOUTS = ("ext4", "xfs")

# MODULES=dep would choose the modules for the machine that builds the image.
MODULES = "virtio_pci\nvirtio_blk\next4\nxfs\n"


def is_possible(image):
    """Returns whether install() can install a package in the image, a build.BuiltImage."""
    recipe = image.recipe
    return recipe.layout in LAYOUTS and "initramfs-tools" in TREES[recipe.tree].packages


def _chroot(root, *command):
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    env = {k: v for k, v in os.environ.items() if k != "TMPDIR"}
    return run("chroot", root, *command,
               env={**env, "PATH": path, "DEBIAN_FRONTEND": "noninteractive"}).stdout


def _install(root, package):
    """Installs the package in the tree. Returns the path of the initrd that this has built."""
    conf = root / "etc/initramfs-tools/conf.d/hsvm-install"
    modules = root / "etc/initramfs-tools/modules"
    before = modules.read_text()
    write(conf, "MODULES=list\n")
    write(modules, before + MODULES)
    shutil.copyfile(package, root / "root/headstart.deb")
    _chroot(root, "dpkg", "-i", "/root/headstart.deb")
    (root / "root/headstart.deb").unlink()
    conf.unlink()
    write(modules, before)
    initrd = sorted((root / "boot").glob("initrd.img-*"))[-1]
    if "headstart-init" not in _chroot(root, "lsinitramfs", f"/boot/{initrd.name}"):
        raise VmError(f"{initrd.name} does not contain headstart-init")
    return initrd


def install(package, disk, initrd, directory):
    """Installs the package in the tree on `disk`, and copies the initrd that this has built."""
    with ExitStack() as stack:
        root = stack.enter_context(mounted(disk, directory))
        for target, arguments in (("proc", ("-t", "proc", "proc")), ("sys", ("-t", "sysfs", "sysfs")),
                                  ("dev", ("--bind", "/dev"))):
            run("mount", *arguments, root / target)
            stack.callback(run, "umount", root / target)
        shutil.copyfile(_install(root, package), initrd)
