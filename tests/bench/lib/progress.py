"""Shows the progress of the bench: on a terminal in one line that is rewritten, with percent and time left."""

import sys
import time


def describe(done, total, seconds_each):
    """Returns how much is done, and how long the rest takes: "40 %, 3 min left". Without a known time of a step
    (None), only how much is done."""
    text = f"{100 * done // total} %"
    if seconds_each is None:
        return text
    left = round(seconds_each * (total - done))
    return f"{text}, {f'{-(-left // 60)} min' if left >= 90 else f'{left} s'} left"


class Progress:
    """Prints the current step on stderr. On a terminal the line is rewritten, and says how much of the present series
    of steps is done. Elsewhere each step gets its own line, so that a log contains the same information."""

    def __init__(self, stream=sys.stderr, quiet=False, clock=time.monotonic):
        self.stream = stream
        self.quiet = quiet
        self.terminal = stream.isatty()
        self.clock = clock
        self.start = clock()
        self.series = None  # of steps: (their total, when the first one began, what was done before it)
        self.done = 0

    def say(self, text, done=0, total=0):
        """Begins a step. Of its series, `done` of `total` steps are done, perhaps by an interrupted run. Without a
        total, the number of steps is not known."""
        if self.quiet:
            return
        now = self.clock()
        stamp = f"[{now - self.start:6.1f} s] "
        if total and (self.series is None or self.series[0] != total or done < self.done):
            self.series = total, now, done
        self.done = done
        if self.terminal:
            share = ""
            if total:
                _, began, before = self.series
                each = (now - began) / (done - before) if done > before else None
                share = f" ({describe(done, total, each)})"
            self.stream.write("\r\033[K" + (stamp + text)[:118 - len(share)] + share)
        else:
            self.stream.write(stamp + text + "\n")
        self.stream.flush()

    def end(self):
        """Clears the terminal's line for the next output."""
        if self.terminal and not self.quiet:
            self.stream.write("\r\033[K")
            self.stream.flush()
