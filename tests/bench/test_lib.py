# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests the parts of the bench that need neither a disk nor root, among them options, series,
coverage, bounds and tables."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from lib import (benefit, calls, chart, demand, desktops, disklog, image, inside, installed,  # noqa: E402
                 owners, report, results, shellwindows, svg, tree, workloads)
from lib.commands import BenchError  # noqa: E402
from lib.package import Package  # noqa: E402
from lib.progress import Progress  # noqa: E402
from lib.registry import VARIANTS  # noqa: E402
from lib.series import Series, checksum  # noqa: E402

B = demand.BLOCK


def load_program(name):
    loader = importlib.machinery.SourceFileLoader(f"bench_{name}", str(HERE / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(f"bench_{name}", loader))
    loader.exec_module(module)
    return module


class Temporary(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)


class Benefit(unittest.TestCase):
    @staticmethod
    def sample(scenario, variant, seconds, outcome=None, policy=None):
        return {"scenario": scenario, "variant": variant, "seconds": seconds, "outcome": outcome,
                "policy": policy}

    def test_the_interval_and_the_true_effects(self):
        samples = [self.sample("boot", "cold", s) for s in (9, 10, 11)]
        samples += [self.sample("boot", "installed", s, "control", "gate") for s in (8, 8.5)]
        # Sessions with an earlier policy, and those without a pack, do not count.
        samples += [self.sample("boot", "installed", 1, "done", "concurrent"),
                    self.sample("boot", "installed", 9.5),
                    *(self.sample("boot", "installed", s, "done", "gate") for s in (4, 5, 6))]
        history = [{"stage": "boot", "flags": ["control"], "outcome": "control", "policy": "gate",
                    "ready_usec": 21000000, "early_usec": 1000000},
                   {"stage": "boot", "flags": [], "outcome": "done", "policy": "gate",
                    "ready_usec": 10000000, "early_usec": 2000000},
                   {"stage": "boot", "flags": [], "policy": "off", "ready_usec": 1},
                   {"stage": "login", "flags": [], "policy": "idle", "outcome": "done"}]
        shown = {"stage": "boot", "known": True, "saved": 0.45, "saved_low": 0.4,
                 "saved_high": 0.49, "n_replayed": 3, "n_control": 2, "n_left_out": 1}
        found, = benefit.judge(samples, [shown], history)
        self.assertEqual(found["policy"], "gate")
        self.assertAlmostEqual(found["truths"]["cold"], 0.5)
        self.assertAlmostEqual(found["truths"]["control"], 1 - 5 / 8.25)
        self.assertAlmostEqual(found["truths"]["recorded"], 0.5)
        self.assertEqual(found["contained"], {"cold": False, "control": False, "recorded": False})
        self.assertTrue(benefit.judge(samples, [{**shown, "saved_high": 0.5}],
                                      history)[0]["contained"]["cold"])
        text = "\n".join(benefit.lines([found]))
        self.assertIn("boot (gate): status says 45.0 % (40.0 % to 49.0 %)", text)
        self.assertIn("NOT within the interval: 50.0 %, from cold and installed", text)

    def test_without_an_interval(self):
        found, = benefit.judge([], [{"stage": "login", "known": False, "n_replayed": 0,
                                     "n_control": 0, "n_left_out": 0}], [])
        self.assertEqual(found["truths"], {"cold": None, "control": None, "recorded": None})
        self.assertIn("not enough sessions", "\n".join(benefit.lines([found])))

    def test_the_load_is_the_same_in_each_call(self):
        loads = [benefit.draw_load(1, n, "boot", "cold") for n in range(1, 41)]
        self.assertEqual(loads, [benefit.draw_load(1, n, "boot", "cold") for n in range(1, 41)])
        self.assertEqual({x["spinners"] for x in loads}, {0, 1, 2})
        self.assertNotEqual(loads, [benefit.draw_load(1, n, "boot", "installed") for n in range(1, 41)])

    def test_sixteen_draws_contain_each_load(self):
        def mixture(loads):
            return sorted((x["spinners"], x["reads_per_s"]) for x in loads)

        for first in (1, 17):
            drawn = [benefit.draw_load(7, n, "login", "cold") for n in range(first, first + 16)]
            self.assertEqual(mixture(drawn), mixture(benefit.LOADS))


class Steps(unittest.TestCase):
    def say(self, terminal, steps):
        """Returns what is printed for (seconds, text, done, total) of each step."""
        stream, now = io.StringIO(), [0]
        stream.isatty = lambda: terminal
        progress = Progress(stream, clock=lambda: now[0])
        for seconds, *step in steps:
            now[0] = seconds
            progress.say(*step)
        return stream.getvalue()

    def test_a_terminal_shows_percent_and_the_time_left(self):
        shown = self.say(True, [(0, "boot", 0, 4), (100, "boot", 1, 4), (200, "boot", 2, 4), (380, "boot", 3, 4)])
        self.assertEqual(re.findall(r"\((.*?)\)", shown), ["0 %", "25 %, 5 min left", "50 %, 4 min left", "75 %, 3 min left"])
        self.assertEqual(shown.count("\r\033[K"), 4)
        self.assertNotIn("\n", shown)

    def test_a_resumed_series_and_the_next_one_count_from_their_first_step(self):
        shown = self.say(True, [(0, "boot", 6, 8), (30, "boot", 7, 8), (60, "login", 0, 8), (65, "login", 1, 8)])
        self.assertEqual(re.findall(r"\((.*?)\)", shown), ["75 %", "87 %, 30 s left", "0 %", "12 %, 35 s left"])

    def test_a_step_without_a_series_has_no_percent_and_a_long_one_keeps_it(self):
        self.assertEqual(self.say(True, [(0, "copying")]), "\r\033[K[   0.0 s] copying")
        self.assertTrue(self.say(True, [(0, "x" * 200, 1, 2)]).endswith("x (50 %)"))
        self.assertLessEqual(len(self.say(True, [(0, "x" * 200, 1, 2)])), 118 + len("\r\033[K"))

    def test_a_pipe_gets_one_plain_line_for_each_step(self):
        self.assertEqual(self.say(False, [(0, "boot", 0, 2), (9, "boot", 1, 2)]), "[   0.0 s] boot\n[   9.0 s] boot\n")


class Svg(Temporary):
    def test_requests_of_one_section(self):
        log = self.directory / "log"
        log.write_text("# disksim profile=ssd stroke=1\n1 R 0 1 0 0 1\n# mark boot/cold/1/stage 100\n"
                       "150 R 4096 8192 0 0 1\n90 R 0 512 0 0 1\n# mark boot/cold/1/after 300\n"
                       "310 R 1 1 0 0 1\n")
        self.assertEqual(svg.requests(log, "boot/cold/1"), [(50, 4096, 8192), (0, 0, 512)])
        self.assertEqual(svg.requests(log, "boot/cold/2"), [])

    def test_requests_in_packs(self):
        sample = {"seconds": 1.5}
        lines = svg.commands(sample, "Boot", [(5, B, B), (6, 9 * B, B)], {1, 2}, 2000000)
        self.assertEqual(lines, ["timeline 2000000 Boot", "series 1 in a pack", "series 2 in no pack",
                                 f"read 1 5 {B} {B}", f"read 2 6 {9 * B} {B}", "mark 1500000 ready"])
        self.assertIn("series 2 read on demand", svg.commands(sample, "Boot", [], None, 1))
        self.assertIn("note", " ".join(svg.commands(sample, "Boot", [], None, 1)))

    def test_the_run_in_the_middle(self):
        runs = [{"seconds": s} for s in (3, 1, 2)]
        self.assertEqual(svg.middle(runs)["seconds"], 2)
        self.assertEqual(svg.middle(runs[:2])["seconds"], 1)



class Options(unittest.TestCase):
    def parse(self, *words):
        return load_program("run").parse_arguments(list(words))

    def refused(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as stopped:
            self.parse(*words)
        self.assertEqual(stopped.exception.code, 2)
        return said.getvalue().splitlines()[-1]

    def test_default_is_the_installed_product_and_its_two_references(self):
        args = self.parse()
        self.assertEqual(args.variants, ["cold", "warm", "installed"])
        self.assertEqual(args.scenarios, ["boot", "login"])
        self.assertIsNone(args.resume)

    def test_lists(self):
        args = self.parse("--variants=outside,,installed-disabled", "--scenario", "autologin")
        self.assertEqual(args.variants, ["outside", "installed-disabled"])
        self.assertEqual(args.scenarios, ["autologin"])

    def test_unknown_names_are_refused(self):
        self.assertIn("'headstart'", self.refused("--variants=cold,headstart"))
        self.assertIn("'reboot'", self.refused("--scenario=reboot"))
        self.assertIn("nothing to measure", self.refused("--variants="))

    def test_numbers_begin_at_one(self):
        for option in ("runs", "sessions", "pairs", "costs", "events", "coverage"):
            self.assertIn("must be at least 1", self.refused(f"--{option}=0"))

    def test_the_lead_of_a_login(self):
        self.assertIsNone(self.parse().lead)
        self.assertEqual(self.parse("--lead=0").lead, 0)
        for lead in ("-1", "nan", "inf", "301"):
            self.assertIn("--lead=", self.refused(f"--lead={lead}"))

    def test_only_a_series_can_be_resumed(self):
        self.assertEqual(self.parse("--resume=x").resume, "x")
        self.assertIn("--resume=", self.refused("--resume=x", "--overhead"))

    def test_variants_that_run_inside_the_machine(self):
        self.assertEqual({name for name, v in VARIANTS.items() if v.inside},
                         {"installed", "installed-control", "installed-disabled",
                          "installed-unlearned", "installed-off", "installed-metadata",
                          "installed-concurrent", "installed-gate",
                          "installed-auto"})
        self.assertEqual({name for name, v in VARIANTS.items() if v.packs},
                         {"installed", "installed-unlearned"})


class Resume(Temporary):
    KEY = {"profile": "ssd", "variants": ("cold", "warm"), "build of headstart": "1234"}

    def sample(self, variant="cold", run=1, scenario="boot"):
        return {"scenario": scenario, "variant": variant, "run": run, "seconds": 0.5}

    def series(self, **changed):
        return Series(self.directory / "series", {**self.KEY, **changed})

    def test_what_is_finished_is_found_again(self):
        series = self.series()
        series.add(self.sample())
        series.add(self.sample("warm"))
        series.finish("cold", {"judged": None})
        again = self.series()
        self.assertEqual(again.find("boot", "warm", 1), self.sample("warm"))
        self.assertIsNone(again.find("boot", "warm", 2))
        self.assertIsNone(again.find("login", "warm", 1))
        self.assertTrue(again.complete("cold", ["boot"], 1))
        self.assertFalse(again.complete("cold", ["boot"], 2))
        self.assertFalse(again.complete("cold", ["boot", "login"], 1))
        self.assertFalse(again.complete("warm", ["boot"], 1))  # measured, but not finished

    def test_a_series_of_other_options_or_builds_is_refused_and_stays(self):
        self.series().add(self.sample())
        before = (self.directory / "series").read_bytes()
        for changed, name in (({"profile": "sd"}, "profile"), ({"variants": ("cold",)}, "variants"),
                              ({"build of headstart": "1235"}, "build of headstart"),
                              ({"further": 1}, "further")):
            with self.assertRaisesRegex(BenchError, f"other {name}$"):
                self.series(**changed)
        self.assertEqual((self.directory / "series").read_bytes(), before)

    def test_what_is_no_series_is_refused_and_stays(self):
        path = self.directory / "series"
        good = json.dumps({"format": "headstart-bench-series", "version": 1, "key": {},
                           "samples": [], "finished": {}})
        for text in ("", "{", "[]", "null", "{}", good.replace("series", "trace"),
                     good.replace("1", "2"), good.replace('"samples": []', '"samples": [1]'),
                     good.replace('"samples": []', '"samples": [{"run": 1}]'),
                     good.replace('"finished": {}', '"finished": 1'), "\x00\x01"):
            path.write_text(text)
            with self.assertRaisesRegex(BenchError, "no series"):
                self.series()
            self.assertEqual(path.read_text(), text)
        path.write_bytes(b"\xff\xfe")
        with self.assertRaisesRegex(BenchError, "no series"):
            self.series()

    def test_the_file_is_replaced_whole(self):
        series = self.series()
        series.add(self.sample())
        first = (self.directory / "series").stat().st_ino
        series.add(self.sample(run=2))
        self.assertNotEqual((self.directory / "series").stat().st_ino, first)
        self.assertEqual([p.name for p in self.directory.iterdir()], ["series"])

    def test_without_a_file_nothing_is_written(self):
        series = Series(None, self.KEY)
        series.add(self.sample())
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_a_checksum_tells_contents_names_and_absence_apart(self):
        one, two = self.directory / "one", self.directory / "two"
        one.write_text("1")
        seen = {checksum([one]), checksum([two]), checksum([one, two])}
        one.write_text("2")
        seen |= {checksum([one]), checksum([])}
        self.assertEqual(len(seen), 5)
        two.write_text("2")
        self.assertEqual(checksum([one, two]), checksum([two, one]))


class Coverage(unittest.TestCase):
    def test_blocks_of_ranges(self):
        self.assertEqual(demand.blocks([(0, 1), (B - 1, 2), (3 * B, B)]), {0, 1, 3})
        self.assertEqual(demand.blocks([(5, 0)]), set())

    def test_a_request_is_covered_if_all_of_it_is(self):
        j = demand.judge([(0, 4 * B), (4 * B, 2 * B), (10 * B, 2 * B)], {0, 1, 2, 3, 4, 20})
        self.assertEqual((j["reads"], j["covered_reads"]), (3, round(1 / 3, 4)))
        self.assertEqual(j["covered_bytes"], round(5 / 8, 4))
        self.assertEqual(j["mb"], round(8 * B / 1e6, 3))
        self.assertEqual(j["waste"], round(1 / 6, 4))
        self.assertEqual(j["pack_mb"], round(6 * B / 1e6, 3))

    def test_the_missed_and_wasted_blocks_are_those_that_judge_counts(self):
        reads, own = [(0, 4 * B), (4 * B, 2 * B), (10 * B, 2 * B)], {0, 1, 2, 3, 4, 20, 21}
        self.assertEqual(demand.missed(reads, own), [[5], [10, 11]])
        self.assertEqual(demand.missed(reads, own, resident={5}, before=[(10 * B, B)]), [[11]])
        self.assertEqual(demand.wasted(reads, own), {20, 21})
        self.assertEqual(demand.wasted(reads, own, before=[(20 * B, 1)], after=[(21 * B, 1)]),
                         set())

    def test_metadata_of_ext4_has_owners(self):
        text = """Group 3: (Blocks 98304-131071) csum 0x1 [ITABLE_ZEROED]
  Backup superblock at 98304, Group descriptors at 98305-98305
  Block bitmap at 1028 (bg #0 + 1028), csum 0x2
  Inode table at 2595-3106 (bg #0 + 2595)
"""
        self.assertEqual(owners.parse_groups(text), [
            (98304, 98304, "backup superblock of group 3"),
            (98305, 98305, "group descriptors of group 3"),
            (1028, 1028, "block bitmap of group 3"), (2595, 3106, "inode table of group 3")])

    def test_what_was_replayed_before_counts_as_there_but_not_as_the_packs_own(self):
        j = demand.judge([(0, 2 * B)], {0, 9}, resident={1})
        self.assertEqual((j["covered_reads"], j["covered_bytes"], j["waste"]), (1, 1, 0.5))

    def test_what_is_wanted_at_another_time_is_no_waste(self):
        j = demand.judge([(0, B)], {0, 1, 2, 3, 4}, before=[(B, B)], after=[(2 * B, 2 * B)])
        self.assertEqual((j["reads"], j["waste"]), (1, 0.2))

    def test_what_is_read_again_counts_once(self):
        j = demand.judge([(0, 2 * B), (B, 2 * B), (0, B), (8 * B, 2 * B)], {0, 1}, before=[(8 * B, B)])
        self.assertEqual((j["reads"], j["mb"]), (3, round(4 * B / 1e6, 3)))
        self.assertEqual((j["covered_reads"], j["covered_bytes"]), (round(1 / 3, 4), 0.5))

    def test_nothing_has_no_share(self):
        j = demand.judge([], set())
        self.assertEqual((j["covered_reads"], j["covered_bytes"], j["waste"]), (None, None, None))

    def test_requests_for_what_is_in_no_pack(self):
        self.assertEqual(demand.unplanned([(0, 2 * B), (2 * B, B), (8 * B, 3 * B)], {1}),
                         {"reads": 2, "mb": round(4 * B / 1e6, 3)})

    def test_blocks_of_a_pack(self):
        pack = {"volumes": [
            {"uuid": "a", "metadata": [{"offset": 0, "length": B}],
             "data": [{"physical": 8 * B, "length": 2 * B}, {"physical": None, "length": B}]},
            {"uuid": "b", "metadata": [{"offset": 4 * B, "length": B}], "data": []}]}
        self.assertEqual(demand.pack_blocks(pack, "a"), {0, 8, 9})
        self.assertEqual(demand.pack_blocks(pack, "c"), set())

    DUMP = """btrfs-progs v6.2
chunk tree
leaf 22036480 items 3 free space 15626 generation 6 owner CHUNK_TREE
\titem 0 key (DEV_ITEMS DEV_ITEM 1) itemoff 16185 itemsize 98
\t\tdevid 1 total_bytes 8589934592 bytes_used 1109393408
\titem 1 key (FIRST_CHUNK_TREE CHUNK_ITEM 13631488) itemoff 16105 itemsize 80
\t\tlength 8388608 owner 2 stripe_len 65536 type DATA|single
\t\tio_align 65536 io_width 65536 sector_size 4096
\t\tnum_stripes 1 sub_stripes 1
\t\t\tstripe 0 devid 1 offset 13631488
\t\t\tdev_uuid 0c3f4a0e-6a8b-4a1c-8c0f-000000000000
\titem 2 key (FIRST_CHUNK_TREE CHUNK_ITEM 22020096) itemoff 15993 itemsize 112
\t\tlength 8192 owner 2 stripe_len 65536 type SYSTEM|DUP
\t\tnum_stripes 2 sub_stripes 1
\t\t\tstripe 0 devid 1 offset 40960
\t\t\tstripe 1 devid 1 offset 81920
"""

    def test_btrfs_addresses_are_found_on_the_disk(self):
        chunks = demand.parse_chunks(self.DUMP)
        self.assertEqual(chunks, [(13631488, 8388608, [13631488]), (22020096, 8192, [40960, 81920])])
        self.assertEqual(demand.translate(22020096 + B, 2 * B, chunks),
                         [(40960 + B, B), (81920 + B, B)])
        self.assertEqual(demand.translate(22020096 - B, 2 * B, chunks),
                         [(22020096 - B, B), (40960, B), (81920, B)])
        self.assertEqual(demand.translate(0, B, chunks), [])
        self.assertEqual(demand.translate(5, 7, ()), [(5, 7)])


class Log(Temporary):
    TEXT = ("# disksim profile=ssd stroke=1\n1 r 0 4096 0 0 1\n# mark fresh 2\n3 R 4096 8192 0 9 1\n"
            "# mark a/stage 4\n5 R 8192 4096 0 9 1\n6 R 0 4096 0 9 1\n# mark b 7\n8 R 0 40")

    def setUp(self):
        super().setUp()
        self.log = self.directory / "log"
        self.log.write_text(self.TEXT)

    def test_reads_by_section(self):
        self.assertEqual(disklog.reads(self.log), {
            "all": [(0, 4096)], "fresh": [(4096, 8192)], "a/stage": [(8192, 4096), (0, 4096)],
            "b": []})

    def test_what_was_read_again_since_the_last_mount(self):
        self.assertEqual(disklog.read_again(self.log),
                         {"all": 0, "fresh": 0, "a/stage": 4096, "b": 0})

    def test_a_part_keeps_the_line_that_names_the_disk(self):
        part = self.directory / "part"
        disklog.write_part(self.log, self.TEXT.index("5 R"), part)
        lines = part.read_text().splitlines()
        self.assertEqual(lines[:2], ["# disksim profile=ssd stroke=1", "5 R 8192 4096 0 9 1"])
        disklog.write_part(self.log, 0, part)
        self.assertEqual(part.read_text(), self.TEXT)


class Reports(unittest.TestCase):
    @staticmethod
    def row(variant, seconds, sweep=None):
        return {"variant": variant, "runs": 3, "prefetch_s": 0, "seconds": seconds,
                "seconds_min": seconds, "seconds_max": seconds, "total_s": seconds,
                "prefetch_reads": 0, "prefetch_mb": 0, "reads": 1160, "mb": 55.25, "again_mb": 0,
                "sweep_s": sweep}

    def test_bound(self):
        rows = [self.row("cold", 7.9, 1.65), self.row("warm", 0.3, 0), self.row("installed", 2.5, 2)]
        b = report.bound("boot", rows)
        self.assertAlmostEqual(b["one_after_the_other_s"], 1.95)
        self.assertAlmostEqual(b["overlapped_s"], 1.65)
        self.assertAlmostEqual(report.bound("boot", [self.row("cold", 2, 0.1),
                                                     self.row("warm", 0.3, 0)])["overlapped_s"], 0.3)
        for scenario, words in (("boot", "1.95 s; with perfect overlap 1.65 s"),
                                ("login", "at the greeter 0.30 s")):
            text = " ".join(line.strip() for line in report.bound_lines(scenario, rows))
            self.assertIn(words, text)

    def test_long_lines_are_wrapped_between_words_not_before_a_unit(self):
        lines = report.wrap("x" * 94 + " 56.8 % and 5 MB of 10 sessions")
        self.assertEqual(lines, ["x" * 94, "    56.8 % and 5 MB of 10 sessions"])

    def test_no_bound_without_both_references(self):
        for rows in ([self.row("cold", 7.9, 1.65)], [self.row("warm", 0.3, 0)], [],
                     [self.row("cold", 7.9), self.row("warm", 0.3, 0)]):
            self.assertIsNone(report.bound("boot", rows))
            self.assertEqual(len(report.bound_lines("boot", rows)), 1)

    def test_a_table_is_no_wider_than_a_terminal_of_100(self):
        rows = [self.row(name, 23.45, 12.34) for name in VARIANTS]
        for row in rows:
            row.update(prefetch_s=12.34, prefetch_reads=1234, prefetch_mb=123.4)
        for scenario in ("boot", "login", "autologin"):
            for line in report.table(scenario, rows):
                self.assertLessEqual(len(line), 100, line)

    def test_a_build_that_differs_from_a_distribution_is_named(self):
        self.assertEqual(report.build_lines(None), [])
        self.assertEqual(report.build_lines({"prefix": "/usr", "buildtype": "release"}), [])
        lines = report.build_lines({"prefix": "/usr/local", "buildtype": "debug"})
        self.assertIn("prefix=/usr/local instead of /usr, buildtype=debug instead of release", " ".join(x.strip() for x in lines))

    def test_predicted_and_measured_times(self):
        rows = [self.row("cold", 2.9), self.row("installed-off", 3.0), self.row("installed-gate", 1.0)]
        predicted = {"off": 2800000, "gate": 900000}
        facts = {"installed-off": {"policy": "off", "predicted_usec": predicted},
                 "installed-gate": {"policy": "gate", "predicted_usec": predicted},
                 "installed": {"installed": {"sessions": []}}}
        lines = report.predicted("boot", rows, facts)
        self.assertEqual(len(lines), 2)
        self.assertIn("0.20 s", lines[0])  # 3.0 minus 2.8
        self.assertIn("predicted 1.10 s, measured 1.00 s (+10 %)", lines[1])
        self.assertEqual(report.predicted("login", rows, facts), [])

    def test_what_was_learned_from(self):
        facts = {"installed": {"installed": {"sessions": [{}, {}], "exact": {"boot": 1, "login": 0}}},
                 "outside": {"boot_s": 2.0}}
        self.assertEqual(list(report.learned(facts)),
                         ["installed: learned from 2 sessions; recorded exactly: 1 boot, 0 logins"])

    def test_what_was_judged(self):
        j = {"reads": 1160, "mb": 55.2, "covered_reads": 0.975, "covered_bytes": None,
             "pack_mb": 50.0, "waste": 0.08}
        samples = [{"variant": "installed", "scenario": "boot", "unplanned": {"reads": n, "mb": 1.5}}
                   for n in (30, 50, 40)] + [{"variant": "cold", "scenario": "boot"}]
        text = " ".join(x.strip() for x in report.judged("installed", "boot", j, samples))
        for words in ("1160 requests", "97.5 % and -", "8.0 % of its 50.0 MB", "40 requests (1.5 MB)"):
            self.assertIn(words, text)
        self.assertNotIn("no pack", " ".join(report.judged("installed", "boot", j, [])))


class History(Temporary):
    def test_exact_recordings_are_counted_by_stage(self):
        self.assertEqual(installed.exact_recordings(self.directory), {"boot": 0, "login": 0})
        (self.directory / "history.jsonl").write_text(
            '{"stage": "boot", "flags": ["exact"]}\n{"stage": "login", "flags": ["control"]}\n')
        self.assertEqual(installed.exact_recordings(self.directory), {"boot": 1, "login": 0})


class Configuration(Temporary):
    def test_a_drop_in_is_written_into_a_system_without_a_configuration(self):
        installed.configure(self.directory, "series", ControlInterval=4)
        installed.configure(self.directory, "policy", BootPolicy="off")
        found = {p.name: p.read_text()
                 for p in (self.directory / "etc/headstart/headstart.conf.d").iterdir()}
        self.assertEqual(found, {"series.conf": "[Replay]\nControlInterval=4\n",
                                 "policy.conf": "[Replay]\nBootPolicy=off\n"})


class Packages(Temporary):
    def make(self):
        package = Package("/none", self.directory)
        preset = self.directory / "usr/lib/systemd/system-preset/90-headstart.preset"
        preset.parent.mkdir(parents=True)
        preset.write_text("# comment\nenable a.service\nenable b.timer\ndisable c.service\n")
        return package

    def test_units_that_are_enabled(self):
        self.assertEqual(self.make().enabled(), ["a.service", "b.timer"])
        with self.assertRaisesRegex(BenchError, "no unit"):
            Package("/none", self.directory / "empty").enabled()

    def test_a_removed_package_leaves_only_what_the_system_has_written(self):
        def tree():
            return sorted(str(p.relative_to(root)) for p in root.rglob("*"))

        stage, root = self.directory / "stage", self.directory / "root"
        package = Package("/none", stage)
        for name, text in (("usr/lib/systemd/system-preset/90-headstart.preset", "enable a.service\n"),
                           ("usr/lib/systemd/system/a.service", "[Install]\nWantedBy=sysinit.target\n"),
                           ("usr/lib/systemd/system/user@.service.d/a.conf", ""), ("usr/libexec/a/b", "")):
            (stage / name).parent.mkdir(parents=True, exist_ok=True)
            (stage / name).write_text(text)
        wants = root / "etc/systemd/system/sysinit.target.wants"
        (root / "usr/lib/systemd/system").mkdir(parents=True)
        wants.mkdir(parents=True)
        (wants / "other.service").symlink_to("/usr/lib/systemd/system/other.service")
        before = tree()
        package.install(root)
        self.assertTrue((wants / "a.service").is_symlink())
        for name in ("var/lib/headstart/model.json", "etc/headstart/headstart.conf.d/x.conf", "usr/libexec/c"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()
        package.remove(root)
        self.assertEqual(tree(), sorted([*before, "usr/libexec", "usr/libexec/c", "var", "var/lib"]))

    def test_the_fingerprint_tells_names_modes_and_contents_apart(self):
        package, file = self.make(), self.directory / "usr/file"
        seen = {package.fingerprint()}
        file.write_text("1")
        seen.add(package.fingerprint())
        file.chmod(0o755)
        seen.add(package.fingerprint())
        file.write_text("2")
        seen.add(package.fingerprint())
        file.rename(self.directory / "usr/other")
        seen.add(package.fingerprint())
        self.assertEqual(len(seen), 5)

    def test_programs_are_executable_files(self):
        package = self.make()
        (self.directory / "usr/share/headstart").mkdir(parents=True)
        with self.assertRaisesRegex(BenchError, "no program headstart"):
            package.program("headstart")
        program = self.directory / "usr/bin/headstart"
        program.parent.mkdir()
        program.touch(0o755)
        self.assertEqual(package.program("headstart"), "/usr/bin/headstart")


class Desktops(Temporary):
    REPLY = """method return time=1 sender=:1.2 -> destination=:1.3 serial=4 reply_serial=2
   array [
      dict entry(
         uint64 3
         array [
            dict entry(
               string "wm-class"
               variant                   string "org.gnome.Nautilus"
            )
            dict entry(
               string "is-hidden"
               variant                   boolean false
            )
         ]
      )
      dict entry(
         uint64 4
         array [
            dict entry(
               string "is-hidden"
               variant                   boolean true
            )
            dict entry(
               string "wm-class"
               variant                   string "hidden"
            )
         ]
      )
   ]
"""

    def test_windows_of_gnome_shell(self):
        self.assertEqual(shellwindows.classes(self.REPLY), {"org.gnome.nautilus"})
        self.assertEqual(shellwindows.classes("array [\n   ]\n"), set())
        self.assertEqual(shellwindows.classes(""), set())

    def test_each_desktop_has_a_session_and_windows(self):
        for desktop in desktops.DESKTOPS.values():
            self.assertIn(desktop.start, tree.session(desktop))
            self.assertIn(f"XDG_SESSION_DESKTOP={desktop.name}\n", tree.login_service(desktop))
            self.assertEqual({w for w in desktop.windows if w != w.lower()}, set())

    def test_a_desktop_has_an_image_of_its_own(self):
        keys = {image.ImageSpec(desktop=name, suite="x").tree_key()
                for name in ("xfce", "gnome", "plasma")}
        self.assertEqual(len(keys), 3)


class Bus(unittest.TestCase):
    def test_unit_paths(self):
        self.assertEqual(inside.unit_path("headstart-learn.service"),
                         "/org/freedesktop/systemd1/unit/headstart_2dlearn_2eservice")
        self.assertTrue(re.fullmatch(r"[/\w]+", inside.unit_path("user@1000.service")))


class Calls(unittest.TestCase):
    HEAD = "# entries-in-buffer/entries-written: {}/{}   #P:2\n"
    LINES = """\
            cc1-200     [000] .....    10.000100: sys_read(fd: 3, buf: 0x55, count: 10)
     a -b [1] x-201     [001] .....    10.000150: sys_openat(dfd: 0xffffff9c, filename: 0x55)
            cc1-200     [001] .....    10.000400: sys_read -> 0xa
     a -b [1] x-201     [001] .....    10.002150: sys_openat -> 0xfffffffffffffffe
            cc1-200     [000] .....    10.003000: sys_pread64(fd: 3, buf: 0x55, count: 10, pos: 0)
            cc1-200     [000] .....    10.003100: sys_pread64 -> 0x0
             ld-202     [000] .....    10.004000: sys_read -> 0x1
            cc1-200     [000] .....    10.005000: sys_write(fd: 1)
            cc1-200     [000] .....    10.005500: sys_write -> 0x1
             as-203     [000] .....    10.006000: sys_read(fd: 3, buf: 0x55, count: 10)
"""

    def add_up(self, kept, written):
        group_of = {call: group for group, names in calls.GROUPS.items() for call in names}
        return calls.add_up([self.HEAD.format(kept, written), *self.LINES.splitlines()], group_of)

    def test_calls_are_paired_by_process(self):
        found = self.add_up(10, 10)
        self.assertEqual({group: n for group, (n, _) in found.items()}, {"read": 2, "open": 1, "stat": 0, "getdents": 0})
        self.assertAlmostEqual(found["read"][1], 400e-6)
        self.assertAlmostEqual(found["open"][1], 2000e-6)

    def test_sleep_in_a_page_fault_is_no_sleep_in_a_call(self):
        switch = "prev_comm={} prev_pid={} prev_prio=120 prev_state={} ==> next_comm={} next_pid={} next_prio=120"
        lines = [f"  ed it-7   [000] d..2.  {at}: {what}" for at, what in (
            ("1.000000", "sys_enter: NR 0 (3, 55, a)"),
            ("1.001000", "sched_switch: " + switch.format("ed it", 7, "D", "swapper/0", 0)),  # in read(2)
            ("1.003000", "sched_switch: " + switch.format("swapper/0", 0, "R", "ed it", 7)),
            ("1.004000", "sys_exit: NR 0 = 10"),
            ("1.005000", "sched_switch: " + switch.format("ed it", 7, "R+", "cc1", 9)),  # preempted
            ("1.006000", "sched_switch: " + switch.format("cc1", 9, "S", "ed it", 7)),
            ("1.007000", "sched_switch: " + switch.format("ed it", 7, "D", "cc1", 9)),  # a fault
            ("1.010000", "sched_switch: " + switch.format("cc1", 9, "R", "ed it", 7)))]
        found = calls.add_up([self.HEAD.format(8, 8), *lines], {}, {}, faults=True)
        self.assertEqual(found[calls.FAULTS][0], 1)
        self.assertAlmostEqual(found[calls.FAULTS][1], 0.003)
        self.assertEqual(calls.add_up(lines, {}, {}), {})

    def test_lost_events_are_an_error(self):
        with self.assertRaisesRegex(BenchError, "too small"):
            self.add_up(10, 11)


class Workloads(Temporary):
    def test_a_version_changes_some_files_adds_one_and_drops_one(self):
        base = self.directory / "base"
        base.mkdir()
        for number in range(10):
            (base / f"{number}.c").write_text(f"int f{number};\n")
        workloads.make_version(self.directory, 1)
        texts = {p.name: p.read_text() for p in base.iterdir()}
        self.assertEqual(set(texts) - {f"{n}.c" for n in range(10)}, {"version-1.c", "version-1.h"})
        self.assertNotIn("1.c", texts)
        changed = {n for n in range(10) if texts.get(f"{n}.c", f"int f{n};\n") != f"int f{n};\n"}
        self.assertEqual(changed, {2, 4, 5, 8, 9})
        self.assertEqual([n for n in range(10) if "version-1.h" in texts.get(f"{n}.c", "")], [4, 9])


class Results(Temporary):
    DOCUMENT = "Text.\n\n<!-- output: a.txt -->\n| {} | y |\n{}\n<!-- end of output -->\n\nMore text.\n"

    def refresh(self, document, *tables):
        path = self.directory / "a.md"
        path.write_text(document)
        (self.directory / "a.txt").write_text("\n".join(["command, date\n", *tables]))
        return results.refresh(path, self.directory), path.read_text()

    def test_a_block_shows_the_table_with_its_header(self):
        x, z = (results.table([name, "y"], [["row", "1"], ["other", results.share(None)]]) for name in "xz")
        shown = x.split("\n", 1)[1]
        for old in ("", "| --- | --- |\n| old | 7 |\n"):
            self.assertEqual(self.refresh(self.DOCUMENT.format("x", old), x, z), ([], self.DOCUMENT.format("x", shown)))
        self.assertIn("| other | - |\n", shown)

    def test_a_missing_table_is_named_and_the_block_stays(self):
        document = self.DOCUMENT.format("q", "| --- | --- |\n| old | 7 |\n")
        self.assertEqual(self.refresh(document, results.table(["x", "y"], [])), (["a.txt: | q | y |"], document))

    def test_two_tables_with_one_header_are_an_error(self):
        same = results.table(["x", "y"], [])
        with self.assertRaises(ValueError):
            results.tables_of(f"{same}\n{same}")


class Predictors(unittest.TestCase):
    PRINTED = """changed: budget 10% 20% 30% 50%; waste bound 15 %; stall in ms per start
mixture        filled hit 0.657 0.831 0.918 0.987 | waste 0.115 0.118 0.147 0.373 | stall    89    30    10     1
               cycle  hit 0.657 0.831 0.918 0.987 | waste 0.111 0.114 0.111 0.113 | stall    89    30    10     1
               bound  hit 0.655 0.822 0.903 0.955 | waste 0.110 0.121 0.126 0.160 | stall    91    46    37    31
               loss  0.519 next 2.183
    changed, 10 min: promised 0.37, observed 0.64, error 0.05 (203)
preload, 1 w   filled hit 0.600 0.740 0.700 0.970 | waste 0.115 0.118 0.147 0.373 | stall    89    30    10     1
               bound  hit 0.600 0.740 0.700 0.970 | waste 0.115 0.151 0.147 0.155 | stall    89    30    10     1
               loss  3.500 next 2.183
bound           0.936 0.995 1.000 1.000
"""

    def test_the_results_of_a_regime(self):
        regime = load_program("predictors").Regime(self.PRINTED)
        self.assertEqual((regime.name, regime.labels["preload"], regime.loss), (
            "changed", "preload, 1 w", {"mixture": 0.519, "preload": 3.5}))
        self.assertEqual(regime.cells["mixture"]["cycle"]["stall"], [89, 30, 10, 1])
        self.assertEqual(regime.promises, [("10 min", "0.37", "0.64", "0.05", "203")])
        self.assertEqual(regime.bound, ["0.936", "0.995", "1.000", "1.000"])
        self.assertEqual(regime.best_other("filled", 1), (0.74, "preload"))
        # A predictor that wastes more than the bound does not count, unless the mixture wastes as much.
        self.assertEqual([regime.best_other("bound", b)[1] for b in range(4)], ["preload", "-", "preload", "preload"])
        with self.assertRaises(ValueError):
            load_program("predictors").Regime(self.PRINTED + "something else\n")

    def test_the_document_shows_the_tables_of_the_results(self):
        program = load_program("predictors")
        text = program.DOCUMENT.read_text()
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory) / "copy.md"
            copy.write_text(text)
            self.assertEqual(results.refresh(copy, program.RESULTS), [])
            self.assertEqual(copy.read_text(), text)
        self.assertEqual(text.count("<!-- output: "), len(results.BLOCK.findall(text)))

    def test_the_constants_that_attempts_change_are_in_the_source(self):
        for change in filter(None, load_program("predictors").ATTEMPTS.values()):
            path, line, other = change
            self.assertIn(line, (HERE.parents[1] / path).read_text())
            self.assertNotEqual(line, other)


class Charts(unittest.TestCase):
    PANEL = chart.Panel("Hits & misses", "files", (1, 2, 3), {"a<b": [0.0, None, 1.0], "lru": [0.5, 0.5, 0.25]})

    def test_the_picture_is_valid_and_has_all_points(self):
        root = xml.etree.ElementTree.fromstring(chart.document([self.PANEL, self.PANEL, self.PANEL]))
        svg = "{http://www.w3.org/2000/svg}"
        self.assertEqual(len(root.findall(f"{svg}g")), 3)
        self.assertEqual(len(root.findall(f".//{svg}circle")), 3 * 5)
        self.assertEqual(len(root.findall(f".//{svg}polyline")), 3 * 2)
        self.assertIn("a<b", [text.text for text in root.iter(f"{svg}text")])
        # The first value is at the bottom of its panel, the last one at the top.
        first, last = root.findall(f".//{svg}circle")[:2]
        self.assertGreater(float(first.get("cy")), float(last.get("cy")))

    def test_curves_have_ticks_at_round_values(self):
        panel = chart.CurvePanel("Latency", "reads", {"kernel": [(0, 0.0), (3500, 42.0)], "paced": [(0, 0.0), (10, 1.0)]})
        root = xml.etree.ElementTree.fromstring(chart.document([panel]))
        words = [e.text for e in root.iter() if e.tag.endswith("text")]
        for tick in ("0", "500", "3500", "5", "40", "kernel", "paced"):
            self.assertIn(tick, words)
        self.assertNotIn("45", words)
        lines = [e.get("points").split() for e in root.iter() if e.tag.endswith("polyline")]
        self.assertEqual([len(line) for line in lines], [2, 2])
        self.assertEqual(float(lines[0][1].split(",")[1]), chart.TOP)  # the highest value
        chart.document([chart.CurvePanel("empty", "reads", {})])

    def test_the_table(self):
        self.assertEqual(chart.table(self.PANEL).splitlines(),
                         ["| files | 1 | 2 | 3 |", "| --- | --- | --- | --- |", "| a<b | 0.0 | - | 100.0 |",
                          "| lru | 50.0 | 50.0 | 25.0 |"])


if __name__ == "__main__":
    unittest.main()
