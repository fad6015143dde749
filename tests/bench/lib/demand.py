"""Computes which share of the disk's reads during a boot and a login the packs contain. It uses the
disk's own log, so no program of headstart influences the result. Everything but chunks() is
pure."""

import re

from .commands import run

BLOCK = 4096


def blocks(ranges):
    """Returns the numbers of all blocks that (offset, length) ranges touch."""
    return {block for offset, length in ranges if length > 0
            for block in range(offset // BLOCK, -(-(offset + length) // BLOCK))}


def pack_blocks(pack, uuid, chunk_map=()):
    """Returns the numbers of the disk's blocks in a pack (as `headstart show --json` prints it) for
    the filesystem with that UUID. Directories of xfs, which a pack names only by path, have no
    position and are not included. `chunk_map` is the result of chunks()."""
    ranges = []
    for volume in pack["volumes"]:
        if volume["uuid"] != uuid:
            continue
        ranges += [(m["offset"], m["length"]) for m in volume["metadata"]]
        for data in volume["data"]:
            if data["physical"] is not None:
                ranges += translate(data["physical"], data["length"], chunk_map)
    return blocks(ranges)


def translate(offset, length, chunk_map):
    """Returns where a range lies on the disk: (offset, length) ranges. An address range of btrfs has
    one for each chunk that it touches and each copy. If `chunk_map` is empty, the range itself is
    returned."""
    if not chunk_map:
        return [(offset, length)]
    found = []
    for start, size, copies in chunk_map:
        first, end = max(offset, start), min(offset + length, start + size)
        if first < end:
            found += [(copy + first - start, end - first) for copy in copies]
    return found


def parse_chunks(text):
    """Parses the output of `btrfs inspect-internal dump-tree -t chunk` into the result of
    chunks()."""
    found = []
    for part in re.split(r"^\s*item \d+ key ", text, flags=re.MULTILINE)[1:]:
        key = re.match(r"\(FIRST_CHUNK_TREE CHUNK_ITEM (\d+)\)", part)
        size = re.search(r"^\s*length (\d+)", part, flags=re.MULTILINE)
        if key and size:
            copies = [int(n) for n in re.findall(r"stripe \d+ devid \d+ offset (\d+)", part)]
            found.append((int(key[1]), int(size[1]), copies))
    return found


def chunks(device):
    """Returns the chunks of a btrfs on one device: (address, length, its positions on the device).
    Other filesystems have none, because their extents are positions on the device."""
    return parse_chunks(run("btrfs", "inspect-internal", "dump-tree", "-t", "chunk", device).stdout)


def judge(reads, own, resident=frozenset(), before=(), after=()):
    """Compares read requests, (offset, length) each, with the blocks of a pack, `own`. A request is
    covered if each of its blocks is in the pack or in `resident`, which a replay has read before.
    Blocks that were read already, here or by the requests `before`, are not counted again: the
    machine dropped them from its cache, which is not the pack's fault. Blocks of the pack that
    neither `reads` nor the requests before and after them touch are wasted. Returns a dict; a share
    is None if its whole is empty."""
    covering = own | resident
    n_reads = covered_reads = n_blocks = covered_blocks = 0
    touched = blocks(before)
    for request in reads:
        new = blocks([request]) - touched
        touched |= new
        hits = len(new & covering)
        n_reads += bool(new)
        n_blocks += len(new)
        covered_blocks += hits
        covered_reads += bool(new) and hits == len(new)
    useful = own & (touched | blocks(after))

    def share(part, whole):
        return round(part / whole, 4) if whole else None

    return {"reads": n_reads, "mb": round(n_blocks * BLOCK / 1e6, 3),
            "covered_reads": share(covered_reads, n_reads),
            "covered_bytes": share(covered_blocks, n_blocks),
            "pack_mb": round(len(own) * BLOCK / 1e6, 3),
            "waste": share(len(own) - len(useful), len(own))}


def missed(reads, own, resident=frozenset(), before=()):
    """Returns the missing blocks of each request that judge() does not count as covered, in the order
    of the requests."""
    covering, touched, found = own | resident, blocks(before), []
    for request in reads:
        new = blocks([request]) - touched
        touched |= new
        if new - covering:
            found.append(sorted(new - covering))
    return found


def wasted(reads, own, before=(), after=()):
    """Returns the blocks that judge() counts as waste."""
    return own - blocks(before) - blocks(reads) - blocks(after)


def unplanned(reads, planned):
    """Counts the requests of a measured run that touch no block of the packs, and their bytes:
    misses, and headstart's own reads."""
    missed = [r for r in reads if not blocks([r]) & planned]
    return {"reads": len(missed), "mb": round(sum(length for _, length in missed) / 1e6, 3)}
