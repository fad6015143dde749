# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of docs/results: tables in Markdown, and the blocks of a document that show them.

A block of a document shows a whole table of a file:

    <!-- output: predictors-regimes.txt -->
    | hits, 20 % filled | in-order | …
    …
    <!-- end of output -->

The first line of the block, the header, names the table. No two tables of a file have the same header."""

import re

BLOCK = re.compile(r"(<!-- output: ([\w.-]+) -->\n+)(\|.*?\n)(?:\|.*\n)*(\n*<!-- end of output -->)")


def table(header, rows):
    """Returns a table. `header`: the names of the columns, `rows`: lists of cells."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def share(value, digits=3):
    return "-" if value is None else f"{value:.{digits}f}"


def tables_of(text):
    """Returns {header: table} of a file."""
    found = {}
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        header = block.splitlines(keepends=True)[0]
        if header in found:
            raise ValueError(f"two tables have the header {header.strip()}")
        found[header] = block
    return found


def refresh(document, folder):
    """Replaces each table in the blocks of the document by the present one of its file. Returns the headers of the
    tables that their files do not have."""
    missing = []

    def present(m):
        begin, name, header, end = m.groups()
        path = folder / name
        tables = tables_of(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if header not in tables:
            missing.append(f"{name}: {header.strip()}")
            return m.group(0)
        return begin + tables[header] + end

    text = document.read_text(encoding="utf-8")
    document.write_text(BLOCK.sub(present, text), encoding="utf-8")
    return missing
