"""Lead times: how long before its first use each file of the boot pack was in the page cache.

First use is what the recorder saw in that very boot; it starts after the replay does, so that what
was used before counts as used when it is used again. Resident is, for every file, the moment at which
the replay was through: most of them were sooner. Without --wait the replay was through when all was
requested; with it ("resident": true) when all had come."""

import json

# What issue 3 asks for: resident before 90 % of the pack's data is first used.
SHARE = 0.9


def measure(directory):
    """(share of the used bytes that were resident before their first use, [(lead in seconds, bytes)]
    in the order of the leads, bytes of the pack that the trace does not show as used)."""
    pack = json.loads((directory / "leads-pack.json").read_text())
    shown = json.loads((directory / "leads-shown.json").read_text())
    start = json.loads((directory / "leads-trace.json").read_text())["start_boottime_usec"]
    replay = json.loads((directory / "replay-boot.json").read_text())
    resident = replay["start_boottime_usec"] + replay["duration_usec"]
    first_use = {f["path"]: start + f["first_use_usec"] for f in shown["files"]
                 if f["first_use_usec"] is not None}
    leads, unused = [], 0
    for volume in pack["volumes"]:
        sizes = [0] * len(volume["files"])
        for d in volume["data"]:
            sizes[d["file"]] += d["length"]
        for f, n in zip(volume["files"], sizes):
            if n > 0 and f["path"] in first_use:
                leads.append(((first_use[f["path"]] - resident) / 1e6, n))
            else:
                unused += n
    leads.sort()
    used = sum(n for _, n in leads)
    early = sum(n for lead, n in leads if lead >= 0)
    return early / used if used else 0, leads, unused


def _at(leads, part):
    """The lead that so much of the bytes do not exceed."""
    left = part * sum(n for _, n in leads)
    for lead, n in leads:
        left -= n
        if left <= 0:
            return lead
    return leads[-1][0]


def check(results, where, directory):
    what = "the pack's data is resident before 90 % of it is first used"
    try:
        share, leads, unused = measure(directory)
    except (OSError, ValueError, KeyError, TypeError) as e:
        results.not_ok(f"{where}: {what}", f"{type(e).__name__}: {e}")
        return
    used = sum(n for _, n in leads)
    said = f"{share:.1%} of {used / 1e6:.1f} MB in {len(leads)} files"
    if leads:
        said += (f"; leads: least {leads[0][0]:.2f} s, a tenth of the bytes at most "
                 f"{_at(leads, 0.1):.2f} s, half {_at(leads, 0.5):.2f} s, most {leads[-1][0]:.2f} s"
                 f"; {unused / 1e6:.1f} MB of the pack were not seen used")
    if share >= SHARE and used > 1e6:
        results.ok(f"{where}: {what}")
    else:
        results.not_ok(f"{where}: {what}")
    results.note(f"lead times: {said}")
