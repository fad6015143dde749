"""What is measured: each variant says what is done before a boot or login, and gets its own state
ready beforehand. Peers are given what they ask for, as their documentation has it."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from . import system
from .commands import BenchError, need, run
from .headstart import Headstart

MODEL = Path(__file__).resolve().parents[3] / "data/default.model"


class Variant:
    """Nothing is done: a cold machine."""

    name = "cold"
    about = "nothing cached, nothing prefetched"
    warm = False
    scenarios = ("boot", "login", "autologin")

    def __init__(self, bench):
        self.bench = bench
        self.notes = {}

    def prepare(self):
        """Once, before anything is measured. Raises BenchError if the variant cannot run here."""

    def prefetch(self, stages, machine):
        """What is measured as prefetching; returns when the data is there. `machine` is the one
        that waits at its greeter, or None before a boot."""

    def beside(self, stages):
        """A context manager: what runs beside the boot."""
        return contextlib.nullcontext()


class Warm(Variant):
    name = "warm"
    about = "the same boot or login was done just before: everything is cached"
    warm = True


class HeadstartVariant(Variant):
    name = "headstart"
    about = "recorded once by headstartd, learned, planned, replayed by headstart-replay"

    def prepare(self):
        missing = self.bench.headstart.missing()
        if missing:
            raise BenchError(f"{', '.join(missing)}: not built (--builddir)")
        self.bench.record()

    def _headstart(self):
        return self.bench.headstart

    def prefetch(self, stages, machine):
        for stage in stages:
            if stage == "boot" and self._headstart().policy(stage) != "gate":
                continue
            # With an automatic login both packs are swept before the boot.
            ran = self._headstart().replay(stage, *([] if machine else ["--policy=gate"]))
            self.notes[f"{stage}.pack"] = (ran.output.splitlines() or ["no word"])[-1]
            self.notes.setdefault(f"{stage} replay CPU s", []).append(round(ran.cpu_s, 3))

    def beside(self, stages):
        policy = self._headstart().policy("boot") if "boot" in stages else None
        if policy in (None, "gate", "off"):
            return super().beside(stages)
        self.notes["boot.pack"] = f"replayed beside the boot: {policy}"
        return self._headstart().replaying(self._headstart().state / "boot.pack")


class Default(HeadstartVariant):
    name = "default"
    about = "the model that is shipped (data/default.model); nothing was learned on this machine"

    def prepare(self):
        model = MODEL.read_bytes() if MODEL.exists() else None
        if model is None:
            raise BenchError(f"there is no {MODEL} (tests/bench/default-model makes it)")
        missing = self.bench.headstart.missing()
        if missing:
            raise BenchError(f"{', '.join(missing)}: not built (--builddir)")
        # As the package lays it down, wherever the build looks for it.
        for share in ("usr/share", "usr/local/share"):
            path = self.bench.disk.root / share / "headstart/default.model"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(model)
        self.own = Headstart(self.bench.builddir, self.bench.disk.root, self.bench.work / "shipped")
        self.own.forget()
        self.bench.plan(self.own)
        self.bench.disk.keep_changes()
        self.bench.disk.fresh()

    def _headstart(self):
        return self.own


class Vmtouch(Variant):
    """Whole files, one after the other, in a given order."""

    def prepare(self):
        need("vmtouch")
        self.lists = {stage: self._write(stage, self.order(paths))
                      for stage, paths in self.bench.file_lists().items()}

    def _write(self, stage, paths):
        path = self.bench.work / f"{self.name}.{stage}.list"
        path.write_bytes(b"".join(os.fsencode(p) + b"\n" for p in paths))
        return path

    def prefetch(self, stages, machine):
        for stage in stages:
            run("vmtouch", "-qt", "-m", "4G", "-b", self.lists[stage])


class VmtouchPath(Vmtouch):
    name = "vmtouch-path"
    about = "vmtouch reads the files that were used, whole, in the order of their paths"

    @staticmethod
    def order(paths):
        return sorted(paths)


class VmtouchPhysical(Vmtouch):
    name = "vmtouch-physical"
    about = "vmtouch reads the files that were used, whole, in the order of their first block"

    @staticmethod
    def order(paths):
        return sorted(paths, key=system.first_block)


class Preload(Variant):
    """The Debian package preload, inside the machine, trained by several logins. Its cycle is
    shorter than the default of 20 s so that training takes seconds, not minutes; everything else is
    its default."""

    name = "preload"
    about = "Debian's preload 0.6.4 inside the machine, trained by four logins"
    scenarios = ("login",)
    CYCLE = 4
    SESSIONS = 4

    def prepare(self):
        if not (self.bench.disk.root / "usr/sbin/preload").exists():
            raise BenchError("the tree has no preload (--extra-packages=preload)")
        config = (self.bench.disk.root / "etc/preload.conf").read_text()
        config = config.replace("cycle = 20", f"cycle = {self.CYCLE}")
        self.bench.shared.mkdir(exist_ok=True)
        (self.bench.shared / "preload.conf").write_text(config)
        (self.bench.shared / "preload.state").unlink(missing_ok=True)
        for i in range(self.SESSIONS):
            self.bench.progress.say(f"training preload: login {i + 1} of {self.SESSIONS}")
            self.bench.disk.fresh()
            with self.bench.machine() as machine:
                machine.power_on()
                machine.wait_booted()
                daemon = self._start(machine)
                # It sees the greeter, then the session: the transition it is to predict.
                time.sleep(2 * self.CYCLE)
                machine.let_in()
                machine.wait_logged_in()
                time.sleep(3 * self.CYCLE)
                self._stop(daemon)  # it saves its state
        if not (self.bench.shared / "preload.state").exists():
            raise BenchError("preload has saved no state")

    def _start(self, machine):
        return subprocess.Popen(
            ["nsenter", "--target", str(machine.leader), "--mount", "--root", "--wd=/",
             "/usr/sbin/preload", "-f", "-c", "/run/bench/preload.conf",
             "-s", "/run/bench/preload.state", "-l", "/run/bench/preload.log"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: system.die_with_parent(signal.SIGTERM))

    @staticmethod
    def _stop(daemon):
        daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def prefetch(self, stages, machine):
        """It has three of its cycles, or until one has passed without a read."""
        daemon = self._start(machine)
        machine.at_end(lambda: self._stop(daemon))
        self.bench.wait_disk_idle(self.CYCLE + 1, 3 * self.CYCLE)


VARIANTS = {v.name: v for v in (Variant, Warm, HeadstartVariant, Default, VmtouchPath, VmtouchPhysical,
                                Preload)}
