"""The law of the documents over folders: an answer that changes nothing changes no byte.

    law.py DIR... [--format FORMAT]... [--tags] [--sample MB] [--seed NUMBER] [--refused NUMBER]

Each folder in a DIR is a project. Every segment of every file is answered by its own text and put
back by the code that a run uses, with the source's language as the target and the page's site
recognized. Formats with one language must give the source's bytes; of HTML and EPUB the language
and direction may differ; of formats with a place for the translation what was added is taken out
first. With `--tags` each text also gets `[de] ` in front, as the echo engine gives in `tag` mode,
and must read back.

Prints a line per project and format, a line per format with MB per second of CPU time (the size of
an archive is that of its XML and HTML, unpacked), and each file that differs with its first place,
fails with an exception, is refused, or does not read back. Exits with 1 if a file differs, fails,
changes its markup, or more than `--refused` files are refused. `--sample` takes files at random
until they have that many MB, the same ones in every run with the same seed and folders.
"""

from __future__ import annotations

import argparse
import gc
import random
import re
import sys
import time
import traceback
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from dragoman_documents import registry
from dragoman_documents.codec import LEFT, Codec, DocumentError, Extraction, Options
from dragoman_documents.plurals.rules import settled
from dragoman_documents.read_back import SkeletonDiffers, differing, usable
from dragoman_documents.recognition import format_of
from dragoman_documents.site_recognition import Sites
from support.documents.additions import without_additions

LANGUAGE: Final = re.compile(
    rb"""\s(?:xml:)?(?:lang|dir)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)|<dc:language[^>]*>[^<]*"""
)
"""What pages and books get: their language and direction."""
MARKUP: Final = (".xml", ".xhtml", ".html", ".htm", ".opf", ".ncx", ".rels")
STEPS: Final = ("read", "write", "read back")
BROKEN: Final = ("differs", "exception", "skeleton differs")
EXCERPT: Final = 60


@dataclass
class Found:
    """What has been counted, and the files that are not as they should be."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By project, format and what."""
    seconds: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    """Of CPU time, by format and step."""
    sizes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Bytes by format and step."""
    named: list[tuple[str, Path, str]] = field(default_factory=list)

    def name(self, what: str, path: Path, detail: str) -> None:
        """Remember a file, with the reason."""
        self.named.append((what, path, detail))

    def number(self, *kinds: str) -> int:
        """Return how many files were named so."""
        return sum(what in kinds for what, _, _ in self.named)


@dataclass
class Check:
    """The check of one file."""

    path: Path
    project: str
    format: str
    found: Found

    def count(self, what: str, number: int = 1) -> None:
        """Add to what is printed of the project and format."""
        self.found.counts[self.project, self.format, what] += number

    def run(self, options: Options, *, tags: bool) -> None:
        """Check the file; an exception is counted, and the others are checked after it."""
        try:
            self._check(registry.codec(self.format), self.path.read_bytes(), options, tags=tags)
        except DocumentError as error:
            self.count("refused")
            self.found.name("refused", self.path, f"{error.reason}: {error.detail}")
        except Exception as error:  # noqa: BLE001  one file is no reason not to see the others
            self.count("exceptions")
            place = traceback.extract_tb(error.__traceback__)[-1]
            detail = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
            self.found.name("exception", self.path, detail)

    def _check(self, codec: Codec, data: bytes, options: Options, *, tags: bool) -> None:
        started = time.process_time()
        extraction = codec.extract(data, options)
        self._took("read", started, data)
        own: list[str | None] = [each.text for each in extraction.segments]
        self.count("files")
        self.count("segments", len(own))
        for remark in extraction.remarks:
            if remark.kind in LEFT:
                self.count(f"left: {remark.kind}", remark.count)
        untouched = codec.splice(data, extraction, [None] * len(own), options)
        output = codec.splice(data, extraction, own, options)
        if not (self._same([data], [untouched]) and self._same(*self._compared(data, output))):
            self.count("differ")
        if tags:
            self._tagged(codec, data, extraction, replace(options, target_lang="de"))

    def _compared(self, data: bytes, output: bytes) -> tuple[list[bytes], list[bytes]]:
        """Return what must be the same of a source and its output."""
        output = without_additions(self.format, data, output)
        return parts(self.format, data), parts(self.format, output)

    def _same(self, before: list[bytes], after: list[bytes]) -> bool:
        """Return whether all parts are the same; name the first place where they are not."""
        differing_parts = ((a, b) for a, b in zip(before, after, strict=True) if a != b)
        first = next(differing_parts, None)
        if first is not None:
            self.found.name("differs", self.path, first_difference(*first))
        return first is None

    def _tagged(self, codec: Codec, data: bytes, found: Extraction, options: Options) -> None:
        texts = usable([f"[de] {each.text}" for each in found.segments], found.segments)
        if any(each.plural is not None for each in found.segments):
            texts, _ = settled(found.segments, texts)
        started = time.process_time()
        output = codec.splice(data, found, texts, options)
        self._took("write", started, data)
        started = time.process_time()
        try:
            wrong = differing(codec, output, found, texts, options)
        except SkeletonDiffers as error:
            self.count("skeleton differs")
            self.found.name("skeleton differs", self.path, str(error))
            return
        finally:
            self._took("read back", started, data)
        self.count("segments not read back", len(wrong))
        if wrong:
            places = ", ".join(found.segments[index].place for index in wrong[:5])
            self.found.name("not read back", self.path, places)

    def _took(self, step: str, started: float, data: bytes) -> None:
        self.found.seconds[self.format, step] += time.process_time() - started
        self.found.sizes[self.format, step] += size_of(data)


def size_of(data: bytes) -> int:
    """Return the bytes of a document; of an archive those of its XML and HTML, unpacked."""
    if not zipfile.is_zipfile(BytesIO(data)):
        return len(data)
    with zipfile.ZipFile(BytesIO(data)) as archive:
        members = archive.infolist()
    return sum(each.file_size for each in members if each.filename.lower().endswith(MARKUP))


def parts(name: str, data: bytes) -> list[bytes]:
    """Return a document, or the members of a book, without what tells its language."""
    if name in ("html", "xhtml"):
        return [LANGUAGE.sub(b"", data)]
    if name != "epub":
        return [data]
    with zipfile.ZipFile(BytesIO(data)) as book:
        return [LANGUAGE.sub(b"", book.read(each)) for each in book.infolist()]


def first_difference(before: bytes, after: bytes) -> str:
    """Return the line where two texts begin to differ, and both from there on."""
    pairs = enumerate(zip(before, after, strict=False))
    place = next((at for at, (a, b) in pairs if a != b), min(len(before), len(after)))
    line = before.count(b"\n", 0, place) + 1
    first = max(before.rfind(b"\n", 0, place) + 1, place - EXCERPT // 2)
    excerpts = (repr(text[first : place + EXCERPT // 2]) for text in (before, after))
    return f"line {line}, byte {place}: {' became '.join(excerpts)}"


def files(folder: Path) -> Iterator[Path]:
    """Yield the files of a project, without those of version control."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
            yield path


def sampled(
    paths: list[tuple[str, Path, str]], size: float, seed: int
) -> list[tuple[str, Path, str]]:
    """Return files at random until they have `size` bytes, each of up to a tenth of it."""
    small = [each for each in paths if each[1].stat().st_size <= size / 10]
    random.Random(seed).shuffle(small)
    chosen: list[tuple[str, Path, str]] = []
    total = 0
    while small and total < size:
        chosen.append(small.pop())
        total += chosen[-1][1].stat().st_size
    return chosen


def arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--format", action="append", metavar="FORMAT", help="only this one")
    parser.add_argument("--tags", action="store_true", help="marked texts, too, must read back")
    parser.add_argument("--sample", type=float, metavar="MB", help="files at random, in MB")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--refused", type=int, default=0, help="files that may be refused")
    return parser.parse_args()


def main() -> None:
    """Check the projects, print the tables, and name what is not as it should be."""
    given, found, sites = arguments(), Found(), Sites()
    gc.set_threshold(100_000, 50, 50)  # as the child process that reads documents
    projects = sorted(
        each for folder in given.folders for each in folder.iterdir() if each.is_dir()
    )
    paths = [
        (project.name, path, name)
        for project in projects
        for path in files(project)
        if (name := format_of(path, sites.of(path))) and (not given.format or name in given.format)
    ]
    if given.sample is not None:
        paths = sampled(paths, given.sample * 1e6, given.seed)
    for project, path, name in paths:
        site = sites.of(path)
        options = Options("en", "en", site=site.name if site else None)
        Check(path, project, name, found).run(options, tags=given.tags)
    report(found)
    refused = found.number("refused")
    sys.exit(bool(found.number(*BROKEN)) or refused > given.refused)


def report(found: Found) -> None:
    """Print the counts, the speeds and the files."""
    for project, name in sorted({(project, name) for project, name, _ in found.counts}):
        told = {what: n for (*both, what), n in found.counts.items() if both == [project, name]}
        print(project, name, *(f"{what} {number}" for what, number in told.items()), sep=", ")
    for name in sorted({name for name, _ in found.seconds}):
        took = {step: found.seconds[name, step] for step in STEPS if (name, step) in found.seconds}
        speeds = {step: found.sizes[name, step] / 1e6 / max(s, 1e-9) for step, s in took.items()}
        print(name, *(f"{step} {speed:.2f} MB/s" for step, speed in speeds.items()), sep=", ")
    for what, path, detail in sorted(found.named):
        print(f"{what}: {path}: {detail}")


if __name__ == "__main__":
    main()
