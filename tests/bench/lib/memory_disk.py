"""A disk in memory: a loop device directly on a tmpfs, for the profile nvme. FUSE would take longer
than such a disk does."""

import os
import time
from pathlib import Path

from . import system
from .commands import run
from .disk import SimulatedDisk

INSTANCE = "headstart-bench"
BUFFER_KB = 8192
TAGS = 64


def copy_data(source, target):
    """Gives `target`, which may be in use, the contents of the file `source`; holes stay holes."""
    with open(source, "rb") as s, open(target, "r+b") as t:
        size = os.fstat(s.fileno()).st_size
        t.truncate(0)
        t.truncate(size)
        at = 0
        while at < size:
            try:
                at = os.lseek(s.fileno(), at, os.SEEK_DATA)
            except OSError:  # a hole that reaches to the end
                break
            end = os.lseek(s.fileno(), at, os.SEEK_HOLE)
            while at < end:
                t.seek(at)
                at += os.sendfile(t.fileno(), s.fileno(), at, min(end - at, 1 << 30))


class RequestLog:
    """Logs the requests of one block device, from the kernel's tracepoint, in the format of
    disksim's log."""

    def __init__(self, mountpoint, path):
        self.mountpoint, self.path = Path(mountpoint), Path(path)
        self.instance = self.mountpoint / "instances" / INSTANCE
        self.pipe = None
        self.rest = b""

    def start(self, device, size):
        self.mountpoint.mkdir(exist_ok=True)
        system.mount("none", self.mountpoint, "tracefs")
        self.remove()  # removes the instance that a killed bench has left
        self.instance.mkdir()
        number = os.stat(device).st_rdev
        event = self.instance / "events/block/block_rq_issue"
        # The filter needs the kernel's number of the device, which differs from that of stat(2).
        (event / "filter").write_text(f"dev == {os.major(number) << 20 | os.minor(number)}")
        (self.instance / "trace_clock").write_text("mono")
        (self.instance / "buffer_size_kb").write_text(str(BUFFER_KB))
        (event / "enable").write_text("1")
        self.pipe = os.open(self.instance / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self.path.write_text(f"# disksim profile=nvme stroke={size}\n")

    def flush(self):
        """Returns when every request up to now is in the log."""
        while True:
            try:
                data = os.read(self.pipe, 1 << 20)
            except BlockingIOError:
                break
            if not data:
                break
            self.rest += data
        lines = self.rest.split(b"\n")
        self.rest = lines.pop()
        with open(self.path, "ab") as log:
            for line in lines:
                found = self.parse(line.decode(errors="replace"))
                if found:
                    log.write(found.encode())

    @staticmethod
    def parse(line):
        """Converts a line of the tracepoint to one of the log, or None: "… 12.345: block_rq_issue:
        7,1 R 4096 () 1234 + 8 …"."""
        head, event, tail = line.partition(": block_rq_issue: ")
        fields = tail.split()
        if not event or len(fields) < 7 or "R" not in fields[1] or "+" not in fields:
            return None
        plus = fields.index("+")
        usec = int(float(head.split()[-1]) * 1e6)
        return (f"{usec} R {int(fields[plus - 1]) * 512} {int(fields[plus + 1]) * 512} 0 0 1\n")

    def mark(self, name):
        self.flush()
        with open(self.path, "a", encoding="utf-8") as log:
            log.write(f"# mark {name} {time.monotonic_ns() // 1000}\n")

    def remove(self):
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None
        if self.instance.exists():
            self.instance.rmdir()


class MemoryDisk(SimulatedDisk):
    """Like SimulatedDisk, without delays."""

    def _start(self):
        self.root.mkdir(exist_ok=True)
        self.pristine = Path(self.image)
        self.backing = self.work / "disk"
        self.backing.touch()
        copy_data(self.pristine, self.backing)
        self.requests = RequestLog(self.work / "tracing", self.log)
        self.device = run("losetup", "--find", "--show", self.backing).stdout.strip()
        self.device_fd = os.open(self.device, os.O_RDONLY | os.O_CLOEXEC)
        run("losetup", "--detach", self.device)
        self.requests.start(self.device, self.backing.stat().st_size)
        self._set_queue()

    def __exit__(self, *_):
        super().__exit__(*_)
        try:
            self.requests.remove()
        except (AttributeError, OSError):
            pass
        return False

    def _kept(self, name):
        return self.work / f"kept.{name}"

    def control(self, command):
        word, _, name = command.partition(" ")
        if word == "mark":
            self.requests.mark(name)
        elif word == "reset":
            copy_data(self._kept(name) if name else self.pristine, self.backing)
        elif word == "save":
            self._kept(name).touch()
            copy_data(self.backing, self._kept(name))

    def facts(self):
        self.requests.flush()
        fields = (Path("/sys/block") / Path(self.device).name / "stat").read_text().split()
        return {"rotational": "0", "tags": str(TAGS), "reads": fields[0],
                "read_bytes": str(int(fields[2]) * 512), "busy_usec": str(int(fields[9]) * 1000)}
