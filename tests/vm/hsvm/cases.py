"""Reads the cases. A case is a bash file that runs inside the machine and has a function boot_N for
each boot. The head of the file states what the case needs, in lines `# key: value`:

    image: NAME          the image that the case boots (recipes.py)
    boots: N             the number of boots (default 1)
    ci: yes              the case belongs to the subset that runs by default
    headstart: no        the package is not installed
    initrd: installed    the initrd that the installation of the package built (default: plain, an
                         initrd without headstart); initrd-N: in boot N only
    clock-N: TIME        the machine's clock at the start of boot N (UTC, YYYY-MM-DDTHH:MM:SS)
    type-N: TEXT         in boot N the screen is the console, and the host types Enter and this text
                         every ten seconds until the agent runs
    append: WORDS        words for the kernel in every boot; append-N: in boot N only
    timeout: SECONDS     the longest time of a boot (default 600)
    disk: NAME MIB       a further, empty disk: /dev/disk/by-id/virtio-hsvm-NAME
    cut: N,…             the boots that end with a power cut
    leads: N,…           the boots in which replayed data must be in memory before it is used (leads.py)
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from .commands import VmError
from .recipes import IMAGES

DIRECTORY = Path(__file__).resolve().parent.parent / "cases"


@dataclass
class Case:
    name: str
    path: Path
    about: str = ""
    image: str = ""
    boots: int = 1
    ci: bool = False
    headstart: bool = True
    initrd: dict = field(default_factory=dict)  # boot number (0: all) -> plain or installed
    append: dict = field(default_factory=dict)  # boot number (0: all) -> words
    clock: dict = field(default_factory=dict)   # boot number -> time
    typed: dict = field(default_factory=dict)   # boot number -> text
    timeout: int = 600
    disks: list = field(default_factory=list)   # (name, MiB)
    cut: set = field(default_factory=set)
    leads: set = field(default_factory=set)


def read(path):
    """Reads the case in a file. Raises VmError if the head of the file is not valid."""
    case = Case(path.stem, path)
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        m = re.fullmatch(r"# ([a-z]+)(?:-([0-9]+))?: (.+)", line)
        if not m:
            case.about = " ".join(filter(None, (case.about, line.lstrip("# "))))
            continue
        key, number, value = m.groups()
        if key in ("image", "about"):
            setattr(case, key, value)
        elif key in ("boots", "timeout"):
            setattr(case, key, int(value))
        elif key in ("ci", "headstart"):
            setattr(case, key, value == "yes")
        elif key in ("append", "initrd"):
            getattr(case, key)[int(number or 0)] = value
        elif key in ("clock", "type") and number:
            {"clock": case.clock, "type": case.typed}[key][int(number)] = value
        elif key == "disk":
            name, mib = value.split()
            case.disks.append((name, int(mib)))
        elif key in ("cut", "leads"):
            setattr(case, key, {int(n) for n in value.split(",")})
        elif key not in ("shellcheck",):
            raise VmError(f"{path.name}: unknown key in its head: {key}")
    if case.image not in IMAGES:
        raise VmError(f"{path.name}: no such image: {case.image}")
    for initrd in case.initrd.values():
        if initrd not in ("installed", "plain"):
            raise VmError(f"{path.name}: no such initrd: {initrd}")
    for n in range(1, case.boots + 1):
        if f"boot_{n}()" not in path.read_text():
            raise VmError(f"{path.name}: no function boot_{n}")
    return case


def find(names=(), everything=False):
    """Returns the named cases. Without names, returns all cases if `everything` is true, and the
    default subset if it is false."""
    every = {p.stem: read(p) for p in sorted(DIRECTORY.glob("*.bash"))}
    unknown = [n for n in names if n not in every]
    if unknown:
        raise VmError(f"no such case: {', '.join(unknown)} (there are: {', '.join(every)})")
    return [c for c in every.values() if (c.name in names if names else everything or c.ci)]
