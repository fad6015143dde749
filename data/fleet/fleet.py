#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Adds up the models of a fleet on Spark, and judges the predictors on its traces (docs/fleet.md).

spark-submit [OPTIONS] fleet.py --models DIR --output DIR [--traces DIR]

DIR/RELEASE/DESKTOP/DEVICE/MACHINE.model is what `headstart export` wrote on a machine of that
class. The job merges each class, drops what too few machines have seen, and writes
OUTPUT/RELEASE/DESKTOP/DEVICE/default.model. OUTPUT/RELEASE/default.model is the sum of a release:
the model that its packages ship. With --traces, `headstart evaluate` judges the traces of each user
(TRACES/USER/*.json) and OUTPUT/evaluate.csv has one row for each user and predictor.
OUTPUT/report.json names every model that was left out.

The workers run the program `headstart`, and they read the models and traces under the same paths as
the driver. `headstart merge` is exact, so neither the tree nor a repeated task changes a byte."""

import argparse
import csv
import hashlib
import io
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

TIMEOUT_SEC = 600  # longest run of one program; merging a model takes milliseconds
HALFLIFE_USEC = 604800000000  # the default of headstart.conf
HEAD_BYTES = 4096  # the half-life is in this many bytes at the start of a model
COLUMNS = ("user", "n_traces", "predictor", "n_scored", "hit_rate", "first_right", "accuracy", "coverage", "waste",
           "log_loss")


class FleetError(Exception):
    pass


class Part:
    """The sum of some models, how many were merged, and which were left out."""

    def __init__(self, model=None, **counts):
        self.model = model  # bytes, or None if none of the models was usable
        self.n_merged = counts.get("n_merged", 0)
        self.n_merges = counts.get("n_merges", 0)
        self.read_bytes = counts.get("read_bytes", 0)
        self.cpu_sec = counts.get("cpu_sec", 0.0)
        self.left_out = counts.get("left_out", [])  # (path, reason)

    def add_counts(self, other):
        self.n_merged += other.n_merged
        self.n_merges += other.n_merges
        self.read_bytes += other.read_bytes
        self.cpu_sec += other.cpu_sec
        self.left_out = sorted(self.left_out + other.left_out)


def children_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command):
    """Returns the exit status, standard output, and the last line of standard error. A program that
    does not end within TIMEOUT_SEC is killed and has the status -1."""
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIMEOUT_SEC, check=False)
    except subprocess.TimeoutExpired:
        return -1, b"", f"{Path(command[0]).name} did not end within {TIMEOUT_SEC} s"
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return done.returncode, done.stdout, lines[-1] if lines else ""


# --- models ---------------------------------------------------------------------------------------

def class_of(path):
    """Returns (release, desktop, device) of a model's path."""
    return Path(path).parts[-4:-1]


def list_models(directory):
    return sorted(str(p) for p in Path(directory).glob("*/*/*/*.model"))


def has_halflife(data, halflife_usec):
    """Returns whether a model has this half-life. Also returns True if the half-life cannot be read;
    `headstart merge` then names the reason. `headstart merge` refuses each model whose half-life
    differs from that of the first model, so without this check the order of the models would decide
    which are left out. A forged model can deceive the check; find_deviating() judges what `headstart
    merge` makes of it."""
    head = data[:HEAD_BYTES]
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
        except zlib.error:
            return True  # headstart merge names the reason
    found = re.search(rb'"halflife_usec"\s*:\s*(\d+)', head)
    return not found or int(found.group(1)) == halflife_usec


def merge(headstart, files, *options):
    """Merges files. Returns (bytes, None), or (None, (bad file, reason))."""
    status, out, error = run([headstart, "merge", "--quiet", "--output=-", *options, *files])
    if status == 0:
        return out, None
    for file in files:
        if f"{file}: " in error:
            return None, (file, error.split(f"{file}: ", 1)[1])
    if len(files) == 1:
        return None, (files[0], f"headstart merge ended with status {status}")
    for file in files:
        bad = merge(headstart, [file], *options)[1]
        if bad:
            return None, bad
    raise FleetError(f"headstart merge ended with status {status}: {error}")


def find_deviating(headstart, paths, halflife_usec):
    """Returns [(path, reason)] of the models that cannot be merged alone, or that then have another
    half-life."""
    bad = []
    for path in paths:
        model, why = merge(headstart, [path], "--per-machine")
        if why:
            bad.append(why)
        elif not has_halflife(model, halflife_usec):
            bad.append((path, "another half-life"))
    return bad


def merge_machines(headstart, paths, halflife_usec=HALFLIFE_USEC):
    """Merges what machines have sent, and leaves out the models that cannot be merged. Each file counts
    as one machine, whatever number of machines the file states."""
    before = children_cpu()
    part = Part()
    good = []
    for path in paths:
        try:
            data = Path(path).read_bytes()
        except OSError as e:
            part.left_out.append((path, e.strerror))
            continue
        part.read_bytes += len(data)
        if has_halflife(data, halflife_usec):
            good.append(path)
        else:
            part.left_out.append((path, "another half-life"))
    while good and part.model is None:
        part.n_merges += 1
        part.model, bad = merge(headstart, good, "--per-machine")
        left_out = [bad] if bad else []
        # The first model decides the half-life, and may be the only one that has it.
        if "half-life" in bad[1] if bad else not has_halflife(part.model, halflife_usec):
            part.model = None
            left_out = find_deviating(headstart, good, halflife_usec) or left_out
        part.left_out += left_out
        good = [path for path in good if path not in {path for path, _ in left_out}]
    part.n_merged = len(good)
    part.left_out.sort()
    part.cpu_sec = children_cpu() - before
    return part


def merge_parts(headstart, parts, *options):
    """Merges sums of models, and leaves out those that cannot be merged with the others because the
    whole would be too large."""
    before = children_cpu()
    whole = Part()
    for part in parts:
        whole.add_counts(part)
    with tempfile.TemporaryDirectory(prefix="headstart-fleet.") as directory:
        files = {}
        for part in parts:
            if part.model is not None:
                path = Path(directory) / f"{len(files)}.model"
                path.write_bytes(part.model)
                files[path] = part
        while files and whole.model is None:
            whole.model, bad = merge(headstart, list(files), *options)
            whole.n_merges += 1
            if bad:
                n = files.pop(bad[0]).n_merged
                whole.n_merged -= n
                whole.left_out = sorted([*whole.left_out, (f"a sum of {n} models", bad[1])])
    whole.cpu_sec += children_cpu() - before
    return whole


def merge_leaf(headstart, index, paths, halflife_usec):
    """Yields ((class, index), part) for each class among the paths of a partition."""
    classes = {}
    for path in paths:
        classes.setdefault(class_of(path), []).append(path)
    for name, members in sorted(classes.items()):
        yield (name, index), merge_machines(headstart, members, halflife_usec)


def tree_levels(n_leaves, fan_in):
    """Returns how often groups of `fan_in` must be merged until one sum is left."""
    levels = 0
    while n_leaves > 1:
        n_leaves = -(-n_leaves // fan_in)
        levels += 1
    return levels


def find_duplicates(sc, paths, partitions):
    """Returns {path of a copy: path of the first file with the same bytes}. A machine that sends its model twice must not count
    as two machines."""
    sc.setJobDescription("Looking for models that were sent twice")

    def digest(path):
        try:
            return hashlib.sha256(Path(path).read_bytes()).digest(), path
        except OSError:
            return path, path

    groups = (sc.parallelize(paths, partitions).map(digest).groupByKey(partitions)
              .map(lambda row: sorted(row[1])).filter(lambda group: len(group) > 1).collect())
    return {path: group[0] for group in groups for path in group[1:]}


def find_moved(paths):
    """Returns {path of an older file: path of the newest file of the machine}. A machine that has
    changed its desktop or disk has files in several classes of its release."""
    machines = {}
    for path in paths:
        machines.setdefault((class_of(path)[0], Path(path).name), []).append(path)

    def age(path):
        try:
            return Path(path).stat().st_mtime_ns, path
        except OSError:
            return 0, path

    moved = {}
    for files in machines.values():
        newest = max(files, key=age)
        moved.update({path: newest for path in files if path != newest})
    return moved


def merge_fleet(sc, paths, args):
    """Returns [(directory, part)]: a model for each class and for each release."""
    sc.setJobDescription("Merging models")
    headstart, fan_in, halflife = args.headstart, args.fan_in, args.halflife_usec
    options = [f"--min-machines={args.min_machines}", f"--prune={args.prune}"]
    leaves = sc.parallelize(paths, args.partitions)
    tree = leaves.mapPartitionsWithIndex(lambda i, rows: merge_leaf(headstart, i, rows, halflife))
    width = args.partitions
    for _ in range(tree_levels(args.partitions, fan_in)):
        width = -(-width // fan_in)
        tree = (tree.map(lambda row: ((row[0][0], row[0][1] // fan_in), row[1]))
                .groupByKey(max(width, args.width))
                .mapValues(lambda parts: merge_parts(headstart, list(parts))))
    return sorted(tree.flatMap(lambda row: [("/".join(row[0][0]), row[1]), (row[0][0][0], row[1])])
                  .groupByKey(args.width)
                  .mapValues(lambda parts: merge_parts(headstart, list(parts), *options))
                  .collect(), key=lambda row: row[0])


# --- traces ---------------------------------------------------------------------------------------

def evaluate_user(headstart, directory, options):
    """Returns (rows of the table, None, processor time), or ([], (directory, reason), processor time)
    if the evaluation failed."""
    before = children_cpu()
    status, out, error = run([headstart, "evaluate", "--json=short", *options, directory])
    cpu_sec = children_cpu() - before
    if status != 0:
        return [], (directory, error), cpu_sec
    result = json.loads(out)
    rows = [[Path(directory).name, result["n_traces"], p["name"],
             *(p.get(column) for column in COLUMNS[3:])] for p in result["predictors"]]
    return rows, None, cpu_sec


def evaluate_fleet(sc, args):
    sc.setJobDescription("Judging traces")
    users = sorted(str(p) for p in Path(args.traces).iterdir() if p.is_dir())
    headstart, options = args.headstart, args.evaluate_option
    results = (sc.parallelize(users, max(1, min(len(users), 16 * args.width)))
               .map(lambda user: evaluate_user(headstart, user, options)).collect())
    rows = [row for result in results for row in result[0]]
    return rows, [bad for _, bad, _ in results if bad], sum(cpu for _, _, cpu in results)


def mean_rows(rows):
    """Returns one row for each predictor: the means over all users, weighted by the number of starts
    that were judged."""
    names = list(dict.fromkeys(row[2] for row in rows))
    means = []
    for name in names:
        own = [row for row in rows if row[2] == name]
        mean = ["(all)", sum(row[1] for row in own), name, sum(row[3] for row in own)]
        for column in range(4, len(COLUMNS)):
            known = [row for row in own if row[column] is not None]
            weight = sum(row[3] for row in known)
            mean.append(sum(row[column] * row[3] for row in known) / weight if weight else None)
        means.append(mean)
    return means


# --- output ---------------------------------------------------------------------------------------

def write(path, data):
    """Replaces the file as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    with open(temporary, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    temporary.rename(path)


def write_table(path, rows):
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(rows)
    write(path, text.getvalue().encode())


def parse_arguments(argv):
    parser = argparse.ArgumentParser(prog="fleet.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", required=True, metavar="DIR", help="directory of the models, by class")
    parser.add_argument("--output", required=True, metavar="DIR", help="directory for the results")
    parser.add_argument("--traces", metavar="DIR", help="directory of the traces, by user")
    parser.add_argument("--headstart", default="headstart", metavar="PROGRAM",
                        help="path of headstart on the workers (default: %(default)s)")
    parser.add_argument("--min-machines", type=int, default=20, metavar="K",
                        help="drop what fewer machines have seen (default: %(default)s)")
    parser.add_argument("--prune", type=int, default=10, metavar="PERCENT",
                        help="drop files that a smaller share of sessions used (default: %(default)s)")
    parser.add_argument("--halflife-usec", type=int, default=HALFLIFE_USEC, metavar="USEC",
                        help="leave out models with another half-life (default: %(default)s)")
    parser.add_argument("--partitions", type=int, default=64, metavar="N",
                        help="number of leaves of the tree of merges (default: %(default)s)")
    parser.add_argument("--fan-in", type=int, default=4, metavar="N",
                        help="number of sums that one task merges (default: %(default)s)")
    parser.add_argument("--width", type=int, default=4, metavar="N",
                        help="least number of tasks of a level (default: %(default)s)")
    parser.add_argument("--evaluate-option", action="append", default=[], metavar="OPTION",
                        help="option for headstart evaluate; may be repeated")
    args = parser.parse_args(argv)
    if args.min_machines < 1 or args.partitions < 1 or args.fan_in < 2 or args.width < 1:
        parser.error("--min-machines, --partitions and --width are at least 1, --fan-in at least 2")
    return args


def run_job(sc, args):
    output = Path(args.output)
    listed = list_models(args.models)
    if not listed:
        raise FleetError(f"{args.models}: no RELEASE/DESKTOP/DEVICE/*.model")
    judged = evaluate_fleet(sc, args) if args.traces else None
    duplicates = find_duplicates(sc, listed, args.partitions)
    moved = find_moved([path for path in listed if path not in duplicates])
    duplicates.update(moved)
    paths = [path for path in listed if path not in duplicates]
    sums = merge_fleet(sc, paths, args)
    total = Part()
    for directory, part in sums:
        if part.model is not None:
            write(output / directory / "default.model", part.model)
        if "/" in directory:
            total.add_counts(part)
    report = {
        "n_models": len(listed), "n_merged": total.n_merged, "n_left_out": len(total.left_out),
        "n_duplicates": len(duplicates), "left_out": [list(bad) for bad in total.left_out],
        "duplicates": sorted([list(pair) for pair in duplicates.items()]),
        "read_bytes": total.read_bytes, "n_merges": total.n_merges, "merge_cpu_sec": round(total.cpu_sec, 3),
        "models": {directory: len(part.model) for directory, part in sums if part.model is not None},
    }
    if judged:
        rows, bad, cpu_sec = judged
        write_table(output / "evaluate.csv", rows + mean_rows(rows))
        report.update(n_users=len({row[0] for row in rows}), users_left_out=[list(b) for b in bad],
                      evaluate_cpu_sec=round(cpu_sec, 3))
    write(output / "report.json", (json.dumps(report, indent=2) + "\n").encode())
    for path, reason in total.left_out:
        print(f"fleet.py: {path}: {reason}; left out", file=sys.stderr)
    for path, same in sorted(duplicates.items()):
        what = "an older model of the machine of" if path in moved else "the same model as"
        print(f"fleet.py: {path}: {what} {same}; left out", file=sys.stderr)
    print(f"{total.n_merged} of {len(listed)} models merged, {len(total.left_out)} unusable, "
          f"{len(duplicates)} sent twice")


def main(argv):
    args = parse_arguments(argv)
    from pyspark import SparkContext  # the rest of this file works without pyspark

    sc = SparkContext(appName="headstart-fleet")
    try:
        run_job(sc, args)
    finally:
        sc.stop()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except FleetError as e:
        print(f"fleet.py: {e}", file=sys.stderr)
        sys.exit(1)
