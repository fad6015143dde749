"""The contents of the test images. A tree is a set of packages of one suite; an image is a tree
laid out on disks."""

from dataclasses import dataclass, field

# Increase this number when images are made differently from the same recipe, so that older caches
# are not used.
RECIPE = 1

# Recommended packages are not installed. The dependencies of headstart's package are installed already,
# because the machine has no network.
TEXT = """
    systemd-sysv udev dbus dbus-user-session libpam-systemd linux-image-amd64 initramfs-tools zstd
    kmod login passwd procps util-linux mount e2fsprogs xfsprogs btrfs-progs iproute2 less
    polkitd libjson-c5 libinih1
""".split()

LIGHTDM = TEXT + """
    lightdm lightdm-gtk-greeter xserver-xorg-core xserver-xorg-input-libinput
    xfce4-session xfce4-panel xfwm4 xfdesktop4 xfce4-settings xfconf xfce4-terminal thunar
    dbus-x11 x11-xserver-utils x11-utils gvfs upower accountsservice libgl1-mesa-dri at-spi2-core
    adwaita-icon-theme fonts-dejavu-core
""".split()

GDM = TEXT + "gdm3 gnome-shell gnome-session libgl1-mesa-dri".split()

# systemd runs in the initrd of this image.
DRACUT = [p for p in TEXT if p != "initramfs-tools"] + ["dracut", "systemd-cryptsetup"]

# The initrd of this image unlocks and maps the root filesystem.
ENCRYPTED = TEXT + "cryptsetup-initramfs lvm2".split()


@dataclass(frozen=True)
class Tree:
    suite: str
    packages: tuple
    masked: tuple = ()  # more units that must not run
    files: tuple = ()   # (path, text): written before the packages are configured


@dataclass(frozen=True)
class Image:
    tree: str
    about: str
    layout: str = "ext4"  # a function of layouts.py
    size_mib: int = 3072
    memory_mib: int = 2048
    graphics: bool = False
    furnish: str = ""     # special changes: a function of furnish.py
    internal: bool = False
    extra: dict = field(default_factory=dict)


TREES = {
    "d12-text": Tree("bookworm", tuple(TEXT)),
    "d13-text": Tree("trixie", tuple(TEXT)),
    "d13-xfce": Tree("trixie", tuple(LIGHTDM)),
    "d13-gnome": Tree("trixie", tuple(GDM)),
    # The tree is bootstrapped on another machine, so its first initrd contains the drivers of all
    # machines.
    "d13-dracut": Tree("trixie", tuple(DRACUT),
                       files=(("etc/dracut.conf.d/hsvm.conf", 'hostonly="no"\n'),)),
    "d13-encrypted": Tree("trixie", tuple(ENCRYPTED)),
}

IMAGES = {
    "d12-text": Image("d12-text", "Debian 12 (kernel 6.1), text only, ext4"),
    "d13-ext4": Image("d13-text", "Debian 13, text only, ext4"),
    "d13-xfs": Image("d13-text", "Debian 13, text only, xfs", "xfs"),
    "d13-btrfs": Image("d13-text", "Debian 13, text only, btrfs with subvolumes", "btrfs"),
    "d13-dracut": Image("d13-dracut", "Debian 13, text only, ext4, dracut with systemd in the initrd",
                        furnish="dracut"),
    "d13-split": Image("d13-text", "Debian 13, text only, partitions for / and /var (ext4), /home "
                       "(xfs)", "split", 5120),
    "d13-luks": Image("d13-encrypted", "Debian 13, text only, ext4 over LVM over LUKS", "luks"),
    "d13-luks-builder": Image("d13-encrypted", "makes d13-luks", internal=True),
    "d13-xfce": Image("d13-xfce", "Debian 13, LightDM and XFCE", size_mib=4096, graphics=True,
                      furnish="lightdm"),
    "d13-xfce-autologin": Image("d13-xfce", "Debian 13, LightDM that logs in by itself, XFCE",
                                size_mib=4096, graphics=True, furnish="lightdm_autologin"),
    "d13-gnome": Image("d13-gnome", "Debian 13, GDM and GNOME", size_mib=6144, memory_mib=4096,
                       graphics=True, furnish="gdm"),
}
