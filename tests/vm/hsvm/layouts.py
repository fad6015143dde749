"""Writes trees to disk images without device-mapper. Each filesystem is made in a file, mounted
through a loop device that disappears with its mount, and filled. Layouts that need device-mapper
are made inside a machine (luks.py)."""

import shutil
import uuid
from contextlib import contextmanager
from dataclasses import dataclass

from .commands import run, say
from .furnish import furnish

MIB = 1 << 20


@dataclass
class Filesystem:
    target: str       # mount point in the machine
    fstype: str
    size_mib: int
    uuid: str = ""
    options: str = "defaults"


def layout(image, tar, directory):
    """Makes directory/disk.raw, vmlinuz and initrd. Returns the kernel's arguments."""
    return globals()["_" + image.layout](image, tar, directory)


def _ext4(image, tar, directory):
    return _single(image, tar, directory, Filesystem("/", "ext4", image.size_mib))


def _xfs(image, tar, directory):
    return _single(image, tar, directory, Filesystem("/", "xfs", image.size_mib))


def _single(image, tar, directory, fs):
    disk = directory / "disk.raw"
    _mkfs(fs, disk)
    with mounted(disk, directory) as root:
        _fill(root, image, tar, [_fstab_line(fs)], directory)
    return f"root=UUID={fs.uuid} ro"


def _btrfs(image, tar, directory):
    """The layout of Debian's and Ubuntu's installers: subvolumes @ and @home below an empty top."""
    disk = directory / "disk.raw"
    fs = Filesystem("/", "btrfs", image.size_mib)
    _mkfs(fs, disk)
    with mounted(disk, directory) as top:
        for subvolume in ("@", "@home"):
            run("btrfs", "subvolume", "create", top / subvolume)
    home = Filesystem("/home", "btrfs", 0, fs.uuid, "subvol=@home")
    fs.options = "subvol=@"
    with mounted(disk, directory, "subvol=@") as root:
        (root / "home").mkdir()
        run("mount", "-o", "loop,subvol=@home", disk, root / "home")
        try:
            _fill(root, image, tar, [_fstab_line(fs), _fstab_line(home)], directory)
        finally:
            run("umount", root / "home")
    return f"root=UUID={fs.uuid} rootflags=subvol=@ ro"


def _split(image, tar, directory):
    """Three partitions."""
    parts = [Filesystem("/", "ext4", 2560), Filesystem("/var", "ext4", 1024),
             Filesystem("/home", "xfs", 512)]
    files = [directory / f"part{i}.raw" for i in range(len(parts))]
    for fs, file in zip(parts, files):
        _mkfs(fs, file)
    with mounted(files[0], directory) as root:
        for fs, file in list(zip(parts, files))[1:]:
            (root / fs.target[1:]).mkdir()
            run("mount", "-o", "loop", file, root / fs.target[1:])
        try:
            _fill(root, image, tar, [_fstab_line(fs) for fs in parts], directory)
        finally:
            for fs in parts[1:]:
                run("umount", root / fs.target[1:])
    disk = directory / "disk.raw"
    _truncate(disk, image.size_mib)
    table, start = "label: gpt\n", 1
    for fs, file in zip(parts, files):
        table += f"start={start}MiB, size={fs.size_mib}MiB, type=linux\n"
        start += fs.size_mib
    run("sfdisk", "--quiet", disk, stdin=None, input=table)
    start = 1
    for fs, file in zip(parts, files):
        run("dd", f"if={file}", f"of={disk}", "bs=1M", f"seek={start}", "conv=sparse,notrunc")
        start += fs.size_mib
        file.unlink()
    return f"root=UUID={parts[0].uuid} ro"


# --- parts ---------------------------------------------------------------------------------------


def _truncate(file, size_mib):
    with open(file, "wb") as f:
        f.truncate(size_mib * MIB)


def _mkfs(fs, file):
    fs.uuid = str(uuid.uuid4())
    _truncate(file, fs.size_mib)
    if fs.fstype == "ext4":
        run("mke2fs", "-q", "-t", "ext4", "-F", "-U", fs.uuid, file)
    elif fs.fstype == "xfs":
        run("mkfs.xfs", "-q", "-m", f"uuid={fs.uuid}", file)
    else:
        run("mkfs.btrfs", "-q", "-U", fs.uuid, file)


def _fstab_line(fs):
    return f"UUID={fs.uuid} {fs.target} {fs.fstype} {fs.options} 0 {1 if fs.target == '/' else 2}\n"


@contextmanager
def mounted(file, directory, options=""):
    target = directory / "mnt"
    target.mkdir(exist_ok=True)
    run("mount", "-o", ",".join(filter(None, ("loop", options))), file, target)
    try:
        yield target
    finally:
        run("umount", target)
        target.rmdir()


def _fill(root, image, tar, fstab, directory):
    say(f"unpacking {tar.name}")
    run("tar", "-C", root, "--numeric-owner", "--xattrs", "--xattrs-include=*", "-xf", tar)
    furnish(root, image, "".join(fstab))
    kernels = sorted((root / "boot").glob("vmlinuz-*"))
    shutil.copyfile(kernels[-1], directory / "vmlinuz")
    version = kernels[-1].name.removeprefix("vmlinuz-")
    shutil.copyfile(root / "boot" / f"initrd.img-{version}", directory / "initrd")
