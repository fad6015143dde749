"""A control group for the machine: below it systemd-nspawn and the systemd inside make theirs, and
what a machine leaves behind when its plug is pulled goes away with it. A guardian process sees to
that even when the bench is killed."""

import os
import signal
import time
from pathlib import Path


def _hierarchies():
    """Directories of the groups this process is in: in the unified hierarchy and in systemd's."""
    mounts = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, target, fstype, options = line.split()[:4]
        if fstype == "cgroup2":
            mounts.setdefault("", target)
        elif fstype == "cgroup" and "name=systemd" in options.split(","):
            mounts.setdefault("name=systemd", target)
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, name, path = line.split(":", 2)
        if name in mounts:
            yield Path(mounts[name]) / path.lstrip("/")


class ControlGroup:
    """Context manager."""

    def __init__(self):
        self.groups = []
        self.guardian = self.alive = None

    def __enter__(self):
        for parent in _hierarchies():
            group = parent / f"headstart-bench-{os.getpid()}"
            try:
                group.mkdir(exist_ok=True)
            except OSError:
                continue  # the machine then lives in the bench's own group
            self.groups.append(group)
        self._guard()
        return self

    def _guard(self):
        """Forks the guardian: it waits until the other end of a pipe closes, which it does however
        this process ends."""
        waiting, self.alive = os.pipe()
        self.guardian = os.fork()
        if self.guardian == 0:
            try:
                os.setsid()
                for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    signal.signal(s, signal.SIG_IGN)
                os.closerange(3, waiting)
                os.closerange(waiting + 1, 1024)
                os.read(waiting, 1)
                self.kill()
                self.clear(keep=False)
            finally:
                os._exit(0)
        os.close(waiting)

    def join(self):
        """For preexec_fn: puts the calling process in."""
        for group in self.groups:
            (group / "cgroup.procs").write_text("0")

    def members(self):
        """Pids of all processes in the group and below."""
        found = set()
        for group in self.groups:
            for directory, _, _ in os.walk(group):
                try:
                    found.update(map(int, Path(directory, "cgroup.procs").read_text().split()))
                except OSError:
                    pass  # the directory or its last process has just gone
        found.discard(0)
        return found

    def kill(self, besides=0):
        """Kills all members but one, those that are born meanwhile included."""
        end = time.monotonic() + 5
        while time.monotonic() < end:
            pids = self.members() - {besides}
            if not pids:
                return
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.005)

    def clear(self, keep=True):
        """Removes all groups below (and with keep=False the group itself), once their last
        processes have gone. What stays after 5 s, stays."""
        end = time.monotonic() + 5
        for group in self.groups:
            while True:
                left = False
                for directory, _, _ in os.walk(group, topdown=False):
                    if keep and directory == os.fspath(group):
                        continue
                    try:
                        os.rmdir(directory)
                    except OSError:
                        left = True
                if not left or time.monotonic() > end:
                    break
                time.sleep(0.01)

    def __exit__(self, *_):
        self.kill()
        os.close(self.alive)
        os.waitpid(self.guardian, 0)
        return False
