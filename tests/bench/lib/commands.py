"""Running other programs: errors say what the program said."""

import shlex
import shutil
import signal
import subprocess
from contextlib import contextmanager


class BenchError(Exception):
    """What a person is told in one line; no traceback."""


def run(*command, check=True, **kwargs):
    """Runs a command to its end and returns the CompletedProcess; its output is captured. Raises
    BenchError with the last line it wrote to stderr if it fails."""
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
    """Raises BenchError naming all programs that are not installed."""
    missing = [p for p in programs if not shutil.which(p)]
    if missing:
        raise BenchError("needs " + ", ".join(missing) + " (not installed)")


@contextmanager
def signals_as_exceptions():
    """SIGTERM and SIGHUP unwind the stack as SIGINT does, so that everything is taken down."""

    def stop(number, frame):
        # Once is enough: a second one must not interrupt the clean-up.
        for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(s, signal.SIG_IGN)
        raise SystemExit(128 + number)

    old = {s: signal.signal(s, stop) for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for s, handler in old.items():
            signal.signal(s, handler)
