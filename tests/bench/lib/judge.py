"""Compares the packs of installed variants with the requests that a boot and a login make from the
same disk without headstart."""

from . import demand, disklog
from .owners import Owners


def judge(bench, variant, scenarios, samples):
    """Adds `unplanned` to the variant's samples; returns scenario -> result of demand.judge(). Call
    it after all measurements, because it needs the log of the disk with the requests of every
    sample."""
    judged = {}
    for automatic in (False, True):
        own = [s for s in variant.takes_part(scenarios) if (s == "autologin") == automatic]
        if own:
            judged.update(_judge(bench, variant, own, automatic, samples))
    return judged


def _judge(bench, variant, scenarios, automatic, samples):
    contents = variant.contents(scenarios[0])
    bench.progress.say(f"what {contents} reads without headstart")
    section = _demand(bench, contents, automatic)
    disk = bench.disk
    chunk_map = demand.chunks(disk.device) if disk.fstype == "btrfs" else ()
    uuid = disk.uuid()
    packs = {stage: set().union(*(
        demand.pack_blocks(bench.headstart.show(path, "--limit=0"), uuid, chunk_map)
        for path in sorted(variant.state(contents).glob(f"{stage}*.pack"))))
        for stage in ("boot", "login")}
    for scenario in scenarios:
        bench.pack_blocks[(variant.name, scenario)] = packs["boot"] | packs["login"]
    log = disklog.reads(disk.log)
    boot, between, login = (log.get(f"{section}/{part}", [])
                            for part in ("boot", "between", "login"))
    for sample in samples:
        its = log.get(f"{sample['section']}/stage")
        if sample["variant"] == variant.name and sample["scenario"] in scenarios and its:
            sample["unplanned"] = demand.unplanned(its, packs["boot"] | packs["login"])
    if automatic:
        parts = {"autologin": (boot, packs["boot"] | packs["login"], set(), [], [])}
    else:
        parts = {"boot": (boot, packs["boot"], set(), [], between),
                 "login": (login, packs["login"], packs["boot"], boot + between, [])}
    owners = Owners(disk.device, disk.root) if bench.owners and disk.fstype == "ext4" else None
    return {scenario: _one(*parts[scenario], owners) for scenario in scenarios}


def _one(reads, own, resident, before, after, owners):
    """Returns the result of demand.judge(). With `owners` it also lists each missed request and the
    owners of wasted blocks."""
    found = demand.judge(reads, own, resident, before, after)
    if owners:
        found["missed"] = [owners.total(request)
                           for request in demand.missed(reads, own, resident, before)]
        found["wasted"] = owners.total(demand.wasted(reads, own, before, after))
    return found


def _demand(bench, contents, automatic):
    """Boots and logs in with headstart=0 and without headstart-init. Returns the prefix of the
    names of sections in the disk's log. The section SECTION/boot begins when the machine is
    switched on, SECTION/between at the greeter, and SECTION/login when the user is let in. The login
    lasts until the session has settled. All of an automatic login is in SECTION/boot."""
    section, disk = f"demand/{contents}", bench.disk
    disk.fresh(contents)
    with bench.machine(["headstart=0"], own_init=True) as machine:
        machine.assemble()
        disk.delays(True)
        disk.mark(f"{section}/boot")
        machine.power_on(log_in=automatic)
        machine.wait_booted()
        if not automatic:
            disk.mark(f"{section}/between")
            bench.wait_disk_idle(0.5, 20)
            disk.mark(f"{section}/login")
            machine.let_in()
        machine.wait_logged_in()
        bench.wait_disk_idle(2, 30)
        disk.mark(f"{section}/after")
        disk.delays(False)
    return section
