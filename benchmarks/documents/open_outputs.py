"""Whether other programs open what is written: LibreOffice, epubcheck and msgfmt.

    open_outputs.py PATH... [--to LANG] [--only office,epub,po] [--keep DIR]

Every document is written with `[LANG] ` before each text, as by the echo engine in `tag` mode.
LibreOffice converts source and output of office documents to PDF; `epubcheck` and `msgfmt -c` judge
source and output of books and PO files. Printed are the counts, and each output that does not open
although its source does, or in which a program finds what it does not find in the source. Needs
`soffice`, `epubcheck` and `msgfmt` (Debian: libreoffice-writer-nogui, -calc-nogui, -impress-nogui,
epubcheck, gettext). Exits with 1 if an output is worse than its source.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman_documents.codec import DocumentError, Options
from dragoman_documents.putting_back import put_back
from dragoman_documents.registry import codec, formats

OFFICE: Final = ("docx", "pptx", "xlsx", "odt", "ods", "odp")
GROUPS: Final = {"office": OFFICE, "epub": ("epub",), "po": ("po",)}
AT_ONCE: Final = 25
"""Documents per start of LibreOffice, which takes some seconds."""
FINDING: Final = re.compile(r"^(?:FATAL|ERROR|WARNING)|:\d+:|^msgfmt:|: (?:error|warning)")
"""A line in which a program finds something."""
SECONDS: Final = 60
"""Per document."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A document and its output under names of their own."""

    path: Path
    source: Path
    output: Path


def tagged(name: str, path: Path, options: Options) -> bytes | None:
    """Return the output of a document; None if it is refused."""
    each, data = codec(name), path.read_bytes()
    try:
        extraction = each.extract(data, options)
    except DocumentError:
        return None
    mark = f"[{options.target_lang}] "
    texts = [mark + segment.text for segment in extraction.segments]
    return put_back(each, data, extraction, texts, options).data


def pairs(name: str, paths: Sequence[Path], folder: Path, options: Options) -> Iterator[Pair]:
    """Write source and output of each document of a format that is read."""
    suffixes, count = tuple(formats()[name]), 0
    for root in paths:
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if not path.is_file() or not path.name.lower().endswith(suffixes):
                continue
            if (output := tagged(name, path, options)) is None:
                continue
            name_of = f"{{}}-{count:05}{path.suffix.lower()}".format
            pair = Pair(path, folder / name_of("source"), folder / name_of("output"))
            count += 1
            shutil.copyfile(path, pair.source)
            pair.output.write_bytes(output)
            yield pair


def converted(files: Sequence[Path], folder: Path) -> set[Path]:
    """Return the files that LibreOffice converts to PDF."""
    for first in range(0, len(files), AT_ONCE):
        _convert(files[first : first + AT_ONCE], folder)
    for file in files:  # one that ends LibreOffice takes the others of its start with it
        if not _pdf(file, folder).is_file():
            _convert([file], folder)
    return {file for file in files if _pdf(file, folder).is_file()}


def _pdf(file: Path, folder: Path) -> Path:
    return folder / f"{file.stem}.pdf"


def _convert(files: Sequence[Path], folder: Path) -> None:
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    argv = ["soffice", profile, "--headless", "--convert-to", "pdf", "--outdir", str(folder)]
    try:
        subprocess.run(
            [*argv, *map(str, files)],
            capture_output=True, check=False, timeout=SECONDS * len(files),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"LibreOffice did not end: {', '.join(file.name for file in files)}")


def epubcheck() -> list[str]:
    """Return the command; Debian's is an archive of Java that only some systems start."""
    path = shutil.which("epubcheck") or "epubcheck"
    return ["java", "-jar", path] if zipfile.is_zipfile(path) else [path]


def complaints(argv: Sequence[str], file: Path) -> Counter[str]:
    """Return what a program writes about a file, without places."""
    done = subprocess.run([*argv, str(file)], capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).splitlines()
    kept = (line for line in lines if FINDING.search(line))
    return Counter(
        re.sub(rf"\S*{re.escape(file.name)}\S*|\d+|\"[^\"]*\"", "", line) for line in kept
    )


def judge_office(name: str, some: Sequence[Pair], folder: Path) -> int:
    """Print how many documents of a format open; return how many only before."""
    opened = converted([file for pair in some for file in (pair.source, pair.output)], folder)
    worse = [pair for pair in some if pair.source in opened and pair.output not in opened]
    sources = sum(pair.source in opened for pair in some)
    outputs = sum(pair.output in opened for pair in some)
    print(f"{name}: {len(some)} documents, sources opened {sources}, outputs opened {outputs}")
    for pair in worse:
        print(f"  does not open: {pair.path}")
    return len(worse)


def judge(name: str, argv: Sequence[str], some: Sequence[Pair]) -> int:
    """Print what a program finds in outputs alone; return how many of these there are."""
    worse = before = 0
    for pair in some:
        old, new = complaints(argv, pair.source), complaints(argv, pair.output)
        before += bool(old)
        if more := new - old:
            worse += 1
            print(f"  {pair.path}: {dict(more.most_common(3))}")
    print(f"{name}: {len(some)} documents, {before} with findings before, {worse} with new ones")
    return worse


def main() -> None:
    """Write, open and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--to", default="de")
    parser.add_argument("--only", default="office,epub,po")
    parser.add_argument("--keep", type=Path, help="an empty folder in which all files stay")
    arguments = parser.parse_args()
    options, worse = Options(arguments.to, "en"), 0
    with tempfile.TemporaryDirectory() as temporary:
        root = arguments.keep or Path(temporary)
        for group in arguments.only.split(","):
            for name in GROUPS[group]:
                folder = root / name
                folder.mkdir(parents=True)
                some = list(pairs(name, arguments.paths, folder, options))
                if group == "office":
                    worse += judge_office(name, some, folder)
                else:
                    msgfmt = ["msgfmt", "-c", "-o", "/dev/null"]
                    program = epubcheck() if group == "epub" else msgfmt
                    worse += judge(name, program, some)
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
