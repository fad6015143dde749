"""A long series of boots and logins with headstart installed, and the question whether the interval
that `headstart status` prints contains the effect that the bench measures itself."""

import contextlib
import mmap
import os
import random
import shutil
import statistics
import subprocess
import sys
import threading
from pathlib import Path

from . import system
from .bench import STAGE_MEMORY
from .commands import run
from .inside import Inside
from .installed import LEARN_TIMEOUT_S, SETTLE_TIMEOUT_S, Installed, configure
from .package import STATE

CONTENTS, REMOVED = "series", "series-removed"
STAGES = ("boot", "login")

# The load beside a boot or login: numbers of processes that compute, and of random reads of the
# disk per second.
SPINNERS, READS = (0, 0, 1, 2), (0, 0, 10, 30)
LOADS = tuple({"spinners": s, "reads_per_s": r} for s in SPINNERS for r in READS)
PAGE = 4096


# --- the load

@contextlib.contextmanager
def spinning(n):
    """Runs `n` processes that compute all the time."""
    spinners = []
    try:
        for _ in range(n):
            spinners.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
        yield
    finally:
        for process in spinners:
            process.kill()
            process.wait()


@contextlib.contextmanager
def reading(device, per_second, rng):
    """Runs a thread that reads pages at random positions of the device, past the page cache."""
    ended = threading.Event()

    def read():
        fd = os.open(device, os.O_RDONLY | os.O_DIRECT)
        try:
            pages = os.lseek(fd, 0, os.SEEK_END) // PAGE
            with mmap.mmap(-1, PAGE) as buffer:
                while not ended.wait(rng.expovariate(per_second)):
                    os.preadv(fd, [buffer], rng.randrange(pages) * PAGE)
        finally:
            os.close(fd)

    thread = threading.Thread(target=read)
    if per_second:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if per_second:
            thread.join()


def draw_load(seed, number, scenario, variant):
    """Returns the load of boot or login `number` of the variant, counted from 1: the same in each call. Each
    variant draws from all loads without replacement, so that few boots without headstart meet the same mixture
    of loads as many with it."""
    block, position = divmod(number - 1, len(LOADS))
    return random.Random(f"{seed} {block} {scenario} {variant}").sample(LOADS, len(LOADS))[position]


# --- the series

class BenefitSeries:
    """`kept` is a directory for headstart's state between calls, or None."""

    def __init__(self, bench, series, kept, seed):
        self.bench, self.series, self.seed = bench, series, seed
        self.kept = Path(kept) if kept else None

    def install(self, control_interval):
        """Puts the package into the system, and the state that headstart had at the end of the
        previous call."""
        disk, package = self.bench.disk, self.bench.package
        disk.fresh()
        package.install(disk.root)
        self.bench.inits[CONTENTS] = package.init()
        configure(disk.root, "series", ControlInterval=control_interval)
        if self.kept and self.kept.exists():
            run("cp", "-a", "--no-target-directory", self.kept, disk.root / STATE)
        disk.save(CONTENTS)

    def keep(self):
        """Copies headstart's state to where the next call finds it."""
        if not self.kept:
            return
        disk, copy = self.bench.disk, self.kept.with_name(self.kept.name + ".tmp")
        disk.fresh(CONTENTS)
        shutil.rmtree(copy, ignore_errors=True)
        run("cp", "-a", "--no-target-directory", disk.root / STATE, copy)
        shutil.rmtree(self.kept, ignore_errors=True)
        copy.rename(self.kept)

    @contextlib.contextmanager
    def load(self, number, scenario, variant):
        load = draw_load(self.seed, number, scenario, variant)
        rng = random.Random(f"{self.seed} {number}")
        with (spinning(load["spinners"]),
              reading(self.bench.disk.device, load["reads_per_s"], rng)):
            yield load

    def _add(self, variant, number, seconds, loads, replays):
        for scenario in STAGES:
            replay = replays.get(scenario) or {}
            self.series.add({"scenario": scenario, "variant": variant, "run": number,
                             "seconds": round(seconds[scenario], 4), "load": loads[scenario],
                             "outcome": replay.get("outcome"), "policy": replay.get("policy")})

    def _boot_and_log_in(self, machine, number, variant, between):
        """Boots and logs in; `number` counts the boots of the variant. `between` is called at the greeter.
        Returns the seconds and the loads of both. The seconds of a boot end with the default target, as those
        of headstart do: the message that the job queue is empty comes up to 0.1 s later. They begin with the
        machine's clock, which begins when systemd-nspawn is started."""
        seconds, loads = {}, {}
        system.back_free_memory(STAGE_MEMORY)
        self.bench.disk.delays(True)
        with self.load(number, "boot", variant) as loads["boot"]:
            machine.power_on()
            machine.wait_booted()
            seconds["boot"] = Inside(machine).reached()
        between()
        with self.load(number, "login", variant) as loads["login"]:
            machine.let_in()
            seconds["login"] = machine.wait_logged_in()
        return seconds, loads

    def session(self, number):
        """Measures one boot and login with headstart, which then learns and plans. Then powers
        off."""
        disk = self.bench.disk
        disk.fresh(CONTENTS)
        # headstart lowers the read-ahead of the disk when it records exactly.
        with self.bench.machine(own_disk=True) as machine:
            inside = Inside(machine)
            seconds, loads = self._boot_and_log_in(machine, number, "installed",
                                                   lambda: Installed.greet(inside))
            inside.wait_file("login-recorded", SETTLE_TIMEOUT_S)
            inside.wait_ended("headstart-learn.service", LEARN_TIMEOUT_S)
            replays = inside.replays()
            disk.delays(False)
            machine.power_off()
        disk.save(CONTENTS)
        self.keep()
        self._add("installed", number, seconds, loads, replays)

    def cold(self, number, count):
        """Measures one boot and login of the same system without headstart, the `count`th, after session
        `number`. It has the journal and whatever else the sessions so far have left, because a longer
        journal slows each boot."""
        disk = self.bench.disk
        disk.fresh(CONTENTS)
        self.bench.package.remove(disk.root)
        disk.save(REMOVED)
        disk.fresh(REMOVED)
        with self.bench.machine() as machine:
            seconds, loads = self._boot_and_log_in(
                machine, count, "cold", lambda: self.bench.wait_disk_idle(0.5, 20))
            disk.delays(False)
        self._add("cold", number, seconds, loads, {})

    def run(self, sessions, cold_every):
        for number in range(1, sessions + 1):
            if self.series.find("login", "installed", number) is None:
                self.bench.progress.say(f"session {number} of {sessions}", number - 1, sessions)
                self.session(number)
            if number % cold_every == 0 and self.series.find("login", "cold", number) is None:
                self.bench.progress.say(f"session {number} of {sessions}, without headstart", number - 1,
                                        sessions)
                self.cold(number, number // cold_every)


# --- the result

def replayed(sample):
    return sample.get("outcome") in ("done", "running", "stopped")


def medians(samples, scenario):
    """Returns the seconds of the boots or logins as three lists, `cold`, `control` and `installed`,
    and the policy. `installed` has only the sessions with the policy of the newest replay, because
    `status` compares these."""
    own = [s for s in samples if s["scenario"] == scenario]
    with_replay = [s for s in own if s["variant"] == "installed" and replayed(s)]
    policy = with_replay[-1]["policy"] if with_replay else None
    return {"policy": policy,
            "cold": [s["seconds"] for s in own if s["variant"] == "cold"],
            "control": [s["seconds"] for s in own if s["outcome"] == "control"],
            "installed": [s["seconds"] for s in with_replay if s["policy"] == policy]}


def saved(without, with_it):
    """Returns the share of time that was saved, computed from the medians; None if one side has no
    sample."""
    if not without or not with_it:
        return None
    return 1 - statistics.median(with_it) / statistics.median(without)


def compared_seconds(line):
    """Returns the seconds of a line of the history as `headstart status` compares them: without
    the delay by headstart-init if the session was not replayed (docs/benefit.md)."""
    ready, early = line["ready_usec"], line.get("early_usec") or 0
    return (ready - early if early < ready and not replayed(line) else ready) / 1e6


def judge(samples, benefit, history):
    """Compares the effects that `headstart status --json` prints (`benefit`) with the bench's own.
    The bench measures a boot until systemd has reached the default target, and a login until the
    windows are mapped. headstart measures until its stage has ended. The result contains the
    effects by both measures. `history` has the
    lines of headstart's history. Returns a list with a dict for each stage."""
    result = []
    for b in benefit:
        found = medians(samples, b["stage"])
        lines = [h for h in history if h["stage"] == b["stage"] and h.get("ready_usec")]
        recorded = {kind: [compared_seconds(h) for h in lines if test(h)] for kind, test in
                    (("control", lambda h: "control" in h["flags"]),
                     ("installed", lambda h: replayed(h) and h["policy"] == found["policy"]))}
        truths = {"cold": saved(found["cold"], found["installed"]),
                  "control": saved(found["control"], found["installed"]),
                  "recorded": saved(recorded["control"], recorded["installed"])}
        result.append({
            "stage": b["stage"], "policy": found["policy"],
            **{key: b.get(key) for key in ("known", "saved", "saved_low", "saved_high",
                                           "n_replayed", "n_control", "n_left_out")},
            "truths": truths,
            "contained": {name: t is not None and b["known"]
                          and b["saved_low"] <= t <= b["saved_high"]
                          for name, t in truths.items()},
            "seconds": {kind: statistics.median(found[kind]) if found[kind] else None
                        for kind in ("cold", "control", "installed")},
            "n": {kind: len(found[kind]) for kind in ("cold", "control", "installed")}})
    return result


def percent(share):
    return "-" if share is None else f"{100 * share:.1f} %"


def lines(judged):
    """Yields the result as lines of text."""
    names = {"cold": "cold and installed, by the bench's clock",
             "control": "control and installed sessions, by the bench's clock",
             "recorded": "control and installed sessions, as headstart recorded them"}
    for j in judged:
        interval = (f"{percent(j['saved'])} ({percent(j['saved_low'])} to "
                    f"{percent(j['saved_high'])})" if j["known"] else "not enough sessions")
        yield (f"{j['stage']} ({j['policy']}): status says {interval}, {j['n_replayed']} with "
               f"replay, {j['n_control']} without, {j['n_left_out']} left out")
        for name, text in names.items():
            inside = "within" if j["contained"][name] else "NOT within"
            yield f"  {inside} the interval: {percent(j['truths'][name])}, from {text}"
        yield "  medians: " + ", ".join(
            f"{kind} {s:.2f} s of {j['n'][kind]}" for kind, s in j["seconds"].items()
            if s is not None)
