# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of data/fleet/fleet.py and tests/fleet/eventlog.py without Spark."""

import contextlib
import csv
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "data/fleet")]

import eventlog  # noqa: E402
import fleet  # noqa: E402


class LocalRows:
    """The operations of a Spark RDD that the job uses, in one process. Each group is reversed,
    because Spark does not promise any order."""

    def __init__(self, partitions):
        self.partitions = partitions

    def rows(self):
        return [row for part in self.partitions for row in part]

    def map(self, function):
        return LocalRows([[function(row) for row in part] for part in self.partitions])

    def flatMap(self, function):
        return LocalRows([[x for row in part for x in function(row)] for part in self.partitions])

    def filter(self, function):
        return LocalRows([[row for row in part if function(row)] for part in self.partitions])

    def mapValues(self, function):
        return self.map(lambda row: (row[0], function(row[1])))

    def mapPartitionsWithIndex(self, function):
        return LocalRows([list(function(i, iter(part))) for i, part in enumerate(self.partitions)])

    def groupByKey(self, partitions):
        groups = {}
        for key, value in self.rows():
            groups.setdefault(key, []).insert(0, value)
        return LocalContext().parallelize(list(groups.items()), partitions)

    def collect(self):
        return self.rows()


class LocalContext:
    def setJobDescription(self, text):
        pass

    def parallelize(self, rows, partitions):
        return LocalRows([rows[i::partitions] for i in range(partitions)])


class Functions(unittest.TestCase):
    def test_classes(self):
        self.assertEqual(fleet.class_of("/x/models/stable/gnome/disk/m1.model"), ("stable", "gnome", "disk"))

    def test_tree_levels(self):
        for leaves, fan_in, levels in ((1, 4, 0), (2, 4, 1), (4, 4, 1), (5, 4, 2), (64, 4, 3), (65, 4, 4),
                                       (64, 2, 6)):
            self.assertEqual(fleet.tree_levels(leaves, fan_in), levels)

    def test_halflife(self):
        text = b'{"format":"headstart-model","version":4,\n"halflife_usec":604800000000,'
        for data in (text, gzip.compress(text), gzip.compress(text)[:-4], text.replace(b'":', b'" : ')):
            self.assertTrue(fleet.has_halflife(data, 604800000000))
            self.assertFalse(fleet.has_halflife(data, 604800000001))
        # These are no models. has_halflife() accepts them, because merging refuses them and names
        # the reason.
        for data in (b"", b"\x1f\x8bx", b"{}", gzip.compress(b"")):
            self.assertTrue(fleet.has_halflife(data, 1))

    def test_means(self):
        rows = [["a", 2, "x", 10, 0.5, None, 1.0, 0.2, None, 1.0],
                ["b", 3, "x", 30, 0.9, None, None, 0.2, None, 3.0],
                ["a", 2, "y", 0, 0.0, None, None, 0.0, None, None]]
        x, y = fleet.mean_rows(rows)
        self.assertEqual(x[:4], ["(all)", 5, "x", 40])
        self.assertAlmostEqual(x[4], 0.8)
        self.assertEqual(x[5:7], [None, 1.0])
        self.assertEqual(y[3:], [0, None, None, None, None, None, None])

    def test_bad_arguments(self):
        for words in ("--min-machines=0", "--fan-in=1", "--partitions=0"):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
                fleet.parse_arguments(["--models=m", "--output=o", words])


class Job(unittest.TestCase):
    """The whole job on 40 models and 2 users. A path must be on at least 3 machines to be
    counted."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.source = Path(directory.name) / "fleet"
        subprocess.run([HERE / "generate", "--models=40", "--users=2", "--rare=3", cls.source], check=True)

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.work = Path(directory.name)
        shutil.copytree(self.source, self.work, dirs_exist_ok=True)
        self.program = Path(os.environ["HEADSTART"]).resolve()
        self.expected = json.loads((self.work / "expected.json").read_text())

    def run_job(self, output, *words):
        args = fleet.parse_arguments([f"--models={self.work}/models", f"--output={self.work}/{output}",
                                      f"--headstart={self.program}", "--min-machines=3", "--prune=0", *words])
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            fleet.run_job(LocalContext(), args)
        self.said = said.getvalue()
        return json.loads((self.work / output / "report.json").read_text())

    def good_model(self, pattern="*/*/*"):
        """Returns the path of a usable model, and its bytes."""
        bad = {self.work / path for path in self.expected["unusable"] + self.expected["duplicates"]}
        path = min(p for p in self.work.glob(f"models/{pattern}/*.model") if p not in bad)
        return path, fleet.merge(self.program, [path], "--per-machine")[0]

    def models(self, output):
        root = self.work / output
        return {str(p.parent.relative_to(root)): p.read_bytes() for p in root.glob("**/default.model")}

    def test_any_tree_gives_the_bytes_of_a_sequential_merge(self):
        self.run_job("deep", "--partitions=13", "--fan-in=2")
        self.run_job("flat", "--partitions=1")
        deep = self.models("deep")
        self.assertEqual(len(deep), 10)  # eight classes, two releases
        self.assertEqual(deep, self.models("flat"))
        bad = {self.work / path for path in self.expected["unusable"] + self.expected["duplicates"]}
        for name, data in deep.items():
            files = [p for p in sorted(self.work.glob(f"models/{name}/**/*.model")) if p not in bad]
            done = subprocess.run([self.program, "merge", "--quiet", "--per-machine", "--min-machines=3", "-o", "-",
                                   *files], stdout=subprocess.PIPE, check=True)
            self.assertEqual(done.stdout, data)

    def test_what_is_left_out(self):
        report = self.run_job("out", "--partitions=5", f"--traces={self.work}/traces",
                              "--evaluate-option=--budget=20%")
        left_out = [str(Path(path).relative_to(self.work)) for path, _ in report["left_out"]]
        self.assertEqual(left_out, self.expected["unusable"])
        self.assertEqual([pair[0] for pair in report["duplicates"]],
                         [str(self.work / path) for path in self.expected["duplicates"]])
        counts = [report[key] for key in ("n_models", "n_merged", "n_left_out", "n_duplicates")]
        self.assertEqual(counts, [40, 37, 2, 1])
        for path in self.expected["unusable"] + self.expected["duplicates"]:
            self.assertIn(path + ": ", self.said)
        for name, data in self.models("out").items():
            files = json.loads(data)["files"]
            paths, path = [], ""
            for shared, rest in zip(files["shared"], files["rest"]):
                path = path[:shared] + rest
                paths.append(path)
            self.assertFalse([p for p in paths if p.startswith(tuple(self.expected["absent"]))])
            for group, path in self.expected["present"].items():
                self.assertEqual(group.startswith(name), path in paths)
        with open(self.work / "out/evaluate.csv", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual({row["user"] for row in rows}, {"u0000", "u0001", "(all)"})
        self.assertEqual(len(rows), 3 * len({row["predictor"] for row in rows}))

    def test_a_forged_halflife_displaces_no_other_model(self):
        expected = self.run_job("before", "--partitions=1")
        first, model = self.good_model()
        model = json.loads(model)
        model["halflife_usec"] += 1
        text = json.dumps(model)
        for name, forged in (("0blanks", " " * 5000 + text),
                             ("0twice", text.replace("{", '{"halflife_usec":604800000000,', 1)),
                             ("0escaped", text.replace('"halflife_usec"', '"halflife\\u005fusec"', 1))):
            (first.parent / f"{name}.model").write_text(forged)
        report = self.run_job("out", "--partitions=1")
        self.assertEqual(report["n_merged"], expected["n_merged"])
        self.assertEqual(report["n_left_out"], expected["n_left_out"] + 3)
        self.assertEqual(self.models("out"), self.models("before"))

    def test_a_machine_in_two_classes_counts_once(self):
        old, model = self.good_model("*/gnome/disk")
        new = old.parents[2] / "xfce/flash" / old.name
        new.write_text(json.dumps(json.loads(model), indent=1))
        os.utime(old, (1, 1))
        report = self.run_job("out", "--partitions=5")
        self.assertIn([str(old), str(new)], report["duplicates"])
        self.assertEqual(report["n_merged"], 37)
        self.assertIn(f"{old}: an older model of the machine of {new}", self.said)

    def test_a_sum_that_is_too_large_is_left_out(self):
        merge = fleet.merge

        def refuse_one(headstart, files, *options):
            if len(files) > 1:
                return None, (files[1], "the sum with the other models is too large")
            return merge(headstart, files, *options)

        fleet.merge = refuse_one
        self.addCleanup(setattr, fleet, "merge", merge)
        model = self.good_model()[1]
        whole = fleet.merge_parts(self.program, [fleet.Part(model, n_merged=3), fleet.Part(model, n_merged=2)])
        self.assertEqual((whole.n_merged, whole.left_out),
                         (3, [("a sum of 2 models", "the sum with the other models is too large")]))
        self.assertIsNotNone(whole.model)

    def test_a_program_that_does_not_end_is_killed(self):
        self.addCleanup(setattr, fleet, "TIMEOUT_SEC", fleet.TIMEOUT_SEC)
        fleet.TIMEOUT_SEC = 0.1
        self.assertEqual(fleet.run(["/bin/sleep", "60"]), (-1, b"", "sleep did not end within 0.1 s"))

    def test_a_class_without_a_usable_model_has_no_result(self):
        only = self.work / "models/alone/gnome/disk/m.model"
        only.parent.mkdir(parents=True)
        only.write_text("not a model")
        report = self.run_job("out", "--partitions=5")
        self.assertEqual(report["n_left_out"], 3)
        self.assertNotIn("alone", report["models"])
        self.assertEqual(len(self.models("out")), 10)

    def test_users_with_bad_traces_are_named(self):
        (self.work / "traces/u0001/0.json").write_text("not a trace")
        report = self.run_job("out", "--partitions=1", f"--traces={self.work}/traces")
        self.assertEqual(report["n_users"] + len(report["users_left_out"]), 2)

    def test_no_models(self):
        with self.assertRaises(fleet.FleetError):
            fleet.run_job(LocalContext(), fleet.parse_arguments([f"--models={self.work}/none", "--output=o"]))


def events(tasks, parents=((0, []), (1, [0]), (2, [1])), removed="0"):
    """Returns an event log with these tasks and stages, in which the executor `removed` ends."""
    rows = [{"Event": "SparkListenerJobStart", "Job ID": 0,
             "Stage Infos": [{"Stage ID": stage, "Parent IDs": needs} for stage, needs in parents]}]
    rows += [{"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task End Reason": {"Reason": reason},
              "Task Info": {"Index": partition, "Partition ID": partition, "Executor ID": executor}} for stage, partition, executor, reason in tasks]
    rows.append({"Event": "SparkListenerExecutorRemoved", "Executor ID": removed, "Removed Reason": "code 137"})
    return eventlog.read([json.dumps(row) for row in rows])


class EventLog(unittest.TestCase):
    TASKS = [(0, 0, "0", "Success"), (0, 1, "1", "Success"), (0, 3, "0", "Success"), (0, 0, "0", "Resubmitted"),
             (0, 2, "0", "ExecutorLostFailure"),
             (0, 0, "2", "Success"), (0, 2, "1", "Success"), (1, 0, "1", "Success")]

    def test_a_good_run(self):
        figures = eventlog.check(events(self.TASKS), "0", "1")
        self.assertEqual(figures["depth"], 3)
        self.assertEqual(figures["n_lost"], 2)
        self.assertEqual(figures["shares"], {"0": 2 / 6, "1": 3 / 6, "2": 1 / 6})

    def refused(self, text, log):
        with self.assertRaisesRegex(eventlog.EventLogError, text):
            eventlog.check(log, "0", "1")

    def test_bad_runs(self):
        for lost in ((0, 0, "2", "Success"), (0, 2, "1", "Success")):
            self.refused("not run again", events([task for task in self.TASKS if task != lost]))
        self.refused("depth of 2", events(self.TASKS, ((0, []), (1, [0]), (2, [0]))))
        for executor in "12":
            self.refused("executor [01] ran only", events(self.TASKS + [(2, i, executor, "Success") for i in range(9)]))
        self.refused("was not removed", events(self.TASKS, removed="1"))
        self.refused("lost no task", events([task for task in self.TASKS if task[3] == "Success"]))


if __name__ == "__main__":
    unittest.main()
