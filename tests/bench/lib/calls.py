"""Measures how long processes wait in system calls and in page faults, with the kernel's tracepoints."""

import os
import re
from pathlib import Path

from . import system
from .commands import BenchError

# Group of calls -> the system calls that belong to it. A kernel may lack some of them.
GROUPS = {"read": ("read", "pread64"), "open": ("open", "openat"), "stat": ("stat", "lstat", "newfstatat", "statx"),
          "getdents": ("getdents", "getdents64")}
BUFFER_KB = 65536  # of each processor
EVENT = re.compile(r"-(\d+) +\[\d+\] +\S+ +(\d+\.\d+): sys_(\w+)( -> |\()")

# A process that sleeps in state D outside of all system calls waits in a page fault, for the disk or for
# another thread that has the lock of the address space and waits for the disk.
FAULTS = "faults"
FAULT_EVENTS = ("raw_syscalls/sys_enter", "raw_syscalls/sys_exit", "sched/sched_switch")
SIDE = re.compile(r"-(\d+) +\[\d+\] +\S+ +\d+\.\d+: sys_(enter|exit): ")
SWITCH = re.compile(r" (\d+\.\d+): sched_switch: .*prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+) ")


class CallTimes:
    """Counts the calls of chosen processes and of all that they start, and adds up their times.
    Context manager. Needs a private mount namespace."""

    def __init__(self, mountpoint, groups=GROUPS, faults=False):
        self.mountpoint = Path(mountpoint)
        self.faults = faults
        self.instance = self.mountpoint / "instances" / f"headstart-calls-{os.getpid()}"
        self.group_of = {call: group for group, calls in groups.items() for call in calls}
        self.groups = groups

    def __enter__(self):
        self.mountpoint.mkdir(exist_ok=True)
        system.mount("none", self.mountpoint, "tracefs")
        self.instance.mkdir()
        try:
            (self.instance / "tracing_on").write_text("0")
            (self.instance / "options/event-fork").write_text("1")
            (self.instance / "buffer_size_kb").write_text(str(BUFFER_KB))
            for call in self.group_of:
                for side in ("enter", "exit"):
                    enable = self.instance / f"events/syscalls/sys_{side}_{call}/enable"
                    if enable.exists():
                        enable.write_text("1")
            for event in FAULT_EVENTS if self.faults else ():
                (self.instance / "events" / event / "enable").write_text("1")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.instance.rmdir()
        system.umount(self.mountpoint)

    def observe_self(self):
        """Observes the calling process from now on, and those that it will start: for preexec_fn."""
        (self.instance / "set_event_pid").write_text(str(os.getpid()))

    def start(self, pid=None):
        """Forgets what was observed. `pid` is observed from now on; None: nothing until a process calls
        observe_self()."""
        (self.instance / "set_event_pid").write_text(f"{pid}" if pid else "\n")
        (self.instance / "trace").write_text("\n")
        (self.instance / "tracing_on").write_text("1")

    def stop(self):
        """Returns {group: (number of calls, their seconds)} since start(), with `faults` also FAULTS."""
        (self.instance / "tracing_on").write_text("0")
        with open(self.instance / "trace", encoding="utf-8", errors="replace") as lines:
            return add_up(lines, self.group_of, self.groups, self.faults)


class FaultTimes:
    """Adds up the time that processes sleep in page faults."""

    def __init__(self):
        self.in_call, self.began, self.n, self.seconds = set(), {}, 0, 0.0

    def feed(self, line):
        if match := SIDE.search(line):
            (self.in_call.add if match[2] == "enter" else self.in_call.discard)(match[1])
        elif match := SWITCH.search(line):
            at, leaves, state, comes = match.groups()
            if state.startswith("D") and leaves not in self.in_call:
                self.began[leaves] = float(at)
            if comes in self.began:
                self.n += 1
                self.seconds += float(at) - self.began.pop(comes)


def add_up(lines, group_of, groups=GROUPS, faults=False):
    """Returns {group: (number of calls, their seconds)} of a trace in the kernel's text format."""
    found, began, waits = {group: [0, 0.0] for group in groups}, {}, FaultTimes()
    for line in lines:
        if line.startswith("# entries-in-buffer/entries-written: "):
            kept, written = line.split()[2].split("/")
            if kept != written:
                raise BenchError("the buffer of the tracepoints is too small")
        if faults:
            waits.feed(line)
        match = EVENT.search(line)
        if not match or match[3] not in group_of:
            continue
        if match[4] == "(":
            began[match[1]] = float(match[2])
        elif match[1] in began:
            own = found[group_of[match[3]]]
            own[0] += 1
            own[1] += float(match[2]) - began.pop(match[1])
    return {**{group: tuple(own) for group, own in found.items()},
            **({FAULTS: (waits.n, waits.seconds)} if faults else {})}
