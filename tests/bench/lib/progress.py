"""What a person sees while the bench works: one line that rewrites itself, on a terminal only."""

import sys
import time


class Progress:
    """Says what is going on, on stderr. On a terminal the line is rewritten; elsewhere each step is
    a line of its own, so that a log tells the same story."""

    def __init__(self, stream=sys.stderr, quiet=False):
        self.stream = stream
        self.quiet = quiet
        self.terminal = stream.isatty()
        self.start = time.monotonic()

    def say(self, text):
        if self.quiet:
            return
        stamp = f"[{time.monotonic() - self.start:6.1f} s] "
        if self.terminal:
            self.stream.write("\r\033[K" + (stamp + text)[:118])
        else:
            self.stream.write(stamp + text + "\n")
        self.stream.flush()

    def end(self):
        """Leaves the terminal's line empty, for whatever is printed next."""
        if self.terminal and not self.quiet:
            self.stream.write("\r\033[K")
            self.stream.flush()
