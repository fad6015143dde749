"""Lists the files of a tree that are in the page cache, for peers that read a list of files."""

import ctypes
import mmap
import os
import stat

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                       ctypes.c_longlong]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def _resident(path, size):
    """Returns whether any page of the file is in the page cache."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NOATIME)
    try:
        address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
    finally:
        os.close(fd)
    if address in (None, ctypes.c_void_p(-1).value):
        return False
    try:
        pages = ctypes.create_string_buffer((size + mmap.PAGESIZE - 1) // mmap.PAGESIZE)
        if _libc.mincore(address, size, pages) < 0:
            return False
        return any(byte & 1 for byte in pages.raw)
    finally:
        _libc.munmap(address, size)


def resident_files(root):
    """Returns the paths of all regular files below `root` that have pages in the page cache, each
    inode once, sorted. Reads the metadata of the whole tree, so nothing may be measured after
    it."""
    root = os.fspath(root)
    device = os.stat(root).st_dev
    seen, found = set(), []
    for directory, names, files in os.walk(root):
        names[:] = [n for n in names
                    if os.lstat(os.path.join(directory, n)).st_dev == device]
        for name in files:
            path = os.path.join(directory, name)
            st = os.lstat(path)
            if not stat.S_ISREG(st.st_mode) or not st.st_size or st.st_ino in seen:
                continue
            seen.add(st.st_ino)
            if _resident(path, st.st_size):
                found.append(path)
    return sorted(found)
