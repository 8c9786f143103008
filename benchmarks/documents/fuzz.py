"""Random documents against a codec: mutations of real files, or pages of a Markdown dialect.

    fuzz.py FORMAT PATH... [--seconds 300] [--seed 0] [--keep DIR]
    fuzz.py DIALECT [--seconds 300] [--seed 0] [--keep DIR]

Dialects are those of `dialects.py`: gfm, mkdocs, mdx, hugo, jekyll, vitepress, myst, pandoc,
obsidian. Their pages must come back byte for byte when each text is answered by itself.
A codec may refuse a document with DocumentError and nothing else, must give back the bytes it has
read when nothing is translated, and needs time in proportion to the size: one that is slow in each
of three timings is reported.
Members of archives are mutated unpacked. `--keep` writes the document of each finding into a
folder. Exits with 1 if anything was found.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import NoReturn

from dialects import DIALECTS, document

from dragoman_documents import registry
from dragoman_documents.codec import Codec, DocumentError, Extraction, Options
from dragoman_documents.read_back import SkeletonDiffers, differing, usable

SLOWEST = 1_000_000
"""Bytes per CPU second; a fifth of the goal. Files below 100,000 bytes are not judged."""
SEGMENT_S = 20e-6
"""CPU seconds that a segment may take besides: a page of `- a` has one for each four bytes."""
RECOGNISED = 2
"""How many times as long a text may take whose encoding is to be recognised."""
TIMINGS = 3
"""How often a suspect is timed: one measurement of a busy machine says little."""
LARGEST = 500_000
"""Bytes of a file to mutate: small files give more mutations per second."""
OPTIONS = Options("de", "en")
FOUND = "FOUND"
"""How the outcome of a finding starts."""


def main() -> None:
    """Mutate files until the time is up, and print what was found."""
    arguments = _arguments()
    rng = random.Random(arguments.seed)
    counts: Counter[str] = Counter()
    end = time.process_time() + arguments.seconds
    dialect = DIALECTS.get(arguments.format)
    if dialect is not None and not arguments.paths:
        options = replace(OPTIONS, site=dialect.site)
        while time.process_time() < end:
            data = document(dialect, rng)
            outcome = checked(registry.codec(dialect.format), data, Path("page"), options)
            counts[outcome] += 1
            if arguments.keep and outcome.startswith(FOUND):
                _keep(data, arguments.keep, f"{arguments.seed}-{sum(counts.values())}.md")
        _finish(counts)
    codec = registry.codec(arguments.format)
    files = [
        path for path in _files(arguments.paths, codec.suffixes) if path.stat().st_size < LARGEST
    ]
    if not files:
        sys.exit(f"no file of {arguments.format} below {LARGEST:,} bytes is there")
    while time.process_time() < end:
        path = rng.choice(files)
        data = mutated(path.read_bytes(), rng)
        outcome = checked(codec, data, path)
        counts[outcome] += 1
        if arguments.keep and outcome.startswith(FOUND):
            _keep(data, arguments.keep, f"{arguments.seed}-{sum(counts.values())}-{path.name}")
    _finish(counts)


def _finish(counts: Counter[str]) -> NoReturn:
    """Print what was found, and exit."""
    print(dict(counts))
    sys.exit(any(name.startswith(FOUND) for name in counts))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("format")
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, default=300, help="CPU seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write findings into this folder")
    return parser.parse_args()


def _files(paths: list[Path], suffixes: frozenset[str]) -> Iterator[Path]:
    """Yield the files of these suffixes, sorted; every file for a format without suffixes."""
    for path in paths:
        for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
            named = not suffixes or each.name.lower().endswith(tuple(suffixes))
            if each.is_file() and (path == each or named):
                yield each


def checked(codec: Codec, data: bytes, path: Path, options: Options = OPTIONS) -> str:
    """Return what happened with one document; print the details of what should not happen."""
    try:
        extraction, seconds = _timed(codec, data, options)
        if seconds > (allowed := _allowed(data, extraction)):
            seconds = min(_timed(codec, data, options)[1] for _ in range(TIMINGS))
            if seconds > allowed:
                return _found("slow", path, f"{len(data)} bytes in {seconds:.2f} s")
        return _spliced(codec, data, extraction, path, options)
    except DocumentError as error:
        return error.reason
    except SkeletonDiffers as error:
        return _found("skeleton differs", path, str(error))
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  any other is looked for; the panic of a parser is no Exception
        return _found("exception", path, traceback.format_exc())


def _timed(codec: Codec, data: bytes, options: Options) -> tuple[Extraction, float]:
    """Return what is found in a document, and the CPU seconds that it took."""
    began = time.process_time()
    extraction = codec.extract(data, options)
    return extraction, time.process_time() - began


def _allowed(data: bytes, extraction: Extraction) -> float:
    """Return the CPU seconds that reading a document may take."""
    size = _size(data)
    if size <= 100_000:
        return float("inf")
    share = 1 if extraction.encoding.startswith("utf") else RECOGNISED
    return share * size / SLOWEST + len(extraction.segments) * SEGMENT_S


def _size(data: bytes) -> int:
    """Return the bytes of a document, of an archive those of its members."""
    if not zipfile.is_zipfile(BytesIO(data)):
        return len(data)
    with zipfile.ZipFile(BytesIO(data)) as file:
        return sum(each.file_size for each in file.infolist())


def _spliced(
    codec: Codec, data: bytes, extraction: Extraction, path: Path, options: Options
) -> str:
    segments = extraction.segments
    if codec.splice(data, extraction, [None] * len(segments), options) != data:
        return _found("not identical", path, "")
    own: list[str | None] = [each.text for each in segments]
    if path.name == "page" and codec.splice(data, extraction, own, options) != data:
        return _found("not itself again", path, repr(data))
    texts = usable([f"[de] {each.text}" for each in segments], segments)
    output = codec.splice(data, extraction, texts, options)
    wrong = differing(codec, output, extraction, texts, options)
    return "read, some segments kept" if wrong else "read"


def _found(what: str, path: Path, detail: str) -> str:
    print(f"{what}: {path}\n{detail}", file=sys.stderr)
    return f"{FOUND} {what}"


def _keep(data: bytes, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return a document with one to four mutations, in an archive mostly of its members."""
    if zipfile.is_zipfile(BytesIO(data)) and rng.random() < 0.9:
        return _with_mutated_member(data, rng)
    for _ in range(rng.randint(1, 4)):
        data = _once(data, rng)
    return data


def _with_mutated_member(data: bytes, rng: random.Random) -> bytes:
    with zipfile.ZipFile(BytesIO(data)) as file:
        members = {each.filename: file.read(each) for each in file.infolist()}
    texts = [name for name in members if name.endswith((".xml", ".rels", ".xhtml", ".opf"))]
    for _ in range(rng.randint(1, 4)):
        name = rng.choice(texts or list(members))
        members[name] = _once(members[name], rng)
    output = BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as writing:
        for name, content in members.items():
            writing.writestr(name, content)
    return output.getvalue()


def _once(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((0, 1, 2, 8, 64, 4_096)))
    piece = data[start:end]
    kind = rng.randrange(6)
    if kind == 0:
        piece = b""
    elif kind == 1:
        piece = bytes(rng.randrange(256) for _ in piece) or b"\0"
    elif kind == 2:
        piece *= rng.choice((2, 3, 500))
    elif kind == 3:
        other = rng.randrange(len(data) + 1)
        piece = data[other : other + rng.choice((1, 16, 256))]
    elif kind == 4:
        piece += rng.choice((b"<", b">", b"&", b'"', b"<g1>", b"\r", b"\xef\xbb\xbf", b"</", b"{"))
    else:
        tags = (b"<a>", b"</a>", b"<!--", b"]]>", "\u2028\u202e\u200b".encode(), b" " * 300)
        piece = rng.choice(tags)
    return data[:start] + piece + data[end:]


if __name__ == "__main__":
    main()
