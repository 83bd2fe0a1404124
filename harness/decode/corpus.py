#!/usr/bin/env python3
"""Makes the training text from Debian's r-cran-janeaustenr: the six novels of Jane Austen.

    apt-get download r-cran-janeaustenr
    dpkg -x r-cran-janeaustenr_*.deb austen
    python3 corpus.py austen/usr/lib/R/site-library/janeaustenr/data/Rdata.rdb austen.txt

The package keeps each novel as an R vector of lines. R itself is not needed: the file is a sequence
of zlib streams, each after its length, and each stream is one serialised character vector. The
result has one paragraph per line, in plain ASCII, without headings and without the underscores that
mark emphasis. The script needs only Python's standard library.
"""

import re
import struct
import sys
import unicodedata
import zlib

CHARSXP, STRSXP = 9, 16
PLAIN = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "--",
         "\u00a3": "L", "\u00e6": "ae", "_": "", "\t": " "}
HEADING = re.compile(r"(\[|\*|(chapter|volume|letter|finis|the end|by jane austen|\(18\d\d\)).{0,40}$)", re.I)


def vectors(data):
    """Yields the list of strings in each record of an R lazy-load database; skips other objects."""
    while data:
        stream = zlib.decompressobj()
        record = stream.decompress(data[4:])
        data = stream.unused_data
        lines = strings(record)
        if lines is not None:
            yield lines


def strings(record):
    """The strings of one serialised character vector (XDR, version 2 or 3), or None."""
    if record[:2] != b"X\n":
        return None
    version, = struct.unpack_from(">i", record, 2)
    at = 14
    if version == 3:
        at += 4 + struct.unpack_from(">i", record, at)[0]
    flags, count = struct.unpack_from(">ii", record, at)
    if flags & 0xff != STRSXP:
        return None
    at += 8
    lines = []
    for _ in range(count):
        flags, length = struct.unpack_from(">ii", record, at)
        if flags & 0xff != CHARSXP:
            raise SystemExit("corpus.py: this is no character vector")
        at += 8
        lines.append(record[at:at + max(length, 0)].decode("utf-8", "replace"))
        at += max(length, 0)
    return lines


def plain(text):
    """ASCII only: quotes and dashes by table, letters without their accents, the rest is dropped."""
    text = "".join(PLAIN.get(c, c) for c in text)
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r" +", " ", text).strip()


def paragraphs(lines):
    """Joins the lines of each paragraph; leaves headings and other lines in capitals out."""
    block = []
    for line in lines + [""]:
        line = plain(line)
        if line:
            block.append(line)
            continue
        text = " ".join(block)
        block = []
        if text and not HEADING.match(text) and re.search(r"[a-z]", text) and len(text) > 3:
            yield text


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    with open(sys.argv[1], "rb") as f:
        novels = list(vectors(f.read()))
    if not novels:
        raise SystemExit("corpus.py: no text in " + sys.argv[1])
    with open(sys.argv[2], "w", encoding="ascii") as f:
        for lines in sorted(novels, key=lambda lines: lines[0]):
            f.write("".join(p + "\n" for p in paragraphs(lines)))


if __name__ == "__main__":
    main()
