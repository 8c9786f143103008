"""Translations spelled as Markdown: text that could be read as syntax is escaped, and no more."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import Opening, Single, pieces
from dragoman_documents.references import reference
from dragoman_text.spans import has_letters

_SYNTAX: Final = re.compile(
    r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?]|\Z)|&(?=#?[0-9A-Za-z]{1,40};)"
    r"|:(?=//)|\{(?=[{%])"
)
_SYNTAX_MDX: Final = re.compile(_SYNTAX.pattern + r"|[<{}]")
_LINE_START: Final = re.compile(
    r"(?P<mark>#{1,6}(?=[ \t]|\Z)|[>=:{]|!!!|\?\?\?|%%|[-+](?=[ \t\-+=]|\Z))"
    r"|(?P<number>[0-9]{1,9})(?P<dot>[.)])(?=[ \t]|\Z)"
)
_BRACE: Final = re.compile(r"((?:\\\\)*)\\?\{")
"""A brace that a backslash may escape, after pairs of backslashes that are backslashes."""
_MODULE: Final = re.compile(r"(?:import|export)(?=[ \t{*])")
_BREAKS: Final = re.compile(r"[\r\n\v\f]+")
_BLANKS: Final = " \t"
_ADDRESS: Final = re.compile(r"(?:https?|ftp)://[^<>]*\Z")
_GOES_ON: Final = re.compile(r"[.,;:!?)'*_~]*[A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]")
_DELIMITERS: Final = frozenset({"*", "**", "_", "__", "~", "~~"})
_MOST_STEPS: Final = 8
"""Delimiters of one run that are looked past for the characters around it."""


class Context(NamedTuple):
    """Where a translation is written."""

    before: str = "\n"
    """The character before it, and after it."""
    after: str = "\n"
    begins_line: bool = False
    heading: bool = False
    mdx: bool = False


@dataclass(slots=True)
class _Part:
    kind: Literal["text", "open", "close", "single"]
    raw: str
    pair: int = -1
    """Of an `open` and a `close`: where its partner is."""

    @property
    def delimits(self) -> bool:
        return self.kind in ("open", "close") and self.raw in _DELIMITERS

    @property
    def breaks(self) -> bool:
        return self.kind == "single" and self.raw.lstrip("\\ ")[:1] in ("\n", "\r")


def spelled(text: str, codes: Sequence[InlineCode], around: Context) -> str | None:
    """Return the Markdown of a translation, without newlines; None if Markdown cannot hold it.

    That is a translation without a letter outside all pairs, with an empty pair, or with a line
    break at one of its ends: it would be read as something else. Raises ValueError if tags do not
    fit.
    """
    parts = _parts(text, codes)
    if not _holds(parts):
        return None
    _choose_delimiters(parts, around)
    dollars = sum(part.raw.count("$") for part in parts)
    for index, part in enumerate(parts):
        if part.kind == "text":
            part.raw = _escaped(parts, index, around, dollars=dollars > 1)
    _separate_addresses(parts, around)
    for index, part in enumerate(parts):
        if part.delimits:
            _flank(parts, index, around)
    return "".join(part.raw for part in parts)


def escaped_lookalike(text: str) -> str:
    """Return the Markdown of a text that looks like one of our own tags."""
    return "\\" + text


def _parts(text: str, codes: Sequence[InlineCode]) -> list[_Part]:
    parts: list[_Part] = []
    opened: list[tuple[int, str]] = []
    for piece in pieces(_BREAKS.sub(" ", text).strip(_BLANKS), codes):
        if isinstance(piece, str):
            parts.append(_Part("text", piece))
        elif isinstance(piece, Single):
            parts.append(_Part("single", piece.code))
        elif isinstance(piece, Opening):
            opened.append((len(parts), piece.closing))
            parts.append(_Part("open", piece.opening))
        else:
            index, closing = opened.pop()
            parts[index].pair = len(parts)
            parts.append(_Part("close", closing, index))
    return parts


def _holds(parts: Sequence[_Part]) -> bool:
    """Return whether Markdown reads these parts as they are."""
    if not parts or parts[0].breaks or parts[-1].breaks:
        return False
    for index, part in enumerate(parts[1:]):
        before = parts[index]
        if part.breaks and before.breaks:
            return False
        if before.kind == "open" and part.kind == "close" and not before.raw.startswith("<"):
            return False
    return _has_outer_letter(parts)


def _has_outer_letter(parts: Sequence[_Part]) -> bool:
    index = 0
    while index < len(parts):
        if parts[index].kind == "open":
            index = parts[index].pair
        elif parts[index].kind == "text" and has_letters(parts[index].raw):
            return True
        index += 1
    return False


def _choose_delimiters(parts: list[_Part], around: Context) -> None:
    """Write `*` for `_` inside words, and `_` beside the end of another pair with `*`."""
    for index, part in enumerate(parts):
        if part.kind != "open" or part.raw not in ("*", "**", "_", "__"):
            continue
        before = parts[index - 1].raw[-1:] if index else around.before
        beyond = part.pair + 1
        after = parts[beyond].raw[:1] if beyond < len(parts) else around.after
        raw = part.raw
        if before.isalnum() or after.isalnum():
            raw = "*" * len(raw)
        elif index and parts[index - 1].kind == "close" and before == raw[0]:
            raw = ("_" if before == "*" else "*") * len(raw)
        part.raw = parts[part.pair].raw = raw


def _escaped(parts: Sequence[_Part], index: int, around: Context, *, dollars: bool) -> str:
    text = parts[index].raw
    before = parts[index - 1] if index else None
    after = parts[index + 1] if index + 1 < len(parts) else None
    escaped = (_SYNTAX_MDX if around.mdx else _SYNTAX).sub(lambda match: "\\" + match[0], text)
    if dollars:
        escaped = escaped.replace("$", "\\$")
    if around.heading:
        escaped = _escaped_heading(escaped, last=after is None)
    if after is not None and text.endswith("!") and after.raw.startswith("["):
        escaped = escaped[:-1] + "\\!"
    if before is not None and before.raw.endswith("]") and text[0] in ":(":
        escaped = escaped if escaped.startswith("\\") else "\\" + escaped
    if (before is None and around.begins_line) or (before is not None and before.breaks):
        escaped = _escaped_line(escaped, mdx=around.mdx)
    if after is not None and after.breaks:
        escaped = _with_hard_end(escaped)
    return escaped


def _escaped_heading(escaped: str, *, last: bool) -> str:
    """Escape what ends a heading: attributes in braces, which no backslash prevents, and `#`."""
    escaped = _BRACE.sub(r"\1&#123;", escaped)
    return escaped[:-1] + "\\#" if last and escaped.endswith("#") else escaped


def _escaped_line(escaped: str, *, mdx: bool) -> str:
    """Escape what begins a block, and blanks that Markdown drops at the start of a line."""
    rest = escaped.lstrip(_BLANKS)
    if len(rest) < len(escaped):
        return reference(escaped[: len(escaped) - len(rest)]) + rest
    if mdx and _MODULE.match(escaped):
        return reference(escaped[0]) + escaped[1:]
    found = _LINE_START.match(escaped)
    if found is None:
        return escaped
    place = found.start() if found["mark"] else found.start("dot")
    return escaped[:place] + "\\" + escaped[place:]


def _with_hard_end(escaped: str) -> str:
    rest = escaped.rstrip(_BLANKS)
    return rest + reference(escaped[len(rest) :])


def _separate_addresses(parts: Sequence[_Part], around: Context) -> None:
    """Put a bare address into `<>` if what follows would be read as a part of it."""
    for index, part in enumerate(parts):
        if part.kind != "single" or not _ADDRESS.match(part.raw):
            continue
        after = parts[index + 1].raw if index + 1 < len(parts) else around.after
        if _GOES_ON.match(after):
            part.raw = f"<{part.raw}>"


def _flank(parts: Sequence[_Part], index: int, around: Context) -> None:
    """Spell the characters around a delimiter so that it opens or closes where it stands.

    CommonMark lets `**` open before punctuation only after a blank or punctuation, and the other
    way round for closing: `です**「重要」**です` has no emphasis. A character reference begins and
    ends with punctuation.
    """
    step = 1 if parts[index].kind == "open" else -1
    inner, outer = _neighbour(parts, index, step), _neighbour(parts, index, -step)
    character = _edge(parts, inner, step, around)
    if character.isspace():
        _refer(parts, inner, step)
        character = "&"
    if is_punctuation(character) and _is_word(_edge(parts, outer, -step, around)):
        _refer(parts, outer, -step)


def _neighbour(parts: Sequence[_Part], index: int, step: int) -> int:
    """Return the index of the next part that is not a delimiter of the same run."""
    character = parts[index].raw[0]
    for _ in range(_MOST_STEPS):
        index += step
        inside = 0 <= index < len(parts)
        if not inside or not (parts[index].delimits and parts[index].raw[0] == character):
            break
    return index


def _edge(parts: Sequence[_Part], index: int, step: int, around: Context) -> str:
    """Return the character of a part that is next to a delimiter `step` before it."""
    if index < 0:
        return around.before
    if index >= len(parts):
        return around.after
    return parts[index].raw[0 if step > 0 else -1]


def _refer(parts: Sequence[_Part], index: int, step: int) -> None:
    """Write the character next to a delimiter as a reference."""
    if not 0 <= index < len(parts) or parts[index].kind != "text":
        return
    raw = parts[index].raw
    parts[index].raw = reference(raw[0]) + raw[1:] if step > 0 else raw[:-1] + reference(raw[-1])


def is_punctuation(character: str) -> bool:
    """Return whether CommonMark takes a character for punctuation."""
    return unicodedata.category(character)[0] in "PS"


def _is_word(character: str) -> bool:
    return not character.isspace() and not is_punctuation(character)
