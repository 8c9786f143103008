"""Which format a file has: by its place and first bytes, and by its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman_documents.registry import formats

_HEAD: Final = 64 * 1024
"""Bytes that are looked at. Files of Android may begin with a licence and with colours."""


@dataclass(frozen=True, slots=True)
class _Place:
    format: str
    path: re.Pattern[str]
    """Of an absolute path with `/`."""
    content: tuple[re.Pattern[bytes], ...] = ()
    """What is in the first bytes, without NUL: UTF-16 of ASCII is ASCII then."""


_QT: Final = re.compile(
    rb"\A[\xef\xbb\xbf\xff\xfe\s]*+(?:<\?[^>]*+>\s*+)?(?>(?:<!--(?>.*?-->)\s*+)*+)"
    rb"<(?:!DOCTYPE\s+TS\b|TS(?:\s+\w+\s*=|\s*>\s*(?:<|\Z)))",  # `<TS>(a: TS) => a` is code
    re.DOTALL,
)
_PLACES: Final = (
    _Place("chrome", re.compile(r"/_locales/[^/]+/messages\.json\Z")),
    _Place(
        "android",
        re.compile(r"/res/values[^/]*/[^/]+\.xml\Z"),
        (re.compile(rb"<resources[\s>]"), re.compile(rb"<(?:string|string-array|plurals)[\s>]")),
    ),
    _Place(
        "qt",
        re.compile(r"\.ts\Z"),
        (_QT,),
    ),
)


def format_of(path: Path) -> str | None:
    """Return the format of a file by its place and content, or by its name; else None.

    Of its name the longest suffix that is known decides.
    """
    if (placed := _format_by_place(path)) is not None:
        return placed
    lowered = path.name.lower()
    known = ((suffix, name) for name, suffixes in formats().items() for suffix in suffixes)
    found = [(len(suffix), name) for suffix, name in known if lowered.endswith(suffix)]
    return max(found)[1] if found else None


def _format_by_place(path: Path) -> str | None:
    """Return the format by place and content of a file; None if these show none."""
    spelled = path.absolute().as_posix()
    for each in _PLACES:
        if each.path.search(spelled) and _holds(path, each.content):
            return each.format
    return None


def _holds(path: Path, content: tuple[re.Pattern[bytes], ...]) -> bool:
    if not content:
        return True
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:  # reading it will name the reason
        return False
    head = head.replace(b"\0", b"")
    return all(each.search(head) for each in content)
