# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a machine of a fleet and the job of data/fleet cost: measures single commands, and computes the cost of a
million machines from them. Prints the tables of docs/fleet.md. `tests/fleet/run --cost` calls it."""

import lzma
import math
import os
import resource
import statistics
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
REPETITIONS = 9
MACHINES = 1000000
LEAF, FAN_IN, DAYS = 64, 4, 7


def cpu_ms(command, **options):
    """Returns the median processor time of the command in milliseconds."""
    times = []
    for _ in range(REPETITIONS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, **options)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 1000 * statistics.median(times)


def learned_state(program, directory):
    """Learns the recorded sessions of two users. Returns the state directory and the number of traces."""
    state = directory / "state"
    (state / "traces").mkdir(parents=True)
    os.chmod(state, 0o700)
    packed = sorted((SOURCE / "tests/fixtures/sessions").glob("*.json.xz"))
    for path in packed:
        (state / "traces" / path.stem).write_bytes(lzma.decompress(path.read_bytes()))
    subprocess.run([program, f"--state={state}", "learn", "--quiet"], check=True)
    return state, len(packed)


def copies(path, directory, n):
    directory.mkdir()
    for i in range(n):
        (directory / f"{i}.model").write_bytes(path.read_bytes())
    return sorted(directory.iterdir())


def merges_of_tree(leaves):
    """Returns how many merges of FAN_IN sums the tree needs."""
    n = 0
    while leaves > 1:
        leaves = math.ceil(leaves / FAN_IN)
        n += leaves
    return n


def table(*rows):
    print()
    for i, row in enumerate(rows):
        print("| " + " | ".join(row) + " |")
        if i == 0:
            print("|" + " --- |" * len(row))


def measure(program, work, report, figures, elapsed, cpu_sec, sequential_cpu):
    """Prints the tables. `report` and `figures` are those of the Spark job that merged the models of `work`."""
    directory = work / "cost"
    directory.mkdir()
    state, n_traces = learned_state(program, directory)
    export = directory / "export.model"
    export_ms = cpu_ms([program, f"--state={state}", "export", "-o", export])
    size = export.stat().st_size
    packed = len(subprocess.run(["gzip", "-c", export], check=True, stdout=subprocess.PIPE).stdout)
    gzip_ms = cpu_ms(["gzip", "-c", export])
    merge = [program, "merge", "--quiet", "--output=-"]
    exports = copies(export, directory / "exports", 8)
    eight_ms = cpu_ms([*merge, "--per-machine", *exports])
    four_ms = cpu_ms([*merge, *exports[:FAN_IN]])
    generated = sorted(path for path in (work / "out").glob("*/*/*/default.model"))[:FAN_IN]
    sums_ms = cpu_ms([*merge, *generated])
    sums_size = statistics.mean(path.stat().st_size for path in generated)
    model = report["read_bytes"] / report["n_models"]
    leaf_ms = 1000 * report["merge_cpu_sec"] / report["n_merged"]
    spark_sec = (cpu_sec - report["merge_cpu_sec"] - report["evaluate_cpu_sec"]) / figures["n_tasks"]
    table(("what", "measured"),
          (f"`headstart export` after {n_traces} recordings of two users (`tests/fixtures/sessions`)",
           f"{export_ms:.0f} ms, {size:,} bytes"),
          ("the same, compressed by `gzip`", f"{gzip_ms:.0f} ms, {packed:,} bytes"),
          ("`merge --per-machine` of eight such exports", f"{eight_ms:.0f} ms, {eight_ms / 8:.0f} ms each"),
          ("`merge` of four such exports", f"{four_ms:.0f} ms"),
          (f"`merge` of four sums of {sums_size / 1000:.0f} kB", f"{sums_ms:.0f} ms"),
          (f"the leaves and the tree over {report['n_merged']:,} generated models of {model / 1000:.1f} kB",
           f"{report['merge_cpu_sec']:.1f} s, {leaf_ms:.1f} ms each"),
          ("the same, sequentially, in one process for each class", f"{sequential_cpu:.1f} s"),
          ("`evaluate` of one user with four sessions of 24 starts",
           f"{1000 * report['evaluate_cpu_sec'] / report['n_users']:.0f} ms"),
          ("the whole Spark job", f"{elapsed:.0f} s, {cpu_sec:.0f} s of processor time, {figures['n_tasks']} tasks"),
          ("Spark without headstart's programs, with its start, for each task", f"{spark_sec:.2f} s of processor time"))
    leaves = math.ceil(MACHINES / LEAF)
    merges = merges_of_tree(leaves)
    tasks = 3 * leaves + merges
    hours = [MACHINES * eight_ms / 8 / 3.6e6, merges * four_ms / 3.6e6, tasks * spark_sec / 3600]
    stored = MACHINES * packed / 1e9
    table((f"{MACHINES:,} machines", "computed", "a week"),
          ("stored, one compressed export for each machine", f"{MACHINES:,} * {packed / 1000:.0f} kB", f"{stored:.0f} GB"),
          ("received", f"{stored:.0f} GB / {DAYS} days",
           f"{stored / DAYS:.0f} GB a day, {8 * stored * 1000 / DAYS / 86400:.1f} Mbit/s"),
          ("read by the job, once for duplicates and once to merge", f"2 * {stored:.0f} GB", f"{2 * stored:.0f} GB"),
          ("merging exports", f"{MACHINES:,} * {eight_ms / 8:.0f} ms", f"{hours[0]:.1f} core hours"),
          ("merging sums", f"{leaves:,} leaves of {LEAF} models, {merges:,} merges of {FAN_IN} sums as large as an export, "
           f"{four_ms:.0f} ms each", f"{hours[1]:.1f} core hours"),
          ("Spark", f"{leaves:,} tasks for the leaves, twice as many for duplicates, and {merges:,} for the tree: {tasks:,} "
           f"tasks of {spark_sec:.2f} s", f"{hours[2]:.1f} core hours"),
          ("together", "", f"{sum(hours):.0f} core hours"))
    print(f"\nA machine that exports once a week sends {packed / 1000:.0f} kB, which is {packed / DAYS / 1000:.0f} kB a day, "
          f"and spends {export_ms + gzip_ms:.0f} ms of processor time.")
