"""Strings of TOML at their places in the text, and the spelling of their translations."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dragoman_documents.codec import DocumentError
from dragoman_documents.spelling import Spelling

_DEEPEST: Final = 128
"""Levels, and parts of a key: the path of a value takes time and memory in their number."""
_SPACE: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*+")
_STRING: Final = re.compile(
    r'"""(?:[^"\\]|\\.|""?(?!"))*+"{3,5}'
    r"|'''(?:[^']|''?(?!'))*+'{3,5}"
    r'|"(?:[^"\\\r\n]|\\.)*+"'
    r"|'[^'\r\n]*+'",
    re.DOTALL,
)
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_OTHER: Final = re.compile(r"[^\s,\]}#\"'\[{][^,\]}#\r\n]*+")
_ESCAPE: Final = re.compile(
    r"\\[ \t]*\r?\n[ \t\r\n]*|\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)|\r?\n", re.DOTALL
)
_BREAK: Final = re.compile(r"\r?\n")
_BREAKS: Final = re.compile(r"(?<![ \t])[ \t]*[\r\n]+[ \t]*")
_UNSAFE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\"\\]")
_NAMED: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


class TomlString(NamedTuple):
    """A string value at `[start:end)` of a text, with its quotes."""

    start: int
    end: int
    text: str
    """Decoded, without the blanks at its ends."""
    path: tuple[str, ...]
    raw: str
    """As it is written, with its quotes."""


def strings(text: str) -> list[TomlString]:
    """Return the string values in their order. Raises DocumentError (`corrupt`, `bomb`)."""
    scanner = _Scanner(text)
    scanner.document()
    try:
        data = tomllib.loads(text)
        return [
            TomlString(start, end, str(value).strip(), path, text[start:end])
            for start, end, path in scanner.found
            if isinstance(value := _at(data, path), str) and value.strip()
        ]
    except (tomllib.TOMLDecodeError, LookupError, ValueError, TypeError, RecursionError):
        raise DocumentError("corrupt", "it is not valid TOML; correct it") from None


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


def spelled(string: TomlString, text: str) -> str:
    """Return the TOML of a translation, in the quotes of its source where these can hold it."""
    if "\n" not in string.text:
        text = _BREAKS.sub(" ", text)
    value = _decoded(string.raw)
    lead, _, trail = value.partition(value.strip())
    for some in (_kept(string.raw, lead + text + trail), f'"{_escaped(text)}"'):
        if _decoded(some).strip() == text.strip():
            return some
    return string.raw


def _kept(raw: str, text: str) -> str:
    """Return a value with the quotes, escapes and line breaks of its source."""
    width = 3 if raw.startswith(('"""', "'''")) else 1
    quotes, inner = raw[:width], raw[width:-width]
    first = _BREAK.match(inner) if width > 1 else None  # that behind the quotes is no text
    start = first.end() if first else 0
    if raw.startswith("'"):
        spelling = Spelling(_literal(inner[start:]))
    else:
        spelling = Spelling(_basic(inner[start:]), _escaped if width == 1 else _escaped_lines)
    return f"{quotes}{inner[:start]}{spelling.keeping(text)(text)}{quotes}"


def _literal(inner: str) -> Iterator[tuple[str, str]]:
    end = 0
    for match in _BREAK.finditer(inner):
        yield inner[end : match.start()], inner[end : match.start()]
        yield "\n", match[0]
        end = match.end()
    yield inner[end:], inner[end:]


def _basic(inner: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a string with escapes, for Spelling."""
    end = 0
    for match in _ESCAPE.finditer(inner):
        yield inner[end : match.start()], inner[end : match.start()]
        is_break = not match[0].startswith("\\")
        continues = not is_break and "\n" in match[0]
        yield "\n" if is_break else "" if continues else _decoded(f'"{match[0]}"'), match[0]
        end = match.end()
    yield inner[end:], inner[end:]


def _escaped(text: str) -> str:
    return _UNSAFE.sub(_escape, text).replace("\n", "\\n")


def _escaped_lines(text: str) -> str:
    return _UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return _NAMED.get(found[0]) or f"\\u{ord(found[0]):04x}"


def _decoded(raw: str) -> str:
    """Return the value of a string; nothing if it is none."""
    try:
        return str(tomllib.loads(f"v = {raw}")["v"])
    except (tomllib.TOMLDecodeError, ValueError):
        return ""


@dataclass(slots=True)
class _Scanner:
    """Finds the strings of a text that is TOML; of another one it raises DocumentError."""

    text: str
    found: list[tuple[int, int, tuple[str, ...]]] = field(default_factory=list)
    _place: int = 0
    _table: tuple[str, ...] = ()
    _arrays: dict[tuple[str, ...], int] = field(default_factory=dict)
    """Arrays of tables, and the index of their last one."""

    def document(self) -> None:
        """Scan the whole text."""
        while self._skip() < len(self.text):
            if self._takes("["):
                self._header()
            else:
                keys = self._keys()
                self._expect("=")
                self._value((*self._table, *keys), 0)

    def _header(self) -> None:
        is_array = self._takes("[")
        keys = self._keys()
        self._expect("]")
        if is_array:
            self._expect("]")
            path = (*self._resolved(keys[:-1]), keys[-1])
            self._arrays[path] = self._arrays.get(path, -1) + 1
        self._table = self._resolved(keys)

    def _resolved(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Return the path of a table: in an array of tables its last one."""
        path: tuple[str, ...] = ()
        for key in keys:
            path = (*path, key)
            if path in self._arrays:
                path = (*path, str(self._arrays[path]))
        return path

    def _keys(self) -> tuple[str, ...]:
        """Read a key, which may have several parts with dots between them."""
        keys: list[str] = []
        while True:
            self._skip()
            quoted = _STRING.match(self.text, self._place)
            bare = _BARE.match(self.text, self._place)
            found = quoted or bare
            if found is None or len(keys) == _DEEPEST:
                raise self._invalid()
            self._place = found.end()
            keys.append(_decoded(found[0]) if quoted else found[0])
            self._skip()
            if not self._takes("."):
                return tuple(keys)

    def _value(self, path: tuple[str, ...], depth: int) -> None:
        self._skip()
        if depth > _DEEPEST:
            raise DocumentError("bomb", f"it is nested more than {_DEEPEST} times")
        if self._takes("["):
            self._items(path, depth)
        elif self._takes("{"):
            self._members(path, depth)
        elif (string := _STRING.match(self.text, self._place)) is not None:
            self.found.append((string.start(), string.end(), path))
            self._place = string.end()
        elif (other := _OTHER.match(self.text, self._place)) is not None:
            self._place = other.end()
        else:
            raise self._invalid()

    def _items(self, path: tuple[str, ...], depth: int) -> None:
        count = 0
        while self._skip() < len(self.text) and not self._takes("]"):
            self._value((*path, str(count)), depth + 1)
            self._skip()
            self._takes(",")
            count += 1

    def _members(self, path: tuple[str, ...], depth: int) -> None:
        while self._skip() < len(self.text) and not self._takes("}"):
            keys = self._keys()
            self._expect("=")
            self._value((*path, *keys), depth + 1)
            self._skip()
            self._takes(",")

    def _skip(self) -> int:
        """Go behind blanks and comments; return the place."""
        found = _SPACE.match(self.text, self._place)
        self._place = found.end() if found else self._place
        return self._place

    def _takes(self, character: str) -> bool:
        if not self.text.startswith(character, self._place):
            return False
        self._place += 1
        return True

    def _expect(self, character: str) -> None:
        self._skip()
        if not self._takes(character):
            raise self._invalid()

    def _invalid(self) -> DocumentError:
        line = self.text.count("\n", 0, self._place) + 1
        return DocumentError("corrupt", f"it is not valid TOML at line {line}; correct it")
