"""JSON as a tree of values with their places, for formats whose members are added or replaced."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

from dragoman_documents.catalogs.json.scanning import DEEPEST
from dragoman_documents.codec import DocumentError

_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BRACKET: Final = re.compile(rf'[^"{{}}\[\]]*+(?:{_STRING}[^"{{}}\[\]]*+)*+([{{}}\[\]])')
"""The next bracket outside of strings."""
_MEMBER: Final = re.compile(rf"[\s,]*+({_STRING})\s*+:\s*+([{{\[]|{_STRING}|[^\s,{{}}\[\]]++)")
"""A key with its value, or with the bracket that opens it."""


class Node:
    """A value at `[start:end)`. Its members are read when they are asked for.

    A catalog has a value per language, and one or two of them matter.
    """

    __slots__ = ("_document", "_members", "end", "start")

    def __init__(self, document: _Document, start: int, end: int) -> None:
        self.start: Final = start
        self.end: Final = end
        self._document: Final = document
        self._members: dict[str, JsonMember] | None = None

    @property
    def members(self) -> dict[str, JsonMember]:
        """Return the members of an object in their order; none of any other value."""
        if self._members is None:
            self._members = _members(self._document, self.start)
        return self._members

    @property
    def text(self) -> str | None:
        """Return the value of a string; None for any other value."""
        spelled = self._document.text[self.start : self.end]
        return _meaning(spelled) if spelled.startswith('"') else None

    @property
    def is_object(self) -> bool:
        """Whether the value is an object, which has room for members."""
        return self._document.text.startswith("{", self.start)

    @property
    def is_false(self) -> bool:
        """Whether the value is `false`."""
        return self._document.text.startswith("false", self.start)

    def at(self, *path: str) -> Node | None:
        """Return the value that these keys lead to, if there is one."""
        node: Node | None = self
        for key in path:
            member = None if node is None else node.members.get(key)
            node = None if member is None else member.value
        return node


class JsonMember(NamedTuple):
    """A member of an object: where its key begins with its quotes, and its value."""

    start: int
    value: Node


class _Document(NamedTuple):
    """A valid document, and where each bracket that opens is closed."""

    text: str
    ends: dict[int, int]


def tree(text: str) -> Node:
    """Return the value of a document. Raises DocumentError (`corrupt`, `bomb`).

    Of names that are there twice it is `corrupt`, because which of them counts is not defined.
    """
    try:
        json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise DocumentError("bomb", f"it is nested more than {DEEPEST} times") from None
    except ValueError as error:
        line = getattr(error, "lineno", None)
        place = f" at line {line}" if line else f": {error}"
        raise DocumentError("corrupt", f"it is not valid JSON{place}; correct it") from None
    start = len(text) - len(text.lstrip())
    return Node(_Document(text, _ends(text)), start, len(text.rstrip()))


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("an object has a key twice")


def _ends(text: str) -> dict[int, int]:
    """Return the end of each object and list of a valid document by its start."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    place = 0
    while (match := _BRACKET.match(text, place)) is not None:
        place = match.end()
        if match[1] in "{[":
            opened.append(place - 1)
            if len(opened) > DEEPEST:
                raise DocumentError("bomb", f"it is nested more than {DEEPEST} times")
        else:
            ends[opened.pop()] = place
    return ends


def _members(document: _Document, start: int) -> dict[str, JsonMember]:
    text, ends = document
    found: dict[str, JsonMember] = {}
    place = start + 1 if text[start] == "{" else len(text)
    while (match := _MEMBER.match(text, place)) is not None:
        value_start = match.start(2)
        place = ends.get(value_start) or match.end()
        value = Node(document, value_start, place)
        found[_meaning(match[1])] = JsonMember(match.start(1), value)
    return found


def _meaning(spelled: str) -> str:
    return str(json.loads(spelled)) if "\\" in spelled else spelled[1:-1]
