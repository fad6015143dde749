"""Lead times: how long before its first use each file of the boot pack was in the page cache.

The recorder observed the first use in the same boot. It starts after the replay, so a file that was
used earlier counts at its next use. For every file, the end of the replay counts as the moment of
residency, although most files were resident earlier. Without --wait the replay ends when everything
was requested; with it ("resident": true), when all data has arrived."""

import json

# The required share: 90 % of the used data of the pack must be resident before its first use.
SHARE = 0.9


def measure(directory):
    """Returns (share of the used bytes that were resident before their first use, [(lead in
    seconds, bytes)] sorted by lead, bytes of the pack that the trace does not show as used)."""
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
    """Returns the lead that this share of the bytes does not exceed."""
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
