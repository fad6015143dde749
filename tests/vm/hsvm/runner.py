"""Runs cases: boots, results, artefacts."""

import functools
import hashlib
import shutil
import tempfile
from pathlib import Path

from . import build, install, leads
from .commands import VmError, locked, run, say
from .machine import OUT_MIB, Disk, Machine, blank, overlay, pack_case, unpack_out

GUEST = Path(__file__).resolve().parent.parent / "guest"


@functools.cache
def _compiled(name):
    """Compiles guest/NAME.c into a static program, which runs in every image."""
    with tempfile.TemporaryDirectory(prefix="hsvm-") as tmp:
        run("cc", "-O1", "-static", "-I", GUEST.parent.parent.parent / "src", GUEST / f"{name}.c",
            "-o", Path(tmp) / name)
        return (Path(tmp) / name).read_bytes()


def _files(script, package):
    files = {"main": GUEST / "main", "lib.bash": GUEST / "lib.bash", "case.bash": script,
             "probe-init": GUEST / "probe-init",
             "hold-until-swept": _compiled("hold-until-swept")}
    if package:
        files["files/headstart.deb"] = package
    return files


class Runner:
    def __init__(self, cache, artefacts, package, results, offline):
        """`package` makes the Debian package when it is first needed and returns its path.
        `offline`: the package is installed without a boot, where that is possible."""
        self.cache, self.artefacts, self.results = cache, artefacts, results
        self.offline = offline
        self._make_package, self._package = package, None

    def package(self):
        if not self._package:
            self._package = self._make_package()
        return self._package

    def _boot(self, image, initrd, disk, script, number, append, timeout, artefacts, extra=(),
              clock="", typed=""):
        """Runs one boot in a directory of its own. Returns the Outcome."""
        with tempfile.TemporaryDirectory(prefix="hsvm-") as tmp:
            tmp = Path(tmp)
            pack_case(tmp / "case.tar", script, number)
            blank(tmp / "out.raw", OUT_MIB)
            disks = [Disk(disk, "qcow2", "hsvm-root"), *extra,
                     Disk(tmp / "case.tar", "raw", "hsvm-case"),
                     Disk(tmp / "out.raw", "raw", "hsvm-out")]
            machine = Machine(image.kernel, initrd, f"{image.append} {append}", disks,
                              image.recipe.memory_mib, image.recipe.graphics, tmp, artefacts,
                              f"boot-{number}", clock, typed)
            outcome = machine.run(timeout)
            unpack_out(tmp / "out.raw", artefacts / f"boot-{number}")
            return outcome

    def _install_running(self, image, package, disk, initrd):
        """Makes the overlay `disk` of the image in which dpkg has installed the package, in a separate
        boot, and keeps the initrd that this installation built."""
        artefacts = self.artefacts / f"install-{image.name}"
        artefacts.mkdir(parents=True, exist_ok=True)
        overlay(disk, image.disk)
        outcome = self._boot(image, image.initrd, disk, _files(GUEST / "install.bash", package), 1,
                             "systemd.unit=multi-user.target", 1800, artefacts)
        self.results.guest(f"install {image.name}", outcome.lines)
        if not (outcome.finished and outcome.off) or any(
                line.startswith("not ok") for line in outcome.lines):
            raise VmError(f"the package cannot be installed in {image.name}: see {artefacts}")
        shutil.copyfile(artefacts / "boot-1/initrd", initrd)
        (artefacts / "boot-1/initrd").unlink()

    def _install_offline(self, image, package, disk, initrd):
        """Makes the copy `disk` of the image in which dpkg has installed the package, without a boot."""
        run("cp", "--sparse=always", "--reflink=auto", image.disk, disk)
        with tempfile.TemporaryDirectory(prefix="hsvm-") as tmp:
            install.install(package, disk, initrd, Path(tmp))
        self.results.ok(f"install {image.name}: dpkg installs the package without a boot")

    def _with_headstart(self, image):
        """Makes a copy of the image with the package installed and an initrd of that installation,
        once for each image and package. Returns the paths of both, and the copy's format."""
        package = self.package()
        offline = self.offline and install.is_possible(image)
        how, fmt, script = ((self._install_offline, "raw", Path(install.__file__)) if offline else
                            (self._install_running, "qcow2", GUEST / "install.bash"))
        digest = hashlib.sha256(package.read_bytes() + script.read_bytes())
        directory = self.cache / "installed"
        directory.mkdir(parents=True, exist_ok=True)
        disk = directory / f"{image.directory.name}-{digest.hexdigest()[:12]}.{fmt}"
        initrd = disk.with_suffix(".initrd")
        with locked(directory / f"{image.name}.lock", f"another run that installs {image.name}"):
            if disk.exists():
                return disk, fmt, initrd
            say(f"{image.name}: installing the package")
            partial = disk.with_suffix(".partial")
            try:
                how(image, package, partial, initrd)
                for old in directory.glob(f"{image.name}-????????????-????????????.*"):
                    if old not in (partial, initrd):
                        old.unlink()
                partial.rename(disk)
            finally:
                partial.unlink(missing_ok=True)
        return disk, fmt, initrd

    def run(self, case):
        try:
            image = build.image(case.image, self.cache)
            base, fmt, initrds = image.disk, "raw", {"plain": image.initrd}
            if case.headstart:
                base, fmt, initrds["installed"] = self._with_headstart(image)
        except VmError as e:
            self.results.not_ok(f"{case.name}: set up", str(e))
            return
        artefacts = self.artefacts / case.name
        shutil.rmtree(artefacts, ignore_errors=True)
        artefacts.mkdir(parents=True)
        with tempfile.TemporaryDirectory(prefix="hsvm-") as tmp:
            disk = Path(tmp) / "root.qcow2"
            overlay(disk, base, fmt)
            extra = []
            for name, mib in case.disks:
                blank(Path(tmp) / f"{name}.raw", mib)
                extra.append(Disk(Path(tmp) / f"{name}.raw", "raw", f"hsvm-{name}"))
            for number in range(1, case.boots + 1):
                initrd = initrds[case.initrd.get(number, case.initrd.get(0, "plain"))]
                if not self._run_boot(case, image, initrd, disk, extra, number, artefacts):
                    return

    def _run_boot(self, case, image, initrd, disk, extra, number, artefacts):
        where = f"{case.name}: boot {number}" if case.boots > 1 else case.name
        append = " ".join(case.append.get(n, "") for n in (0, number))
        package = self.package() if case.headstart else None
        try:
            outcome = self._boot(image, initrd, disk, _files(case.path, package), number, append,
                                 case.timeout, artefacts, extra, case.clock.get(number, ""),
                                 case.typed.get(number, ""))
        except VmError as e:
            self.results.not_ok(f"{where}: runs", str(e))
            return False
        self.results.guest(where, outcome.lines)
        if number in case.cut:
            ended, how = outcome.cut, "power cut"
        else:
            ended, how = outcome.finished and outcome.off, "shut down by itself"
        if ended:
            self.results.ok(f"{where}: {how} after {outcome.seconds:.0f} s")
        else:
            console = (artefacts / f"boot-{number}-console.log").read_text(errors="replace")
            self.results.not_ok(f"{where}: {how}, in {case.timeout} s",
                                "\n".join(console.splitlines()[-12:]))
        if number in case.leads:
            leads.check(self.results, where, artefacts / f"boot-{number}")
        return ended
