"""The workloads of tests/bench/file-benchmarks: trees of files, and the commands that read them.

Commands name the mounted tree {root}, and a folder in memory for what they write {out}."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from .commands import BenchError, run


class Sizes(NamedTuple):
    documents: int = 500
    compiled: int = 17  # as in the compile phase of the Andrew benchmark
    linked: int = 1000  # folders of objects
    versions: int = 4  # that follow the first one


SMALL = Sizes(20, 3, 2, 1)
FLAGS = "-std=gnu17 -D_GNU_SOURCE -O2"
# Headers that new versions of a program begin to use.
ADDED_HEADERS = ("netdb.h", "regex.h", "complex.h", "search.h")


class Workload:
    """`steps` are the commands that a run measures. Each begins with cold caches; what it writes to
    the tree stays until the run ends. Predictors learn from the commands `training`, `rounds` times
    (None: as often as the caller says). They observe the command `between` before each measured run.
    With `anew` they forget each measured run."""

    def __init__(self, steps, training=None, rounds=None, between=None, anew=False):
        self.steps = steps
        self.training = training or steps
        self.rounds, self.between, self.anew = rounds, between, anew


# --- trees ----------------------------------------------------------------------------------------

def copy_documents(tree, sizes):
    """Copies the first files of the documentation of this system."""
    found = sorted(p for p in Path("/usr/share/doc").glob("*/*") if p.is_file() and p.stat().st_size < 200000)
    for source in found[:sizes.documents]:
        target = tree / "documents" / source.parent.name / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def copy_objects(tree, builddir, sizes):
    """Copies the objects of this build. Returns the names of their folders."""
    names = []
    for folder in sorted(Path(builddir).glob("src/**/*.p")):
        objects = sorted(folder.glob("*.o"))
        if not objects or "cli" in folder.name or len(names) == sizes.linked:
            continue
        (tree / "objects" / folder.name).mkdir(parents=True)
        for source in objects:
            shutil.copyfile(source, tree / "objects" / folder.name / source.name)
        names.append(folder.name)
    return names


def needed_files(source, include):
    """Returns what a C file needs, itself included, or None if a header is missing."""
    try:
        rule = run("gcc", *FLAGS.split(), f"-I{include}", "-M", source).stdout
    except BenchError:
        return None  # the source needs a header that meson generates
    return set(rule.replace("\\\n", " ").split(":", 1)[1].split())


def include_folders():
    """Returns the folders of system headers, in the compiler's order."""
    text = run("gcc", "-v", "-E", "-x", "c", "/dev/null", stdout=subprocess.DEVNULL, check=True)
    lines = text.stderr.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("#include <"))
    return [os.path.realpath(line.strip()) for line in lines[begin + 1:lines.index("End of search list.")]]


def make_version(folder, number):
    """Changes a source tree as a new version of a program does: functions are added to a third of
    the C files, a fifth of them includes a new header, which includes a further header of the
    system, one file is new and one is dropped."""
    sources = sorted(folder.glob("*/*.c"))
    header = f"base/version-{number}.h"
    (folder / header).write_text(f"#pragma once\n#include <{ADDED_HEADERS[number % len(ADDED_HEADERS)]}>\n"
                                 f"int version_{number}(int x);\n")
    for index, source in enumerate(sources):
        text = source.read_text()
        if (index + number) % 3 == 0:
            text += f"\nint added_{number}_{index}(int x);\nint added_{number}_{index}(int x)\n" \
                    f"{{\n    return x * {index + 2} + {number};\n}}\n"
        if (index + number) % 5 == 0:
            text = f'#include "{header}"\n{text}'
        source.write_text(text)
    (folder / f"base/version-{number}.c").write_text(
        f'#include "{header}"\n#include "base/macros.h"\n#include <stdio.h>\n\n'
        f"int version_{number}(int x)\n{{\n    return printf(\"%d\\n\", x);\n}}\n")
    sources[number % len(sources)].unlink()


def copy_sources(tree, source, work, sizes):
    """Copies C files of headstart with all their headers, below a root of their own. Makes a patch for
    each further version below `work`, and returns their paths."""
    version, needed, patches = work / "a", set(), []
    shutil.rmtree(version, ignore_errors=True)
    n = 0
    for file in sorted((source / "src").glob("*/*.c")):
        files = needed_files(file, source / "src")
        if files is None:
            continue
        for name in map(Path, files):
            if name.is_relative_to(source / "src"):
                target = version / name.relative_to(source / "src")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(name, target)
        needed |= files
        n += 1
        if n == sizes.compiled:
            break
    shutil.copytree(version, tree / "program/src")
    for number in range(1, sizes.versions + 1):
        following = work / "b"
        shutil.copytree(version, following)
        make_version(following, number)
        patches.append(work / f"{number}.patch")
        patches[-1].write_text(run("diff", "-ruN", "a", "b", cwd=work, check=False).stdout)
        for file in sorted(following.glob("*/*.c")):
            needed |= needed_files(file, following)
        shutil.rmtree(version)
        following.rename(version)
    for name in map(Path, needed):
        if name.is_relative_to("/usr"):
            target = tree / "program" / os.path.realpath(name).lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, target)
    return patches


# --- commands -------------------------------------------------------------------------------------

def search_command(folder):
    return f"grep -rc ELVIS {{root}}/{folder} >/dev/null || true"


def index_command():
    """Lists the files that contain a word, for each word, as glimpseindex does."""
    return ("find {root}/documents -type f -exec awk '{{ for (i = 1; i <= NF; i++) if (seen[$i] != FILENAME) "
            "{{ seen[$i] = FILENAME; files[$i] = files[$i] \" \" FILENAME }} }} "
            "END {{ for (w in files) print w files[w] }}' {{}} + >{out}/index")


def compile_command():
    # Only the headers below the root are read, and in the compiler's order.
    folders = " ".join(f"-isystem $r{folder}" for folder in include_folders())
    return ("r={root}/program; for c in $r/src/*/*.c; do "
            f"gcc --sysroot=$r -nostdinc {FLAGS} -I$r/src {folders} -c -o {{out}}/$(basename $c .c).o $c || exit 1; done")


def link_command(names):
    """Links object files folder by folder, and then all of them."""
    commands = [f"ld -r -o {{out}}/{name}.o {{root}}/objects/{name}/*.o" for name in names]
    parts = " ".join(f"{{out}}/{name}.o" for name in names)
    return " && ".join(commands + [f"ld -r -z muldefs -o {{out}}/all.o {parts}"])


def make_workloads(tree, work, builddir, source, sizes):
    """Fills the tree, and returns {name: Workload}. `work` is a folder in memory that stays."""
    copy_documents(tree, sizes)
    names = copy_objects(tree, builddir, sizes)
    patches = copy_sources(tree, source, work, sizes)
    search, index, build, link = search_command("documents"), index_command(), compile_command(), link_command(names)
    patched = [f"patch -s -p1 -d {{root}}/program/src <{patch} && {build}" for patch in patches]
    return {"search": Workload([search]), "index": Workload([index]), "compile": Workload([build]),
            "link": Workload([link]),
            # Kroeger and Long, section 4.5: predictors know only the first version.
            "patch": Workload(patched, training=[build], anew=True),
            # Section 4.6: 10 runs of all benchmarks before; another pattern between the runs.
            "index-after-all": Workload([index], training=[build, link, index, search], rounds=10),
            "link-and-search": Workload([link], training=[link, search_command("objects")],
                                        between=search_command("objects"))}
