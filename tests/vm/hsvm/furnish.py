"""Adds to a tree on a disk image: users, the agent, and the files of special cases."""

import os
from pathlib import Path

from .commands import run

GUEST = Path(__file__).resolve().parent.parent / "guest"

# Units that would start at a certain time of day or some time after the boot.
MASKED = """
    apt-daily.timer apt-daily-upgrade.timer man-db.timer logrotate.timer fstrim.timer
    e2scrub_all.timer e2scrub_reap.service dpkg-db-backup.timer xfs_scrub_all.timer
""".split()

HOME_SERVICE = """\
[Service]
Type=oneshot
ExecStart=/usr/bin/cat /home/user/hsvm-read
StandardOutput=null
[Install]
WantedBy=multi-user.target
"""


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def furnish(root, image, fstab):
    """Adds users, the agent and the image's special changes to the tree in the directory `root`.
    `fstab` is the text of /etc/fstab."""
    write(root / "etc/hostname", "headstart-vm\n")
    write(root / "etc/hosts", "127.0.0.1 localhost headstart-vm\n")
    write(root / "etc/fstab", fstab)
    # Without a password the greeter accepts Enter, and it offers the first user in the alphabet.
    for uid, user in enumerate(("user", "zoe"), 1000):
        run("chroot", root, "useradd", "--create-home", "--shell=/bin/bash", f"--uid={uid}", user)
    for user in ("user", "zoe", "root"):
        run("chroot", root, "passwd", "--delete", user)
    # Each boot reads a file of a user.
    (root / "home/user/hsvm-read").write_bytes(os.urandom(1 << 20))
    units = root / "etc/systemd/system"
    write(units / "hsvm-home.service", HOME_SERVICE)
    write(units / "hsvm-agent.service", (GUEST / "agent.service").read_text())
    write(root / "usr/local/lib/hsvm/agent", (GUEST / "agent").read_text(), 0o755)
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    for unit in ("hsvm-agent.service", "hsvm-home.service"):
        (wants / unit).symlink_to(f"../{unit}")
    for unit in MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    # The machine has booted before, so the tests contain no work of a first boot.
    write(root / "etc/machine-id", "", 0o444)
    run("systemd-machine-id-setup", f"--root={root}")
    # When the package is installed, it builds an initrd inside the machine. An initrd for all
    # machines would take long there.
    if (root / "etc/initramfs-tools").is_dir():
        write(root / "etc/initramfs-tools/conf.d/hsvm", "MODULES=dep\nCOMPRESSLEVEL=1\n")
    if image.furnish:
        globals()[image.furnish](root)


def lightdm(root):
    # The greeter shows a list of the users and has selected the first, so Enter logs this user in.
    write(root / "etc/lightdm/lightdm.conf.d/50-hsvm.conf",
          "[Seat:*]\ngreeter-hide-users=false\nuser-session=xfce\n")


def lightdm_autologin(root):
    write(root / "etc/lightdm/lightdm.conf.d/50-hsvm.conf",
          "[Seat:*]\nautologin-user=user\nautologin-user-timeout=0\nuser-session=xfce\n")


def gdm(root):
    # Under emulation, the units of a session start slowly; systemd's limit is 90 s.
    write(root / "etc/systemd/user.conf.d/hsvm.conf", "[Manager]\nDefaultTimeoutStartSec=10min\n")


def dracut(root):
    # The next initrd is made inside the machine, where a large one takes long, so it is made for
    # that machine only.
    write(root / "etc/dracut.conf.d/hsvm.conf", 'hostonly="yes"\nhostonly_mode="sloppy"\n')
