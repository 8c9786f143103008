"""The entries of a PO file, with the places of their strings in the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, NoReturn

from dragoman_documents.codec import DocumentError

_STRING: Final = r'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"'
_TOKEN: Final = re.compile(
    r"[ \t\r\f\v]*+(?:"
    r"(?P<comment>\#[^\n]*+)"
    r"|(?P<keyword>msgctxt|msgid_plural|msgid|msgstr|domain)[ \t]*+"
    r"(?:\[[ \t]*+(?P<index>[0-9]{1,3})[ \t]*+\][ \t]*+)?"
    rf"(?P<strings>{_STRING}(?:\s*+{_STRING})*+)"
    r")?[ \t\r\f\v]*+(?:\n|\Z)"
)
_PART: Final = re.compile(r'"([^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+)"')
_ESCAPE: Final = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
_NAMED: Final = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
}  # fmt: skip
_SPELLED: Final = str.maketrans(
    {chr(code): f"\\{code:03o}" for code in range(32)}
    | {character: f"\\{name}" for name, character in _NAMED.items()}
    | {"\\": "\\\\", '"': '\\"'}
)
_WIDTH: Final = 76
"""Characters per line inside the quotes, as gettext's tools wrap."""
_WORD: Final = re.compile(r"\S*+[^\S\n]*+\n?")
_LINE: Final = re.compile(
    rf".{{1,{_WIDTH}}}(?:\Z|(?<=\s)(?!\s|\\n\Z))|(?=.)\S*+\s*+(?:\\n\Z)?", re.DOTALL
)
"""The words of an output line, or a longer word, of text as it is spelled."""
_PARAGRAPH: Final = re.compile(r"[^\n]*+\n|[^\n]++")
_ESCAPED_BLANK: Final = re.compile(r"[\t\r\f\v\x1c-\x1f]")
"""A blank that is none as it is spelled."""


class Field(NamedTuple):
    """A keyword with its string: `[start:end)` are the quoted parts, `line_start` the keyword."""

    value: str
    start: int
    end: int
    line_start: int
    line_end: int
    line: int


@dataclass(slots=True)
class PoEntry:
    """A message: where its keyword begins, its flag lines, and its fields."""

    start: int
    flags: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    before_previous: int | None = None
    """Start of the first line with the previous msgid."""
    msgctxt: Field | None = None
    msgid: Field | None = None
    plural: Field | None = None
    msgstr: Field | None = None
    msgstrs: dict[int, Field] = field(default_factory=dict[int, Field])

    @property
    def is_header(self) -> bool:
        """Whether it is the entry with the header."""
        return self.msgctxt is None and self.msgid is not None and not self.msgid.value


class PoToken(NamedTuple):
    """A line, or a keyword with all its lines."""

    start: int
    end: int
    line: int
    comment: str | None
    keyword: str | None
    form: str | None
    strings: tuple[int, int]


def tokens(text: str) -> Iterator[PoToken]:
    """Yield the lines of a PO file that are not blank. Raises DocumentError at one that is none."""
    place, line = 0, 1
    while place < len(text):
        if text[place] == "\n":
            place, line = place + 1, line + 1
            continue
        match = _TOKEN.match(text, place)
        if match is None:
            _refuse(line, "is neither a comment, a keyword with a string, nor a string")
        start, place = match.span()
        if match.lastindex:
            comment, keyword, form, _ = match.groups()
            yield PoToken(start, place, line, comment, keyword, form, match.span(4))
        line += text.count("\n", start, place)


def entries(text: str, found: Iterable[PoToken]) -> Iterator[PoEntry]:
    """Yield the messages in order; obsolete ones are left out. Raises DocumentError."""
    builder = _Builder(text)
    for token in found:
        done = builder.comment(token) if token.keyword is None else builder.keyword(token)
        if done is not None:
            yield done
    if (done := builder.done()) is not None:
        yield done


class _Builder:
    """Puts lines together to entries. Each method returns the entry that ends, if one does."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._entry: PoEntry | None = None
        self._line = 0
        self._flags: list[tuple[int, int]] = []
        self._previous: int | None = None

    def comment(self, token: PoToken) -> PoEntry | None:
        done = None
        if self._entry is not None and (self._entry.msgstr or self._entry.msgstrs):
            done = self.done()
        comment = token.comment or ""
        if comment.startswith("#~"):
            self._flags, self._previous = [], None
        elif comment.startswith("#,"):
            self._flags.append((token.start, token.end))
        elif comment.startswith("#|") and self._previous is None:
            self._previous = token.start
        return done

    def keyword(self, token: PoToken) -> PoEntry | None:
        if token.keyword == "domain":
            return self.done()
        done = None
        if self._begins(token.keyword):
            done = self.done()
            self._entry = PoEntry(token.start, self._flags, self._previous)
            self._flags, self._previous, self._line = [], None, token.line
        self._add(token)
        return done

    def done(self) -> PoEntry | None:
        entry, self._entry = self._entry, None
        if entry is None:
            return None
        if entry.msgid is None or not (entry.msgstr or entry.msgstrs):
            _refuse(self._line, "begins a message without msgid or without msgstr")
        if (entry.plural is None) != (not entry.msgstrs):
            _refuse(self._line, "begins a message whose msgstr does not fit its msgid_plural")
        return entry

    def _begins(self, keyword: str | None) -> bool:
        entry = self._entry
        if entry is None or keyword == "msgctxt":
            return True
        return keyword == "msgid" and entry.msgid is not None

    def _add(self, token: PoToken) -> None:
        entry, found = self._entry, _field(self._text, token)
        if entry is None:
            return
        if token.form is not None:
            if token.keyword != "msgstr" or int(token.form) in entry.msgstrs:
                _refuse(token.line, f"has an index {token.form} that does not belong there")
            entry.msgstrs[int(token.form)] = found
            return
        name = "plural" if token.keyword == "msgid_plural" else str(token.keyword)
        if getattr(entry, name) is not None:
            _refuse(token.line, f"repeats {token.keyword} within a message")
        setattr(entry, name, found)


def _field(text: str, token: PoToken) -> Field:
    start, end = token.strings
    return Field(value_of(text[start:end]), start, end, token.start, token.end, token.line)


def value_of(quoted: str) -> str:
    """Return what quoted strings mean, joined."""
    joined = quoted[1:-1] if quoted.count('"') == 2 else "".join(_PART.findall(quoted))
    return _ESCAPE.sub(_meant, joined) if "\\" in joined else joined


def _meant(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 8))
    if match[2]:
        return chr(int(match[2], 16))
    return _NAMED.get(match[3], match[3])


def escaped(text: str) -> str:
    """Return a text as it is spelled within quotes."""
    return text.translate(_SPELLED)


def quoted(text: str, newline: str = "\n") -> str:
    """Return the quoted strings of a text: one line if it fits, else wrapped as gettext does."""
    spelled = escaped(text)
    if len(spelled) <= _WIDTH and "\n" not in text.removesuffix("\n"):
        return f'"{spelled}"'
    lines = _wrapped_by_word(text) if _ESCAPED_BLANK.search(text) else _wrapped(text)
    return newline.join(['""', *(f'"{line}"' for line in lines)])


def _wrapped(text: str) -> Iterator[str]:
    """Yield the lines of a text whose blanks are blanks as they are spelled, too."""
    for line in _PARAGRAPH.findall(text):
        yield from _LINE.findall(escaped(line))


def _wrapped_by_word(text: str) -> Iterator[str]:
    line = ""
    for word in _WORD.findall(text):
        spelled = escaped(word)
        if line and len(line) + len(spelled) > _WIDTH:
            yield line
            line = ""
        line += spelled
        if word.endswith("\n"):
            yield line
            line = ""
    if line:
        yield line


def _refuse(line: int, problem: str) -> NoReturn:
    raise DocumentError("corrupt", f"line {line} {problem}; check the file with msgfmt -c")
