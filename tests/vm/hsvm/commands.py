"""Runs other programs. An error contains what the program printed."""

import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

# A process that measures times on this machine holds this lock alone, because an emulated boot would
# disturb it. Emulated boots share the lock.
LOCK = "/tmp/headstart-bench.lock"


class VmError(Exception):
    """An error that is printed in one line, without a traceback."""


def say(text):
    print(f"# {text}", file=sys.stderr, flush=True)


def run(*command, check=True, **kwargs):
    """Runs a command to its end, captures its output, and returns the CompletedProcess. If `check`
    is true and the command fails, raises VmError with the last line that the command wrote to
    stderr, or to stdout if stderr is empty."""
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True,
                          errors="replace", **kwargs)
    if check and done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise VmError(f"{shlex.join(done.args)}: "
                      + (said[-1] if said else f"exit status {done.returncode}"))
    return done


def need(*programs):
    """Raises VmError with the names of all programs that are not installed."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [p for p in programs if not shutil.which(p, path=path)]
    if missing:
        raise VmError("not installed: " + ", ".join(missing))


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


@contextmanager
def locked(path, what, shared=False):
    """Holds a lock on a file, which other processes may share if `shared` is true. Prints a line if
    it must wait for the lock."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for {what}")
            fcntl.flock(fd, kind)
        yield
    finally:
        os.close(fd)


def in_private_mounts():
    """Restarts the program once in a mount namespace of its own, so that its mounts disappear
    however it ends."""
    if os.environ.pop("HSVM_PRIVATE_MOUNTS", None) == str(os.getpid()):
        return
    os.environ["HSVM_PRIVATE_MOUNTS"] = str(os.getpid())
    os.execvp("unshare", ["unshare", "--mount", "--propagation=private",
                          sys.executable, *sys.argv])
