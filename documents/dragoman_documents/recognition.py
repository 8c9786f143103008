"""Formats by the place and the first bytes of a file, where its suffix does not show them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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


def format_by_place(path: Path) -> str | None:
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
