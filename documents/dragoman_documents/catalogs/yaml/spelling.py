"""The spelling of YAML's strings: in the style of their source, with its escapes and lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Final

import yaml

from dragoman_documents.catalogs.yaml.events import events
from dragoman_documents.catalogs.yaml.scalar import Scalar, is_string
from dragoman_documents.spelling import Spelling, escapes

_NEWLINE: Final = r"(?:\r\n|\r|\n)"
_NEWLINES: Final = re.compile(_NEWLINE)
_LINES: Final = re.compile(rf"{_NEWLINE}[ \t\r\n]*+")
"""Where a line of a block ends and the next one that is not blank begins."""
_BLANKS: Final = re.compile(r"[ \t\n]*+")
_FOLD: Final = rf"[ \t]*+{_LINES.pattern}|[ \t]{{2,}}+"
_PLAIN: Final = re.compile(_FOLD)
_SINGLE: Final = re.compile(rf"''|{_FOLD}")
_DOUBLE: Final = re.compile(
    rf"(?:\\{_NEWLINE}[ \t\r\n]*+)++|\\(?:x[0-9A-Fa-f]{{2}}|u[0-9A-Fa-f]{{4}}|U[0-9A-Fa-f]{{8}})"
    rf"|\\[^xuU\r\n]|{_FOLD}"
)
# Surely plain, in brackets too: no indicators, comment, mapping or border of a document, no blank
# at an end, nothing that is not printable. Of others the parser is asked.
_UNSURE: Final = re.compile(
    r"[\s\-?:,\[\]{}#&*!|>'\"%@`=~<.]|.*(?::(?:\s|\Z)|\s#|\s\Z|[\[\]{},]|[^ -~\u00a0-\u2027\u202a-"
    r"\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff])",
    re.DOTALL,
)
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_ESCAPED: Final = re.compile(_UNPRINTABLE.pattern + r"|[\t\n\"\\]")
_NAMED: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_INDICATOR: Final = re.compile(r"[|>][+-]?([1-9])")
_OPENING: Final = re.compile(r"[\[{]")
_BRACKETS: Final = re.compile(r".*[\[\]{}]", re.DOTALL)
"""What can be no plain text, and what can be none within brackets."""
_FIRST_RUN: Final = 0xD800
_RUNS: Final = re.compile("[\ud800-\udfff]")
"""Stand for runs of newlines; no text has halves of surrogate pairs."""
_MOST_NEWLINES: Final = "\n" * 2_000
_RUN: Final = re.compile(r"\n+")
_BLOCKS: Final = ("|", ">")


def spelled(scalar: Scalar, text: str) -> str:
    """Return the YAML of a translation, in the style of its source where that can hold it.

    Escapes and line breaks of the source that still stand are written as they were.
    """
    if not (scalar.style == '"' or _UNPRINTABLE.search(text)):
        for way in _WAYS[scalar.style]:
            found = way(scalar, text)
            if found is not None and _holds(scalar, found, text):
                return found
    return _double_quoted(scalar, text)


def _folded(scalar: Scalar, text: str) -> str | None:
    """Return a plain text with the line breaks of its source."""
    raw = scalar.raw
    if not _NEWLINES.search(raw):
        return None
    core = raw.strip()
    found = Spelling(escapes(core, _PLAIN, _meaning)).spelled(text)
    return _within(raw, found)


def _plain(scalar: Scalar, text: str) -> str | None:
    return None if "\n" in text else _within(scalar.raw, text)


def _single_quoted(scalar: Scalar, text: str) -> str | None:
    inner = scalar.raw[1:-1]
    if "'" not in inner and not _NEWLINES.search(inner) and "\n" not in text:
        return f"'{_within(inner, _single(text))}'"
    spelling = Spelling(escapes(inner, _SINGLE, _meaning), _single)
    found = spelling.spelled(_within(spelling.text, text))
    return None if "\n" in text and "\n" not in spelling.text else f"'{found}'"


def _one_line(scalar: Scalar, text: str) -> str | None:
    del scalar
    return None if "\n" in text else f"'{_single(text)}'"


def _double_quoted(scalar: Scalar, text: str) -> str:
    inner = scalar.raw[1:-1]
    if scalar.style == '"' and not _ESCAPED.search(inner) and not _NEWLINES.search(inner):
        return f'"{_within(inner, _double(text))}"'
    if scalar.style == '"':
        spelling = Spelling(escapes(inner, _DOUBLE, _meaning), _double)
        found = f'"{spelling.spelled(_within(spelling.text, text))}"'
        if _holds(scalar, found, text):
            return found
    return f'"{_double(text)}"'


def _block(scalar: Scalar, text: str) -> str:
    """Return a block with the line breaks of its source."""
    body = scalar.raw[len(scalar.head) :]
    core = body.rstrip()
    pieces = _block_pieces(core, scalar.text)
    if pieces is None or _MOST_NEWLINES in text:
        return _long_lines(scalar, text)
    by_run = ((_with_runs(meaning), raw) for meaning, raw in pieces)
    spelling = Spelling(by_run, partial(_without_runs, scalar))
    return scalar.head + spelling.spelled(_with_runs(text)) + body[len(core) :]


def _long_lines(scalar: Scalar, text: str) -> str:
    return scalar.head + _RUN.sub(lambda run: _run(scalar, len(run[0])), text)


_Way = Callable[[Scalar, str], str | None]
_WAYS: Final[dict[str, tuple[_Way, ...]]] = {
    "": (_folded, _plain),
    "'": (_single_quoted, _one_line),
    '"': (),
    "|": (_block, _long_lines),
    ">": (_block, _long_lines),
}
"""How a translation may be written, by the style of its source; the first that holds it is."""


def _within(held: str, text: str) -> str:
    """Return a text with the blanks at the ends of its source."""
    lead, _, trail = held.partition(held.strip())
    return lead + text + trail


def _block_pieces(core: str, value: str) -> list[tuple[str, str]] | None:
    """Return the lines of a block and what is between them, as they are and as they are spelled.

    None if its value is not of these lines.
    """
    pieces: list[tuple[str, str]] = []
    end = place = 0
    for match in _LINES.finditer(core):
        line = core[end : match.start()]
        blanks = _BLANKS.match(value, place + len(line))
        pieces += ((line, line), (blanks[0] if blanks else "", match[0]))
        if not value.startswith(line, place) or not blanks:
            return None
        place, end = blanks.end(), match.end()
    return [*pieces, (core[end:], core[end:])] if value[place:] == core[end:] else None


def _with_runs(text: str) -> str:
    """Return a text with a character for each run of newlines: what a block spells as one."""
    return _RUN.sub(lambda run: chr(_FIRST_RUN + len(run[0])), text)


def _without_runs(scalar: Scalar, text: str) -> str:
    """Return the lines of a block for a text with a character for each run of newlines."""
    return _RUNS.sub(lambda run: _run(scalar, ord(run[0]) - _FIRST_RUN), text)


def _run(scalar: Scalar, count: int) -> str:
    """Return what a block has for newlines; in `>` one is an empty line."""
    newline = scalar.gap.rstrip(" ")
    return newline * (count + (scalar.style == ">")) + scalar.gap[len(newline) :]


def _meaning(spelled: str) -> str:
    """Return what an escape, an end of a line or blanks mean outside of blocks."""
    if spelled == "''":
        return "'"
    breaks = len(_NEWLINES.findall(spelled))
    if spelled[0] == "\\":
        return "\n" * (breaks - spelled.count("\\")) if breaks else _escape_meaning(spelled)
    return spelled if not breaks else "\n" * (breaks - 1) or " "


@cache
def _escape_meaning(escape: str) -> str:
    return str(yaml.safe_load(f'"{escape}"'))


def _holds(scalar: Scalar, found: str, text: str) -> bool:
    """Return whether YAML reads a spelling as this text."""
    style = scalar.style
    if style == "|":
        return True
    if not style and not is_string(text):
        return False
    if not _NEWLINES.search(found) and (style or not _UNSURE.match(found)):
        return True
    if not style and (_BRACKETS if scalar.flow else _OPENING).match(found):
        return False
    symbols = scalar.raw.startswith(":")
    return _read(_around(scalar, found), style, symbols=symbols) == text


def _around(scalar: Scalar, found: str) -> str:
    """Return a document in which a spelling is where it is in its own."""
    if scalar.flow:
        return f"[{found}]"
    if scalar.style not in _BLOCKS:
        return f"k: {found}"
    columns = len(scalar.gap) - len(scalar.gap.rstrip(" "))
    indicator = _INDICATOR.match(found)
    around = columns - int(indicator[1]) if indicator else 0
    return f"{' ' * around}k: {found}" if columns and around >= 0 else f"--- {found}"


def _read(document: str, style: str, *, symbols: bool) -> str | None:
    """Return the text of the last scalar of a document; None if it has none of this style."""
    try:
        found = list(events(document, symbols=symbols))
    except (yaml.YAMLError, ValueError):
        return None
    texts = [each for each in found if isinstance(each, yaml.ScalarEvent)]
    return str(texts[-1].value).strip() if texts and (texts[-1].style or "") == style else None


def _single(text: str) -> str:
    return text.replace("'", "''")


def _double(text: str) -> str:
    return _ESCAPED.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return _NAMED.get(found[0]) or f"\\u{ord(found[0]):04x}"
