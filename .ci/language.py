"""Check of the project's language: no banned word or phrase in any tracked text file.

Prints `FILE:LINE: "found": use REPLACEMENT` for each use and exits with 1 if there is one. The list
holds words of an old dictionary for which Kafka, Redis, vLLM or asyncio have a common term.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
SUFFIXES: Final = {".py", ".md", ".toml", ".yaml", ".lua", ".sh", ".service"}

EXEMPT: Final = (
    ".ci/language.py",
    "tests/unit/docs/test_pages.py",  # words that the check must find
    "tests/data/",  # texts to be translated, and frozen bytes
    "demo/dragoman_demo/sample",
    "demo/model/README.md",  # shows translations
    "demo/training/",  # the words of the corpus
)
"""Paths, or beginnings of paths, that are not checked."""

BANNED: Final = {
    r"told|tells?|telling": '"report", "log", "return" or "show"',
    r"in hand": '"in flight"',
    r"lanes?": '"priority class"',
    r"twins?": '"duplicate"',
    r"(?<!high )(?<!high-)watermarks?": '"commit offset"',
    r"nurser(?:y|ies)|keepers?|tethers?": '"child process", "restart policy" or "parent link"',
    r"stumbl(?:es?|ed|ing)": '"transient error"',
    r"whoever|whosoever": "the name of the reader or the component",
    r"of its(?=[.,;:)])": "the noun itself",
    r"not so many|so many(?! )": '"at most" or "up to"',
    r"(?:is|are|was|were|be) away": '"unavailable"',
    r"(?:outstanding|a|the|its|each|next|first) takes?(?=[.,;:)]| is| was| of| as| names?)": (
        '"claim"'
    ),
    r"surroundings": '"environment"',
    r"solitude": '"quarantine"',
    r"bur(?:y|ied|ies)": "the event itself",
    r"readings": '"stats"',
    r"tongues?": '"language"',
    r"stretch(?:es)? of time": '"interval"',
    r"(?:jobs|records|items|tokens|commits|requests|bytes|messages|times|texts|CPU|cores?)"
    r" an? (?:second|minute|hour|job|item|line|record|worker|GPU|partition|replica|run|topic)": (
        '"per"'
    ),
    r"an? (?:job|item|line|record|text|object) a line": '"one per line"',
}
"""Pattern of whole words, any case -> what to write instead."""

_PATTERN: Final = re.compile(
    "|".join(rf"(?P<p{n}>\b(?:{pattern})(?!\w))" for n, pattern in enumerate(BANNED)),
    re.IGNORECASE,
)
_INSTEAD: Final = tuple(BANNED.values())


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line number, words found and replacement of each banned use, in order."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in _PATTERN.finditer(line):
            instead = _INSTEAD[int(str(found.lastgroup)[1:])]
            yield number, found.group(), instead


def checked_files() -> list[Path]:
    """Return the tracked files that the rules hold for."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [
        ROOT / name
        for name in listed.stdout.split("\0")
        if Path(name).suffix in SUFFIXES and not name.startswith(EXEMPT)
    ]


def main() -> int:
    """Print every finding; return the exit status."""
    status = 0
    for path in checked_files():
        if not path.exists():  # deleted, and not yet committed
            continue
        for number, found, instead in findings(path.read_text(encoding="utf-8")):
            print(f'{path.relative_to(ROOT)}:{number}: "{found}": use {instead}')
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
