"""Puts the files that a build directory installs into a Debian tree, as a package would."""

import contextlib
import hashlib
import json
import os
import shutil
from pathlib import Path

from .commands import BenchError, need, run

# The bench's machine is a container, in which this condition would prevent the units from starting.
CONTAINER_CONDITION = "ConditionVirtualization=!container"

# nspawn mounts a boot id of its own below /proc/sys. With these settings systemd mounts /proc again
# for the unit, which then sees the boot id of the host.
HIDES_BOOT_ID = {"ProtectProc=invisible", "ProtectKernelTunables=yes", "ProtectControlGroups=yes"}


STATE, CONFIGURATION = "var/lib/headstart", "etc/headstart"


class Package:
    """The files that `meson install` puts below `stage`, a directory that this class makes. With
    `own_boot_id` the units see the boot id of their machine, and not that of the host. With `starts`
    the units start in the bench's machine, too."""

    def __init__(self, builddir, stage, own_boot_id=False, starts=True):
        self.builddir, self.stage = Path(builddir), Path(stage)
        self.dropped = ({CONTAINER_CONDITION} if starts else set()) | (HIDES_BOOT_ID if own_boot_id else set())
        self.options = {}
        self._made = []  # directories that install() has made, the parents first

    def make(self):
        """Installs into the stage directory, and removes the settings in `dropped` from the units.
        Raises BenchError if the installation fails or if the package enables no unit."""
        need("meson", "systemctl")
        if not (self.builddir / "build.ninja").exists():
            raise BenchError(f"{self.builddir} is no build directory (--builddir)")
        listed = json.loads(run("meson", "introspect", "--buildoptions", self.builddir).stdout)
        self.options = {o["name"]: o["value"] for o in listed
                        if o["name"] in ("buildtype", "prefix", "b_sanitize")}
        run("meson", "install", "-C", self.builddir, "--destdir", self.stage.resolve(),
            "--no-rebuild", "--strip", "--quiet")
        for unit in self._units():
            lines = unit.read_text().splitlines(keepends=True)
            unit.write_text("".join(x for x in lines if x.strip() not in self.dropped))
        self.enabled()

    def _units(self):
        return [path for path in self.stage.rglob("*")
                if path.suffix in (".service", ".path", ".timer") and path.is_file()]

    def enabled(self):
        """Returns the names of the units that the package enables."""
        presets = list(self.stage.rglob("system-preset/*.preset"))
        names = [line.split()[1] for preset in presets
                 for line in preset.read_text().splitlines() if line.startswith("enable ")]
        if not names:
            raise BenchError(f"what {self.builddir} installs enables no unit")
        return names

    def fingerprint(self):
        """Returns a checksum of all names, modes and contents."""
        found = hashlib.sha256()
        for path in sorted(self.stage.rglob("*")):
            if path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                mode = path.stat().st_mode & 0o7777
                found.update(f"{path.relative_to(self.stage)}\0{mode:o}\0{content}\n".encode())
        return found.hexdigest()

    def program(self, name):
        """Returns the absolute path of a program in the tree. A script of a tool that builds initrds
        may have the same name, but does not lie in bin or in a directory of libexec."""
        found = [path for path in self.stage.rglob(name)
                 if path.is_file() and os.access(path, os.X_OK)
                 and (path.parent.name == "bin" or "libexec" in path.parts)]
        if not found:
            raise BenchError(f"what {self.builddir} installs has no program {name}")
        return "/" + str(found[0].relative_to(self.stage))

    def init(self):
        """Returns the program for init= on the machine's kernel command line, or None if the
        package has none and the machine runs its own init."""
        try:
            return self.program("headstart-init")
        except BenchError:
            return None

    def install(self, root):
        """Copies the files into the tree and enables the units, as the package's scripts do."""
        inside = (path.relative_to(self.stage) for path in sorted(self.stage.rglob("*")) if path.is_dir())
        self._made = [path for path in inside if not (root / path).exists()]
        run("cp", "-a", "--no-preserve=timestamps", "--no-target-directory", self.stage, root)
        run("systemctl", f"--root={root}", "--quiet", "enable", *self.enabled())

    def remove(self, root):
        """Takes back what install() has done, and removes headstart's configuration and state, as
        purging the package would. Whatever else the system has written since then remains."""
        run("systemctl", f"--root={root}", "--quiet", "disable", *self.enabled())
        for path in self.stage.rglob("*"):
            if not path.is_dir() or path.is_symlink():
                (root / path.relative_to(self.stage)).unlink(missing_ok=True)
        for path in (STATE, CONFIGURATION):
            shutil.rmtree(root / path, ignore_errors=True)
        for path in reversed(self._made):
            with contextlib.suppress(OSError):  # the system has put something into it
                (root / path).rmdir()
