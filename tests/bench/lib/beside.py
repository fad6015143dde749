"""Measures what headstart costs the boot during which it runs, with and without faults. Each pair
has one cold boot with it and one without, and the order alternates."""

import contextlib
import random
import shutil
import signal
import statistics
import threading

from .commands import BenchError, run

# The replay or the recorder fails this many seconds after the start of the boot. The time for the
# replay is shorter, because a replay ends soon.
REPLAY_BREAKS_S, RECORDER_BREAKS_S = 0.2, 1.0


@contextlib.contextmanager
def recording(bench, facts):
    """headstartd records the boot"""
    bench.headstart.forget()
    with bench.headstart.recorder("boot") as recorder:
        yield
        recorder.stop()
        facts["headstartd_peak_kib"] = max(recorder.peak_kib, facts.get("headstartd_peak_kib", 0))


@contextlib.contextmanager
def _breaking(process, number, after):
    """Sends the signal to the process `after` seconds after the start of the boot."""
    broken = []

    def break_it():
        if process.poll() is None:
            process.send_signal(number)
            broken.append(True)

    timer = threading.Timer(after, break_it)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
    if not broken:
        raise BenchError("the process had ended before the fault was injected")


@contextlib.contextmanager
def _broken_recorder(bench, number):
    bench.headstart.forget()
    with (bench.headstart.recorder("boot") as recorder,
          _breaking(recorder.process, number, RECORDER_BREAKS_S)):
        yield


@contextlib.contextmanager
def recorder_killed(bench, facts):
    """headstartd is killed"""
    with _broken_recorder(bench, signal.SIGKILL):
        yield


@contextlib.contextmanager
def recorder_hung(bench, facts):
    """headstartd hangs (SIGSTOP)"""
    with _broken_recorder(bench, signal.SIGSTOP):
        yield


@contextlib.contextmanager
def state_full(bench, facts):
    """headstartd records, and the filesystem has no room for the trace"""
    bench.headstart.forget()
    run("mount", "-t", "tmpfs", "-o", "size=4k", "none", bench.headstart.state)
    try:
        with bench.headstart.recorder("boot"):
            yield
    finally:
        run("umount", bench.headstart.state)


def _replay(bench, pack):
    return bench.headstart.replaying(pack, "--policy=concurrent")


def _boot_pack(bench):
    """Returns a pack of a boot, which the first call makes."""
    pack = bench.work / "beside.pack"
    if not pack.exists():
        bench.record()
        shutil.copy(bench.headstart.state / "boot.pack", pack)
    return pack


@contextlib.contextmanager
def _broken_replay(bench, number):
    with (_replay(bench, _boot_pack(bench)) as process,
          _breaking(process, number, REPLAY_BREAKS_S)):
        yield


@contextlib.contextmanager
def replay_killed(bench, facts):
    """headstart-replay is killed while it reads"""
    with _broken_replay(bench, signal.SIGKILL):
        yield


@contextlib.contextmanager
def replay_hung(bench, facts):
    """headstart-replay hangs while it reads (SIGSTOP)"""
    with _broken_replay(bench, signal.SIGSTOP):
        yield


@contextlib.contextmanager
def pack_corrupt(bench, facts):
    """the pack is damaged"""
    pack = bench.work / "corrupt.pack"
    damaged = bytearray(_boot_pack(bench).read_bytes())
    damaged[4096:4352] = random.Random(1).randbytes(256)
    pack.write_bytes(damaged)
    with _replay(bench, pack) as process:
        yield
        if process.wait() != 1:
            raise BenchError("headstart-replay took a damaged pack")


FAULTS = {"recorder-killed": recorder_killed, "recorder-hung": recorder_hung,
          "state-full": state_full, "replay-killed": replay_killed, "replay-hung": replay_hung,
          "pack-corrupt": pack_corrupt}


def compare(bench, name, what, pairs):
    """Measures pairs of boots with and without `what`. Returns a dict: the seconds of both boots of
    each pair, their ratio, and the medians."""
    missing = bench.headstart.missing()
    if missing:
        raise BenchError(f"not built (--builddir): {', '.join(missing)}")
    without, with_it, facts = [], [], {}
    if what in (replay_killed, replay_hung, pack_corrupt):
        _boot_pack(bench)
    for pair in range(pairs):
        bench.progress.say(f"{name}: pair {pair + 1} of {pairs}", pair, pairs)
        for there in ((False, True) if pair % 2 else (True, False)):
            if there:
                with_it.append(bench.plain_boot(lambda: what(bench, facts)))
            else:
                without.append(bench.plain_boot())
    ratios = [b / a for a, b in zip(without, with_it)]
    quartiles = statistics.quantiles(ratios, n=4) if pairs > 1 else [ratios[0]] * 3
    return {"name": name, "about": what.__doc__, "pairs": pairs,
            "without_s": statistics.median(without), "with_s": statistics.median(with_it),
            "ratio_median": statistics.median(ratios),
            "ratio_quartiles": [quartiles[0], quartiles[2]],
            "ratio_min": min(ratios), "ratio_max": max(ratios),
            "ratios": ratios, "without": without, "with": with_it, **facts}
