"""The constructs in a piece of Markdown, found in its bytes: a check without a parser.

What the codec reads and what it writes go through one parser, which sees no syntax that it does not
know. This module shares nothing with it: it looks for brackets with a target, templates,
attributes, tags, marks of footnotes and addresses in the raw text, before and after.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_TARGET: Final = (
    rb"\((?:<[^<>\r\n]*>|(?:\\.|[^\s()\\]|\((?:\\.|[^\s()\\])*\))*+)"
    rb"(?=\s*(?:\"(?:\\.|[^\"\\])*+\"|'(?:\\.|[^'\\])*+'|\([^()]*\))?\s*\))"
)
"""The target of a link, if a `)` ends it; its title may be translated."""
_ADDRESS: Final = rb"//(?:[A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]*[A-Za-z0-9\-/#@$&(+=%])?"
_CONSTRUCT: Final = re.compile(
    rb"\\[!-/:-@\[-`{-~]|&#?[0-9A-Za-z]{1,31};"  # text, whatever they stand for
    rb"|\](" + _TARGET + rb"|\(|\{[^{}\s=]*+)"
    rb"|\[(\[[^\[\]\r\n|]++)[^\[\]\r\n]*+\]\](?![(\[])"
    rb"|\[(-?@[^\[\]]*)\](?![(\[])"
    rb"|\[(\^[^\]\s]+)\]"
    rb"|\^(\[)"
    rb"|\{\{[<%]?-?\s*+(/?[\w./\-]*+)[^{}]*+\}\}"
    rb"|\{%-?\s*+([\w./\-]*+)[^{}]*%\}"
    rb"|\{[ ]?((?:[#.:][\w.:\-]*+|[\w\-\x80-\xff]++=))[^{}\r\n]*+\}"
    rb"|:(?:(?<=http:)|(?<=https:)|(?<=ftp:))(" + _ADDRESS + rb")"
    rb"|<(!--)[^<>]*-->"
    rb"|<(/?(?!(?:https?|ftp):)[A-Za-z][\w.:\-]*+)[^<>]*+>"
    rb"|\n[ \t>]*(:::|(?:!!!|\?\?\?)\+?[ ]?[\w\-\x80-\xff]|===[!+]*[ ]+\"|///[ ]"
    rb"|-+8<|<<<|```(?![^\r\n]*`)|~~~|%[ ]|\([\w.:+\-]+\)=)"
)
"""Each branch begins with a character of its own: the search looks for those alone. The one group
of a branch is what a translation must not change."""
_EXPRESSION: Final = -1
_LINE_OF_OPTIONS: Final = -2
_REFERENCE: Final = -3
_OPTION: Final = re.compile(rb"\n[ \t>]*:([\w\-]+):[ ]")
"""A line of options or fields; a line alone may begin with an emoji."""
_SPELLED: Final = re.compile(rb"\\[!-/:-@\[-`{-~]|&#?[0-9A-Za-z]{1,31};")
_LABELED: Final = re.compile(rb"\]\[([^\[\]]+)\]|\[([^\[\]]*)\]\[\]")
_SHORT: Final = re.compile(rb"(?<!\])\[([^\[\]^@][^\[\]]*)\](?![(\[])")
_QUOTED_LINE: Final = re.compile(rb"\n[ \t>]*")
"""A line break in a label, in a quotation with the mark of that."""
_WORDS: Final = bytes(set(range(256)) - set(b"\\&[]{}^:<\r\n"))
"""What no construct begins with, but for a line: those that begin with one."""
DEFINED: Final = re.compile(rb"\n[ \t>]*(?:(?:[-*+]|[0-9]+[.)])[ \t]+)*\[([^\[\]\n]+)\]:")


Construct = tuple[int, bytes]
"""Its kind, and what no translation changes in it: its target, its name."""


def labels(document: bytes) -> frozenset[str]:
    """Return the labels that a document defines, as they are compared."""
    found = DEFINED.findall(b"\n" + document) if b"]:" in document else ()
    return frozenset(_normalized(each) for each in found)


def constructs(raw: bytes, defined: Collection[str], *, mdx: bool) -> list[Construct]:
    """Return the constructs in an order of their own.

    A link by reference is one, whether its label is written or is its text.
    """
    if raw[:1].isalnum() and not raw.translate(None, _WORDS):
        return []
    text = b"\n" + (raw.replace(b"\r", b"\n") if b"\r" in raw else raw)
    found: list[Construct] = []
    matches = [match for match in _CONSTRUCT.finditer(text) if match.lastindex]
    if matches:
        found = sorted((match.lastindex or 0, match[match.lastindex or 0]) for match in matches)
    if mdx:
        found += [(_EXPRESSION, b"")] * (text.count(b"{") - text.count(b"\\{"))
    if text.rfind(b"\n") and len(options := _OPTION.findall(text)) > 1:
        found += sorted((_LINE_OF_OPTIONS, name) for name in options)
    if b"][" in text or (defined and b"]" in text):
        found += sorted((_REFERENCE, label.encode()) for label in _references(text, defined))
    return found


def _references(text: bytes, defined: Collection[str]) -> list[str]:
    """Return the labels of links by reference."""
    bare = _SPELLED.sub(b"\0", text) if b"\\" in text or b"&" in text else text
    found = [_normalized(full or by_itself) for full, by_itself in _LABELED.findall(bare)]
    if defined:
        short = map(_normalized, _SHORT.findall(bare))
        found += (label for label in short if label in defined)
    return found


def _normalized(label: bytes) -> str:
    bare = _QUOTED_LINE.sub(b" ", label) if b"\n" in label else label
    return " ".join(bare.decode("utf-8", "replace").split()).casefold()
