"""Draws from a seed in which order a person starts and leaves applications. The applications, and
every file that they touch, are real."""

import random

# name: (command, class of its window)
APPLICATIONS = {
    "mousepad": ("mousepad", "mousepad"),
    "ristretto": ("ristretto", "ristretto"),
    "galculator": ("galculator", "galculator"),
    "abiword": ("abiword", "abiword"),
    "gnumeric": ("gnumeric", "gnumeric"),
    "geany": ("geany", "geany"),
    "atril": ("atril", "atril"),
    "xarchiver": ("xarchiver", "xarchiver"),
    "claws-mail": ("claws-mail", "claws-mail"),
    "gimp": ("gimp --no-splash", "gimp"),
    "transmission": ("transmission-gtk", "transmission-gtk"),
    "dillo": ("dillo", "dillo"),
    "featherpad": ("featherpad", "featherpad"),
    "qpdfview": ("qpdfview", "qpdfview"),
    "lximage": ("lximage-qt", "lximage-qt"),
}

# The applications of the thesis, as they are today, and an editor and a terminal like those of the
# thesis. The first three are only in a tree with THESIS_PACKAGES.
THESIS = {
    "writer": ("libreoffice --writer --norestore --nologo", "libreoffice-writer"),
    "firefox": ("firefox-esr about:blank", "firefox-esr"),
    "evolution": ("evolution", "evolution"),
    "mousepad": APPLICATIONS["mousepad"],
    "qterminal": ("qterminal", "qterminal"),
}

THESIS_PACKAGES = ("libreoffice-writer", "libreoffice-gtk3", "firefox-esr", "evolution")

# name: file in /usr/bin that runs while the application runs
EXECUTABLES = {**{name: command.split()[0] for name, (command, _) in APPLICATIONS.items()},
               "gimp": "gimp-2.10"}

# The best single guess of the next start must be right no more often than this.
BEST_GUESS_MAX = 0.6


class Habits:
    """The habits of one person: a Markov chain over `names`, or over some of APPLICATIONS."""

    def __init__(self, seed, user, n_applications=9, names=None):
        r = random.Random(f"{seed}/{user}")
        self.names = sorted(names) if names else r.sample(sorted(APPLICATIONS), n_applications)
        self.first = self._weights(r)
        self.next = {name: self._weights(r, name) for name in self.names}

    def _weights(self, r, without=None):
        """Returns the probabilities of the successors: one is likely, a second is less likely, and
        the others share the rest at random."""
        others = [n for n in self.names if n != without]
        r.shuffle(others)
        likely = r.uniform(0.35, 0.9 * BEST_GUESS_MAX)
        second = r.uniform(0.5, 0.9) * (1 - likely) / 2
        rest = [r.random() for _ in others[2:]]
        scale = (1 - likely - second) / sum(rest)
        return dict(zip(others, [likely, second] + [scale * x for x in rest]))

    def day(self, r, starts):
        """Returns the actions of one day: a list of ("start", name, pause) and ("stop", name,
        pause), where `pause` is the number of seconds before the action."""
        acts, running, last = [], [], None
        while starts > 0:
            weights = self.next[last] if last else self.first
            name = r.choices(list(weights), list(weights.values()))[0]
            if name in running:  # the person uses it again
                last = name
                starts -= 1
                continue
            acts.append(("start", name, r.expovariate(1 / 0.8)))
            running.append(name)
            last = name
            starts -= 1
            while len(running) > 2 or (running and r.random() < 0.5):
                acts.append(("stop", running.pop(0), r.expovariate(1 / 0.4)))
        return acts + [("stop", name, 0.1) for name in running]
