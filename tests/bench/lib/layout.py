"""Copies a tree to a filesystem as years of package installation would have placed it: package by
package in the order in which dpkg unpacked them. The files of one package lie together, and the
files of a login are scattered. Files that belong to no package (caches, configuration, home
directories) come last."""

import ctypes
import os
import random
import stat
from pathlib import Path

CHUNK = 1 << 20


def package_order(root, seed):
    """Returns the paths of dpkg's file lists, in the order of unpacking. A seed other than 0
    shuffles the lists, which gives another layout of the same files. The first dozen packages are
    the base system, without which dpkg can unpack nothing; they stay first."""
    lists = sorted((root / "var/lib/dpkg/info").glob("*.list"), key=lambda p: (p.stat().st_mtime_ns,
                                                                             p.name))
    if seed:
        base, rest = lists[:12], lists[12:]
        random.Random(seed).shuffle(rest)
        lists = base + rest
    return lists


class Layout:
    """Copies files in the order of the calls, with all their metadata and hard links."""

    def __init__(self, source, target, progress):
        self.source = os.fspath(source)
        self.target = os.fspath(target)
        self.progress = progress
        self.done = set()     # relative paths
        self.links = {}       # (device, inode) of the source -> relative path in the target
        self.parents = {}     # a directory as a package names it -> where it really lies
        self.directories = []  # (path, mtime): set last, because each new entry changes the time
        self.bytes = 0

    def resolve(self, path):
        """Returns the relative path without symlinks in its directory part; a package may name
        /lib/x although /lib is a link to usr/lib. Returns None if the directory is outside the
        tree."""
        directory, name = os.path.split(path)
        real = self.parents.get(directory)
        if real is None:
            whole = os.path.realpath(os.path.join(self.source, directory))
            inside = os.path.relpath(whole, self.source)
            real = "" if inside == "." else inside
            # A link to /etc/x leads out of the tree when it is followed from outside. The file is
            # then skipped here, and the walk at the end of lay_out() copies it.
            if real.startswith(".."):
                real = False
            self.parents[directory] = real
        if real is False:
            return None
        return os.path.join(real, name)

    def copy(self, relative):
        if relative in self.done or relative in ("", "."):
            return
        source = os.path.join(self.source, relative)
        try:
            st = os.lstat(source)
        except FileNotFoundError:
            return
        self.done.add(relative)
        parent = os.path.dirname(relative)
        if parent and parent not in self.done:
            self.copy(parent)
        target = os.path.join(self.target, relative)
        if not stat.S_ISDIR(st.st_mode) and st.st_nlink > 1:
            first = self.links.setdefault((st.st_dev, st.st_ino), relative)
            if first != relative:
                os.link(os.path.join(self.target, first), target, follow_symlinks=False)
                return
        self.create(source, target, st)

    def create(self, source, target, st):
        if stat.S_ISDIR(st.st_mode):
            if not os.path.isdir(target):  # the root and lost+found of the target exist already
                os.mkdir(target)
        elif stat.S_ISLNK(st.st_mode):
            os.symlink(os.readlink(source), target)
        elif stat.S_ISREG(st.st_mode):
            self.create_file(source, target, st.st_size)
        elif stat.S_ISSOCK(st.st_mode):
            return
        else:
            os.mknod(target, st.st_mode, st.st_rdev)
        os.lchown(target, st.st_uid, st.st_gid)
        if not stat.S_ISLNK(st.st_mode):
            os.chmod(target, stat.S_IMODE(st.st_mode))
        for name in os.listxattr(source, follow_symlinks=False):
            os.setxattr(target, name, os.getxattr(source, name, follow_symlinks=False),
                        follow_symlinks=False)
        if stat.S_ISDIR(st.st_mode):
            self.directories.append((target, st.st_mtime_ns))
        else:
            os.utime(target, ns=(st.st_mtime_ns, st.st_mtime_ns), follow_symlinks=False)

    def create_file(self, source, target, size):
        fd_in = os.open(source, os.O_RDONLY | os.O_NOATIME)
        try:
            fd_out = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                left = size
                while left > 0:
                    n = os.sendfile(fd_out, fd_in, None, min(left, CHUNK))
                    if n == 0:
                        break
                    left -= n
                # As dpkg does, this writes the file to the disk at once. A filesystem with delayed
                # allocation then places the whole file, before it places the next one.
                os.posix_fadvise(fd_out, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd_out)
        finally:
            os.close(fd_in)
        self.bytes += size

    def finish(self):
        for path, mtime in reversed(self.directories):
            os.utime(path, ns=(mtime, mtime))


def lay_out(source, target, seed, progress):
    """Copies the tree at `source` into the empty filesystem at `target`. Returns the number of
    bytes copied."""
    layout = Layout(source, target, progress)
    lists = package_order(Path(source), seed)
    for i, path in enumerate(lists):
        if i % 50 == 0:
            progress.say(f"laying out package {i} of {len(lists)}, {layout.bytes >> 20} MiB", i, len(lists))
        for line in path.read_text().splitlines():
            relative = layout.resolve(line.lstrip("/")) if line not in ("/.", "/") else None
            if relative is not None:
                layout.copy(relative)
        # dpkg, called by apt, syncs each package before the next one. This copy syncs only after
        # every eighth package.
        if i % 8 == 0:
            sync_filesystem(target)
    for directory, names, files in os.walk(source):
        inside = os.path.relpath(directory, source)
        for name in sorted(names) + sorted(files):
            layout.copy(os.path.normpath(os.path.join(inside, name)))
    layout.finish()
    st = os.stat(source)
    os.chmod(target, stat.S_IMODE(st.st_mode))
    sync_filesystem(target)
    return layout.bytes


def sync_filesystem(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(fd) < 0:
            raise OSError(ctypes.get_errno(), "syncfs", path)
    finally:
        os.close(fd)
