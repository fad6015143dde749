"""The variants that are measured. Each variant defines what happens before a boot or login and
prepares its own state. Peers get the setup that their documentation describes."""

import contextlib
import os
from pathlib import Path

from . import system
from .commands import BenchError, need, run
from .headstart import Headstart

MODEL = Path(__file__).resolve().parents[3] / "data/default.model"


class Variant:
    """A cold machine without any prefetching."""

    name = "cold"
    about = "nothing cached, nothing prefetched"
    warm = False
    inside = False  # the machine itself has headstart
    packs = False  # the machine has packs that can be judged
    control = False  # its sessions are control sessions
    scenarios = ("boot", "login", "autologin")

    def __init__(self, bench):
        self.bench = bench
        self.notes = {}
        self.facts = {}  # how it was prepared
        self.judged = None  # scenario -> coverage of its packs, once it is known

    def takes_part(self, scenarios):
        return [s for s in scenarios if s in self.scenarios]

    def result(self):
        """Returns further findings about the variant besides its samples, in a form that can be
        stored. recall() takes them back."""
        return {"judged": self.judged, "facts": self.facts, "notes": self.notes}

    def recall(self, result):
        """Called instead of prepare() if all runs were measured before."""
        self.judged, self.facts, self.notes = result["judged"], result["facts"], result["notes"]

    def prepare(self, scenarios):
        """Called once, before the first measurement. Raises BenchError if the variant cannot run
        here."""

    def contents(self, scenario):
        """Returns what the disk holds before each run, as an argument of SimulatedDisk.fresh()."""
        return None

    def prefetch(self, stages, machine):
        """Does what is measured as prefetching; returns when the data has been read. `machine` is
        the one that waits at its greeter, or None before a boot."""

    def beside(self, stages):
        """Returns a context manager for what runs during the boot."""
        return contextlib.nullcontext()


class Warm(Variant):
    name = "warm"
    about = "the same boot or login was done just before: everything is cached"
    warm = True


class Outside(Variant):
    """Shows what the installed package can reach at best, because no program of headstart runs in
    the machine."""

    name = "outside"
    about = "the bench itself records, plans and replays, from outside and before systemd starts"

    def prepare(self, scenarios):
        missing = self.bench.headstart.missing()
        if missing:
            raise BenchError(f"{', '.join(missing)}: not built (--builddir)")
        before = self.bench.disk.contents
        self.bench.record()
        self.facts = self.bench.recorded
        self._keep(before)

    def _keep(self, before):
        """Saves the disk as prepare() has changed it, for the runs of this variant only. All other
        runs use the contents `before` again."""
        disk = self.bench.disk
        disk.save(self.name)
        disk.contents = before
        disk.fresh()

    def contents(self, scenario):
        return self.name

    def _headstart(self):
        return self.bench.headstart

    def prefetch(self, stages, machine):
        for stage in stages:
            if stage == "boot" and self._headstart().policy(stage) != "gate":
                continue
            # Before the machine starts, packs are replayed with the policy `gate`, which reads them in
            # one sweep. This includes the login pack of an automatic login.
            ran = self._headstart().replay(stage, *([] if machine else ["--policy=gate"]))
            self.notes[f"{stage}.pack"] = (ran.output.splitlines() or ["no word"])[-1]
            self.notes.setdefault(f"{stage} replay CPU s", []).append(round(ran.cpu_s, 3))

    def beside(self, stages):
        policy = self._headstart().policy("boot") if "boot" in stages else None
        if policy in (None, "gate", "off"):
            return super().beside(stages)
        self.notes["boot.pack"] = f"replayed beside the boot: {policy}"
        return self._headstart().replaying(self._headstart().state / "boot.pack")


class OutsideUnlearned(Outside):
    name = "outside-unlearned"
    about = "as `outside`, from the shipped model (data/default.model) alone"

    def prepare(self, scenarios):
        model = MODEL.read_bytes() if MODEL.exists() else None
        if model is None:
            raise BenchError(f"there is no {MODEL} (tests/bench/default-model makes it)")
        missing = self.bench.headstart.missing()
        if missing:
            raise BenchError(f"{', '.join(missing)}: not built (--builddir)")
        before = self.bench.disk.contents
        # The package installs the model in one of these places; the build may expect either.
        for share in ("usr/share", "usr/local/share"):
            path = self.bench.disk.root / share / "headstart/default.model"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(model)
        self.own = Headstart(self.bench.builddir, self.bench.disk.root, self.bench.work / "shipped")
        self.own.forget()
        self.bench.plan(self.own)
        self._keep(before)

    def _headstart(self):
        return self.own


class Vmtouch(Variant):
    """Reads whole files, one after the other, in a given order."""

    def prepare(self, scenarios):
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
