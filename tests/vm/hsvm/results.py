"""Results as TAP, and their sums."""

import re


class Results:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def _line(self, verdict, text):
        n = self.passed + self.failed + self.skipped
        print(f"{verdict} {n} - {text}", flush=True)

    def ok(self, text):
        self.passed += 1
        self._line("ok", text)

    def not_ok(self, text, why=""):
        self.failed += 1
        self._line("not ok", text)
        for line in why.splitlines():
            self.note(line)

    def skip(self, text, why):
        self.skipped += 1
        self._line("ok", f"{text} # SKIP {why}")

    def note(self, text):
        print(f"# {text}", flush=True)

    def guest(self, where, lines):
        """Parses the output of the serial port."""
        for line in lines:
            m = re.fullmatch(r"(ok|not ok) (.*?)(?: # SKIP (.*))?", line)
            if not m:
                self.note(line.removeprefix("#").strip())
            elif m[1] == "not ok":
                self.not_ok(f"{where}: {m[2]}")
            elif m[3]:
                self.skip(f"{where}: {m[2]}", m[3])
            else:
                self.ok(f"{where}: {m[2]}")

    def end(self):
        print(f"1..{self.passed + self.failed + self.skipped}")
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 0 if self.failed == 0 else 1
