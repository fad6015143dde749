"""One boot of a machine: qemu with software emulation, its disks, its serial ports, its monitor."""

import io
import json
import os
import random
import select
import socket
import subprocess
import tarfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from .commands import LOCK, VmError, locked, run

OUT_MIB = 128
# All processors share one thread. With one thread for each processor, a kernel that patches its
# code (static keys) sometimes executes its own int3 on the other processor and panics.
CPUS = 2
# The emulation is slow with AVX, and udev loads a module for each further feature that a processor has (AES, SVM).
# Debian needs none of them.
CPU = "Nehalem"
# After this time a text is typed again, until the agent runs.
TYPE_SECONDS = 10
# On a busy host, the time limit of a machine is prolonged by at most this multiple.
STARVED_FACTOR = 3
PANIC = b"Kernel panic - not syncing"

# The characters that `host type` can type, and their keys.
KEYS = {" ": "spc", "-": "minus", "/": "slash", ".": "dot", "=": "equal", ";": "semicolon",
        "\n": "ret", "_": "shift-minus", ">": "shift-dot", "&": "shift-7"}


@dataclass
class Disk:
    path: Path
    fmt: str
    serial: str


@dataclass
class Outcome:
    lines: list = field(default_factory=list)  # the guest's output
    finished: bool = False                     # the guest reported its end
    cut: bool = False                          # the guest requested the power cut
    off: bool = False                          # the guest powered off by itself
    seconds: float = 0


def pack_case(path, files, boot):
    """Writes the case disk: a tar file of `files` ({name: bytes or Path}) and of the boot number."""
    with tarfile.open(path, "w") as tar:
        for name, content in {**files, "boot": f"{boot}\n".encode()}.items():
            if isinstance(content, Path):
                content = content.read_bytes()
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(content), 0o755, int(time.time())
            tar.addfile(info, io.BytesIO(content))


def unpack_out(path, directory):
    """Extracts the files that the guest wrote to the output disk into `directory`. Extracts nothing
    if the guest ended before it wrote them."""
    try:
        with tarfile.open(path) as tar:
            for member in tar:
                # The input comes from a machine that the tests broke on purpose, so devices and
                # paths with ".." are refused.
                if (member.isfile() or member.isdir()) and ".." not in member.name.split("/"):
                    member.mode |= 0o600 if member.isfile() else 0o700
                    tar.extract(member, directory, set_attrs=False)
    except (tarfile.TarError, OSError):
        pass


def starved(pid, proc=Path("/proc")):
    """Returns for how many seconds the process was ready to run and got no processor: the longest
    such time of its threads, from /proc/PID/task/TID/schedstat (proc(5): run_delay). Returns 0 if
    the process is gone or the kernel does not count it."""
    longest = 0
    for thread in proc.glob(f"{pid}/task/*/schedstat"):
        try:
            longest = max(longest, int(thread.read_text().split()[1]))
        except (OSError, IndexError, ValueError):
            pass  # This thread has ended.
    return longest / 1e9


class Machine:
    def __init__(self, kernel, initrd, append, disks, memory_mib, graphics, directory, artefacts,
                 prefix, clock="", typed=""):
        """`clock`: the guest's time at the start (default: the host's). `typed`: the text that is
        typed again and again until the agent runs."""
        self.typed, self.cut_at = typed, float("inf")
        # With panic=, initramfs-tools reboots instead of starting a shell.
        consoles = ("console=ttyS0 console=tty0" if typed else
                    "console=tty0 console=ttyS0 panic=1")
        self.directory, self.artefacts, self.prefix = Path(directory), Path(artefacts), prefix
        self.console = self.artefacts / f"{prefix}-console.log"
        self.agent_path = self.directory / "agent"
        self.qmp_path = self.directory / "qmp"
        self.command = [
            "nice", "-n", "10", "qemu-system-x86_64", "-nodefaults", "-no-user-config",
            "-machine", "q35", "-accel", "tcg,thread=single", "-cpu", CPU, "-smp", str(CPUS),
            "-m", str(memory_mib), "-display", "none", "-no-reboot", "-nic", "none",
            "-rtc", f"base={clock or 'utc'}", "-device", "virtio-rng-pci",
            "-kernel", str(kernel), "-initrd", str(initrd),
            # On a busy host an emulated timer may be late. Without no_timer_check the kernel would
            # then panic. Mitigations protect nothing here, and make the emulation slower.
            "-append", f"{append} no_timer_check mitigations=off {consoles} systemd.show_status=1",
            "-serial", f"file:{self.console}",
            "-chardev", f"socket,id=agent,path={self.agent_path},server=on,wait=off",
            "-serial", "chardev:agent",
            "-qmp", f"unix:{self.qmp_path},server=on,wait=off",
        ]
        if graphics:
            self.command += ["-device", "virtio-vga", "-device", "virtio-keyboard-pci"]
        else:
            self.command += ["-vga", "std", "-device", "virtio-keyboard-pci"]
        for i, d in enumerate(disks):
            # With writeback, data that the guest flushed survives a power cut. Other data may be
            # lost.
            self.command += [
                "-drive", f"if=none,id=d{i},file={d.path},format={d.fmt},cache=writeback",
                "-device", f"virtio-blk-pci,drive=d{i},serial={d.serial}"]
        self.qemu = None

    def run(self, timeout):
        """Runs the machine until it powers off or the time limit is reached. The time in which a
        busy host gives qemu no processor does not count, up to STARVED_FACTOR times the limit.
        Returns an Outcome. Ends qemu in any case."""
        with ExitStack() as stack:
            stack.enter_context(locked(LOCK, "a measurement on this machine", shared=True))
            started = time.monotonic()
            errors = stack.enter_context(
                open(self.artefacts / f"{self.prefix}-qemu.log", "w+", encoding="utf-8"))
            self.qemu = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=errors,
                                         stderr=errors)
            stack.callback(self._end)
            agent = stack.enter_context(self._connect(self.agent_path))
            self.qmp = stack.enter_context(self._connect(self.qmp_path))
            self.qmp_file = self.qmp.makefile("rw", encoding="utf-8")
            self.qmp_file.readline()
            self._qmp("qmp_capabilities")
            outcome = Outcome()
            self._talk(agent, outcome, started, timeout)
            outcome.seconds = time.monotonic() - started
            return outcome

    def _talk(self, agent, outcome, started, timeout):
        pending, type_at = b"", time.monotonic() + TYPE_SECONDS
        while True:
            left = (started + timeout - time.monotonic()
                    + min(starved(self.qemu.pid), STARVED_FACTOR * timeout))
            if left <= 0:
                self._try_screen("timeout")
                return
            if time.monotonic() >= self.cut_at:
                self._cut(outcome)
                return
            if self.typed and not outcome.lines and time.monotonic() >= type_at:
                try:
                    self._type("\n" + self.typed)
                except (VmError, OSError):
                    pass  # If the machine is off, the agent's socket is closed, and recv() shows it.
                type_at = time.monotonic() + TYPE_SECONDS
            if not select.select([agent], [], [], min(left, 1, max(0, self.cut_at - time.monotonic())))[0]:
                if self.qemu.poll() is not None:
                    outcome.off = True
                    return
                if PANIC in self.console.read_bytes():
                    self._try_screen("panic")
                    return
                continue
            try:
                data = agent.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                try:
                    self.qemu.wait(max(1, min(60, left)))
                    outcome.off = True
                except subprocess.TimeoutExpired:
                    pass
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                text = line.decode(errors="replace").rstrip("\r")
                if text.startswith("host "):
                    if text == "host cut":
                        self._cut(outcome)
                        return
                    agent.sendall(b"done\n" if self._host(text.split(" ", 2)[1:], outcome)
                                  else b"failed\n")
                elif text == "finished":
                    outcome.finished = True
                elif text:
                    outcome.lines.append(text)

    # Executes a request of the guest. Returns False if the request failed.
    def _host(self, words, outcome):
        verb, argument = words[0], words[1] if len(words) > 1 else ""
        try:
            if verb == "key":
                for key in argument.split():
                    self._key(key)
            elif verb == "type":
                self._type(argument)
            elif verb == "cut-within":
                delay = random.uniform(0, float(argument))
                outcome.lines.append(f"# power is cut after {delay:.2f} s")
                self.cut_at = time.monotonic() + delay
            elif verb == "screen":
                self._screen(argument)
            else:
                raise VmError(f"asked for something unknown: {verb}")
            return True
        except (VmError, OSError, ValueError) as e:
            outcome.lines.append(f"# host: {e}")
            return False

    def _cut(self, outcome):
        self._kill()
        outcome.cut = outcome.off = True

    def _type(self, text):
        for c in text + "\n":
            self._key(KEYS.get(c) or (f"shift-{c.lower()}" if c.isupper() else c))

    def _key(self, key):
        self._qmp("send-key", keys=[{"type": "qcode", "data": k} for k in key.split("-")])
        # qemu holds a key for 100 ms; keys that overlap get lost.
        time.sleep(0.15)

    def _screen(self, name):
        safe = "".join(c for c in name if c.isalnum() or c in "-_") or "screen"
        self._qmp("screendump", filename=str(self.artefacts / f"{self.prefix}-{safe}.png"),
                  format="png")

    def _try_screen(self, name):
        try:
            self._screen(name)
        except (VmError, OSError, ValueError):
            pass

    def _qmp(self, command, **arguments):
        self.qmp_file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.qmp_file.flush()
        while line := self.qmp_file.readline():
            answer = json.loads(line)
            if "error" in answer:
                raise VmError(f"{command}: {answer['error'].get('desc')}")
            if "return" in answer:
                return answer["return"]
        raise VmError(f"{command}: qemu is gone")

    def _connect(self, path):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.qemu.poll() is None:
            s = socket.socket(socket.AF_UNIX)
            try:
                s.connect(str(path))
                return s
            except OSError:
                s.close()
                time.sleep(0.05)
        self._end()
        said = (self.artefacts / f"{self.prefix}-qemu.log").read_text().strip().splitlines()
        raise VmError("qemu: " + (said[-1] if said else "does not answer"))

    def _kill(self):
        if self.qemu.poll() is None:
            self.qemu.kill()
        self.qemu.wait()

    def _end(self):
        if self.qemu and self.qemu.poll() is None:
            self._kill()


def overlay(path, base, fmt="raw"):
    run("qemu-img", "create", "-q", "-f", "qcow2", "-F", fmt, "-b", base, path)


def blank(path, mib):
    with open(path, "wb") as f:
        f.truncate(mib << 20)
    os.chmod(path, 0o600)
