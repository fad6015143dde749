"""The installed product: the package's files are in the tree, and its own units record, learn, plan
and replay inside the machine. The bench boots, logs in and waits. It starts no program of
headstart, except `headstart disable` for the variant that measures a disabled headstart. The
machine's disk keeps what headstart has learned, and the measured runs begin with the contents of
this disk."""

import json
import shutil
import time

from .commands import BenchError, run
from .headstart import PROGRAMS
from .inside import Inside
from .package import STATE
from .variants import Variant

USER_PACK = "login@1000"  # the UID of the bench's user (lib/tree.py)

# Learning runs at idle priority: on a busy machine it takes long.
LEARN_TIMEOUT_S, SETTLE_TIMEOUT_S, REPLAY_TIMEOUT_S = 900, 200, 300

# No person types a name and a password in less time. The bench's PAM service does not show whether
# a login is automatic. headstartd then counts a session that begins within two seconds after the
# boot as an automatic login (src/daemon/stages-decide.c).
TYPING_S = 3

# The programs that record, plan and replay starts of applications.
REPLACED = ("headstartd", "headstart")


def configure(root, name, section="Replay", **settings):
    """Writes `settings` of a section into a drop-in of the system in `root`, which begins to count with
    its next boot."""
    drop_in = root / "etc/headstart/headstart.conf.d" / f"{name}.conf"
    drop_in.parent.mkdir(parents=True, exist_ok=True)
    drop_in.write_text("".join([f"[{section}]\n", *(f"{key}={value}\n" for key, value in settings.items())]))


def exact_recordings(state):
    """Returns the number of sessions of each stage that were recorded exactly (docs/benefit.md), from the
    history in this state directory."""
    history = state / "history.jsonl"
    sessions = [json.loads(line) for line in history.read_text().splitlines()] if history.exists() else []
    return {stage: sum(s["stage"] == stage and "exact" in s["flags"] for s in sessions)
            for stage in ("boot", "login")}


class Installed(Variant):
    name = "installed"
    about = "the package is in the system, and its units have recorded, learned and planned there"
    inside = packs = True

    def contents(self, scenario):
        """Returns the name of the disk's contents. Before a measured automatic login, headstart has
        learned from automatic logins; before any other boot or login, it has learned from logins at
        a greeter."""
        return f"{self.name}-autologin" if scenario == "autologin" else self.name

    def prepare(self, scenarios):
        for scenario in scenarios:
            contents = self.contents(scenario)
            if contents not in self.facts:
                self.facts[contents] = self._make(contents, scenario == "autologin")

    def _make(self, contents, automatic):
        """Installs the package and lets it learn from the sessions that precede the measured runs.
        Returns facts."""
        self.bench.disk.fresh()
        self.bench.package.install(self.bench.disk.root)
        self.bench.inits[contents] = self.bench.package.init()
        self.bench.disk.save(contents)
        facts = self._teach(contents, automatic)
        self._keep_state(contents)
        return {**facts, "exact": exact_recordings(self.state(contents))}

    def _teach(self, contents, automatic):
        sessions = []
        for number in range(1, self.bench.sessions + 1):
            self.bench.progress.say(f"{contents}: session {number} of {self.bench.sessions}, "
                                    "recorded and learned inside the machine", number - 1, self.bench.sessions)
            sessions.append(self._session(contents, automatic))
        return {"sessions": sessions}

    def _session(self, contents, automatic, live=lambda machine: None):
        """Boots, logs in and shuts down. The disk's delays are on until headstart has learned from the login.
        Then live() does what the user does."""
        disk = self.bench.disk
        disk.fresh(contents)
        disk.mark(f"learn/{contents}")
        with self.bench.machine(own_disk=True) as machine:
            inside = Inside(machine)
            disk.delays(True)
            machine.power_on(log_in=automatic)
            boot = machine.wait_booted()
            if not automatic:
                self.greet(inside)
                machine.let_in()
            login = machine.wait_logged_in()
            inside.wait_file("login-recorded", SETTLE_TIMEOUT_S)
            inside.wait_ended("headstart-learn.service", LEARN_TIMEOUT_S)
            missing = [name for name in ("boot", "login") if not inside.has_pack(name)]
            if missing:
                raise BenchError("the machine has learned, and planned no "
                                 + " and no ".join(f"{name}.pack" for name in missing))
            disk.delays(False)
            live(machine)
            machine.power_off()
        disk.save(contents)
        return {"boot_s": round(boot, 3), "login_s": round(login, 3)}

    @staticmethod
    def greet(inside):
        """Waits until the boot was recorded, and planning and the replay for the first login have
        ended, so that the user logs in to an idle machine."""
        inside.wait_file("boot-recorded", SETTLE_TIMEOUT_S)
        inside.wait_ended("headstart-plan.service", LEARN_TIMEOUT_S, started=False)
        if inside.has_pack("login"):
            inside.wait_replayed("login", REPLAY_TIMEOUT_S)
        time.sleep(TYPING_S)

    def state(self, contents):
        """Returns the directory that gets a copy of the state directory of that disk."""
        return self.bench.work / "learned" / contents

    def _keep_state(self, contents):
        disk, kept = self.bench.disk, self.state(contents)
        shutil.rmtree(kept, ignore_errors=True)
        kept.parent.mkdir(exist_ok=True)
        disk.fresh(contents)
        if (disk.root / STATE).exists():
            run("cp", "-a", disk.root / STATE, kept)

    # --- measuring

    def prefetch(self, stages, machine):
        """Waits until the units have replayed the login's pack at the greeter, before the login. With
        `bench.lead` the user is sooner."""
        if machine and self.bench.lead is not None:
            time.sleep(self.bench.lead)
        elif machine and (self.state(self.name) / "login.pack").exists():
            Inside(machine).wait_replayed("login", REPLAY_TIMEOUT_S)
            self.bench.wait_disk_idle(0.5, 20)

    def seen(self, machine):
        """Returns what headstart has done in this machine, as a part of the sample. Raises
        BenchError if one of its units has failed, because the sample would be invalid."""
        inside = Inside(machine)
        failed = inside.failed_units()
        if failed:
            raise BenchError(f"failed inside the machine: {', '.join(failed)}")
        return {"replays": inside.replays(), "processes": inside.processes()}


class InstalledLaunches(Installed):
    """The package has learned what starts of applications read. Nothing else reads ahead for a
    start."""

    name = "launch"
    about = "the package is in the system, and has learned the launch sets there"
    packs = False

    def __init__(self, bench, lives):
        """Each of `lives` is a function of a machine: what the user does in a session that is recorded."""
        super().__init__(bench)
        self.lives = lives

    def _teach(self, contents, automatic):
        disk = self.bench.disk
        disk.fresh(contents)
        configure(disk.root, "launches", "Session", Predict="no")
        disk.save(contents)
        # headstart learns from a session at the next login.
        lives = [*self.lives, lambda machine: None]
        for number, live in enumerate(lives, 1):
            self.bench.progress.say(f"session {number} of {len(lives)}, recorded and learned inside the machine",
                                    number - 1, len(lives))
            self._session(contents, automatic, lambda machine: self._live(machine, live, number))
        # No measured start is a control start. The login before it plans.
        disk.fresh(contents)
        configure(disk.root, "control", ControlInterval=0)
        disk.save(contents)
        return {"sessions": len(lives)}

    def replace_programs(self, contents, builddir):
        """Saves the learned disk as `contents`, with headstartd and headstart of another build."""
        disk = self.bench.disk
        learned = self.contents("login")
        disk.fresh(learned)
        for name in REPLACED:
            run("strip", "-o", disk.root / self.bench.package.program(name).lstrip("/"), builddir / PROGRAMS[name])
        self.bench.inits[contents] = self.bench.inits[learned]
        disk.save(contents)

    def seen(self, machine):
        """Adds what the launch thread says: how many starts it replayed, and how many not."""
        return {**super().seen(machine), "launch": Inside(machine).dump()["launch"]}

    def _live(self, machine, live, number):
        """headstart drops the recording of a session that is cut short by a shutdown, so the user logs out.
        Whatever headstart plans measures the disk, so the delays are on until the machine goes off."""
        self.bench.disk.delays(True)
        live(machine)
        if number <= len(self.lives):
            machine.log_out()
            Inside(machine).wait_sessions(number, SETTLE_TIMEOUT_S)
        self.bench.disk.delays(False)


class InstalledUnlearned(Installed):
    name = "installed-unlearned"
    about = "the package is in the system, and has planned from the model that it ships"

    def _teach(self, contents, automatic):
        """Boots once to the greeter, where headstart-plan.service plans from the shipped model."""
        disk = self.bench.disk
        self.bench.progress.say(f"{contents}: planned inside the machine from the shipped model")
        disk.fresh(contents)
        with self.bench.machine() as machine:
            inside = Inside(machine)
            disk.delays(True)
            machine.power_on()
            boot = machine.wait_booted()
            self.greet(inside)
            disk.delays(False)
            machine.power_off()
        if (disk.root / STATE / "model.json").exists():
            raise BenchError("the machine has learned although nobody has logged in")
        disk.save(contents)
        return {"sessions": [{"boot_s": round(boot, 3)}]}


class InstalledControl(Installed):
    name = "installed-control"
    about = "as `installed`, but every boot and login is a control session: nothing is replayed"
    packs = False  # judge.py judges the packs of `installed`
    control = True

    def _teach(self, contents, automatic):
        disk = self.bench.disk
        disk.fresh(contents)
        configure(disk.root, "control", ControlInterval=1)
        disk.save(contents)
        return super()._teach(contents, automatic)


class InstalledDisabled(Installed):
    name = "installed-disabled"
    about = "the package is in the system, and `headstart disable` was run"
    packs = False

    def contents(self, scenario):
        return self.name

    def _teach(self, contents, automatic):
        disk = self.bench.disk
        disk.fresh(contents)
        run("chroot", disk.root, self.bench.package.program("headstart"), "disable", "--quiet")
        disk.save(contents)
        return {"sessions": []}

    def seen(self, machine):
        seen = super().seen(machine)
        if seen["processes"] or seen["replays"]:
            raise BenchError("headstart is disabled but was started: "
                             + ", ".join(seen["processes"] + list(seen["replays"])))
        return seen


class Removed(Installed):
    """What a machine that has been in use for some sessions needs without headstart. Its journal has grown, so
    its boot reads more than that of `cold`."""

    name = "removed"
    about = "as `installed`, and the package was removed after its sessions: what aging alone costs"
    inside = packs = False

    def _make(self, contents, automatic):
        bench, learned = self.bench, Installed.name + ("-autologin" if automatic else "")
        if learned not in bench.inits:
            super()._make(learned, automatic)
        bench.disk.fresh(learned)
        bench.package.remove(bench.disk.root)
        bench.disk.save(contents)
        return {}
