"""Boots and logins, timed. One Bench is one simulated disk with everything that runs on it."""

import contextlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from . import coverage, disklog, residency, system
from .commands import BenchError, run
from .headstart import Headstart
from .machine import Machine
from .package import Package
from .registry import VARIANTS

# A sample is repeated if the data that it reads a second time exceeds both this many megabytes and
# this share of everything that the stage reads. 0.25 MB in scattered blocks take a third of a
# second on a hard disk.
DISTURBED_MB, DISTURBED_PART = 0.25, 0.03

# More control sessions than this in one run do not happen by chance.
CONTROLS_MAX = 10

# A replay at the greeter ends sooner on every profile.
LEAD_MAX_S = 300

# More free memory than a boot or login takes, cache included.
STAGE_MEMORY = 1 << 30

STAGES = {"boot": ("boot",), "login": ("login",), "autologin": ("boot", "login")}


class Bench:
    def __init__(self, disk, group, work, builddir, desktop, progress):
        self.disk, self.group, self.work = disk, group, Path(work)
        self.desktop, self.progress = desktop, progress
        self.shared = self.work / "shared"
        self.builddir = builddir
        self.headstart = Headstart(builddir, disk.root, self.work / "state")
        self.record_delayed = False
        self.own_boot = False  # whether each boot of a machine has clocks and a boot id of its own
        self.retries = 0
        self.sessions = 2  # number of sessions from which an installed headstart learns
        self.lead = None  # seconds from the greeter to the login; None: until the replay at the greeter has ended
        self.pack_blocks = {}  # (variant, scenario) -> blocks of its packs, once they are known
        self.owners = False  # whether judge() prints the missed and the wasted files
        self._package = None
        self.inits = {}  # contents of the disk -> the first program of a machine that boots from it
        self.recorded = None
        self._lists = None

    def machine(self, arguments=(), own_init=False, own_disk=False):
        """With `own_init` the machine's first program is its /sbin/init, whatever is installed.
        With `own_disk` the machine can set the read-ahead of its disk."""
        return Machine(self.disk.root, self.work, self.desktop, self.group, self.disk.device, arguments,
                       None if own_init else self.inits.get(self.disk.current), self.own_boot,
                       Path(self.builddir) / "tests/bench/machine-initrd", own_disk)

    @property
    def package(self):
        """Returns the package of the files that the build directory installs. The first call makes
        it."""
        if self._package is None:
            package = Package(self.builddir, self.work / "package", self.own_boot)
            package.make()
            self._package = package
        return self._package

    def build_options(self):
        """Returns the build options of the package, or None if no variant has a package."""
        return self._package.options if self._package else None

    def wait_disk_idle(self, seconds, timeout):
        """Waits until nothing was read for some seconds, or until the timeout. Returns the time of
        the last read, with a resolution of 50 ms."""
        end = time.monotonic() + timeout
        reads, last = self.disk.counters().reads, time.monotonic()
        while time.monotonic() < min(last + seconds, end):
            time.sleep(0.05)
            now = self.disk.counters().reads
            if now != reads:
                reads, last = now, time.monotonic()
        return last

    # --- getting ready

    def record(self):
        """Boots and logs in once from a cold disk while headstartd records, shuts down in order,
        then learns and plans. The disk keeps what that session wrote, as on any machine. This
        happens once for all variants, scenarios and runs."""
        if self.recorded is not None:
            return
        self.progress.say("recording one cold boot and login with headstartd")
        self.headstart.forget()
        boot, login, peak = self.record_session()
        learn, plan = self.headstart.learn(), self.plan()
        self.recorded = {"boot_s": round(boot, 3), "login_s": round(login, 3),
                         "delayed": self.record_delayed, "headstartd_peak_kib": peak,
                         "learn_cpu_s": round(learn.cpu_s, 3), "plan_cpu_s": round(plan.cpu_s, 3),
                         "bytes": {p.name: p.stat().st_size
                                   for p in sorted(self.headstart.state.rglob("*"))
                                   if p.is_file()}}

    def record_session(self, user="bench"):
        """Boots and logs that user in. Returns the seconds of both and headstartd's peak memory in
        KiB."""
        self.disk.fresh()
        self.disk.mark("record")
        with self.machine() as machine:
            with self.headstart.recorder("boot", "login") as recorder:
                self.disk.delays(self.record_delayed)
                machine.power_on()
                boot = machine.wait_booted()
                recorder.next_stage("login")
                machine.let_in(user)
                login = machine.wait_logged_in()
                # The stage ends when the session has settled: nothing was read for a while.
                self.wait_disk_idle(0.5, 20)
                recorder.stop()
            self.disk.delays(False)
            machine.power_off()
        self.disk.keep_changes()
        self.disk.fresh()
        return boot, login, recorder.peak_kib

    def plan(self, headstart=None):
        """Plans all packs with the disk's delays on, because planning measures seek times, and
        these decide about the policy. Returns a Ran."""
        self.disk.delays(True)
        try:
            return (headstart or self.headstart).plan()
        finally:
            self.disk.delays(False)

    def costs(self, already, runs):
        """Measures what it costs to learn one more session and to plan, with a given number of
        sessions learned, and what it costs to replay an empty pack. Returns a dict."""
        missing = self.headstart.missing()
        if missing:
            raise BenchError(f"not built (--builddir): {', '.join(missing)}")
        self.headstart.forget()
        for number in range(already):
            self.progress.say(f"recording session {number + 1} of {already + 1}", number, already + 1)
            self.record_session()
            self.headstart.learn()
        self.progress.say(f"recording session {already + 1} of {already + 1}", already, already + 1)
        self.record_session()
        kept = self.work / "learned"
        shutil.copytree(self.headstart.state, kept)
        samples = []
        for _ in range(runs):
            shutil.rmtree(self.headstart.state)
            shutil.copytree(kept, self.headstart.state)
            learn, plan = self.headstart.learn(), self.plan()
            samples.append({"learn_cpu_s": learn.cpu_s, "plan_cpu_s": plan.cpu_s,
                            "cpu_s": learn.cpu_s + plan.cpu_s,
                            "learn_peak_kib": learn.peak_kib, "plan_peak_kib": plan.peak_kib})
        return {"already": already, "samples": samples,
                "empty_cpu_s": [self.headstart.replay_empty() for _ in range(max(runs, 20))],
                "model_bytes": (self.headstart.state / "model.json").stat().st_size}

    def file_lists(self):
        """Returns a dict: stage -> paths of the files that are in the page cache after the stage.
        The list of the login leaves out the files of the boot."""
        if self._lists is None:
            self.progress.say("looking which files a boot and a login use")
            self.disk.fresh()
            with self.machine() as machine:
                machine.power_on()
                machine.wait_booted()
                boot = residency.resident_files(self.disk.root)
            self.disk.fresh()
            with self.machine() as machine:
                machine.power_on()
                machine.wait_booted()
                machine.let_in()
                machine.wait_logged_in()
                both = residency.resident_files(self.disk.root)
            known = set(boot)
            self._lists = {"boot": boot, "login": [p for p in both if p not in known]}
        return self._lists

    # --- measuring

    def measure(self, scenario, variant, number):
        """Measures one boot or login. If the machine meanwhile dropped many of the pages that had
        been read, the time of the sample is too long. The sample is then repeated, at most
        self.retries times. Control sessions, in which headstart replays nothing, count only if
        the variant consists of them.
        Returns the least disturbed sample; `disturbed` in it lists the others."""
        samples, controls = [], 0
        while len(samples) <= self.retries:
            attempt = len(samples) + controls
            name = f"{scenario}/{variant.name}/{number}" + (f".{attempt}" if attempt else "")
            start = self.disk.log_size()
            sample = self._measure(scenario, variant, name)
            is_control = [r["outcome"] == "control" for r in sample.get("replays", {}).values()]
            if variant.control:
                if not is_control or not all(is_control):
                    raise BenchError(f"{name}: this is no control session")
            elif any(is_control):
                controls += 1
                if controls > CONTROLS_MAX:
                    raise BenchError(f"{name}: too many control sessions in a row")
                continue
            again = disklog.read_again(self.disk.log, start)
            sample["run"] = number
            self.add_costs(sample, start)
            # Ignores the phase `prefetch`, which may read cached blocks again when it reads over gaps.
            sample["again_mb"] = round(again.get(f"{name}/stage", 0) / 1e6, 3)
            samples.append(sample)
            if sample["again_mb"] <= max(DISTURBED_MB, DISTURBED_PART * sample["stage"]["mb"]):
                break
        best = min(samples, key=lambda s: s["again_mb"])
        best["disturbed"] = [{"seconds": s["seconds"], "again_mb": s["again_mb"]}
                             for s in samples if s is not best]
        return best

    def _measure(self, scenario, variant, name):
        """Measures once. Returns a dict: seconds, reads and MB of the stage and of the prefetching
        before the stage."""
        disk = self.disk
        disk.fresh(variant.contents(scenario))
        if variant.warm:
            with self.machine() as machine:
                machine.power_on()
                machine.wait_booted()
                if scenario != "boot":
                    machine.let_in()
                    machine.wait_logged_in()

        with self.machine() as machine:
            if scenario == "login":
                machine.power_on()
                machine.wait_booted()
                # Services that still start behind the greeter (NetworkManager) are not part of a
                # login. If headstart is inside the machine, prefetch() waits instead: first for the
                # replay at the greeter, which reads from the slow disk, and then until the disk is idle.
                if not variant.inside:
                    self.wait_disk_idle(0.5, 20)
            else:
                machine.assemble()
            # The replay at the greeter begins as soon as the machine has booted, and must meet the slow disk.
            at_once = scenario == "login" and variant.inside
            if not at_once:
                system.back_free_memory(STAGE_MEMORY)
            before = disk.counters()
            disk.mark(name + "/prefetch")
            disk.delays(True)
            start = time.monotonic()
            if at_once:
                system.back_free_memory(STAGE_MEMORY)
            variant.prefetch(STAGES[scenario], machine if scenario == "login" else None)
            prefetch = time.monotonic() - start
            between = disk.counters()
            disk.mark(name + "/stage")
            if scenario == "login":
                machine.let_in()
                seconds = machine.wait_logged_in()
            else:
                with variant.beside(STAGES[scenario]):
                    machine.power_on(log_in=scenario == "autologin")
                    seconds = (machine.wait_booted() if scenario == "boot"
                               else machine.wait_logged_in())
            after = disk.counters()
            disk.mark(name + "/after")
            disk.delays(False)
            seen = variant.seen(machine) if variant.inside else {}
        return {"scenario": scenario, "variant": variant.name, "section": name,
                "seconds": round(seconds, 4), "prefetch_s": round(prefetch, 4),
                "total_s": round(prefetch + seconds, 4),
                "load": round(os.getloadavg()[0], 2),
                "stage": (after - between).as_dict(), "prefetch": (between - before).as_dict(),
                **seen}

    def prepare(self, names, scenarios, runs, series):
        """Prepares the variants that the series still needs. Returns (variants, failed: name ->
        why)."""
        variants, failed = [], {}
        for name in names:
            variant = VARIANTS[name](self)
            self.disk.fresh()
            try:
                if series.complete(name, variant.takes_part(scenarios), runs):
                    variant.recall(series.finished[name])
                else:
                    variant.prepare(scenarios)
            except BenchError as e:
                failed[name] = str(e)
                continue
            variants.append(variant)
        return variants, failed

    def compare(self, scenario, variants, runs, series):
        """Measures all variants of the scenario in turn, `runs` times. Returns the samples. Samples
        that the series has already are not measured again."""
        samples = []
        variants = [v for v in variants if scenario in v.scenarios]
        for number in range(1, runs + 1):
            for variant in variants:
                sample = series.find(scenario, variant.name, number)
                if sample is None:
                    self.progress.say(f"{scenario}, run {number} of {runs}: {variant.name}", len(samples),
                                      runs * len(variants))
                    sample = self.measure(scenario, variant, number)
                    series.add(sample)
                samples.append(sample)
        return samples

    def coverage(self, learned, tests):
        """Records `learned` sessions, then learns and plans, and measures how much of `tests`
        further logins the pack covers. Returns a dict."""
        missing = self.headstart.missing()
        if missing:
            raise BenchError(f"not built (--builddir): {', '.join(missing)}")
        self.headstart.forget()
        traces = self.headstart.state / "traces"
        seen = set()
        for number in range(1, learned + tests + 1):
            self.progress.say(f"recording session {number} of {learned + tests}", number - 1, learned + tests)
            self.record_session()
            if number == learned:
                self.headstart.learn()
                self.plan()
                seen = set(traces.iterdir())
        pack = self.headstart.show(self.headstart.state / "login.pack", "--limit=0")
        samples = [coverage.compare(pack, self.headstart.show(trace, "--limit=0"))
                   for trace in sorted(traces.glob("*-login*.json")) if trace not in seen]
        return {"learned": learned, "samples": samples}

    def memory(self, events, runs):
        """Measures headstartd's peak memory after `events` opens: copies of cat, each a separate
        application, open the files of the system. Returns a dict."""
        missing = self.headstart.missing()
        if missing:
            raise BenchError(f"not built (--builddir): {', '.join(missing)}")
        samples = []
        for number in range(1, runs + 1):
            self.progress.say(f"{events} events, run {number} of {runs}", number - 1, runs)
            self.headstart.forget()
            self.disk.fresh()
            self.disk.delays(False)
            files = [os.path.join(d, f) for d, _, names in os.walk(self.disk.root) for f in names]
            files = [f for f in files if os.path.isfile(f) and not os.path.islink(f)]
            cat = shutil.which("cat")
            with self.headstart.recorder("boot") as recorder:
                left, copies = events, 0
                while left > 0:
                    copies += 1
                    own = self.disk.root / f"tmp/cat{copies}"
                    shutil.copy(cat, own)
                    part = files[:left]
                    run("xargs", "-0", own, "--", input="\0".join(part), stdout=subprocess.DEVNULL)
                    left -= len(part)
                recorder.stop()
            trace = next((self.headstart.state / "traces").iterdir())
            samples.append({"peak_kib": recorder.peak_kib, "trace_bytes": trace.stat().st_size,
                            "accesses": self.headstart.show(trace)["n_accesses"]})
        return {"events": events, "samples": samples}

    def plain_boot(self, beside=contextlib.nullcontext):
        """Measures the seconds of a cold boot. `beside` returns a context that lasts from just
        before the boot until after it."""
        self.disk.fresh()
        with self.machine() as machine:
            machine.assemble()
            system.back_free_memory(STAGE_MEMORY)
            self.disk.delays(True)
            with beside():
                machine.power_on()
                seconds = machine.wait_booted()
            self.disk.delays(False)
        return seconds

    # --- afterwards

    def keep_state(self, directory):
        """Copies headstart's state into the directory, from every disk on which it learned."""
        Path(directory).mkdir(parents=True, exist_ok=True)
        if self.headstart.state.exists():
            run("cp", "-a", "--no-target-directory", self.headstart.state,
                Path(directory) / "outside")
        for learned in sorted((self.work / "learned").glob("*")):
            run("cp", "-a", "--no-target-directory", learned, Path(directory) / learned.name)

    def add_costs(self, sample, start):
        """Adds sweep_s to both phases of a sample: what their reads would have cost in the best
        order. The sample's sections of the log begin after the byte offset `start`."""
        self.disk.log_size()  # flushes the log
        part = self.work / "disk.log.part"
        disklog.write_part(self.disk.log, start, part)
        diskcost = Path(self.builddir) / "tests/bench/diskcost"
        costs = {s["section"]: s for s in json.loads(run(diskcost, "--json", part).stdout)}
        for phase in ("prefetch", "stage"):
            sample[phase]["sweep_s"] = costs[f"{sample['section']}/{phase}"]["sweep_s"]
