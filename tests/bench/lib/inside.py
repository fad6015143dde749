"""Observes, from outside a machine, the headstart inside it. Files below /run report what
headstart's programs have done, and D-Bus reports the state of headstart's units. None of these
files lies on the simulated disk."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

from .commands import BenchError, run

RUN = "run/headstart"
BUS = "run/dbus/system_bus_socket"
SYSTEMD = "org.freedesktop.systemd1"
POLL_S = 0.05
BUS_TIMEOUT_S = 60  # systemd may have other work to do before it answers

# The active states of a unit that has ended.
ENDED = ("inactive", "failed")


def unit_path(unit):
    """Returns the D-Bus path of a unit, in which _XX replaces every character that is not a letter
    or digit."""
    return "/" + SYSTEMD.replace(".", "/") + "/unit/" + "".join(
        c if c.isascii() and c.isalnum() else f"_{ord(c):02x}" for c in unit)


class Inside:
    def __init__(self, machine):
        self.machine = machine

    def _until(self, ready, timeout, what):
        """Polls until ready() returns something true; returns that."""
        end = time.monotonic() + timeout
        while True:
            found = ready()
            if found:
                return found
            if self.machine.process.poll() is not None:
                raise BenchError(f"the machine went off while {what} was awaited")
            if time.monotonic() > end:
                raise BenchError(f"{what}: not within {timeout} s; {self.recorder()}")
            time.sleep(POLL_S)

    def wait_file(self, name, timeout):
        """Waits until /run/headstart has that file."""
        path = self.machine.inside(f"{RUN}/{name}")
        self._until(path.exists, timeout, f"/{RUN}/{name}")

    def has_pack(self, name):
        return self.machine.inside(f"var/lib/headstart/{name}.pack").exists()

    def wait_sessions(self, number, timeout):
        """Waits until headstart has stored the recordings of that many sessions."""
        traces = self.machine.inside("var/lib/headstart/traces")
        self._until(lambda: len(list(traces.glob("*-session*.json"))) >= number, timeout,
                    f"the recording of session {number}")

    def dump(self, timeout=10):
        """Returns the session cycle's report about itself (SIGUSR2)."""
        path = self.machine.inside(f"{RUN}/session.json")
        path.unlink(missing_ok=True)
        for pid in self.machine.group.members():
            with contextlib.suppress(OSError):  # it has just ended
                if Path(f"/proc/{pid}/comm").read_text() == "headstartd\n":
                    os.kill(pid, signal.SIGUSR2)
        self._until(path.exists, timeout, f"/{RUN}/session.json")
        return json.loads(path.read_text())

    # --- replays

    def replay(self, name):
        """Returns the status of the replay of NAME.pack, or None if there was none."""
        try:
            return json.loads(self.machine.inside(f"{RUN}/replay-{name}.json").read_text())
        except FileNotFoundError:
            return None

    def replays(self):
        """Returns NAME -> result of replay(), for each pack that was replayed."""
        names = [path.stem.removeprefix("replay-")
                 for path in self.machine.inside(RUN).glob("replay-*.json")]
        return {name: self.replay(name) for name in sorted(names)}

    def wait_replayed(self, name, timeout):
        """Waits until the replay of NAME.pack has begun and ended; returns its status."""
        def ended():
            done = self.replay(name)
            return done if done and done["outcome"] != "running" else None

        return self._until(ended, timeout, f"the end of the replay of {name}.pack")

    # --- units

    def _busctl(self, verb, path, interface, *arguments):
        """Returns the data of each line that busctl prints."""
        bus = self.machine.inside(BUS)
        said = run("busctl", f"--address=unix:path={bus}", "--json=short", verb, SYSTEMD, path,
                   f"{SYSTEMD}.{interface}", *arguments, timeout=BUS_TIMEOUT_S).stdout
        return [json.loads(line)["data"] for line in said.splitlines()]

    def unit(self, unit, interface, *names):
        """Returns properties of a unit: name -> value."""
        return dict(zip(names, self._busctl("get-property", unit_path(unit), interface, *names)))

    def reached(self):
        """Returns the seconds from the start of the machine's clock until its systemd reached the
        default target. headstart measures a boot without a greeter until then."""
        name = "ActiveEnterTimestampMonotonic"
        return self.unit("default.target", "Unit", name)[name] / 1e6

    def recorder(self):
        """Returns one line with what headstartd says that it waits for."""
        name = "headstart-record.service"
        try:
            state = self.unit(name, "Unit", "ActiveState")["ActiveState"]
            status = self.unit(name, "Service", "StatusText")["StatusText"]
        except (BenchError, OSError, subprocess.TimeoutExpired) as e:
            return f"{name} cannot be asked: {e}"
        return f"{name} is {state}, status: {status or 'none'}"

    def failed_units(self):
        """Returns the names of headstart's failed units."""
        found = self._busctl("call", "/" + SYSTEMD.replace(".", "/"), "Manager",
                             "ListUnitsByPatterns", "asas", "1", "failed", "1", "headstart*")
        return [unit[0] for unit in found[0][0]]

    def wait_ended(self, unit, timeout, started=True):
        """Waits until a unit has ended. With `started`, a unit that was never started does not
        count as ended. Raises BenchError if it failed."""
        def ended():
            u = self.unit(unit, "Unit", "ActiveState", "InactiveExitTimestampMonotonic")
            return u["ActiveState"] in ENDED and (not started
                                                  or u["InactiveExitTimestampMonotonic"] > 0)

        self._until(ended, timeout, f"the end of {unit}")
        result = self.unit(unit, "Service", "Result")["Result"]
        if result != "success":
            raise BenchError(f"{unit} has failed inside the machine: {result}")

    def processes(self):
        """Returns the command lines of headstart's processes in the machine."""
        found = []
        for pid in self.machine.group.members():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().decode(errors="replace").split("\0")
            except OSError:
                continue  # it has just ended
            if words[0].rpartition("/")[2].startswith("headstart"):
                found.append(" ".join(words).strip())
        return sorted(found)
