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


class Programs:
    def __init__(self, build):
        build = pathlib.Path(build).resolve()
        self.build = build
        self.headstart = build / "src/cli/headstart"
        self.replay = build / "src/replay/headstart-replay"
        self.daemon = build / "src/daemon/headstartd"
        self.faults = build / "tests/faults/libfaults.so"


def run(*command, check=True, **arguments):
    return subprocess.run([str(c) for c in command], check=check, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **arguments)


class World:
    """A mounted ext4 with some files (root), and a template of a state directory (template)."""

    def __init__(self, programs):
        self.programs = programs
        self.stack = contextlib.ExitStack()
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.tmp = pathlib.Path(self.stack.enter_context(
            tempfile.TemporaryDirectory(prefix="headstart-faults-", dir=place)))
        self.root = self.tmp / "mnt"
        self.template = self.tmp / "template"
        self.environment = {**os.environ, "HEADSTART_REPLAY": str(programs.replay), "LC_ALL": "C.UTF-8"}

    def __enter__(self):
        image = self.tmp / "image"
        with open(image, "wb") as f:
            f.truncate(24 << 20)
        run("mkfs.ext4", "-q", image)
        self.loop = run("losetup", "--find", "--show", image).stdout.decode().strip()
        self.stack.callback(run, "losetup", "--detach", self.loop)
        self.root.mkdir()
        run("mount", "-o", "relatime", self.loop, self.root)
        self.stack.callback(run, "umount", self.root)
        for path, size in (("usr/bin/app", 60000), ("usr/lib/lib.so", 90000), ("usr/share/d/x", 10)):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(os.urandom(size))
        os.sync()
        return self

    def __exit__(self, *reason):
        self.stack.close()

    def trace(self, state, number, stage="boot", start=1793520000):
        paths = ["/usr/bin/app", "/usr/lib/lib.so", "/usr/share/d", "/usr/share/d/x"]
        text = run(SOURCE / "tests/bats/make-trace", self.root, self.loop, stage,
                   start + number, *paths).stdout
        (state / "traces").mkdir(parents=True, exist_ok=True, mode=0o700)
        state.chmod(0o700)
        # One member per line, as the recorder writes it, so that a known trace is recognised by its
        # head.
        members = (f"{json.dumps(k)}:{json.dumps(v)}" for k, v in json.loads(text).items())
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


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def learned(state):
    """Returns the number of traces that the model contains. None means that there is no model."""
    try:
        return len(json.loads(gzip.decompress((state / "model.json").read_bytes()))["learned"])
    except FileNotFoundError:
        return None


class Broken(Exception):
    """A violation of a rule."""


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
        if name.endswith((".json", ".pack")) and name not in now:
            raise Broken(f"{name} is lost")
    for p in state.rglob("*"):
        if p.stat().st_mode & 0o077:
            raise Broken(f"{p.name} can be read by others: {oct(p.stat().st_mode)}")


def files_of(state):
    return {str(p.relative_to(state)) for p in state.rglob("*") if p.is_file()}
