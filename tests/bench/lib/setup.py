"""Creates a bench on a simulated disk, with everything that it needs, and removes everything at the
end."""

import contextlib
import os
from pathlib import Path

from . import image, system
from .bench import Bench
from .cgroup import ControlGroup
from .commands import BenchError, need, run
from .disk import SimulatedDisk
from .lock import one_at_a_time
from .memory_disk import MemoryDisk


def hide_host(work):
    """systemd-nspawn binds two things of the host into each machine: os-release and a directory
    below /run. If they lay on a disk, the host's filesystem would be one of the machine's mounts,
    and a recorder inside would receive events of everything that the host opens. Call it after
    private_mounts(). The two then lie on the tmpfs `work`."""
    kept = Path(work) / "host"
    kept.mkdir()
    os_release = Path(os.path.realpath("/etc/os-release"))
    copy = kept / "os-release"
    copy.write_bytes(os_release.read_bytes())
    system.mount(copy, os_release, "none", system.MS_BIND)
    propagate = kept / "nspawn"
    propagate.mkdir()
    os.makedirs("/run/systemd/nspawn", exist_ok=True)
    system.mount(propagate, "/run/systemd/nspawn", "none", system.MS_BIND)


@contextlib.contextmanager
def bench_on(spec, cache, builddir, profile, progress, scheduler=None):
    """Yields the Bench of that image (lib/image.py: ImageSpec). Only one bench runs at a time on
    this machine."""
    need("systemd-nspawn", "losetup")
    disksim = Path(builddir) / "tests/bench/disksim"
    if not os.access(disksim, os.X_OK):
        raise BenchError(f"{disksim} is not built: meson setup build && ninja -C build")
    with contextlib.ExitStack() as stack:
        system.private_mounts()
        cached = image.provide(spec, cache, progress)
        stack.enter_context(one_at_a_time(progress))
        work = stack.enter_context(system.private_tmpfs("headstart-bench."))
        hide_host(work)
        progress.say("copying the image into memory")
        run("cp", "--sparse=always", cached, work / "image")
        group = stack.enter_context(ControlGroup())
        disk_class = MemoryDisk if profile == "nvme" else SimulatedDisk
        disk = stack.enter_context(disk_class(disksim, work / "image", profile, work, scheduler,
                                              spec.fstype))
        yield Bench(disk, group, work, builddir, spec.desktop, progress)
