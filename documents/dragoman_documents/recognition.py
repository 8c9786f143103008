"""Which format a file has: by its place and first bytes, and by its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman_documents.registry import formats
from dragoman_documents.site_recognition import Recognized

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


SITED: Final = frozenset({"markdown", "mdx", "ipynb"})
"""Formats that are read and written by site: `Options.site`."""
_FENCE: Final = re.compile(rb"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)]) +)*(`{3,}|~{3,})([^\n]*)")
_IMPORT: Final = re.compile(rb"import\s+[\w$*{](?:[^;\n'\"]*\s)?from\s*(['\"])[^'\"\n]+\1\s*+;?\Z")
_NOT_MDX: Final = (b"<!--", b"<script", b"<style")
"""A line that begins so is CommonMark's: MDX has no comments of HTML, and Vue's pages scripts."""


def format_of(path: Path, site: Recognized | None = None) -> str | None:
    """Return the format of a file by its place and content, or by its name; else None.

    Of its name the longest suffix that is known decides. `.md` is MDX if its site says so, or
    without a site if it imports components.
    """
    if (placed := _format_by_place(path)) is not None:
        return placed
    lowered = path.name.lower()
    known = ((suffix, name) for name, suffixes in formats().items() for suffix in suffixes)
    found = [(len(suffix), name) for suffix, name in known if lowered.endswith(suffix)]
    name = max(found)[1] if found else None
    if name == "markdown" and lowered.endswith(".md"):
        is_mdx = _imports_components(path) if site is None else site.mdx
        return "mdx" if is_mdx else name
    return name


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
    head = _head(path).replace(b"\0", b"")
    return all(each.search(head) for each in content)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError:  # reading it will name the reason
        return b""


def _imports_components(path: Path) -> bool:
    """Return whether a line outside code is an `import .. from` of MDX: after a blank line."""
    fence, imports, before = b"", False, b""
    for line in _head(path).splitlines():
        marker = _FENCE.match(line)
        if fence:
            if marker and marker[1].startswith(fence) and not marker[2].strip():
                fence = b""
        elif marker:
            fence = marker[1]
        elif line.startswith(_NOT_MDX):
            return False
        elif _IMPORT.match(line.rstrip()) and _may_precede(before):
            imports = True
        before = line
    return imports


def _may_precede(line: bytes) -> bool:
    """Return whether an import can follow a line: a blank one, front matter, or another one."""
    return not line.strip() or line.startswith((b"---", b"import ", b"export "))
