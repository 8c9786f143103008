"""A format of another package: each line is a segment, and some lines misbehave.

Its entry points are written by `install`, so that child processes find it too.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman_documents import registry
from dragoman_documents.codec import (
    DocumentError,
    Extraction,
    Options,
    Segment,
)

if TYPE_CHECKING:  # every child process imports this module, and none of them needs pytest
    import pytest


class Lines:
    """`name.lines`: a line that begins with # is markup; the first line may be a disaster."""

    name = "lines"
    suffixes = frozenset({".lines"})
    by_language = has_targets = False
    can_double = False

    def extract(self, data: bytes, options: Options) -> Extraction:
        _misbehave(data.split(b"\n", 1)[0])
        lines = data.decode().split("\n")
        segments = [
            Segment(line, f"line {number}", max_chars=0 if lines[number - 2] == "#limit" else None)
            for number, line in enumerate(lines, 1)
            if line and not line.startswith("#")
        ]
        markup = "\n".join(line for line in lines if not line or line.startswith("#"))
        return Extraction(tuple(segments), hashlib.sha256(markup.encode()).hexdigest())

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        if data.startswith(b"#splice-"):
            _misbehave(data.split(b"\n", 1)[0].replace(b"splice-", b""))
        following = iter(texts)
        lines = data.decode().split("\n")
        return "\n".join(
            line if not line or line.startswith("#") else (next(following) or line)
            for line in lines
        ).encode()


class ByLanguage(Lines):
    """`name.perlang`: one more segment in Polish, as plural forms have."""

    name = "perlang"
    suffixes = frozenset({".perlang"})
    by_language = True

    def extract(self, data: bytes, options: Options) -> Extraction:
        found = super().extract(data, options)
        more = (Segment("Extra.", "extra"),) if options.target_lang == "pl" else ()
        return Extraction(found.segments + more, found.skeleton)


def _take_too_long(*, waiting: bool) -> None:
    """Run into a limit of time, which is made shorter, so that the test is."""
    left = signal.alarm(1) if waiting else signal.setitimer(signal.ITIMER_PROF, 0.5)[0]
    if not left:
        raise RuntimeError("there is no time limit")
    while True:
        if waiting:
            time.sleep(1_000)


def _misbehave(line: bytes) -> None:
    match line:
        case b"#hang" | b"#spin":
            _take_too_long(waiting=line == b"#hang")
        case b"#kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case b"#interrupt":
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # as before the child ignores it
            os.kill(os.getpid(), signal.SIGINT)
        case b"#memory":
            bytearray(3 * 1024**3)
        case b"#raise":
            raise RuntimeError("a bug")
        case b"#corrupt":
            raise DocumentError("corrupt", "it is broken")
        case _:
            pass


def write_entry_points(folder: Path) -> None:
    """Write what an installed package has, for processes whose search path names the folder."""
    info = folder / "line_format-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: line-format\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[dragoman.codecs]\n"
        "lines = support.documents.line_format:LINES\n"
        "perlang = support.documents.line_format:BY_LANGUAGE\n"
    )


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the formats known to this process and to its children."""
    write_entry_points(folder)
    monkeypatch.syspath_prepend(folder)
    registry._others.cache_clear()
    registry.codec.cache_clear()


LINES = Lines()
BY_LANGUAGE = ByLanguage()
