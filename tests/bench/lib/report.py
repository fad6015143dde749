"""Formats the table and explains it."""

import re
import statistics
import textwrap

WIDTH = 100


def wrap(text):
    """Wraps text for a terminal; all lines but the first are indented. A number and its unit stay
    on one line."""
    text = re.sub(r"(?<=\d) (?=(MB|s|%)\b|%)", "\u00a0", text)
    lines = textwrap.wrap(text, WIDTH, subsequent_indent="    ", break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def summarize(samples, names):
    """Returns for each variant the medians over its runs, and the least and the most `seconds`."""
    rows = []
    for name in names:
        own = [s for s in samples if s["variant"] == name]
        if not own:
            continue

        def median(get):
            return statistics.median(get(s) for s in own)

        rows.append({
            "variant": name, "runs": len(own),
            "prefetch_s": median(lambda s: s["prefetch_s"]),
            "seconds": median(lambda s: s["seconds"]),
            "seconds_min": min(s["seconds"] for s in own),
            "seconds_max": max(s["seconds"] for s in own),
            "total_s": median(lambda s: s["total_s"]),
            "prefetch_reads": round(median(lambda s: s["prefetch"]["reads"])),
            "prefetch_mb": median(lambda s: s["prefetch"]["mb"]),
            "reads": round(median(lambda s: s["stage"]["reads"])),
            "mb": median(lambda s: s["stage"]["mb"]),
            "again_mb": median(lambda s: s.get("again_mb") or 0),
            "sweep_s": (median(lambda s: s["prefetch"]["sweep_s"] + s["stage"]["sweep_s"])
                        if own[0]["stage"].get("sweep_s") is not None else None),
        })
    return rows


def counted(scenario, row):
    """Returns the time that a user waits; the replay of a login's pack at the greeter does not
    count."""
    return row["seconds"] if scenario == "login" else row["total_s"]


def _cell(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def _short(value, limit, digits):
    """Formats a value; from this limit on, with one digit less."""
    return _cell(value, digits if value < limit else digits - 1)


def table(scenario, rows, bold=False):
    """Returns lines of text, of 100 columns at most."""
    stage = "boot" if scenario == "boot" else "login"
    # (group, title): adjacent columns of one group share a line above their titles
    head = [("", "variant"), ("prefetch", "s"), ("prefetch", "reads"), ("prefetch", "MB"),
            (stage, "s"), (stage, "min..max"), (stage, "reads"), (stage, "MB"),
            ("both", "s"), ("both", "best"), ("both", "again")]
    cold = next((counted(scenario, r) for r in rows if r["variant"] == "cold"), None)
    if cold:
        head.append(("", "x cold"))
    body = []
    for r in rows:
        none = r["prefetch_reads"] == 0 and r["prefetch_s"] < 0.005
        line = [r["variant"],
                "-" if none else _cell(r["prefetch_s"], 2),
                "-" if none else str(r["prefetch_reads"]),
                "-" if none else _short(r["prefetch_mb"], 100, 1),
                _cell(r["seconds"], 2), f"{_short(r['seconds_min'], 10, 2)}..{_short(r['seconds_max'], 10, 2)}",
                str(r["reads"]), _short(r["mb"], 100, 1), _cell(r["total_s"], 2),
                _cell(r["sweep_s"], 2), _cell(r["again_mb"], 1)]
        if cold:
            line.append(f"{counted(scenario, r) / cold:.2f}")
        body.append(line)
    widths = [max(len(line[i]) for line in [[title for _, title in head]] + body)
              for i in range(len(head))]

    def join(line):
        return "  ".join([line[0].ljust(widths[0])]
                         + [c.rjust(w) for c, w in zip(line[1:], widths[1:])])

    groups, i = "", 0
    while i < len(head):
        n = 1
        while i + n < len(head) and head[i][0] and head[i + n][0] == head[i][0]:
            n += 1
        width = sum(widths[i:i + n]) + 2 * (n - 1)
        name = head[i][0]
        groups += (f" {name} ".center(width, "-") if name else " " * width) + "  "
        i += n
    titles = join([title for _, title in head])
    lines = [groups.rstrip(), titles]
    if bold:
        lines = [f"\033[1m{line}\033[0m" for line in lines]
    return lines + [join(line) for line in body]


def title(scenario, small, runs):
    """Describes what was timed."""
    there = "the session's programs have run" if small else "all windows are there"
    text = {"boot": "Boot: power-on until systemd says that its default target is reached",
            "login": f"Login: let in at the greeter until {there}",
            "autologin": f"Boot with automatic login: power-on until {there}"}[scenario]
    return text + (f"; medians of {runs}" if runs > 1 else "")


def legend(scenarios):
    """Explains the columns: lines of text."""
    entries = []
    if "login" in scenarios:
        entries.append(("prefetch", "at a login it passes while the greeter idles: nobody waits"))
    if set(scenarios) - {"login"}:
        entries.append(("both s", "prefetch and what follows: at a boot someone waits for both"))
    entries += [("reads, MB", "what the disk was asked for; 1 MB is 10^6 bytes"),
                ("best", "s: the same reads sorted, joined, in one sweep: no order is faster"),
                ("again", "MB read a second time: the machine had dropped it from its cache"),
                ("x cold", "the time someone waits, as a part of the cold one")]
    width = max(len(name) for name, _ in entries)
    return [f"{name.ljust(width)}  {text}" for name, text in entries]


def recorded(facts):
    """Describes the cost of recording, learning and planning from outside."""
    return [f"outside recorded: a boot in {facts['boot_s']:.2f} s and a login in {facts['login_s']:.2f} s; "
            f"headstartd's peak memory {(facts['headstartd_peak_kib'] or 0) / 1024:.1f} MiB;",
            f"learn took {facts['learn_cpu_s']:.2f} s CPU, plan {facts['plan_cpu_s']:.2f} s"]


def learned(facts):
    """Yields, for each disk on which the product has learned, from how many sessions it did."""
    for variant in facts.values():
        for contents, own in variant.items():
            if isinstance(own, dict) and "exact" in own:
                exact = ", ".join(f"{n} {stage}{'' if n == 1 else 's'}" for stage, n in own["exact"].items())
                yield f"{contents}: learned from {len(own['sessions'])} sessions; recorded exactly: {exact}"


def bound(scenario, rows):
    """Returns lower bounds of the time with any prefetcher, as a dict of seconds. A prefetcher
    needs one sweep over the reads of a cold run, and a boot or login then takes the time of a warm
    run. One bound is the sum of the two times, for a prefetcher that ends before the boot or login
    begins; the other is the larger of them, for perfect overlap. Returns None if `cold` or `warm`
    was not measured. The sweep for a login may happen before the login, so the bound of a login is
    the warm time."""
    by_name = {r["variant"]: r for r in rows}
    if not {"cold", "warm"} <= set(by_name) or by_name["cold"]["sweep_s"] is None:
        return None
    sweep, warm = by_name["cold"]["sweep_s"], by_name["warm"]["seconds"]
    return {"sweep_s": sweep, "warm_s": warm, "one_after_the_other_s": sweep + warm,
            "overlapped_s": max(sweep, warm)}


def bound_lines(scenario, rows):
    b = bound(scenario, rows)
    if b is None:
        return ["bound: known only with the variants cold and warm"]
    text = (f"bound: one sweep over what a cold {scenario} reads {b['sweep_s']:.2f} s + warm "
            f"{b['warm_s']:.2f} s = {b['one_after_the_other_s']:.2f} s; with perfect overlap "
            f"{b['overlapped_s']:.2f} s")
    if scenario == "login":
        text += f"; swept at the greeter {b['warm_s']:.2f} s"
    return wrap(text)


def _percent(share):
    return "-" if share is None else f"{100 * share:.1f} %"


def judged(name, scenario, j, samples):
    """Describes how much of a variant's boot or login its pack covers: lines of text."""
    article = "an" if scenario == "autologin" else "a"
    text = (f"{name}: of the {j['reads']} requests and {j['mb']:.1f} MB that {article} {scenario} without "
            f"headstart reads, the pack covers {_percent(j['covered_reads'])} and "
            f"{_percent(j['covered_bytes'])}; {_percent(j['waste'])} of its {j['pack_mb']:.1f} MB "
            "is waste")
    own = [s["unplanned"] for s in samples if s["variant"] == name
           and s["scenario"] == scenario and "unplanned" in s]
    if own:
        text += (f"; a measured {scenario} makes "
                 f"{statistics.median(u['reads'] for u in own):.0f} requests "
                 f"({statistics.median(u['mb'] for u in own):.1f} MB) for what is in no pack")
    return wrap(text)


def _replay(name, r):
    return (f"{name}.pack: {r['policy']}, {r['outcome']}, "
            f"{(r['metadata_bytes'] + r['data_bytes']) / 1e6:.1f} MB "
            f"in {r['duration_usec'] / 1e6:.2f} s")


def replayed(samples):
    """Describes what headstart did inside the machine in the last run of each installed variant."""
    last = {s["variant"]: s["replays"] for s in samples if "replays" in s}
    return [line for name, replays in last.items() for line in wrap(
        f"{name} replayed "
        + ("; ".join(_replay(*item) for item in replays.items()) or "nothing"))]


def predicted(scenario, rows, facts):
    """Compares the predicted time of each variant's policy with the measured time. The predicted
    stage begins only after PID 1 has started. The time by which the boot with `off` exceeds
    its prediction is therefore added to the prediction of every variant."""
    planned = {r["variant"]: (facts[r["variant"]], r["total_s"]) for r in rows
               if scenario == "boot" and "predicted_usec" in facts.get(r["variant"], {})}
    around, lines = 0, []
    if "installed-off" in planned:
        off, measured = planned["installed-off"]
        around = measured - off["predicted_usec"]["off"] / 1e6
        lines.append(f"around the stage that headstart records: {around:.2f} s (installed-off)")
    for name, (pack, measured) in planned.items():
        usec = pack["predicted_usec"].get(pack["policy"])
        if usec and name != "installed-off":
            expected = usec / 1e6 + around
            lines.append(f"{name}: {pack['policy']}, predicted {expected:.2f} s, measured "
                         f"{measured:.2f} s ({100 * (expected / measured - 1):+.0f} %)")
    return lines


def verdicts(scenario, rows):
    """Returns lines of text with the times that headstart is meant to improve."""
    by_name = {r["variant"]: r for r in rows}
    own, warm, cold = (by_name.get(n) for n in ("installed", "warm", "cold"))
    lines = []
    if own and warm and scenario == "login":
        lines.append(f"installed: the login takes {own['seconds']:.2f} s, "
                     f"{own['seconds'] / warm['seconds']:.2f} x the warm one, "
                     f"after {own['prefetch_s']:.2f} s of replay at the greeter")
    if own and cold and scenario != "login":
        lines.append(f"installed: the {scenario} takes {own['total_s']:.2f} s in all, "
                     f"the cold one {cold['total_s']:.2f} s")
    return lines


def beside(results):
    """Describes what ran during a boot, and by how much it slowed that boot down."""
    lines = []
    for r in results:
        low, high = (100 * (q - 1) for q in r["ratio_quartiles"])
        lines += [f"{r['about']}: {100 * (r['ratio_median'] - 1):+.1f} % of a boot (median of "
                  f"{r['pairs']} pairs; half of them lie between {low:+.1f} and {high:+.1f} %); "
                  f"without {r['without_s']:.3f} s, with it {r['with_s']:.3f} s (medians)"]
        if "headstartd_peak_kib" in r:
            lines.append("headstartd's peak resident memory: "
                         f"{r['headstartd_peak_kib'] / 1024:.1f} MiB")
    return lines


def build_lines(options):
    """Says how the package differs from that of a distribution. `options` are those of its build, or None."""
    wanted = {"prefix": "/usr", "buildtype": "release"}
    differ = [f"{name}={options[name]} instead of {value}" for name, value in wanted.items()
              if options and options.get(name) != value]
    return wrap("not built as a distribution's package, whose boots read less: " + ", ".join(differ)) if differ else []


def costs(result):
    def spread(key, unit):
        values = sorted(s[key] / unit for s in result["samples"])
        return statistics.median(values), values[0], values[-1]

    cpu, low, high = spread("cpu_s", 1)
    lines = [f"one boot and one login more learned and planned, {result['already']} of each "
             f"learned before: {cpu:.3f} s CPU ({low:.3f}..{high:.3f}, median of "
             f"{len(result['samples'])})"]
    for verb in ("learn", "plan"):
        cpu, low, high = spread(f"{verb}_cpu_s", 1)
        _, _, most = spread(f"{verb}_peak_kib", 1024)
        # The kernel's figures of a child process include its first moments as a copy of this
        # program. Therefore the peak is only an upper bound.
        lines.append(f"{verb}: {cpu:.3f} s CPU ({low:.3f}..{high:.3f}), peak resident memory "
                     f"at most {most:.1f} MiB")
    empty = sorted(1000 * cpu for cpu in result["empty_cpu_s"])
    lines.append(f"headstart-replay on an empty pack: {statistics.median(empty):.2f} ms CPU "
                 f"({empty[0]:.2f}..{empty[-1]:.2f}, median of {len(empty)})")
    lines.append(f"model.json: {result['model_bytes'] / 1e6:.2f} MB")
    return lines


def memory(result):
    lines = []
    for s in result["samples"]:
        lines.append(f"headstartd: {s['peak_kib'] / 1024:.1f} MiB peak resident memory at "
                     f"{s['accesses']} recorded accesses; trace {s['trace_bytes'] / 1e6:.2f} MB")
    return lines


def coverage(result):
    lines = [f"a login pack planned from {result['learned']} recorded logins, and the next ones:"]
    for s in result["samples"]:
        lines.append(f"  {100 * s['data']:.1f} % of {s['used_mb']:.0f} MB data and "
                     f"{100 * s['metadata']:.1f} % of {s['metadata_blocks']} metadata blocks were "
                     f"in it; {100 * s['waste']:.1f} % of its {s['packed_mb']:.0f} MB in vain "
                     f"({100 * s['data_waste']:.1f} % of the data, "
                     f"{100 * s['metadata_waste']:.1f} % of the metadata)")
    return lines
