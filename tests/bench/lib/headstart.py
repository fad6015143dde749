"""The system under test: headstart's own programs, from a build directory."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import namedtuple
from pathlib import Path

from . import system
from .commands import BenchError, run
from .machine import NotifySocket

PROGRAMS = {"headstartd": "src/daemon/headstartd", "headstart": "src/cli/headstart",
            "headstart-replay": "src/replay/headstart-replay"}

# The result of a program: its time, its CPU time, its peak resident memory, its output.
Ran = namedtuple("Ran", "seconds cpu_s peak_kib output")


class Headstart:
    """`state` must not lie on the simulated disk, because the time to read it is not to be
    measured."""

    def __init__(self, builddir, root, state):
        self.program = {name: Path(builddir) / path for name, path in PROGRAMS.items()}
        self.mkpack = Path(builddir) / "tests/tools/tool-mkpack"
        self.root, self.state = Path(root), Path(state)

    def missing(self):
        return [name for name, path in self.program.items() if not os.access(path, os.X_OK)]

    def forget(self):
        shutil.rmtree(self.state, ignore_errors=True)
        self.state.mkdir(mode=0o700)

    def recorder(self, *stages, uid=None):
        return Recorder(self, stages, uid)

    def _call(self, name, *arguments, environment=None):
        """Runs one of the programs to its end; returns a Ran."""
        with tempfile.TemporaryFile() as said:
            start = time.monotonic()
            process = subprocess.Popen([self.program[name], *arguments], stdin=subprocess.DEVNULL,
                                       stdout=said, stderr=subprocess.STDOUT,
                                       env={**os.environ, **(environment or {})})
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.monotonic() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            output = said.read().decode(errors="replace").strip()
        if process.returncode != 0:
            raise BenchError(f"{name} {arguments[0]} failed with status {process.returncode}: "
                             + (output.splitlines()[-1] if output else "it says nothing"))
        return Ran(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, output)

    def learn(self):
        """Learns all new traces. Returns a Ran."""
        return self._call("headstart", "learn", f"--state={self.state}")

    def plan(self):
        """Plans all packs with the configuration of the tree. Returns a Ran."""
        with tempfile.TemporaryDirectory() as system_root:
            for name in ("proc", "sys", "run"):
                Path(system_root, name).symlink_to(f"/{name}")
            configuration = self.root / "etc/headstart"
            if configuration.exists():
                shutil.copytree(configuration, Path(system_root, "etc/headstart"))
            return self._call("headstart", "plan", f"--state={self.state}", f"--root={self.root}",
                              environment={"HEADSTART_SYSTEM_ROOT": system_root})

    def export(self, path):
        """Exports the model for other machines."""
        self._call("headstart", "export", f"--state={self.state}", f"--output={path}")

    def replay_empty(self):
        """Returns the CPU seconds of a replay of an empty pack."""
        pack = self.state / "empty.pack"
        if not pack.exists():
            run(self.mkpack, pack, input="")
        return self._call("headstart-replay", "--force", "--wait", str(pack)).cpu_s

    def show(self, path, *options):
        """Returns the output of `headstart show` for a trace, model or pack."""
        return json.loads(self._call("headstart", "show", "--json=short", *options,
                                     str(path)).output)

    def policy(self, stage):
        """Returns the policy for which the stage's pack was planned."""
        return self.show(self.state / f"{stage}.pack", "--limit=0")["policy"]

    # --force, because this boot of the host may be a control session, in which nothing is replayed.

    def replay(self, stage, *options):
        """Replays a stage's pack and waits until the data has been read. Returns a Ran, with the
        line that headstart-replay prints."""
        return self._call("headstart-replay", "--force", f"--root={self.root}", "--wait",
                          *options, str(self.state / f"{stage}.pack"))

    @contextlib.contextmanager
    def replaying(self, pack, *options):
        """Runs headstart-replay on that file as a subprocess.Popen; kills it at the end if it still
        runs."""
        process = subprocess.Popen(
            [self.program["headstart-replay"], "--force", f"--root={self.root}", *options, pack],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


class Recorder:
    """A running headstartd. A context manager, which kills headstartd at the end if it still
    runs."""

    def __init__(self, headstart, stages, uid=None):
        self.headstart, self.stages = headstart, stages
        self.uid = uid
        self.process = self.notify = None
        self.peak_kib = None

    def __enter__(self):
        state = self.headstart.state
        self.notify = NotifySocket(state.parent / "headstartd.notify")
        self.log = state.parent / "headstartd.log"
        try:
            with open(self.log, "wb") as log:
                self.process = subprocess.Popen(
                    [str(self.headstart.program["headstartd"]), f"--root={self.headstart.root}",
                     f"--state={state}", f"--run={state.parent / 'run'}",
                     "--stage=" + ",".join(self.stages),
                     *([f"--uid={self.uid}"] if self.uid is not None else [])],
                    env={**os.environ, "NOTIFY_SOCKET": self.notify.path},
                    stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=lambda: system.die_with_parent(signal.SIGTERM))
            self._wait("READY=1", 30)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait(self, what, timeout):
        try:
            self.notify.wait(what, self.process, timeout)
        except BenchError as e:
            raise BenchError(f"{e}; {self._last_words()}") from e

    def _last_words(self):
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return "its log says: " + (lines[-1] if lines else "nothing")

    def next_stage(self, name):
        """Ends the stage that is being recorded; returns when the next one has begun."""
        self.process.send_signal(signal.SIGUSR1)
        self._wait(f"STATUS=Recording {name}", 60)

    def dump(self, timeout=10):
        """Returns the session cycle's report about itself (SIGUSR2)."""
        path = self.headstart.state.parent / "run/session.json"
        path.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR2)
        end = time.monotonic() + timeout
        while not path.exists():
            if time.monotonic() > end or self.process.poll() is not None:
                raise BenchError(f"headstartd dumps no session; {self._last_words()}")
            time.sleep(0.02)
        return json.loads(path.read_text())

    def _note_peak(self):
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return
        found = re.search(r"VmHWM:\s+(\d+) kB", text)
        if found:
            self.peak_kib = int(found[1])

    def stop(self):
        """Ends the last stage and the recorder. peak_kib is then the peak resident memory of
        headstartd."""
        self._note_peak()
        self.process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 60
        while self.process.poll() is None:
            self._note_peak()
            if time.monotonic() > end:
                raise BenchError("headstartd did not end within 60 s of SIGTERM")
            time.sleep(0.005)
        if self.process.returncode != 0:
            raise BenchError(f"headstartd ended with status {self.process.returncode}; "
                             f"{self._last_words()}")

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.notify:
            self.notify.close()
        return False
