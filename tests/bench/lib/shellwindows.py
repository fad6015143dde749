"""Shows from outside which windows GNOME Shell has. It has the functions of XClient that a machine calls.
Wayland has no protocol for this, but the shell answers on D-Bus when it runs in unsafe mode."""

import os
import re
import subprocess
import time

QUESTION = ["dbus-send", "--bus=unix:path=bus", "--print-reply", "--type=method_call",
            "--dest=org.gnome.Shell", "/org/gnome/Shell/Introspect",
            "org.gnome.Shell.Introspect.GetWindows"]
POLL_S = 0.02
ANSWER_S = 30  # a shell that reads from a slow disk answers late

CLASS = re.compile(r'string "wm-class"\s+variant\s+string "([^"]*)"')
HIDDEN = re.compile(r'string "is-hidden"\s+variant\s+boolean true')


def classes(reply):
    """Returns the classes (lower case) of the windows in a reply that are not hidden."""
    windows = re.split(r"^ {6}dict entry\($", reply, flags=re.MULTILINE)[1:]
    return {c.lower() for w in windows if not HIDDEN.search(w) for c in CLASS.findall(w)}


class ShellWindows:
    """`directory` is the runtime directory of the user. The bus accepts only this user, and only
    root reaches the directory of a machine, so a process changes to the directory before it becomes
    the user. Raises OSError if there is no bus yet."""

    def __init__(self, directory):
        self.directory = directory
        self.user = os.stat(directory / "bus").st_uid

    def shown(self):
        """Returns the classes (lower case) of all windows that are not hidden. There are none
        before the shell has its name on the bus. Raises OSError if the bus is gone."""
        try:
            return classes(subprocess.run(
                QUESTION, cwd=self.directory, user=self.user, group=self.user, extra_groups=[],
                capture_output=True, text=True, errors="replace", timeout=ANSWER_S).stdout)
        except subprocess.TimeoutExpired:
            return set()

    def wait_shown(self, wanted, deadline):
        """Waits until windows of all classes in `wanted` are there. Returns the classes that are
        still missing when time.monotonic() passes `deadline`."""
        while True:
            missing = set(wanted) - self.shown()
            if not missing or time.monotonic() > deadline:
                return missing
            time.sleep(POLL_S)

    def wait_quiet(self, seconds, deadline):
        """Waits until no window has come or gone for some time, so that the desktop has settled."""
        since, last = time.monotonic(), self.shown()
        while time.monotonic() < deadline:
            time.sleep(0.1)
            now = self.shown()
            if now != last:
                since, last = time.monotonic(), now
            if time.monotonic() - since >= seconds:
                return True
        return False

    def close(self):
        pass
