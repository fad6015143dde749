"""The Debian package preload, inside the machine."""

import re
import signal
import subprocess
import time

from . import system
from .commands import BenchError
from .variants import Variant

# The default is 20 s. A shorter cycle makes training take seconds instead of minutes. All other settings
# are the defaults.
CYCLE = 4
TRAINING = 4  # logins


def _with_cycle(config):
    text, n = re.subn(r"(?m)^cycle = \d+$", f"cycle = {CYCLE}", config)
    if n != 1:
        raise BenchError("preload.conf has no line for its cycle")
    return text


class Daemon:
    """preload, run by the bench. Its state outlives the machine."""

    def __init__(self, bench):
        """Forgets what an earlier daemon has learned."""
        if not (bench.disk.root / "usr/sbin/preload").exists():
            raise BenchError("the tree has no preload (--extra-packages=preload)")
        self.bench, self.process = bench, None
        self.state = bench.shared / "preload.state"
        bench.shared.mkdir(exist_ok=True)
        config = (bench.disk.root / "etc/preload.conf").read_text()
        (bench.shared / "preload.conf").write_text(_with_cycle(config))
        self.state.unlink(missing_ok=True)

    def start(self, machine):
        """Starts it in the machine. It ends with the machine at the latest."""
        self.process = subprocess.Popen(
            ["nsenter", "--target", str(machine.leader), "--mount", "--root", "--wd=/",
             "/usr/sbin/preload", "-f", "-c", "/run/bench/preload.conf",
             "-s", "/run/bench/preload.state", "-l", "/run/bench/preload.log"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: system.die_with_parent(signal.SIGTERM))
        machine.at_end(self.stop)

    def stop(self):
        """Ends it, and it saves its state."""
        if not self.process:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def wait_read(self):
        """Waits for three of its cycles, or until one has passed without a read."""
        self.bench.wait_disk_idle(CYCLE + 1, 3 * CYCLE)


class Preload(Variant):
    name = "preload"
    about = f"Debian's preload 0.6.4 inside the machine, trained by {TRAINING} logins"
    scenarios = ("login",)

    def prepare(self, scenarios):
        self.daemon = Daemon(self.bench)
        for i in range(TRAINING):
            self.bench.progress.say(f"training preload: login {i + 1} of {TRAINING}", i, TRAINING)
            self.bench.disk.fresh()
            with self.bench.machine() as machine:
                machine.power_on()
                machine.wait_booted()
                self.daemon.start(machine)
                # preload observes the greeter and then the session. This is the transition that it
                # must predict later.
                time.sleep(2 * CYCLE)
                machine.let_in()
                machine.wait_logged_in()
                time.sleep(3 * CYCLE)
        if not self.daemon.state.exists():
            raise BenchError("preload has saved no state")

    def prefetch(self, stages, machine):
        self.daemon.start(machine)
        self.daemon.wait_read()


class PreloadService(Variant):
    name = "preload-service"
    about = f"Debian's preload 0.6.4 as the package starts it in a boot, trained by {TRAINING} boots and logins"
    scenarios = ("boot", "login")

    def contents(self, scenario):
        return self.name

    def prepare(self, scenarios):
        disk = self.bench.disk
        config = disk.root / "etc/preload.conf"
        if not config.exists():
            raise BenchError("the tree has no preload (--extra-packages=preload)")
        config.write_text(_with_cycle(config.read_text()))
        (disk.root / "etc/systemd/system/preload.service").unlink()  # the mask of lib/tree.py
        disk.save(self.name)
        for i in range(TRAINING):
            self.bench.progress.say(f"training preload: boot {i + 1} of {TRAINING}", i, TRAINING)
            disk.fresh(self.name)
            with self.bench.machine() as machine:
                machine.power_on()
                machine.wait_booted()
                time.sleep(2 * CYCLE)
                machine.let_in()
                machine.wait_logged_in()
                time.sleep(3 * CYCLE)
                machine.power_off()
            disk.save(self.name)
        disk.fresh(self.name)
        state = disk.root / "var/lib/preload/preload.state"
        if not state.exists() or state.stat().st_size == 0:
            raise BenchError("preload has saved no state")

    def prefetch(self, stages, machine):
        """Waits at the greeter until preload has read what it predicts."""
        if machine:
            self.bench.wait_disk_idle(CYCLE + 1, 3 * CYCLE)
