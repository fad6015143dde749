"""Images of Debian trees, made once and kept in a cache directory outside the source tree."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from pathlib import Path

from . import layout, system, tree
from .cgroup import ControlGroup
from .commands import BenchError, need, run
from .desktops import DESKTOPS, SESSIONS, SMALL
from .machine import Machine

DEFAULT_CACHE = "/var/cache/headstart-bench"

MKFS = {
    # These options leave the kernel no background work while a boot is timed.
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}


def parse_size(text):
    """'8G' -> bytes. Raises BenchError."""
    try:
        number, unit = (text[:-1], text[-1].upper()) if text[-1].isalpha() else (text, "B")
        return int(number) * {"B": 1, "M": 1 << 20, "G": 1 << 30}[unit]
    except (ValueError, KeyError, IndexError):
        raise BenchError(f"{text!r} is no size: use e.g. 8G or 900M") from None


class ImageSpec:
    """The inputs of an image; two equal specs give the same image."""

    def __init__(self, small=False, packages=None, extra=(), seed=0, fstype="ext4", size=None,
                 suite=None, prime=True, sessions=False, desktop="xfce"):
        if fstype not in MKFS:
            raise BenchError(f"no file system {fstype!r} here: {', '.join(MKFS)}")
        self.small, self.sessions = small, sessions
        self.suite = suite or tree.host_suite()
        self.desktop = None if small else DESKTOPS[desktop]
        base = packages or (SMALL if small else SESSIONS if sessions else self.desktop.packages)
        self.packages = sorted(set(base) | set(extra))
        self.variant = "minbase" if small else "important"
        self.seed, self.fstype, self.prime = seed, fstype, prime
        self.size = parse_size(size or ("1G" if small else "8G"))

    def tree_key(self):
        text = json.dumps([tree.RECIPE, self.suite, self.variant, self.small, self.packages]
                          + [tree.RECIPE_SESSIONS] * self.sessions)
        kind = ("small" if self.small else "sessions" if self.sessions
                else "desktop" if self.desktop is DESKTOPS["xfce"] else self.desktop.name.lower())
        return f"{self.suite}-{kind}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"

    def key(self):
        text = f"{self.tree_key()}-{self.fstype}-{self.size >> 20}M-seed{self.seed}"
        return text + ("" if self.prime else "-unprimed")


@contextlib.contextmanager
def _lock(path):
    """Two benches must not make the same image at the same time."""
    with open(path, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def provide(spec, cache, progress, rebuild=False):
    """Returns the path of the image in the cache; makes the image if it does not exist yet."""
    cache = Path(cache)
    (cache / "trees").mkdir(parents=True, exist_ok=True)
    image = cache / f"{spec.key()}.img"
    with _lock(cache / "lock"):
        if rebuild:
            image.unlink(missing_ok=True)
            shutil.rmtree(cache / "trees" / spec.tree_key(), ignore_errors=True)
        if not image.exists():
            _make(spec, cache, image, progress)
    return image


def _make(spec, cache, image, progress):
    need("mmdebstrap", "systemd-nspawn", "losetup", MKFS[spec.fstype][0])
    root = cache / "trees" / spec.tree_key()
    if not root.exists():
        made = root.with_name(root.name + ".bare")
        shutil.rmtree(made, ignore_errors=True)
        tree.bootstrap(made, spec.suite, spec.packages, spec.variant, cache, progress)
        tree.furnish(made, desktop=spec.desktop, sessions=spec.sessions)
        made.rename(root)

    with contextlib.ExitStack() as stack:
        work = stack.enter_context(system.private_tmpfs("headstart-mktree."))
        temporary = work / "image"
        run("truncate", f"--size={spec.size}", temporary)
        run(*MKFS[spec.fstype], temporary)
        target = work / "root"
        target.mkdir()
        run("mount", "-o", "loop", temporary, target)  # unmounting releases the loop device
        try:
            layout.lay_out(root, target, spec.seed, progress)
            if spec.fstype == "btrfs":
                _journal_without_copies(target)
            if spec.prime:
                for user in ("bench", "second") if spec.sessions else ("bench",):
                    _prime(target, work, spec.desktop, user, progress)
        finally:
            system.umount(target, system.MNT_DETACH)
        _await_release(temporary)
        progress.say(f"keeping the image as {image.name}")
        partial = image.with_suffix(".partial")
        run("cp", "--sparse=always", temporary, partial)
        run("sync", partial)
        image.with_suffix(".json").write_text(json.dumps(
            {"suite": spec.suite, "packages": spec.packages, "seed": spec.seed,
             "fstype": spec.fstype, "bytes": spec.size, "small": spec.small}, indent=2) + "\n")
        os.rename(partial, image)


def _journal_without_copies(target):
    """Tells btrfs to write journald's files in place. systemd's package does the same where it is installed on
    btrfs, but the tree was made on another filesystem."""
    run("systemd-tmpfiles", f"--root={target}", "--create", "journal-nocow.conf")


def _prime(target, work, desktop, user, progress):
    """Boots, logs in once and shuts down cleanly. The first login of a user makes caches, settings
    and directories, and is not what is measured."""
    progress.say("booting and logging in once, so that no later one is the first")
    with ControlGroup() as group, Machine(target, work, desktop, group) as machine:
        machine.power_on()
        machine.wait_booted()
        machine.let_in(user)
        machine.wait_logged_in()
        machine.settle(seconds=3)
        machine.power_off()


def _await_release(image):
    """Waits until no loop device uses the file. After the unmount the kernel detaches the loop
    device with a delay."""
    end = time.monotonic() + 30
    while run("losetup", "--associated", image).stdout.strip():
        if time.monotonic() > end:
            raise BenchError("the image's loop device is not released")
        time.sleep(0.05)
    os.sync()
