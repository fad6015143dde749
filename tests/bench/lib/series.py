"""A series of measured runs that survives an interruption. Finished runs are in a file, which is
replaced as a whole after every run."""

import hashlib
import json
import os
from pathlib import Path

from .commands import BenchError

FORMAT, VERSION = "headstart-bench-series", 1


def checksum(paths):
    """Returns one checksum for the names and contents of some files. A missing file changes the
    checksum, too."""
    found = hashlib.sha256()
    for path in sorted(map(Path, paths)):
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
        found.update(f"{path.name}\0{content}\n".encode())
    return found.hexdigest()


class Series:
    """`key` identifies what was measured and how; a file with another key is refused. Without a
    path nothing is stored."""

    def __init__(self, path, key):
        self.path = Path(path) if path else None
        # The key is compared with one that was read from JSON, and JSON turns tuples into lists.
        self.key = json.loads(json.dumps(key))
        self.samples = []
        self.finished = {}  # variant -> findings about it besides its samples
        if self.path and self.path.exists():
            self._load()

    def _load(self):
        try:
            kept = json.loads(self.path.read_text())
            if (kept["format"], kept["version"]) != (FORMAT, VERSION):
                raise ValueError
            key, samples, finished = dict(kept["key"]), list(kept["samples"]), dict(kept["finished"])
            for sample in samples:
                self._identity(sample)
        except (ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError):
            raise BenchError(f"{self.path} is no series of this program") from None
        differs = sorted(name for name in key.keys() | self.key.keys()
                         if key.get(name) != self.key.get(name))
        if differs:
            raise BenchError(f"{self.path} has another series: other {', '.join(differs)}")
        self.samples, self.finished = samples, finished

    @staticmethod
    def _identity(sample):
        return sample["scenario"], sample["variant"], sample["run"]

    def find(self, scenario, variant, number):
        """Returns the finished sample, or None."""
        for sample in self.samples:
            if self._identity(sample) == (scenario, variant, number):
                return sample
        return None

    def complete(self, variant, scenarios, runs):
        """Returns whether all runs of that variant are done."""
        return variant in self.finished and all(
            self.find(scenario, variant, number)
            for scenario in scenarios for number in range(1, runs + 1))

    def add(self, sample):
        self.samples.append(sample)
        self.save()

    def finish(self, variant, facts):
        self.finished[variant] = facts
        self.save()

    def save(self):
        if not self.path:
            return
        temporary = self.path.with_name(self.path.name + ".tmp")
        with open(temporary, "w") as f:
            json.dump({"format": FORMAT, "version": VERSION, "key": self.key,
                       "samples": self.samples, "finished": self.finished}, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, self.path)
        directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
