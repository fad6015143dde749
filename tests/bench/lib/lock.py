"""Lets only one bench run at a time."""

import contextlib
import fcntl
import os

LOCK = "/tmp/headstart-bench.lock"


@contextlib.contextmanager
def one_at_a_time(progress):
    """Two benches on one machine would slow each other down. A caller that holds the lock itself
    sets HEADSTART_BENCH_LOCKED in the environment."""
    if os.environ.get("HEADSTART_BENCH_LOCKED"):
        yield
        return
    with open(LOCK, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say("waiting for another bench to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
