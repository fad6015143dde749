"""Options that mktree, run and the other programs of the bench have in common."""

from .image import DEFAULT_CACHE, MKFS, ImageSpec


def add_image_options(parser):
    group = parser.add_argument_group("the system that boots")
    group.add_argument("--small", action="store_true",
                       help="a system without a desktop, which takes a minute to make; for functional tests")
    group.add_argument("--desktop", default="xfce", choices=("xfce", "gnome", "plasma"),
                       help="the desktop of the user (default: xfce). GNOME runs on Wayland without a screen, "
                            "the others on a virtual X server")
    group.add_argument("--packages", metavar="A,B,…",
                       help="packages to install, with their dependencies, instead of the default ones")
    group.add_argument("--extra-packages", metavar="A,B,…", help="further packages to install")
    group.add_argument("--seed", type=int, default=0, metavar="N",
                       help="place the packages on the disk in the order of this seed (default: in dpkg's order)")
    group.add_argument("--fstype", default="ext4", choices=sorted(MKFS), help="type of the filesystem (default: ext4)")
    group.add_argument("--size", metavar="SIZE",
                       help="size of the disk, also its stroke (default: 8G; with --small 1G)")
    group.add_argument("--suite", help="Debian suite (default: that of this machine)")
    group.add_argument("--unprimed", action="store_true",
                       help="measure a system that has never booted before")
    group.add_argument("--cache", metavar="DIR", default=DEFAULT_CACHE,
                       help="directory for trees and images (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="print no progress on standard error")


def _words(text):
    return [word for word in (text or "").split(",") if word]


def add_packages(args, names):
    """Adds packages that a program needs to --extra-packages=."""
    args.extra_packages = ",".join([*_words(args.extra_packages), *names])


def image_spec(args, sessions=False):
    return ImageSpec(small=args.small, packages=_words(args.packages),
                     extra=_words(args.extra_packages), seed=args.seed, fstype=args.fstype,
                     size=args.size, suite=args.suite, prime=not args.unprimed, sessions=sessions,
                     desktop=args.desktop)
