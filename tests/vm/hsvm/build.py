"""Finds images in the cache, or makes them."""

import json
import shutil
from pathlib import Path

from . import layouts, luks
from .commands import VmError, locked, say
from .recipes import IMAGES, RECIPE, TREES
from .trees import key, tree

HERE = Path(__file__).resolve().parent
DEFAULT_CACHE = Path("/var/cache/headstart-vm")


class BuiltImage:
    def __init__(self, name, directory):
        self.name, self.directory, self.recipe = name, directory, IMAGES[name]
        self.kernel, self.initrd = directory / "vmlinuz", directory / "initrd"
        self.disk = directory / "disk.raw"
        self.append = json.loads((directory / "image.json").read_text())["append"]


def _image_key(name):
    """Returns a hash that changes with every input of the image."""
    image = IMAGES[name]
    made_by = [(HERE / f).read_text() for f in ("furnish.py", "layouts.py", "luks.py")]
    made_by += [(HERE.parent / "guest" / f).read_text() for f in ("agent", "agent.service",
                                                                  "make-luks.bash")]
    t = TREES[image.tree]
    return key(RECIPE, t.suite, t.packages, t.files, image.layout, image.size_mib, image.furnish, made_by)


def image(name, cache=DEFAULT_CACHE):
    """Returns the image of that name; makes it if it is not in the cache. The caller must be
    root and have called commands.in_private_mounts()."""
    if name not in IMAGES:
        raise VmError(f"no such image: {name} (there are: {', '.join(IMAGES)})")
    recipe = IMAGES[name]
    directory = cache / "images" / f"{name}-{_image_key(name)}"
    directory.parent.mkdir(parents=True, exist_ok=True)
    cache.chmod(0o700)
    builder = image("d13-luks-builder", cache) if recipe.layout == "luks" else None
    with locked(directory.with_suffix(".lock"), f"another run that makes the image {name}"):
        if (directory / "image.json").exists():
            return BuiltImage(name, directory)
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        say(f"making the image {name}: {recipe.about}")
        if builder:
            append = luks.make(builder, recipe.size_mib, directory)
        else:
            append = layouts.layout(recipe, tree(recipe.tree, cache), directory)
        # image.json is written last. Without this file the image does not count as complete.
        (directory / "image.json").write_text(json.dumps({"append": append}) + "\n")
        for old in directory.parent.glob(f"{name}-????????????"):
            if old != directory and old.is_dir():
                shutil.rmtree(old, ignore_errors=True)
    return BuiltImage(name, directory)
