"""Identity, read-back and speed of a codec over files of its format.

    identity.py FORMAT PATH... [--to LANG] [--sample MB] [--seed NUMBER]

Per file: without translations the same bytes; with `[LANG] ` before each text, as the echo engine
gives in `tag` mode, everything reads back and, with the tags taken out again, is the source. Prints
the counts, the names of files that fail, and MB per second of CPU time of extracting, of splicing
and of reading back. `--sample` takes files at random until they have that many MB, the same ones in
every run with the same seed and the same folders. The size of an archive is that of its XML and
HTML, unpacked.
"""

from __future__ import annotations

import argparse
import gc
import io
import random
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dragoman_documents.codec import Codec, DocumentError, Extraction, Options
from dragoman_documents.read_back import SkeletonDiffers, differing
from dragoman_documents.registry import codec, formats

try:
    from dragoman_documents.plurals.rules import settled
except ModuleNotFoundError:  # without Babel: no plurals
    settled = None  # type: ignore[assignment]


MARKUP = (".xml", ".xhtml", ".html", ".htm", ".opf", ".ncx", ".rels")


@dataclass
class Totals:
    """What has been seen."""

    counts: Counter[str] = field(default_factory=Counter[str])
    extracting: float = 0.0
    splicing: float = 0.0
    reading_back: float = 0.0
    failed: list[str] = field(default_factory=list[str])

    def fail(self, what: str, path: Path, detail: object = "") -> None:
        """Count and name a file."""
        self.counts[what] += 1
        self.failed.append(f"{what}: {path} {detail}")


def size_of(data: bytes) -> int:
    """Return the bytes of a document; of an archive those of its XML and HTML, unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile:
        return len(data)
    return sum(each.file_size for each in members if each.filename.lower().endswith(MARKUP))


def check(each: Codec, path: Path, options: Options, totals: Totals) -> None:
    """Check one file."""
    data = path.read_bytes()
    start = time.process_time()
    try:
        extraction = each.extract(data, options)
    except DocumentError as error:
        totals.fail(f"refused ({error.reason})", path, error.detail)
        return
    finally:
        totals.extracting += time.process_time() - start
        totals.counts["bytes"] += size_of(data)
        totals.counts["files"] += 1
    totals.counts["segments"] += len(extraction.segments)
    if each.splice(data, extraction, [None] * len(extraction.segments), options) != data:
        totals.fail("not identical", path)
    check_tagged(each, path, data, extraction, options, totals)


def check_tagged(  # noqa: PLR0917
    each: Codec, path: Path, data: bytes, extraction: Extraction, options: Options, totals: Totals
) -> None:
    """Check a file in `tag` mode, then with the tags taken out again."""
    mark = f"[{options.target_lang}] "
    texts: list[str | None] = [mark + segment.text for segment in extraction.segments]
    if settled is not None:
        texts, general = settled(extraction.segments, texts)
        totals.counts["general plural forms"] += len(general)
    start = time.process_time()
    output = each.splice(data, extraction, texts, options)
    totals.splicing += time.process_time() - start
    start = time.process_time()
    try:
        wrong = differing(each, output, extraction, texts, options)
    except (SkeletonDiffers, DocumentError) as error:
        totals.fail("skeleton differs", path, error)
        return
    finally:
        totals.reading_back += time.process_time() - start
    totals.counts["segments not read back"] += len(wrong)
    if wrong:
        totals.fail("not read back", path, [extraction.segments[i].place for i in wrong[:5]])
    if not each.has_targets:
        untag(each, path, data, output, mark, options, totals)


def untag(  # noqa: PLR0917
    each: Codec, path: Path, data: bytes, output: bytes, mark: str, options: Options, totals: Totals
) -> None:
    """Check that the source comes back when each text loses its mark."""
    again = each.extract(output, options)
    texts: list[str | None] = [segment.text.removeprefix(mark) for segment in again.segments]
    if each.splice(output, again, texts, options) != data:
        totals.counts["spelled otherwise after untagging"] += 1


def found(paths: list[Path], suffixes: frozenset[str]) -> Iterator[Path]:
    """Yield the files of these suffixes, sorted; every file for a format without suffixes."""
    for path in paths:
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (
            each
            for each in inside
            if each.is_file()
            and (path == each or not suffixes or each.name.lower().endswith(tuple(suffixes)))
        )


def sampled(paths: list[Path], size: float, seed: int) -> list[Path]:
    """Return files at random until they have `size` bytes, each of up to a tenth of it."""
    small = [path for path in paths if path.stat().st_size <= size / 10]
    random.Random(seed).shuffle(small)
    chosen: list[Path] = []
    total = 0
    while small and total < size:
        chosen.append(small.pop())
        total += chosen[-1].stat().st_size
    return chosen


def main() -> None:
    """Check the files and print the totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format")
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--to", default="de")
    parser.add_argument("--sample", type=float, metavar="MB", help="files at random, in MB")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    gc.set_threshold(100_000, 50, 50)  # as the child process that reads documents
    totals, options = Totals(), Options(arguments.to, "en")
    paths = list(found(arguments.paths, formats()[arguments.format]))
    if arguments.sample is not None:
        paths = sampled(paths, arguments.sample * 1e6, arguments.seed)
    for path in paths:
        check(codec(arguments.format), path, options, totals)
    size = totals.counts.pop("bytes", 0) / 1e6
    print(*totals.failed[:40], sep="\n")
    print(f"{size:.1f} MB", *(f"{count} {what}" for what, count in totals.counts.items()), sep=", ")
    parts = (
        ("extract", totals.extracting),
        ("splice", totals.splicing),
        ("read back", totals.reading_back),
    )
    print(", ".join(f"{what} {size / max(took, 1e-9):.2f} MB/s" for what, took in parts))


if __name__ == "__main__":
    main()
