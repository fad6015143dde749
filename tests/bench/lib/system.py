"""Interfaces of the kernel that Python's library does not have."""

import contextlib
import ctypes
import fcntl
import mmap
import os
import struct
import tempfile
import time
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS = 0x00020000
CLONE_NEWTIME = 0x00000080
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1
BLKFLSBUF = 0x1261
FS_IOC_FIEMAP = 0xC020660B


def _check(result, what):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def private_mounts():
    """Gives this process and its children a mount namespace of their own. However the process ends,
    SIGKILL included, its mounts go with it, and so do the loop devices and FUSE servers."""
    _check(_libc.unshare(CLONE_NEWNS), "unshare")
    _check(_libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None),
           "making mounts private")


def mount(source, target, fstype, flags=0, options=""):
    _check(_libc.mount(os.fsencode(source), os.fsencode(target), fstype.encode(),
                       ctypes.c_ulong(flags), options.encode()), f"mount {source} on {target}")


def umount(target, flags=0):
    _check(_libc.umount2(os.fsencode(target), flags), f"umount {target}")


@contextlib.contextmanager
def private_tmpfs(prefix):
    """Mounts a tmpfs and yields its path. Call it after private_mounts(). Then only this process and
    its children see the tmpfs, and its memory is freed however they end."""
    path = tempfile.mkdtemp(prefix=prefix)
    try:
        mount("headstart-bench", path, "tmpfs", 0, "mode=0755,size=80%")
        try:
            yield Path(path)
        finally:
            umount(path, MNT_DETACH)
    finally:
        os.rmdir(path)


def die_with_parent(number):
    """Makes the kernel send this signal to the calling process when its parent ends; for
    preexec_fn."""
    _libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


def begin_clock():
    """Gives this process and its children a time namespace whose clocks begin now, like those of a
    machine that is switched on. Call it in preexec_fn, because the process must have only one
    thread."""
    _check(_libc.unshare(CLONE_NEWTIME), "unshare of the time namespace")
    now = {name: time.clock_gettime_ns(clock) for name, clock in
           (("monotonic", time.CLOCK_MONOTONIC), ("boottime", time.CLOCK_BOOTTIME))}
    Path("/proc/self/timens_offsets").write_text(
        "".join(f"{name} {-ns // 10 ** 9} {-ns % 10 ** 9}\n" for name, ns in now.items()))
    fd = os.open("/proc/self/ns/time_for_children", os.O_RDONLY)
    try:
        _check(_libc.setns(fd, CLONE_NEWTIME), "entering the time namespace")
    finally:
        os.close(fd)


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("3")


def n_cache_drops():
    """Returns how often caches were dropped since the system started, by whomever."""
    counters = dict(line.split() for line in open("/proc/vmstat", encoding="ascii"))
    return int(counters["drop_pagecache"]) + int(counters["drop_slab"])


def back_free_memory(size):
    """Allocates free memory, writes to it, and frees it again. The host of a virtual machine takes
    back memory that its guest leaves free (virtio-balloon's free page reporting). The next use of
    such a page causes a fault in the host and takes 11 us instead of 1 us. A program that starts
    right after another one has exited gets the pages of that one and avoids the cost. After this
    call no program pays this cost for some seconds."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    mmap.mmap(-1, min(size, free // 2), flags=flags).close()


def flush_device(fd):
    """Drops the block device's own page cache."""
    fcntl.ioctl(fd, BLKFLSBUF, 0)


def first_block(path):
    """Returns the physical position of a file's first extent in bytes; -1 if it has none or the
    filesystem cannot tell."""
    request = bytearray(struct.pack("=QQLLLL", 0, (1 << 64) - 1, 0, 0, 1, 0) + bytes(56))
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.ioctl(fd, FS_IOC_FIEMAP, request)
    except OSError:
        return -1
    finally:
        os.close(fd)
    mapped, = struct.unpack_from("=L", request, 20)
    return struct.unpack_from("=Q", request, 40)[0] if mapped else -1
