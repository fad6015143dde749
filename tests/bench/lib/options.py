"""Options that mktree and run have in common."""

from .image import DEFAULT_CACHE, MKFS, ImageSpec


def add_image_options(parser):
    group = parser.add_argument_group("the system that boots")
    group.add_argument("--small", action="store_true",
                       help="text only, no desktop: a minute to make, for tests of function")
    group.add_argument("--packages", metavar="A,B,…",
                       help="these packages (and what they need) instead of the usual ones")
    group.add_argument("--extra-packages", metavar="A,B,…", help="these as well")
    group.add_argument("--seed", type=int, default=0, metavar="N",
                       help="lay the packages out on the disk in another order (default: dpkg's)")
    group.add_argument("--fstype", default="ext4", choices=sorted(MKFS), help="default: ext4")
    group.add_argument("--size", metavar="SIZE",
                       help="of the disk, also its stroke (default: 8G, small 1G)")
    group.add_argument("--suite", help="Debian suite (default: this machine's)")
    group.add_argument("--unprimed", action="store_true",
                       help="the first boot and login ever are what is measured")
    group.add_argument("--cache", metavar="DIR", default=DEFAULT_CACHE,
                       help="where trees and images are kept (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def _words(text):
    return [word for word in (text or "").split(",") if word]


def image_spec(args, sessions=False):
    return ImageSpec(small=args.small, packages=_words(args.packages),
                     extra=_words(args.extra_packages), seed=args.seed, fstype=args.fstype,
                     size=args.size, suite=args.suite, prime=not args.unprimed, sessions=sessions)
