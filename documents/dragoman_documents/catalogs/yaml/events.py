"""The events of YAML, with symbols in brackets such as `[ :year ]`, which libyaml refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SYMBOL: Final = re.compile(r"(?<=[\[{,: \t\r\n]):(?=[^\s,\[\]{}])")
_COLON: Final = "\ue03a"
"""Of the private use area: stands for a colon."""


def events(text: str, *, symbols: bool = True) -> Iterator[Any]:
    """Yield the events of a text. Raises YAMLError.

    YAML 1.2 lets a plain value in brackets begin with a colon. Where libyaml does not read a text
    for that reason, it is given letters in place of these colons.
    """
    readable = _readable(text) if symbols else text
    for event in yaml.parse(readable, Loader=_LOADER):
        if readable is not text and isinstance(event, yaml.ScalarEvent):
            event.value = event.value.replace(_COLON, ":")
        yield event


def _readable(text: str) -> str:
    if _COLON in text or not _SYMBOL.search(text):
        return text
    changed = _SYMBOL.sub(_COLON, text)
    return changed if not _is_read(text) and _is_read(changed) else text


def _is_read(text: str) -> bool:
    try:
        for _ in yaml.parse(text, Loader=_LOADER):
            pass
    except yaml.YAMLError:
        return False
    return True
