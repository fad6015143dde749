"""Runs other programs. An error contains what the program printed."""

import shlex
import shutil
import signal
import subprocess
from contextlib import contextmanager


class BenchError(Exception):
    """An error that is printed in one line, without a traceback."""


def run(*command, check=True, **kwargs):
    """Runs a command to its end, captures its output, and returns the CompletedProcess. If it
    fails, raises BenchError with the last line that it wrote to stderr, or else to stdout. With
    check=False a failure is no error."""
    kwargs = {"stdout": subprocess.PIPE, **kwargs}
    if "input" not in kwargs:
        kwargs["stdin"] = subprocess.DEVNULL
    done = subprocess.run([str(c) for c in command], stderr=subprocess.PIPE, text=True,
                          errors="replace", **kwargs)
    if check and done.returncode != 0:
        said = (done.stderr.strip() or (done.stdout or "").strip()).splitlines()
        raise BenchError(f"{shlex.join(done.args)}: "
                         + (said[-1] if said else f"exit status {done.returncode}"))
    return done


def need(*programs):
    """Raises BenchError with the names of all programs that are not installed."""
    missing = [p for p in programs if not shutil.which(p)]
    if missing:
        raise BenchError("needs " + ", ".join(missing) + " (not installed)")


@contextmanager
def signals_as_exceptions():
    """SIGTERM and SIGHUP unwind the stack as SIGINT does, so that everything is cleaned up."""

    def stop(number, frame):
        # A second signal must not interrupt the clean-up.
        for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(s, signal.SIG_IGN)
        raise SystemExit(128 + number)

    old = {s: signal.signal(s, stop) for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for s, handler in old.items():
            signal.signal(s, handler)
