# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs of headstartd for the programs of tests/faults: one session, and a boot with a login and a
session."""

import contextlib
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from world import run

BUS = """<busconfig><type>system</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
</policy></busconfig>"""


def install_programs(root):
    """Installs programs that headstartd sees start, their data, and a configuration with a short cycle."""
    for name, source in (("first", "cat"), ("second", "cat")):
        source = shutil.which(source)
        libraries = re.findall(r"/[^ )]+", run("ldd", source).stdout.decode())
        for path, copy in ((source, f"bin/{name}"), *((x, x[1:]) for x in libraries)):
            (root / copy).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / copy)
    for name, size in (("a", 100000), ("b", 1500000)):
        (root / "data" / name).write_bytes(os.urandom(size))
    (root / "etc/headstart").mkdir(parents=True)
    (root / "etc/headstart/headstart.conf").write_text("[Session]\nMinSize=0\nCycle=1s\n")
    os.sync()


class Daemon:
    """A run of headstartd. A subclass says what happens while it runs."""

    arguments = []
    patience = 20.0  # seconds to wait for a condition in a run that nothing disturbs
    patience_factor = 2  # multiple of the usual time, in another run

    def __init__(self, world):
        self.world = world
        self.where = world.tmp / "run"
        self.usual = self.usual_end = 0.0  # seconds until the work was done, and after SIGTERM

    def install(self):
        """Installs the programs and their data in the filesystem of the world."""
        install_programs(self.world.root)

    def prepare(self):
        """Prepares the filesystem, and the template of the state directory by two runs."""
        self.install()
        for _ in range(2):
            p = self.run(self.world.environment, self.world.template)
            if p.returncode != 0:
                sys.exit(f"headstartd fails undisturbed: {p.stderr.decode()}")

    def work(self, daemon, patience):
        """Starts programs while the daemon runs. Waits at most `patience` seconds for each condition."""
        raise NotImplementedError

    @contextlib.contextmanager
    def surroundings(self, environment):
        """Gives the environment of the daemon."""
        yield environment

    def start(self, name, *files):
        run("chroot", self.world.root, f"/bin/{name}", *files)

    def forget_pages(self):
        for path in ("bin/second", "data/b"):
            with open(self.world.root / path, "rb") as f:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def end(self, daemon, kill_after):
        daemon.terminate()
        try:
            daemon.wait(20 if kill_after is None else kill_after)
        except subprocess.TimeoutExpired:
            if kill_after is None:
                raise
            daemon.kill()
            daemon.wait()

    def run(self, environment, state, kill_after=None, kill_in_end=None):
        """Runs the daemon with its work, and ends it. `kill_after` kills it after this number of seconds,
        `kill_in_end` after this number of seconds after SIGTERM."""
        self.where.mkdir(exist_ok=True)
        self.forget_pages()
        killed = kill_after is not None or kill_in_end is not None
        disturbed = killed or environment.get("HEADSTART_FAULTS", "list") != "list"
        patience = self.usual * self.patience_factor if disturbed and self.usual else self.patience
        with tempfile.TemporaryFile() as errors, self.surroundings(environment) as environment:
            begin = time.monotonic()
            with subprocess.Popen(
                    [str(self.world.programs.daemon), f"--root={self.world.root}", f"--state={state}",
                     f"--run={self.where}", *self.arguments], env=environment, stdin=subprocess.DEVNULL,
                    stdout=errors, stderr=errors) as daemon:
                timer = threading.Timer(kill_after or 0, daemon.kill)
                if kill_after is not None:
                    timer.start()
                try:
                    self.work(daemon, patience)
                    done = time.monotonic()
                    self.end(daemon, kill_in_end)
                except BaseException:
                    daemon.kill()  # the end of this block waits for it
                    raise
                finally:
                    timer.cancel()
                if not killed and "HEADSTART_FAULTS" not in environment:
                    self.usual = max(self.usual, done - begin)
                    self.usual_end = max(self.usual_end, time.monotonic() - done)
                errors.seek(0)
                text, status = errors.read(), daemon.returncode
        if status == -signal.SIGUSR2 and text:
            status = 1  # the daemon was about to end with an error, and no longer blocked the signal
        return subprocess.CompletedProcess(daemon.args, status, b"", text)


class SessionCycle(Daemon):
    """headstartd records a session, predicts what follows, reads it, and saves what it learned."""

    arguments = ["--stage=session"]

    def dump(self, daemon):
        """Returns the state of the session cycle, or None if it cannot be read. Does not send SIGUSR2
        while the daemon does not block the signal, which would then kill the daemon."""
        try:
            status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
            blocked = int(re.search(r"^SigBlk:\s*(\w+)", status, re.M).group(1), 16)
            if not blocked & 1 << signal.SIGUSR2 - 1:
                return None
            (self.where / "session.json").unlink(missing_ok=True)
            daemon.send_signal(signal.SIGUSR2)
            for _ in range(20):
                if (self.where / "session.json").exists():
                    return json.loads((self.where / "session.json").read_text())
                time.sleep(0.01)
        except (OSError, AttributeError, ValueError):
            pass
        return None

    def wait(self, daemon, seconds, condition):
        """Waits until the condition holds or the daemon has ended. Gives up after this number of
        seconds, because a fault may prevent the condition."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and daemon.poll() is None:
            dump = self.dump(daemon)
            if dump and condition(dump):
                return
            time.sleep(0.02)

    def work(self, daemon, patience):
        self.wait(daemon, patience, lambda d: True)
        self.start("first", "/data/a")
        self.wait(daemon, patience, lambda d: d["n_learned"] >= 2)
        self.start("second", "/data/b")
        self.wait(daemon, patience,
                  lambda d: d["n_learned"] >= 4 and d["n_decisions"] >= 1 and d["prefetch"] and not d["prefetch"]["working"])


class FakeSystem:
    """A bus on which tool-fake-logind stands in for systemd and logind."""

    def __init__(self, world):
        self.world = world
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        tmp = self.world.tmp
        self.address = f"unix:path={tmp}/bus"
        (tmp / "bus").unlink(missing_ok=True)
        (tmp / "bus.conf").write_text(BUS.format(tmp / "bus"))
        with contextlib.ExitStack() as stack:
            bus = self.popen(stack, "dbus-daemon", f"--config-file={tmp}/bus.conf", "--nofork", "--nopidfile",
                             "--nosyslog", "--print-address")
            bus.stdout.readline()  # the bus is there
            self.fake = self.popen(stack, self.world.programs.build / "tests/tools/tool-fake-logind")
            self.tell("appear")
            self.stack = stack.pop_all()
        return self

    def popen(self, stack, *command):
        p = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env={**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": self.address})
        stack.enter_context(p)  # waits for its end
        stack.callback(p.kill)
        return p

    def tell(self, command):
        self.fake.stdin.write(command.encode() + b"\n")
        self.fake.stdin.flush()
        answer = self.fake.stdout.readline().decode().strip()
        if answer != "done":
            sys.exit(f"tool-fake-logind: {command}: {answer}")

    def __exit__(self, *reason):
        self.stack.close()


class Boot(Daemon):
    """headstartd follows a boot, a login and a session: it records all three, adds the boot and the login to
    the history, and the start of an application in the session to the starts."""

    arguments = ["--stage=auto"]
    patience = 60.0
    patience_factor = 1.5

    def install(self):
        super().install()
        small = self.world.root / "data/small"
        small.mkdir()
        for i in range(25):  # a start that opens few files has no line
            (small / str(i)).write_bytes(b"x")
        os.sync()

    @contextlib.contextmanager
    def surroundings(self, environment):
        # The directory is empty after a boot.
        shutil.rmtree(self.where)
        path = self.world.tmp / "notify"
        path.unlink(missing_ok=True)
        with FakeSystem(self.world) as self.system, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as self.notify:
            self.notify.bind(str(path))
            yield {**environment, "DBUS_SYSTEM_BUS_ADDRESS": self.system.address, "NOTIFY_SOCKET": str(path)}

    def wait(self, daemon, seconds, status):
        """Waits until the daemon has this status or has ended. Gives up after this number of seconds,
        because a fault may prevent the status."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and daemon.poll() is None:
            if select.select([self.notify], [], [], 0.05)[0]:
                if f"STATUS={status}" in self.notify.recv(4096).decode().split("\n"):
                    return

    def work(self, daemon, patience):
        self.wait(daemon, patience, "Recording boot, waiting for the end of the boot")
        self.start("first", "/data/a")
        self.system.tell("target active")
        self.system.tell("finished")
        self.wait(daemon, patience, "Waiting for a login")
        self.system.tell("new 2 1000 user x11 seat0")
        self.start("second", "/data/b")
        self.system.tell("state 2 active")
        self.wait(daemon, patience, "Recording session, waiting for the end of the session")
        self.start("first", *(f"/data/small/{i}" for i in range(25)))
        self.system.tell("state 2 closing")
        self.system.tell("gone 2")
        self.wait(daemon, patience, "Waiting for a login")
