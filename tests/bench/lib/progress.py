"""Shows the progress of the bench: on a terminal in one line that is rewritten."""

import sys
import time


class Progress:
    """Prints the current step on stderr. On a terminal the line is rewritten. Elsewhere each step
    gets its own line, so that a log contains the same information."""

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
        """Clears the terminal's line for the next output."""
        if self.terminal and not self.quiet:
            self.stream.write("\r\033[K")
            self.stream.flush()
