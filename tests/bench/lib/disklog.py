"""Reading disksim's log (its format stands at the head of disksim.c)."""

BLOCK = 4096


def read_again(path, start=0):
    """section -> bytes that were read in it although they had been read before since the filesystem
    was last mounted afresh (`# mark fresh`). Begins at a byte offset of the log."""
    seen, again, section = set(), {}, "all"
    with open(path) as log:
        log.seek(start)
        for line in log:
            if line.startswith("# mark "):
                section = line.split()[2]
                if section == "fresh":
                    seen.clear()
                again.setdefault(section, 0)
            # The last line may be half written.
            elif not line.startswith("#") and line.endswith("\n"):
                fields = line.split()
                offset, length = int(fields[2]), int(fields[3])
                blocks = range(offset // BLOCK, (offset + length + BLOCK - 1) // BLOCK)
                again[section] = again.get(section, 0) + BLOCK * sum(b in seen for b in blocks)
                seen.update(blocks)
    return again
