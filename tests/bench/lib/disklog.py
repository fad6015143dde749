"""Reads disksim's log; the head of disksim.c describes the format."""

BLOCK = 4096


def sections(path, start=0):
    """Yields (section, offset, length) for each read request after a byte offset of the log, and
    (section, None, None) for each mark. A section is the name of the last mark, or "all" before the
    first mark."""
    section = "all"
    with open(path, "rb") as log:
        log.seek(start)
        for line in log:
            if line.startswith(b"# mark "):
                section = line.split()[2].decode()
                yield section, None, None
            # The last line may be incomplete.
            elif not line.startswith(b"#") and line.endswith(b"\n"):
                fields = line.split()
                yield section, int(fields[2]), int(fields[3])


def reads(path, start=0):
    """Returns a dict: section -> its read requests, (offset, length) each."""
    found = {}
    for section, offset, length in sections(path, start):
        own = found.setdefault(section, [])
        if offset is not None:
            own.append((offset, length))
    return found


def read_again(path, start=0):
    """Returns a dict: section -> bytes that were read again after an earlier read since the last
    fresh mount (`# mark fresh`). Begins at the byte offset `start` of the log."""
    seen, again = set(), {}
    for section, offset, length in sections(path, start):
        again.setdefault(section, 0)
        if offset is None:
            if section == "fresh":
                seen.clear()
            continue
        its = range(offset // BLOCK, (offset + length + BLOCK - 1) // BLOCK)
        again[section] += BLOCK * sum(block in seen for block in its)
        seen.update(its)
    return again


def write_part(path, start, target):
    """Copies the first line of the log, which names the disk, and everything from the byte offset
    `start` on."""
    with open(path, "rb") as log, open(target, "wb") as part:
        part.write(log.readline())
        log.seek(max(start, log.tell()))
        part.write(log.read())
