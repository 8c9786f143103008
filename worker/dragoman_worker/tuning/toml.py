"""How is a table of settings written as TOML? Comments beside the values that need a reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL: Final = "\x7f"
"""The one character that JSON leaves as it is and TOML wants escaped."""


def document(tree: Mapping[str, Any], comments: Mapping[str, str] | None = None) -> str:
    """A TOML document; `comments` are by dotted name and stand above their value or table.

    Values are strings, booleans, numbers, lists and mappings; a None is left out.
    """
    return "\n".join(_table(tree, (), comments or {})).strip() + "\n"


def _table(
    tree: Mapping[str, Any], path: tuple[str, ...], comments: Mapping[str, str]
) -> Iterator[str]:
    groups = {name: value for name, value in tree.items() if isinstance(value, Mapping)}
    leaves = {n: v for n, v in tree.items() if n not in groups and v is not None}
    if path and (leaves or not groups):
        yield ""
        yield from _comment(comments, path)
        yield f"[{'.'.join(map(_key, path))}]"
    for name, value in leaves.items():
        yield from _comment(comments, (*path, name))
        yield f"{_key(name)} = {_value(value)}"
    for name, group in groups.items():
        yield from _table(group, (*path, name), comments)


def _comment(comments: Mapping[str, str], path: tuple[str, ...]) -> Iterator[str]:
    for line in comments.get(".".join(path), "").splitlines():
        yield f"# {line}".rstrip()


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        parts = (f"{_key(name)} = {_value(one)}" for name, one in value.items() if one is not None)
        return f"{{ {', '.join(parts)} }}"
    if isinstance(value, Sequence):
        return f"[{', '.join(_value(one) for one in value)}]"
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return f"{value:.1f}"
    return json.dumps(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace(_CONTROL, "\\u007f")
