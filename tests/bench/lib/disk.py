"""The simulated disk: disksim on an image, a loop device on disksim, a filesystem on that."""

import errno
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from . import system
from .commands import BenchError, run

READ_AHEAD_KB = 128


class Counters:
    """Counters of the disk, or the difference of its counters between two moments."""

    def __init__(self, reads=0, read_bytes=0, busy_usec=0):
        self.reads, self.read_bytes, self.busy_usec = reads, read_bytes, busy_usec

    def __sub__(self, other):
        return Counters(self.reads - other.reads, self.read_bytes - other.read_bytes,
                        self.busy_usec - other.busy_usec)

    def as_dict(self):
        return {"reads": self.reads, "mb": round(self.read_bytes / 1e6, 3),
                "disk_busy_s": round(self.busy_usec / 1e6, 4)}


class SimulatedDisk:
    """Context manager. `work` is a directory on a tmpfs; `image` should lie on a tmpfs, too."""

    def __init__(self, program, image, profile, work, scheduler=None, fstype="ext4"):
        self.program, self.image, self.profile = program, image, profile
        self.work = Path(work)
        self.scheduler = scheduler
        self.fstype = fstype
        self.fuse = self.work / "fuse"
        self.root = self.work / "root"
        self.log = self.work / "disk.log"
        self.server = None
        self.device = None
        self.device_fd = None
        self.saved = {}
        self.mounted = False
        self.contents = None  # the name of the contents that fresh() restores if it gets no name
        self.current = None  # the name of the contents that the disk has had since the last fresh()

    # --- set-up and tear-down

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _start(self):
        self.fuse.mkdir(exist_ok=True)
        self.root.mkdir(exist_ok=True)
        read_end, write_end = os.pipe()
        try:
            # The process gets a session of its own, because a terminal's Ctrl-C must not end the
            # disk while a filesystem is mounted on it.
            self.server = subprocess.Popen(
                [self.program, f"--profile={self.profile}", f"--log={self.log}", "--delays=off",
                 f"--ready-fd={write_end}", self.image, self.fuse],
                pass_fds=[write_end], start_new_session=True, stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True,
                preexec_fn=lambda: system.die_with_parent(signal.SIGTERM))
            os.close(write_end)
            write_end = None
            if os.read(read_end, 16) != b"ready\n":
                said = self.server.communicate(timeout=10)[1].strip().splitlines()
                self.server = None
                raise BenchError(said[-1] if said else f"{self.program} does not start")
        finally:
            os.close(read_end)
            if write_end is not None:
                os.close(write_end)
        self.device = run("losetup", "--find", "--show", "--direct-io=on",
                          self.fuse / "disk").stdout.strip()
        # The loop device is detached when its last descriptor closes, however the owner of the
        # descriptor ends.
        self.device_fd = os.open(self.device, os.O_RDONLY | os.O_CLOEXEC)
        run("losetup", "--detach", self.device)
        self._set_queue()

    def _queue(self, name):
        return Path("/sys/block") / Path(self.device).name / "queue" / name

    def _set_queue(self):
        facts = self.facts()
        rotational = facts["rotational"]
        self.scheduler = self.scheduler or ("mq-deadline" if rotational == "1" else "none")
        for name in ("nr_requests", "rotational", "read_ahead_kb", "scheduler"):
            self.saved[name] = self._queue(name).read_text().strip()
        self.saved["scheduler"] = (self.saved["scheduler"].partition("[")[2].partition("]")[0]
                                   or "none")
        self._write_queue({"nr_requests": facts["tags"], "rotational": rotational,
                           "scheduler": self.scheduler, "read_ahead_kb": str(READ_AHEAD_KB)})

    def _write_queue(self, values):
        """Sets attributes of the disk's queue. Only while no scheduler is set, a write to
        nr_requests sets the number of requests that the disk itself accepts. A write of the value
        that the file already shows has no effect, and a scheduler may have changed what the file
        shows, so another value is written first. Writing `rotational` makes the kernel forget
        read_ahead_kb, so `rotational` is written before read_ahead_kb."""
        tags = int(values["nr_requests"])
        for name, value in (("scheduler", "none"), ("nr_requests", str(tags + 1 if tags < 128
                                                                       else tags - 1)),
                            ("nr_requests", str(tags)), ("rotational", values["rotational"]),
                            ("scheduler", values["scheduler"]),
                            ("read_ahead_kb", values["read_ahead_kb"])):
            try:
                self._queue(name).write_text(value)
            except OSError as e:
                raise BenchError(f"{name} of the simulated disk cannot be {value}: "
                                 f"{e.strerror}") from e

    def __exit__(self, *_):
        """Releases whatever exists; never raises."""
        try:
            if self.server and self.server.poll() is None:
                self.server.send_signal(signal.SIGUSR2)
            self.umount()
        except (OSError, BenchError):
            try:
                system.umount(self.root, system.MNT_DETACH)
            except OSError:
                pass
        # Without this, the attributes of the queue would stay with the loop device after its file
        # has gone.
        if self.saved:
            try:
                # With a scheduler, the saved nr_requests is the scheduler's number and not the
                # disk's. 128 is the loop driver's default.
                if self.saved["scheduler"] != "none":
                    self.saved["nr_requests"] = "128"
                self._write_queue(self.saved)
            except (OSError, BenchError):
                pass
        if self.device_fd is not None:
            os.close(self.device_fd)
            self.device_fd = None
        if self.server:
            self.server.terminate()
            try:
                self.server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.server.kill()
                self.server.wait()
            self.server.stderr.close()
            self.server = None
        return False

    # --- the disk

    def control(self, command):
        with open(self.fuse / "control", "w") as f:
            f.write(command + "\n")

    def facts(self):
        text = (self.fuse / "control").read_text()
        return dict(line.split("=", 1) for line in text.splitlines())

    def counters(self):
        f = self.facts()
        return Counters(int(f["reads"]), int(f["read_bytes"]), int(f["busy_usec"]))

    def delays(self, on):
        self.control("delays on" if on else "delays off")

    def mark(self, name):
        self.control("mark " + name)

    # --- the filesystem

    def mount(self):
        system.mount(self.device, self.root, self.fstype, 0,
                     "nouuid" if self.fstype == "xfs" else "")
        self.mounted = True

    def uuid(self):
        """Returns the UUID of the filesystem."""
        return run("blkid", "-o", "value", "-s", "UUID", self.device).stdout.strip()

    def read_ahead_kb(self):
        """Returns the read-ahead of the mounted filesystem; btrfs has a setting of its own."""
        path = self._queue("read_ahead_kb")
        if self.fstype == "btrfs":
            path = Path("/sys/fs/btrfs") / self.uuid() / "bdi/read_ahead_kb"
        return int(path.read_text())

    def umount(self):
        """Unmounts, and waits until the kernel has released the filesystem. The mounts of a
        container that was just killed keep the filesystem and its cache alive for a moment."""
        if not self.mounted:
            return
        end = time.monotonic() + 30
        while True:
            try:
                system.umount(self.root)
                break
            except OSError as e:
                if e.errno != errno.EBUSY or time.monotonic() > end:
                    raise
                time.sleep(0.02)
        self.mounted = False
        while True:
            try:
                os.close(os.open(self.device, os.O_RDONLY | os.O_EXCL))
                break
            except OSError as e:
                if e.errno != errno.EBUSY or time.monotonic() > end:
                    raise
                time.sleep(0.005)

    def fresh(self, contents=None, all_caches=True):
        """Restores the contents that save() kept under the name `contents`; without a name, the
        contents at the last keep_changes(), or those of the image if there was none. Switches
        delays off, drops the cache, and mounts the filesystem. Without `all_caches` the caches of other
        filesystems stay."""
        contents = self.current = contents or self.contents
        self.delays(False)
        self.umount()
        system.flush_device(self.device_fd)
        self.control(f"reset {contents}" if contents else "reset")
        self.mark("fresh")
        if all_caches:
            system.drop_caches()
        self.mount()

    def remount(self):
        """Mounts the present contents again, with an empty cache."""
        self.umount()
        system.flush_device(self.device_fd)
        self.mount()

    def save(self, name):
        """Keeps the present contents of the disk under this name, for fresh()."""
        self.umount()
        self.control(f"save {name}")

    def keep_changes(self):
        """Makes the present contents those that fresh() restores without a name."""
        self.save("kept")
        self.contents = "kept"

    def log_size(self):
        """Returns the size of the log in bytes, with everything logged up to now."""
        self.facts()
        return self.log.stat().st_size

    def keep_log(self, path):
        self.facts()  # flushes the log
        shutil.copyfile(self.log, path)
