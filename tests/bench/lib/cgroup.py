"""The machine's control group. systemd-nspawn and the systemd inside create their groups below it.
Processes of the machine that outlive a power-off are killed with the group. A guardian process
ensures this even if the bench is killed."""

import os
import signal
import time
from pathlib import Path


def _hierarchies():
    """Returns the directories of this process's groups: in the unified hierarchy and in
    systemd's."""
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
        """Forks the guardian. It waits until the other end of a pipe closes, which happens however
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
        """Moves the calling process into the group; for preexec_fn."""
        for group in self.groups:
            (group / "cgroup.procs").write_text("0")

    def members(self):
        """Returns the pids of all processes in the group and below."""
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
        """Kills all members except the process `besides`, also those that are forked meanwhile."""
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
        """Removes all groups below the machine's group once their last processes have gone, and with
        keep=False the machine's group itself. Groups that are still there after 5 s stay."""
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
