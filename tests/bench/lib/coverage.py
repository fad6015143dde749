"""Computes the share of a login that a pack covers, and the share of the pack that is wasted."""

BLOCK = 4096


def _pages(ranges):
    """Returns the numbers of the pages of (offset, end) ranges."""
    return {page for start, end in ranges for page in range(start // BLOCK, -(-end // BLOCK))}


def _packed(pack):
    files, metadata = {}, set()
    for volume in pack["volumes"]:
        for d in volume["data"]:
            path = volume["files"][d["file"]]["path"]
            files.setdefault(path, set()).update(_pages([(d["offset"], d["offset"] + d["length"])]))
        # A trace of a filesystem with items does not say which blocks of metadata were read.
        metadata |= _pages((m["offset"], m["offset"] + m["length"]) for m in volume["metadata"]
                           if m.get("item") is None)
    return files, metadata


def compare(pack, trace):
    """`pack` and `trace` are as `headstart show --json` prints them. Returns a dict: the shares of
    the trace's data and metadata that are in the pack, the shares of the pack that the trace did
    not use (waste), the sizes, and the files with the most missed and wasted bytes."""
    files, metadata = _packed(pack)
    # The trace of a login also contains the resident files of programs that have run since the boot.
    # A file that no process opened during the login does not count as used.
    used = {f["path"]: _pages(f["resident"]) for f in trace["files"]
            if f.get("resident") and f["n_accesses"] > 0}
    used_metadata = set()
    for volume in trace["volumes"]:
        used_metadata |= _pages(volume["metadata"])
    data_used = sum(len(pages) for pages in used.values())
    data_hit = sum(len(pages & files.get(path, set())) for path, pages in used.items())
    data_packed = sum(len(pages) for pages in files.values())
    packed = data_packed + len(metadata)
    metadata_hit = len(used_metadata & metadata)
    missed = sorted(((len(pages - files.get(path, set())), path) for path, pages in used.items()),
                    reverse=True)[:10]
    wasted = sorted(((len(pages - used.get(path, set())), path) for path, pages in files.items()),
                    reverse=True)[:10]
    return {"data": data_hit / data_used, "metadata": metadata_hit / max(1, len(used_metadata)),
            "waste": (packed - data_hit - metadata_hit) / packed,
            "data_waste": (data_packed - data_hit) / data_packed,
            "metadata_waste": (len(metadata) - metadata_hit) / max(1, len(metadata)),
            "used_mb": data_used * BLOCK / 1e6, "packed_mb": packed * BLOCK / 1e6,
            "metadata_blocks": len(used_metadata), "packed_metadata_blocks": len(metadata),
            "missed": [[path, n * BLOCK] for n, path in missed if n],
            "wasted": [[path, n * BLOCK] for n, path in wasted if n]}
