"""JSON as a tree of values with their places, for formats whose members are added or replaced."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman_producer.documents.codecs.codec import DocumentError
from dragoman_producer.documents.codecs.json_scanning import DEEPEST

_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]:,]|[^\s{}\[\]:,"]++')


@dataclass(slots=True)
class Node:
    """A value at `[start:end)`: its members if it is an object, its value if it is a string."""

    start: int
    end: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    text: str | None = None
    is_false: bool = False

    def at(self, *path: str) -> Node | None:
        """Return the value that these keys lead to, if there is one."""
        node: Node | None = self
        for key in path:
            member = None if node is None else node.members.get(key)
            node = None if member is None else member.value
        return node


@dataclass(slots=True)
class Member:
    """A member of an object: where its key begins with its quotes, and its value."""

    start: int
    value: Node


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
    return _built(text)


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("an object has a key twice")


def _built(text: str) -> Node:
    """Return the tree of a text that is valid."""
    building = _Building()
    for token in _TOKEN.finditer(text):
        building.add(token)
    return building.root


@dataclass(slots=True)
class _Building:
    """The tree while it is read, token by token."""

    root: Node = field(default_factory=lambda: Node(0))
    _around: list[Node] = field(default_factory=list)
    _key: tuple[str, int] | None = None
    _last: Node | None = None
    """The last value, which is a key if a colon follows."""

    def add(self, token: re.Match[str]) -> None:
        mark = token[0]
        if mark == ":" and self._last is not None:
            self._key = (self._last.text or "", self._last.start)
        elif mark in "}]":
            self._settle()
            self._around.pop().end = token.end()
        elif mark == ",":
            self._settle()
        else:
            self._last = Node(token.start(), token.end())
            self._last.text = _meaning(mark) if mark[0] == '"' else None
            self._last.is_false = mark == "false"
            if mark in "{[":
                self._open()

    def _open(self) -> None:
        node = self._last
        self._settle()
        if node is not None:
            self._around.append(node)
        if len(self._around) > DEEPEST:
            raise DocumentError("bomb", f"it is nested more than {DEEPEST} times")

    def _settle(self) -> None:
        """Put the last value into the object around it."""
        if self._last is not None and not self._around:
            self.root = self._last
        elif self._last is not None and self._key is not None:
            self._around[-1].members[self._key[0]] = Member(self._key[1], self._last)
        self._last = self._key = None


def _meaning(spelled: str) -> str:
    return str(json.loads(spelled)) if "\\" in spelled else spelled[1:-1]
