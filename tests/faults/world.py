# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shared by the programs of tests/faults: a small filesystem on a loop device, a state directory
with traces of it, and the rules that a state directory must follow at every moment."""

import contextlib
import gzip
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent

# What the recorded stages open.
PATHS = ("/usr/bin/app", "/usr/lib/lib.so", "/usr/share/d", "/usr/share/d/x", "/data/file", "/data/d", "/data/d/y")


class Programs:
    def __init__(self, build):
        build = pathlib.Path(build).resolve()
        self.build = build
        self.headstart = build / "src/cli/headstart"
        self.replay = build / "src/replay/headstart-replay"
        self.daemon = build / "src/daemon/headstartd"
        self.early = build / "src/early/headstart-init"
        self.faults = build / "tests/faults/libfaults.so"


def run(*command, check=True, **arguments):
    return subprocess.run([str(c) for c in command], check=check, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **arguments)


class Broken(Exception):
    """A violation of a rule."""


def backs(image, loop):
    """Returns whether the loop device has this image."""
    try:
        return pathlib.Path("/sys/block", pathlib.Path(loop).name, "loop/backing_file").read_text().strip() == str(image)
    except OSError:
        return False


@contextlib.contextmanager
def loop_device(image):
    """Attaches the image to a loop device. Errors that another program causes because it detaches the device
    while it is in use become an error that says this. At the end detaches the device if it still has the
    image, because otherwise it may belong to another program."""
    image = pathlib.Path(image).resolve()
    loop = run("losetup", "--find", "--show", image).stdout.decode().strip()
    try:
        yield loop
    except (Broken, subprocess.CalledProcessError) as e:
        if not backs(image, loop):
            raise Broken(f"another program detached {loop} from {image.name} while it was in use") from e
        raise
    finally:
        if backs(image, loop):
            run("losetup", "--detach", loop, check=False)


class World:
    """Two mounted ext4 with some files, the second one on root/data, and a template of a state directory
    (template). headstart accesses the second disk in threads of its own."""

    def __init__(self, programs):
        self.programs = programs
        self.stack = contextlib.ExitStack()
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.tmp = pathlib.Path(self.stack.enter_context(
            tempfile.TemporaryDirectory(prefix="headstart-faults-", dir=place)))
        self.root = self.tmp / "mnt"
        self.template = self.tmp / "template"
        self.environment = {**os.environ, "HEADSTART_REPLAY": str(programs.replay), "LC_ALL": "C.UTF-8"}

    def mount(self, name, where):
        """Mounts a new ext4. Returns its loop device."""
        image = self.tmp / name
        with open(image, "wb") as f:
            f.truncate(24 << 20)
        run("mkfs.ext4", "-q", image)
        loop = self.stack.enter_context(loop_device(image))
        where.mkdir()
        run("mount", "-o", "relatime", loop, where)
        self.stack.callback(run, "umount", where)
        return loop

    def __enter__(self):
        self.loop = self.mount("image", self.root)
        self.data_loop = self.mount("data.image", self.root / "data")
        for path, size in (("usr/bin/app", 60000), ("usr/lib/lib.so", 90000), ("usr/share/d/x", 10),
                           ("data/file", 70000), ("data/d/y", 10)):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(os.urandom(size))
        os.sync()
        return self

    def __exit__(self, *reason):
        self.stack.close()

    def trace(self, state, number, stage="boot", start=1793520000, uid=-1, paths=PATHS):
        text = run(SOURCE / "tests/bats/make-trace", self.root, self.loop, stage,
                   start + number, f"/data={self.data_loop}", *paths).stdout
        (state / "traces").mkdir(parents=True, exist_ok=True, mode=0o700)
        state.chmod(0o700)
        # One member per line, as the recorder writes it, so that a known trace is recognised by its
        # head.
        members = (f"{json.dumps(k)}:{json.dumps(v)}" for k, v in {**json.loads(text), "uid": uid}.items())
        text = ("{" + ",\n".join(members) + "}\n").encode()
        file = state / f"traces/20261101T0800{number:02}-{stage}.json"
        file.write_bytes(text)
        file.chmod(0o600)

    def verb(self, state, *arguments, **options):
        return run(self.programs.headstart, f"--state={state}", f"--root={self.root}", *arguments,
                   env=options.pop("env", self.environment), **options)

    def fresh_template(self):
        shutil.rmtree(self.template, ignore_errors=True)
        self.template.mkdir(mode=0o700)

    def fresh(self, name="state"):
        """Makes a copy of the template."""
        state = self.tmp / name
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(self.template, state)
        return state


def text_of(path):
    """Returns the text of a trace or a model, which may be compressed."""
    text = path.read_bytes()
    return gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def learned(state):
    """Returns the number of traces that the model contains. None means that there is no model."""
    try:
        return len(json.loads(text_of(state / "model.json"))["learned"])
    except FileNotFoundError:
        return None


def lines_of(state):
    """Returns for each file of lines the number of its complete lines. Fails if a complete line is not an
    object of JSON, or if a file that is no longer written ends within a line."""
    n = {}
    for p in sorted(state.glob("*.jsonl")):
        *lines, rest = p.read_bytes().split(b"\n")
        # The writer cuts off a line that is not complete, and only then renames the file.
        if rest and p.name.endswith(".1.jsonl"):
            raise Broken(f"{p.name} ends within a line")
        for i, line in enumerate(lines):
            try:
                good = json.loads(line)["version"] == 1
            except (ValueError, TypeError, KeyError):
                good = False
            if not good:
                raise Broken(f"{p.name}, line {i + 1}: {line[:100]}")
        n[p.name] = len(lines)
    return n


def check_lines(world, state):
    """Checks that headstart reads each complete line of the history, and of the starts of applications."""
    n = lines_of(state)
    for name, options in (("history", []), ("launches", ["--launches"])):
        expected = n.get(f"{name}.jsonl", 0) + n.get(f"{name}.1.jsonl", 0)
        if expected == 0:
            continue
        r = world.verb(state, "history", *options, "--limit=0", "--json=short", check=False)
        if r.returncode != 0:
            raise Broken(f"{name}: headstart history exits with {r.returncode}: {r.stderr.decode().strip()}")
        if (found := len(json.loads(r.stdout))) != expected:
            raise Broken(f"{name}.jsonl has {expected} lines, but headstart reads {found}: {r.stderr.decode().strip()}")


def check_json(path):
    """Checks a file that is replaced as a whole: it is absent or has an object of JSON."""
    try:
        good = isinstance(json.loads(path.read_bytes()), dict)
    except FileNotFoundError:
        return
    except ValueError:
        good = False
    if not good:
        raise Broken(f"{path.name} cannot be read: {path.read_bytes()[-200:]}")


def check_refreshed(world, state):
    """Checks that a request for a refresh is there, or nothing is left to do."""
    if (state / "refresh-wanted").exists():
        return
    left = json.loads(world.verb(state, "refresh", "--dry-run", "--json=short").stdout)
    if left["files"]:
        raise Broken(f"the request is lost, and not refreshed are {left['files']}")


def upgrade(world, state):
    """Replaces the library, and requests a refresh like the hook of a package manager."""
    lib = world.root / "usr/lib/lib.so"
    new = lib.with_suffix(".new")
    new.write_bytes(os.urandom(90000))
    new.rename(lib)
    run("sync", "-f", world.root)
    (state / "refresh-wanted").touch(mode=0o600)


def check_state(world, state, before):
    """Checks that a state directory follows the rules after a program that uses it was disturbed.
    `before` lists the files of the directory before the program ran."""
    now = {str(p.relative_to(state)) for p in state.rglob("*") if p.is_file()}
    for name in now:
        if name.endswith(".bad"):
            raise Broken(f"{name}: a good file was set aside")
        new_trace = name.startswith("traces/") and name.endswith(".json") and name not in before
        if new_trace or name.endswith((".pack", "model.json")):
            r = world.verb(state, "show", state / name, "--json=short", check=False)
            if r.returncode != 0:
                raise Broken(f"{name} cannot be read: {r.stderr.decode().strip()}")
    for name in before:
        if name.endswith((".json", ".jsonl", ".pack")) and name not in now:
            raise Broken(f"{name} is lost")
    check_lines(world, state)
    check_json(state / "devices.json")
    for p in state.rglob("*"):
        if p.stat().st_mode & 0o077:
            raise Broken(f"{p.name} can be read by others: {oct(p.stat().st_mode)}")


class Lines:
    """Lines of three users in both files of the history and of the starts, of which `forget` deletes those of
    one user (Lines.user)."""

    user = 1001
    names = ("history", "launches")

    def __init__(self, state):
        self.others = {}
        for name in self.names:
            lines = [self.line(name, i) for i in range(60)]
            for file, part in ((f"{name}.1.jsonl", lines[:40]), (f"{name}.jsonl", lines[40:])):
                (state / file).write_text("".join(json.dumps(x) + "\n" for x in part))
                (state / file).chmod(0o600)
            self.others[name] = [x for x in lines if x["uid"] != self.user]

    def line(self, name, i):
        line = {"version": 1, "uid": 1000 + i % 3, "start_realtime_usec": 1793520000000000 + i}
        if name == "history":
            return {**line, "stage": "login", "flags": [], "policy": "off", "usage": "none"}
        return {**line, "application": "/usr/bin/app", "took_usec": 1000 + i, "files": 30, "replayed": "no"}

    def read(self, state, name):
        for file in (f"{name}.1.jsonl", f"{name}.jsonl"):
            with contextlib.suppress(FileNotFoundError), open(state / file, encoding="utf-8") as f:
                yield from map(json.loads, f)

    def check_others(self, state):
        """Checks that no line of another user is lost."""
        for name, others in self.others.items():
            if [x for x in self.read(state, name) if x["uid"] != self.user] != others:
                raise Broken(f"{name} has not all lines of other users")

    def check_deleted(self, state):
        """Checks that only the lines of other users are there."""
        for name, others in self.others.items():
            if list(self.read(state, name)) != others:
                raise Broken(f"{name} has other lines than those of other users")


def is_forgotten(trace):
    """Returns whether `forget --user=` deletes the trace. The user of a login may be unknown."""
    t = json.loads(text_of(trace))
    return t["uid"] == Lines.user or (t["uid"] == -1 and t["stage"] != "boot")


def files_of(state):
    return {str(p.relative_to(state)) for p in state.rglob("*") if p.is_file()}
