"""Makes Debian trees with mmdebstrap, from the mirror that this machine's apt uses."""

import hashlib
import json
import os

from .commands import VmError, locked, run, say
from .recipes import RECIPE, TREES


def key(*parts):
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def apt_sources(suite):
    """Returns the apt source of a suite, a list of one line. It names the first Debian mirror that
    this machine's apt uses, so no file of headstart names a mirror. (The security mirror is left
    out: no other machine can reach a test image.)"""
    wanted = []
    for attempt in range(2):
        text = run("apt-get", "indextargets", "--format",
                   "$(CREATED_BY)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)").stdout
        for line in text.splitlines():
            kind, uri, release, component, origin = line.split("|")
            if (kind == "Packages" and origin == "Debian" and component == "main"
                    and "-" not in release and "/" not in release and uri not in wanted):
                wanted.append(uri)
        if wanted:
            return [f"deb {wanted[0]} {suite} main"]
        if attempt == 0:
            run("apt-get", "update")
    raise VmError("apt on this machine knows no Debian mirror")


def _key(recipe):
    return key(RECIPE, recipe.suite, recipe.packages, *([recipe.files] if recipe.files else []))


def tree(name, cache):
    """Returns the tree as a tar file; makes it if it is not in the cache."""
    recipe = TREES[name]
    path = cache / "trees" / f"{name}-{_key(recipe)}.tar"
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_suffix(".lock"), f"another run that makes the tree {name}"):
        if not path.exists():
            _bootstrap(name, recipe, path, cache)
    return path


def _bootstrap(name, recipe, path, cache):
    debs = cache / "debs" / recipe.suite
    debs.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    say(f"making the tree {name}: {recipe.suite}, {len(recipe.packages)} packages and what they need")
    try:
        run("nice", "mmdebstrap", "--mode=root", "--variant=minbase", "--format=tar",
            "--include=" + ",".join(recipe.packages),
            "--aptopt=Apt::Install-Recommends \"false\"",
            "--dpkgopt=force-unsafe-io",
            "--skip=download/empty", "--skip=essential/unlink",
            "--setup-hook=mkdir -p \"$1\"/var/cache/apt/archives/partial",
            *(f"--setup-hook=install -D -m 0644 /dev/stdin \"$1\"/{path} <<'END'\n{text}END\n"
              for path, text in recipe.files),
            f"--setup-hook=sync-in {debs} /var/cache/apt/archives/",
            f"--customize-hook=sync-out /var/cache/apt/archives {debs}",
            "--customize-hook=rm -rf \"$1\"/var/cache/apt/archives/*.deb \"$1\"/var/lib/apt/lists",
            recipe.suite, partial, *apt_sources(recipe.suite),
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
