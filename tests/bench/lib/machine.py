"""A machine that boots from a directory: systemd-nspawn, observed only from outside."""

import errno
import os
import queue
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from . import system
from .commands import BenchError
from .desktops import DESKTOPS
from .shellwindows import ShellWindows
from .xclient import XClient

# How a user is let in.
LET_IN = {"bench": "go", "second": "go-second"}
X_SOCKET = "tmp/.X11-unix/X7"
RUNTIME_DIR = "run/user/1000"  # of the user "bench"
# Inside the machine, until it is switched on: tests/bench/initrd.c, and the system on the simulated disk.
INITRD, NEW_ROOT = "/run/initrd", "/sysroot"


class NotifySocket:
    """The receiving end of sd_notify(3). A thread empties the socket. While it is full, the system manager would
    wait for room with each message, and would neither start a unit nor answer a call: it reports three times a
    second which start job still runs."""

    def __init__(self, path):
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.lines = queue.SimpleQueue()
        self.reader = threading.Thread(target=self._receive, daemon=True)
        self.reader.start()

    def _receive(self):
        while message := self.socket.recv(8192):
            for line in message.decode(errors="replace").splitlines():
                self.lines.put(line)

    def close(self):
        self.socket.shutdown(socket.SHUT_RD)  # ends the thread
        self.reader.join()
        self.socket.close()
        Path(self.path).unlink(missing_ok=True)

    def wait(self, wanted, process, timeout, each=lambda key, value: None):
        """Waits until an assignment that begins with `wanted` arrives. Raises BenchError if the
        process or the timeout ends before that. `each` is called with every assignment."""
        end = time.monotonic() + timeout
        while True:
            try:
                line = self.lines.get(timeout=0.1)
            except queue.Empty:
                if process.poll() is not None:
                    raise BenchError(f"{process.args[0]} ended with status {process.returncode} "
                                     f"before it said {wanted}") from None
                if time.monotonic() > end:
                    raise BenchError(f"{process.args[0]} did not say {wanted} within {timeout} s") from None
                continue
            each(*line.split("=", 1) if "=" in line else (line, ""))
            if line.startswith(wanted):
                return line


class Machine:
    """One boot of the tree at `root`. A context manager; the machine is off afterwards."""

    def __init__(self, root, work, desktop, group, device=None, arguments=(), init=None,
                 own_clock=False, initrd=None, own_disk=False):
        """`desktop` is the Desktop of the bench's user, or None. `device` is the block device below `root`, which the
        machine can open; `arguments` are passed to its systemd, which treats them like a kernel command line. `initrd`
        is the program of that name; None: systemd-nspawn itself boots the system. The other options need an `initrd`.
        `init` is the machine's first program, as with init= on a kernel command line; None: its /sbin/init. With
        `own_disk` the machine can set the read-ahead of its disk."""
        self.root, self.work, self.desktop = Path(root), Path(work), desktop
        self.desktops = {"bench": desktop, "second": DESKTOPS["lxqt"]}  # by user
        self.group, self.device, self.arguments = group, device, list(arguments)
        self.init, self.own_clock, self.initrd, self.own_disk = init, own_clock, initrd, own_disk
        self.shared = self.work / "shared"
        self.console = self.work / "console.log"
        self.process = self.notify = self.leader = self.x = self.power = None
        self.last_acts = []

    def at_end(self, act):
        """Registers a function that kill() calls first. power_off() calls kill() after the
        shutdown."""
        self.last_acts.append(act)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        return False

    def assemble(self):
        """Starts systemd-nspawn and waits until the machine can be switched on. With an initrd nothing was read from
        the disk by then. power_on() calls this function if nobody has."""
        self.shared.mkdir(exist_ok=True)
        for name in (*LET_IN.values(), "done", "commands", "power"):
            (self.shared / name).unlink(missing_ok=True)
        for name in ("done", "commands", "power"):
            os.mkfifo(self.shared / name)
            os.chmod(self.shared / name, 0o666)
        self.notify = NotifySocket(self.work / "nspawn.notify")
        self.started = time.monotonic()
        with open(self.console, "wb") as console:
            self.process = subprocess.Popen(
                ["systemd-nspawn", "--quiet",
                 "--register=no", "--keep-unit", "--private-users=no", "--private-network",
                 "--link-journal=no", "--resolv-conf=off", "--timezone=off",
                 "--console=read-only", "--notify-ready=yes", "--machine=headstart-bench",
                 f"--bind={self.shared}:/run/bench",
                 *([f"--bind={self.device}"] if self.device else []),
                 *(self._with_initrd() if self.initrd else ["--boot", f"--directory={self.root}"]),
                 *self.arguments],
                # nspawn's filter of system calls is older than cachestat(2) and refuses it. nspawn finds no systemd
                # from which it could conclude that the machine knows the unified hierarchy of control groups.
                env={**os.environ, "NOTIFY_SOCKET": self.notify.path, "SYSTEMD_SECCOMP": "0",
                     "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
                stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                start_new_session=True, preexec_fn=self._join)
        self.power = self._await_initrd() if self.initrd else None

    def _with_initrd(self):
        """Returns the options of a machine whose root directory is empty at first. headstartd also marks the
        filesystems from which files are bound, so none of them is the host's own."""
        empty = self.work / "initrd"
        program = empty.with_name("initrd-program")
        shutil.copy(self.initrd, program)
        for name in ("usr", "etc", NEW_ROOT.lstrip("/")):
            (empty / name).mkdir(parents=True, exist_ok=True)
        return [f"--directory={empty}", f"--bind={self.root}:{NEW_ROOT}", f"--bind-ro={program}:{INITRD}",
                # Without --boot nspawn passes its locale. The PID 1 of a real machine has none, and
                # would read the files of that locale one after the other.
                "--kill-signal=SIGRTMIN+3", "--setenv=LANG=",
                INITRD, "disk" if self.own_disk else "-", NEW_ROOT, self.init or "/sbin/init"]

    def _await_initrd(self, timeout=60):
        """Waits until the initrd reads the pipe `power`; returns the other end. No event reports this, so it is polled.
        The polling ends before anything is measured."""
        end = time.monotonic() + timeout
        while True:
            try:
                return os.open(self.shared / "power", os.O_WRONLY | os.O_NONBLOCK)
            except OSError as e:
                if e.errno != errno.ENXIO:
                    raise
            self._check(end, "the machine's initrd")
            time.sleep(0.005)

    def power_on(self, log_in=False):
        """Starts the machine. With log_in it logs the user in automatically."""
        if self.process is None:
            self.assemble()
        if log_in:
            self.let_in()
        if self.power is not None:
            self.started = time.monotonic()
            os.close(self.power)
            self.power = None

    def _join(self):
        self.group.join()
        if self.own_clock:
            system.begin_clock()

    def _note(self, key, value):
        if key == "X_NSPAWN_LEADER_PID":
            self.leader = int(value)

    def wait_booted(self, timeout=180):
        """Waits until the machine's systemd reports that its default target is up and its job queue
        is empty. Returns the seconds since power_on()."""
        try:
            self.notify.wait("READY=1", self.process, timeout, self._note)
        except BenchError as e:
            raise BenchError(f"the machine did not boot: {e}; {self._last_words()}") from e
        return time.monotonic() - self.started

    def let_in(self, user="bench"):
        self.entered, self.user = time.monotonic(), user
        (self.shared / LET_IN[user]).touch()

    def wait_logged_in(self, timeout=180):
        """Waits until the desktop's windows are mapped or, without a desktop, until the session's
        programs have run. Returns the seconds since let_in()."""
        deadline = time.monotonic() + timeout
        if self.desktop:
            self._wait_windows(deadline)
        else:
            self._wait_fifo(deadline)
        return time.monotonic() - self.entered

    def _wait_fifo(self, deadline):
        fd = os.open(self.shared / "done", os.O_RDONLY | os.O_NONBLOCK)
        try:
            while not select.select([fd], [], [], 0.2)[0] or not os.read(fd, 16):
                self._check(deadline, "the session's programs")
        finally:
            os.close(fd)

    def _wait_windows(self, deadline):
        # No event reports the socket of the X server or of the bus, so it is polled; 5 ms are small
        # compared with the measured times.
        while self.x is None:
            try:
                self.x = self._see_windows()
            except OSError:
                self._check(deadline, "the display server")
                time.sleep(0.005)
        try:
            missing = self.x.wait_shown(self.desktops[self.user].windows, deadline)
        except OSError as e:
            raise BenchError(f"the session ended early: {e}; {self._last_words()}") from e
        if missing:
            raise BenchError(f"no window of {', '.join(sorted(missing))} came up in time")

    def _see_windows(self):
        if self.desktops[self.user].type == "wayland":
            return ShellWindows(self.inside(RUNTIME_DIR))
        return XClient(str(self.inside(X_SOCKET)))

    def inside(self, path):
        """Returns the path by which this process reaches the machine's file."""
        return Path(f"/proc/{self._leader()}/root") / path.lstrip("/")

    def _leader(self):
        """Returns the machine's first process. nspawn reports its pid as soon as it exists."""
        while self.leader is None:
            self.notify.wait("X_NSPAWN_LEADER_PID", self.process, 60, self._note)
        return self.leader

    def _check(self, deadline, what):
        if self.process.poll() is not None:
            raise BenchError(f"the machine went off while {what} was awaited; "
                             f"{self._last_words()}")
        if time.monotonic() > deadline:
            raise BenchError(f"{what} did not come up in time; {self._last_words()}")

    def _last_words(self):
        lines = self.console.read_text(errors="replace").strip().splitlines()
        return "its console says: " + (lines[-1].strip() if lines else "nothing")

    def settle(self, seconds=2.0, timeout=30):
        """Waits until no window has changed for some time."""
        if self.x:
            self.x.wait_quiet(seconds, time.monotonic() + timeout)

    # --- applications, in trees with an agent that starts them

    def _command(self, text):
        fd = os.open(self.shared / "commands", os.O_RDWR | os.O_NONBLOCK)
        try:
            os.write(fd, text.encode() + b"\n")
        finally:
            os.close(fd)

    def start(self, name, command, window, timeout=120):
        """Starts an application; returns the seconds until its window is mapped."""
        begun = time.monotonic()
        self._command(f"start {name} {command}")
        try:
            missing = self.x.wait_shown({window}, begun + timeout)
        except OSError as e:
            raise BenchError(f"the session ended early: {e}; {self._last_words()}") from e
        if missing:
            raise BenchError(f"{name} showed no window ({window}) within {timeout} s")
        return time.monotonic() - begun

    def stop(self, name, window, timeout=3):
        """Ends an application; kills it if its window stays."""
        for verb in ("stop", "kill"):
            self._command(f"{verb} {name}")
            end = time.monotonic() + timeout
            while window in self.x.shown():
                if time.monotonic() > end:
                    break
                time.sleep(0.02)
            else:
                return

    def log_out(self):
        """Ends the session of the user of XFCE."""
        self._command("start logout xfce4-session-logout --logout --fast")

    def power_off(self, timeout=60):
        """Shuts down cleanly (systemd's SIGRTMIN+4), so that everything is written to the disk."""
        if self.process and self.process.poll() is None:
            os.kill(self._leader(), signal.SIGRTMIN + 4)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def kill(self):
        """Kills the machine, as a power cut would."""
        while self.last_acts:
            self.last_acts.pop()()
        if self.x:
            self.x.close()
            self.x = None
        if self.process:
            # Kills the processes inside the machine. Once they have ended, nspawn ends by itself
            # and cleans up.
            self.group.kill(besides=self.process.pid)
            try:
                self.process.wait(2)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = self.leader = None
            self.group.clear()
        if self.notify:
            self.notify.close()
            self.notify = None
        if self.power is not None:
            os.close(self.power)
            self.power = None
