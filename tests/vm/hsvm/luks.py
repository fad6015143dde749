"""Makes ext4 over LVM over LUKS. This needs device-mapper, which not every host has, so it runs
inside a machine that has booted from another image."""

import shutil
import tempfile
from pathlib import Path

from .commands import VmError, say
from .machine import OUT_MIB, Disk, Machine, blank, overlay, pack_case, unpack_out

GUEST = Path(__file__).resolve().parent.parent / "guest"


def make(builder, size_mib, directory):
    """Makes directory/disk.raw, vmlinuz and initrd from the running tree of `builder`. Returns the
    kernel's arguments."""
    with tempfile.TemporaryDirectory(prefix="hsvm-") as tmp:
        tmp = Path(tmp)
        overlay(tmp / "root.qcow2", builder.disk)
        blank(directory / "disk.raw", size_mib)
        blank(tmp / "out.raw", OUT_MIB)
        pack_case(tmp / "case.tar", {"main": GUEST / "main", "lib.bash": GUEST / "lib.bash",
                                     "case.bash": GUEST / "make-luks.bash"}, 1)
        say("encrypting a disk inside a machine")
        outcome = Machine(
            builder.kernel, builder.initrd, builder.append,
            [Disk(tmp / "root.qcow2", "qcow2", "hsvm-root"),
             Disk(directory / "disk.raw", "raw", "hsvm-target"),
             Disk(tmp / "case.tar", "raw", "hsvm-case"), Disk(tmp / "out.raw", "raw", "hsvm-out")],
            2048, False, tmp, directory, "make").run(1800)
        unpack_out(tmp / "out.raw", tmp / "out")
        failed = [line for line in outcome.lines if line.startswith("not ok")]
        if failed or not (outcome.finished and outcome.off):
            raise VmError(f"the machine that makes the image failed: {failed or outcome.lines}; see "
                          f"{directory}/make-console.log")
        shutil.copyfile(tmp / "out/initrd", directory / "initrd")
    shutil.copyfile(builder.kernel, directory / "vmlinuz")
    return "root=/dev/mapper/hsvm-root ro"
