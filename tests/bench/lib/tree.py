"""Makes a Debian tree with mmdebstrap, from the mirror that this machine's apt uses."""

import os
import secrets
import shutil
from pathlib import Path

from .commands import BenchError, run
from .desktops import DESKTOPS

# Increase this number when the contents of the tree or image change, so that older caches are not
# used.
RECIPE = 1
RECIPE_SESSIONS = 2  # only for tests/bench/sessions

FILES = Path(__file__).resolve().parent.parent / "tree"

# These units would run at a time of day or a while after the boot, or wait for a network that does
# not exist. preload, a peer, runs only in its own variant.
MASKED = """
    apt-daily.timer apt-daily-upgrade.timer man-db.timer logrotate.timer fstrim.timer
    e2scrub_all.timer e2scrub_reap.service dpkg-db-backup.timer systemd-tmpfiles-clean.timer
    anacron.timer preload.service
    NetworkManager-wait-online.service systemd-networkd-wait-online.service
""".split()


def host_suite():
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    raise BenchError("/etc/os-release names no suite: use --suite=")


def apt_sources(suite):
    """Returns the machine's own apt sources of this suite, as one-line entries."""
    wanted = {suite, suite + "-updates", suite + "-security", suite + "/updates"}
    for attempt in range(2):
        text = run("apt-get", "indextargets", "--format",
                   "$(CREATED_BY)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)").stdout
        found = {}
        for line in text.splitlines():
            kind, uri, release, component, origin = line.split("|")
            if kind == "Packages" and release in wanted and origin in ("Debian", "Ubuntu"):
                found.setdefault((uri, release), []).append(component)
        if found:
            return [f"deb {uri} {release} {' '.join(sorted(set(components)))}"
                    for (uri, release), components in sorted(found.items())]
        if attempt == 0:
            run("apt-get", "update")
    raise BenchError(f"apt on this machine knows no source for {suite}")


def bootstrap(target, suite, packages, variant, cache, progress):
    """Makes the tree in the directory `target` (which must not exist). Downloaded packages are
    kept in cache/debs for the next tree."""
    debs = cache / "debs"
    debs.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    progress.say(f"making a {suite} tree with {len(packages)} packages and what they need")
    run("mmdebstrap", "--mode=root", f"--variant={variant}", "--format=directory",
        "--include=" + ",".join(packages),
        "--aptopt=Apt::Install-Recommends \"false\"",
        "--dpkgopt=force-unsafe-io",
        "--skip=download/empty", "--skip=essential/unlink",
        "--setup-hook=mkdir -p \"$1\"/var/cache/apt/archives/partial",
        f"--setup-hook=sync-in {debs} /var/cache/apt/archives/",
        f"--customize-hook=sync-out /var/cache/apt/archives {debs}",
        "--customize-hook=rm -rf \"$1\"/var/cache/apt/archives/*.deb",
        suite, partial, *apt_sources(suite),
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    partial.rename(target)


def _write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def furnish(root, desktop, sessions=False):
    """Adds the bench's users, units and sessions to the tree. `desktop` is a Desktop, or None."""
    root = Path(root)
    users = ["bench", "second"] if sessions else ["bench"]
    for uid, user in enumerate(users, 1000):
        run("chroot", root, "useradd", "--create-home", "--shell=/bin/bash", f"--uid={uid}", user)
    _write(root / "etc/hostname", "bench\n")
    _write(root / "etc/hosts", "127.0.0.1 localhost bench\n")
    _write(root / "etc/fstab", "")
    # A machine with a machine id counts as booted before, so no first-boot work is measured.
    (root / "etc/machine-id").unlink(missing_ok=True)
    _write(root / "etc/machine-id", secrets.token_hex(16) + "\n", 0o444)
    units = root / "etc/systemd/system"
    _write(units / "bench-login.path", (FILES / "bench-login.path").read_text())
    _write(units / "bench-login.service", login_service(desktop))
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "bench-login.path").symlink_to("../bench-login.path")
    for unit in MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    (units / "default.target").unlink(missing_ok=True)
    (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
    _write(root / "usr/local/libexec/bench-session", session(desktop), 0o755)
    if desktop:
        _autostart(root, "bench", desktop)
        for path, text in desktop.files.items():
            _write(root / path, text)
    if sessions:
        _furnish_sessions(root, units, wants)
    for user in users:
        run("chroot", root, "chown", "-R", f"{user}:{user}", f"/home/{user}")


def session(desktop):
    """Returns the program that runs the session."""
    if desktop is None:
        return (FILES / "session-small").read_text()
    return (FILES / desktop.session).read_text().replace("@START@", desktop.start)


def login_service(desktop):
    """Returns the unit that logs in the bench's user."""
    name, kind = (desktop.name, desktop.type) if desktop else ("bench", "tty")
    return (FILES / "bench-login.service").read_text().replace("@DESKTOP@", name).replace(
        "@TYPE@", kind)


def _autostart(root, user, desktop):
    """Adds the applications that start with the session."""
    for name, (title, command) in desktop.applications.items():
        _write(root / f"home/{user}/.config/autostart/{name}.desktop",
               f"[Desktop Entry]\nType=Application\nName={title}\nExec={command}\n")


def _furnish_sessions(root, units, wants):
    """Adds the second user's login and desktop, and to the sessions of both users an agent that starts
    applications."""
    desktop = DESKTOPS["lxqt"]
    text = (FILES / "bench-login.path").read_text().replace("/run/bench/go", "/run/bench/go-second")
    _write(units / "second-login.path", text)
    text = login_service(desktop).replace("User=bench", "User=second")
    _write(units / "second-login.service", text.replace("bench-session", "second-session"))
    (wants / "second-login.path").symlink_to("../second-login.path")
    _write(root / "usr/local/libexec/second-session", session(desktop), 0o755)
    _write(root / "usr/local/libexec/bench-agent", (FILES / "agent").read_text(), 0o755)
    for user in ("bench", "second"):
        _write(root / f"home/{user}/.config/autostart/agent.desktop",
               (FILES / "agent.desktop").read_text())
    # Avoids the question which window manager to use.
    _write(root / "home/second/.config/lxqt/session.conf", "[General]\nwindow_manager=openbox\n")
    _autostart(root, "second", desktop)
