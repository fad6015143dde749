"""Finds the owner of a block of an ext4 filesystem: a file, or a kind of metadata."""

import bisect
import fcntl
import os
import re
import struct

from .commands import run

BLOCK = 4096

_FIEMAP = 0xC020660B
_EXTENTS = 512
_HEADER, _EXTENT = struct.Struct("=QQLLLL"), struct.Struct("=QQQQQLLLL")
_LAST = 1


def extents(path):
    """Returns (file offset, offset on the device, length) of each extent of a file or directory."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NOATIME | os.O_NONBLOCK)
    try:
        found, start = [], 0
        while True:
            buffer = bytearray(_HEADER.size + _EXTENTS * _EXTENT.size)
            _HEADER.pack_into(buffer, 0, start, 2 ** 64 - 1 - start, 0, 0, _EXTENTS, 0)
            fcntl.ioctl(fd, _FIEMAP, buffer)
            n, flags = _HEADER.unpack_from(buffer)[3], 0
            for i in range(n):
                logical, physical, length, _, _, flags, *_ = _EXTENT.unpack_from(
                    buffer, _HEADER.size + i * _EXTENT.size)
                found.append((logical, physical, length))
                start = logical + length
            if n == 0 or flags & _LAST:
                return found
    finally:
        os.close(fd)


def parse_groups(text):
    """Parses the output of dumpe2fs(8). Returns (first block, last block, what these blocks hold)
    for each part of the metadata."""
    found, group = [], None
    for line in text.splitlines():
        m = re.match(r"Group (\d+): \(Blocks (\d+)-(\d+)\)", line)
        if m:
            group = m[1]
        for m in re.finditer(r"(?i)(primary superblock|backup superblock|group descriptors|"
                             r"block bitmap|inode bitmap|inode table) at (\d+)(?:-(\d+))?", line):
            found.append((int(m[2]), int(m[3] or m[2]), f"{m[1].lower()} of group {group}"))
    return found


class Owners:
    def __init__(self, device, root):
        """Reads the metadata of the whole filesystem, so nothing may be measured after it."""
        ranges = [(first, last + 1, 0, name)
                  for first, last, name in parse_groups(run("dumpe2fs", device).stdout)]
        seen, device_number = set(), os.stat(root).st_dev
        for directory, names, files in os.walk(root):
            names[:] = [n for n in names
                        if os.lstat(os.path.join(directory, n)).st_dev == device_number]
            for path in (directory, *(os.path.join(directory, f) for f in files)):
                st = os.lstat(path)
                if st.st_ino in seen or not (os.path.isfile(path) or os.path.isdir(path)):
                    continue
                seen.add(st.st_ino)
                try:
                    own = extents(path)
                except OSError:
                    continue  # for example a symlink
                name = "/" + os.path.relpath(path, root) + ("/" if os.path.isdir(path) else "")
                ranges += [(at // BLOCK, -(-(at + length) // BLOCK), logical // BLOCK, name)
                           for logical, at, length in own]
        self._ranges = sorted(ranges)
        self._starts = [r[0] for r in self._ranges]

    def name(self, block):
        """Returns the owner of a block: (name, block in the file)."""
        i = bisect.bisect_right(self._starts, block) - 1
        if i >= 0 and block < self._ranges[i][1]:
            first, _, logical, name = self._ranges[i]
            return name, logical + block - first
        return "other metadata, or free", 0

    def total(self, blocks):
        """Returns the owners of blocks: [name, bytes], most bytes first."""
        found = {}
        for block in blocks:
            name = self.name(block)[0]
            found[name] = found.get(name, 0) + BLOCK
        return sorted(([name, n] for name, n in found.items()), key=lambda e: (-e[1], e[0]))
