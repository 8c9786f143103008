"""The law of the documents over checkouts: an answer that changes nothing changes no byte.

    law.py DIR

Each folder in DIR is a project. Every segment of every file is answered by its own text and put
back by the code that a run uses, with the source's language as the target and the page's site
recognized. Formats with one language must give the source's bytes; of HTML and EPUB the language
and direction may differ; of formats with a place for the translation what was added is taken out
first. Prints a line per project and format: files, segments, files that differ, and texts that
readers see and that stayed, by kind. Exits with 1 if a file differs.
"""

from __future__ import annotations

import argparse
import gc
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from dragoman_documents import registry
from dragoman_documents.codec import LEFT, DocumentError, Options
from dragoman_documents.recognition import format_of
from dragoman_documents.site_recognition import Sites
from support.documents.additions import without_additions

LANGUAGE = re.compile(
    rb"""\s(?:xml:)?(?:lang|dir)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)|<dc:language[^>]*>[^<]*"""
)
"""What pages and books get: their language and direction."""


def files(folder: Path) -> Iterator[Path]:
    """Yield the files of a project, without those of version control."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
            yield path


def check(path: Path, sites: Sites, counts: Counter[tuple[str, str]]) -> bool:
    """Check one file and count it; return whether the law holds."""
    site = sites.of(path)
    name = format_of(path, site)
    if name is None:
        return True
    options = Options("en", "en", site=site.name if site else None)
    codec, data = registry.codec(name), path.read_bytes()
    try:
        found = codec.extract(data, options)
    except DocumentError as error:
        counts[name, f"refused: {error.reason}"] += 1
        return True
    own: list[str | None] = [each.text for each in found.segments]
    counts[name, "files"] += 1
    counts[name, "segments"] += len(own)
    for remark in found.remarks:
        if remark.kind in LEFT:
            counts[name, f"left: {remark.kind}"] += remark.count
    output = without_additions(name, data, codec.splice(data, found, own, options))
    same = _without_language(name, data) == _without_language(name, output)
    counts[name, "differ"] += not same
    return same


def _without_language(name: str, data: bytes) -> list[bytes]:
    """Return a document, or the members of a book, without what tells its language."""
    if name in ("html", "xhtml"):
        return [LANGUAGE.sub(b"", data)]
    if name != "epub":
        return [data]
    with zipfile.ZipFile(BytesIO(data)) as book:
        return [LANGUAGE.sub(b"", book.read(each)) for each in book.infolist()]


def main() -> None:
    """Check the projects and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    gc.set_threshold(100_000, 50, 50)  # as the child process that reads documents
    broken: list[Path] = []
    for project in sorted(each for each in parser.parse_args().folder.iterdir() if each.is_dir()):
        counts: Counter[tuple[str, str]] = Counter()
        sites = Sites()
        broken += [path for path in files(project) if not check(path, sites, counts)]
        for name in sorted({name for name, _ in counts}):
            told = {what: count for (each, what), count in counts.items() if each == name}
            line = (f"{what} {count}" for what, count in told.items())
            print(project.name, name, *line, sep=", ")
    print(*broken, sep="\n")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
