"""Timed starts of applications, and the session cycle that reads ahead for them."""

import time

from . import disklog, system
from .inside import Inside
from .installed import LEARN_TIMEOUT_S, SETTLE_TIMEOUT_S

# headstartd predicts every few seconds, so that a start need not be awaited for long.
CYCLE_S = 4

# More free memory than an application takes until its window is mapped.
START_MEMORY = 256 << 20

# A start is repeated if the data that it reads a second time exceeds both this many megabytes and
# this share of everything that it reads; see bench.py.
DISTURBED_MB, DISTURBED_PART = 0.05, 0.03


def configure(bench, text):
    """Writes headstart's configuration into the tree: `text` becomes the section [Session]."""
    path = bench.disk.root / "etc/headstart/headstart.conf"
    path.parent.mkdir(exist_ok=True)
    path.write_text("[Session]\n" + text)


def log_in(bench, machine, has_package, idle_s):
    """Boots and logs in. Then the session idles until the installed headstart has learned and planned or, without
    headstart, for `idle_s`. A machine that reclaims cold page cache drops more of the desktop's libraries, the longer a
    session idles. Returns how long the session has idled."""
    # headstart measures the disk when it plans, and learns from the times of its replays.
    bench.disk.delays(has_package)
    machine.power_on()
    machine.wait_booted()
    machine.let_in()
    machine.wait_logged_in()
    begun = time.monotonic()
    if has_package:
        inside = Inside(machine)
        inside.wait_file("login-recorded", SETTLE_TIMEOUT_S)
        inside.wait_ended("headstart-learn.service", LEARN_TIMEOUT_S)
    else:
        time.sleep(idle_s)
    bench.disk.delays(False)
    bench.wait_disk_idle(0.5, 20)
    return time.monotonic() - begun


def section(name, variant):
    """Returns the name of the start in the disk's log."""
    return f"start/{name}/{variant}"


def timed(bench, machine, name, variant, command, window):
    """Starts an application with the disk's delays on. Returns the seconds until its window is mapped, and
    what the disk read meanwhile."""
    system.back_free_memory(START_MEMORY)
    bench.disk.mark(section(name, variant))
    before = bench.disk.counters()
    bench.disk.delays(True)
    try:
        seconds = machine.start(name, command, window)
    finally:
        after = bench.disk.counters()
        bench.disk.delays(False)
        bench.disk.mark("after")
    return {"application": name, "variant": variant, "seconds": seconds,
            **(after - before).as_dict()}


def least_disturbed(bench, retries, start):
    """Calls start() and returns its sample. If the machine dropped data that had been read for the start,
    start() is repeated, at most `retries` times; the least disturbed sample counts."""
    samples = []
    for _ in range(retries + 1):
        log_start = bench.disk.log_size()
        sample = start()
        again = disklog.read_again(bench.disk.log, log_start)
        sample["again_mb"] = again.get(section(sample["application"], sample["variant"]), 0) / 1e6
        samples.append(sample)
        if sample["again_mb"] <= max(DISTURBED_MB, DISTURBED_PART * sample["mb"]):
            break
    best = min(samples, key=lambda s: s["again_mb"])
    best["disturbed"] = [s for s in samples if s is not best]
    return best


def wait_first_reads(bench, timeout):
    """Waits until the session cycle reads, but at most until the timeout: the cycle reads nothing
    if nothing is missing."""
    reads, end = bench.disk.counters().reads, time.monotonic() + timeout
    while bench.disk.counters().reads == reads and time.monotonic() < end:
        time.sleep(0.02)


def wait_brought_in(recorder, timeout):
    """Waits until the session cycle has read everything that it requested. `recorder` is a Recorder, or the Inside of a
    machine with the package."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        resident = recorder.dump()["prefetch"]
        if resident["n_passes"] > 0 and not resident["working"]:
            return
        time.sleep(0.1)
