"""Makes a Debian tree with mmdebstrap, from the mirror that this machine's apt uses."""

import os
import secrets
import shutil
from pathlib import Path

from .commands import BenchError, run

# Increase this number when the contents of the tree or image change, so that older caches are not
# used.
RECIPE = 1
RECIPE_SESSIONS = 2  # only for tests/bench/sessions

FILES = Path(__file__).resolve().parent.parent / "tree"

# SMALL also contains the libraries that headstart's package needs and that not every system has.
SMALL = """
    systemd systemd-sysv dbus dbus-user-session libpam-systemd login passwd procps perl
    libjson-c5 libinih1
""".split()

# The packages of the installer's choice "Xfce", without those that take no part in a boot or login,
# plus a virtual X server. Icons, themes, gvfs, portals and applets stay, because they make a login
# slow.
DESKTOP = SMALL + """
    udev cron rsyslog polkitd pkexec network-manager modemmanager udisks2 upower accountsservice
    avahi-daemon cups-daemon rtkit colord packagekit
    xvfb xinit x11-common dbus-x11 libgl1-mesa-dri
    xfce4-session xfce4-panel xfwm4 xfdesktop4 xfce4-settings xfconf xfce4-terminal xfce4-appfinder
    xfce4-notifyd xfce4-power-manager xfce4-pulseaudio-plugin xfce4-whiskermenu-plugin
    thunar thunar-volman gvfs gvfs-daemons gvfs-backends network-manager-gnome
    xdg-user-dirs xdg-desktop-portal xdg-desktop-portal-gtk at-spi2-core dconf-gsettings-backend
    pulseaudio pavucontrol policykit-1-gnome light-locker
    adwaita-icon-theme tango-icon-theme greybird-gtk-theme gnome-themes-extra desktop-base
    librsvg2-common fonts-dejavu fonts-noto-core fonts-liberation hicolor-icon-theme
    preload
""".split()

# For recorded sessions (tests/bench/sessions): a second desktop, and applications people use.
SESSIONS = DESKTOP + """
    lxqt-session lxqt-panel lxqt-config lxqt-notificationd lxqt-policykit lxqt-qtplugin lxqt-runner
    lxqt-themes lxqt-globalkeys lxqt-powermanagement pcmanfm-qt openbox qterminal featherpad
    lximage-qt qpdfview breeze-icon-theme
    mousepad ristretto galculator abiword gnumeric geany atril xarchiver claws-mail gimp
    transmission-gtk dillo
""".split()

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
    """Adds the bench's users, units and sessions to the tree."""
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
    for unit in ("bench-login.path", "bench-login.service"):
        _write(units / unit, (FILES / unit).read_text())
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "bench-login.path").symlink_to("../bench-login.path")
    for unit in MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    (units / "default.target").unlink(missing_ok=True)
    (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
    session = "session-desktop" if desktop else "session-small"
    _write(root / "usr/local/libexec/bench-session", (FILES / session).read_text(), 0o755)
    if desktop:
        for name in ("terminal", "thunar"):
            _write(root / f"home/bench/.config/autostart/{name}.desktop",
                   (FILES / f"{name}.desktop").read_text())
    if sessions:
        _furnish_sessions(root, units, wants)
    for user in users:
        run("chroot", root, "chown", "-R", f"{user}:{user}", f"/home/{user}")


def _furnish_sessions(root, units, wants):
    """Adds the second user's login and desktop, and to the sessions of both users an agent that starts
    applications."""
    for kind in ("path", "service"):
        text = (FILES / f"bench-login.{kind}").read_text()
        text = text.replace("/run/bench/go", "/run/bench/go-second").replace(
            "User=bench", "User=second").replace("bench-session", "second-session").replace(
            "XDG_SESSION_DESKTOP=xfce", "XDG_SESSION_DESKTOP=lxqt")
        _write(units / f"second-login.{kind}", text)
    (wants / "second-login.path").symlink_to("../second-login.path")
    _write(root / "usr/local/libexec/second-session",
           (FILES / "session-desktop").read_text().replace("startxfce4", "startlxqt"), 0o755)
    _write(root / "usr/local/libexec/bench-agent", (FILES / "agent").read_text(), 0o755)
    for user in ("bench", "second"):
        _write(root / f"home/{user}/.config/autostart/agent.desktop",
               (FILES / "agent.desktop").read_text())
    # Avoids the question which window manager to use.
    _write(root / "home/second/.config/lxqt/session.conf", "[General]\nwindow_manager=openbox\n")
    _write(root / "home/second/.config/autostart/terminal.desktop",
           (FILES / "terminal.desktop").read_text().replace("xfce4-terminal", "qterminal"))
