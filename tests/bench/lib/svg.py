"""Draws the requests of the measured runs over time and place, with the program that draws the pictures
of headstart plot (tests/tools/tool-plot.c)."""

from pathlib import Path

from . import demand, report
from .commands import run

SCENARIOS = {"boot": "Boot", "login": "Login", "autologin": "Boot and automatic login"}


def requests(log, section):
    """Returns the requests of a stage from the disk's log: (microseconds since the start
    of the stage, offset, length). The stage begins with the mark SECTION/stage and ends with the next mark."""
    found, start = [], None
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            fields = line.split()
            if line.startswith("# mark "):
                if start is not None:
                    break
                if fields[2] == f"{section}/stage":
                    start = int(fields[3])
            elif start is not None and not line.startswith("#") and len(fields) >= 4:
                found.append((max(int(fields[0]) - start, 0), int(fields[2]), int(fields[3])))
    return found


def commands(sample, title, reads, pack, log_end_usec):
    """Returns the lines that draw one run. `pack` has the blocks of the packs, or is None."""
    lines = [f"timeline {log_end_usec} {title}"]
    if pack is None:
        lines.append("series 2 read on demand")
    else:
        lines += ["series 1 in a pack", "series 2 in no pack"]
    if not reads:
        lines.append("note The requests of this run are not in the log of this call")
    for at, offset, length in reads:
        inside = pack is not None and demand.blocks([(offset, length)]) & pack
        lines.append(f"read {1 if inside else 2} {at} {offset} {length}")
    lines.append(f"mark {round(sample['seconds'] * 1e6)} ready")
    return lines


def middle(samples):
    """Returns the run with the median time."""
    return sorted(samples, key=lambda s: s["seconds"])[(len(samples) - 1) // 2]


def draw(directory, log, builddir, scenarios, packs):
    """Writes one picture for each scenario: the median runs of the variants, drawn below one another
    with one axis of time. `packs`: (variant, scenario) -> blocks of the variant's packs, where
    these are known."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for part in scenarios:
        chosen = [middle([s for s in part["samples"] if s["variant"] == row["variant"]])
                  for row in part["summary"]]
        end = round(max((s["seconds"] for s in chosen), default=0) * 1.03e6)
        lines = []
        for sample in chosen:
            seconds = report.counted(part["scenario"], {**sample, "total_s": sample["total_s"]})
            title = f"{SCENARIOS[part['scenario']]}, {sample['variant']}: {seconds:.1f} s"
            reads = [r for r in requests(log, sample["section"]) if r[0] <= end]
            lines += commands(sample, title, reads, packs.get((sample["variant"], part["scenario"])),
                              end)
        picture = run(Path(builddir) / "tests/tools/tool-plot", input="\n".join(lines) + "\n").stdout
        (directory / f"{part['scenario']}.svg").write_text(picture)
