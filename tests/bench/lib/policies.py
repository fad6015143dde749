"""The installed product, with a configuration that sets the policy of the boot. All policies use
what `installed` has learned. `headstart plan` predicts the time of each policy, and the bench
compares this prediction with the measured boots."""

import json

from .commands import run
from .installed import Installed, configure
from .package import STATE

LEARNED = Installed.name


class WithPolicy(Installed):
    """Uses the sessions of `installed` and plans only the boot pack again."""

    policy = None
    scenarios = ("boot",)
    packs = False  # judge.py judges the packs of `installed`

    def contents(self, scenario):
        return self.name

    def prepare(self, scenarios):
        super().prepare(scenarios)
        self.facts = self.facts[self.name]

    def _make(self, contents, automatic):
        bench = self.bench
        if LEARNED not in bench.inits:
            super()._make(LEARNED, automatic)
        bench.disk.fresh(LEARNED)
        configure(bench.disk.root, "policy", BootPolicy=self.policy)
        bench.disk.delays(True)
        planned = run(bench.headstart.program["headstart"], "plan", "--json=short", "--stage=boot",
                      f"--policy={self.policy}", f"--root={bench.disk.root}",
                      f"--state={bench.disk.root / STATE}").stdout
        bench.disk.delays(False)
        bench.inits[contents] = bench.inits[LEARNED]
        bench.disk.save(contents)
        self._keep_state(contents)
        return json.loads(planned)["stages"][0]


def _variant(policy):
    return type(f"With{policy.capitalize()}", (WithPolicy,), {
        "name": f"installed-{policy}", "policy": policy,
        "about": f"as `installed`, with BootPolicy={policy}"})


POLICY_VARIANTS = [_variant(p) for p in ("off", "metadata", "concurrent", "gate", "auto")]
