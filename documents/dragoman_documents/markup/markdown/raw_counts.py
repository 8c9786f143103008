"""How many constructs a piece of Markdown has, counted in its characters: a check without a parser.

What the codec reads and what it writes go through one parser, which sees no syntax that it does not
know. This module shares nothing with it: it counts brackets with a target, templates, attributes,
tags, marks of footnotes and addresses in the raw text of a unit, before and after.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container
from typing import Final

_SPELLED: Final = re.compile(r"\\[!-/:-@\[-`{-~]|&#?[0-9A-Za-z]{1,31};")
"""Escapes and references: text, whatever they stand for."""
_KINDS: Final = re.compile(
    r"(?P<link>\]\()"
    r"|(?P<wiki>\[\[[^\[\]\r\n]+\]\](?![(\[]))"
    r"|(?P<span>\]\{)"
    r"|(?P<citation>\[-?@[^\[\]]*\](?![(\[]))"
    r"|(?P<note>\^\[)"
    r"|(?P<shortcode>\{\{(?:<[^{}]*>|%[^{}]*%)\}\})"
    r"|(?P<template>\{\{[^{}]*\}\}|\{%[^{}]*%\})"
    r"|(?P<attributes>\{[ ]?(?:[#.:]|[\w\-]+=)[^{}\r\n]*\})"
    r"|(?P<footnote>\[\^[^\]\s]+\])"
    r"|(?P<address>(?:https?|ftp)://)"
    r"|(?P<comment><!--[^<>]*-->)"
    r"|(?P<tag></?(?!(?:https?|ftp):)[A-Za-z][^<>]*>)"
    r"|(?P<line>(?:^|(?<=[\r\n]))[ \t>]*(?::::|(?:!!!|\?\?\?)\+?[ ]?[\w\-]|===[!+]*[ ]+\"|///[ ]"
    r"|-+8<|<<<|```(?![^\r\n]*`)|~~~|%[ ]"
    r"|\([\w.:+\-]+\)=))"
)
_MDX: Final = re.compile(r"(?P<expression>\{)")
_OPTION: Final = re.compile(r"(?m)^[ \t>]*:[\w\-]+:[ ]")
"""A line of options or fields; a line alone may begin with an emoji."""
_LABELLED: Final = re.compile(r"\]\[[^\[\]]*\]")
_SHORT: Final = re.compile(r"(?<!\])\[([^\[\]^@][^\[\]]*)\](?![(\[{:])")
DEFINED: Final = re.compile(r"(?m)^[ \t>]*(?:(?:[-*+]|[0-9]+[.)])[ \t]+)*\[([^\[\]\n]+)\]:")


def labels(document: str) -> frozenset[str]:
    """Return the labels that a document defines, as they are compared."""
    found = DEFINED.findall(document) if "]:" in document else ()
    return frozenset(_normalized(each) for each in found)


def raw_counts(raw: str, defined: Container[str], *, mdx: bool) -> Counter[str]:
    """Return the number of constructs of each kind.

    A link by reference counts once, whether its label is written or is its text.
    """
    text = _SPELLED.sub("\0", raw) if "\\" in raw or "&" in raw else raw
    counts = Counter(match.lastgroup or "" for match in _KINDS.finditer(text))
    if mdx:
        counts.update(match.lastgroup or "" for match in _MDX.finditer(text))
    if len(options := _OPTION.findall(text)) > 1:
        counts["option"] = len(options)
    references = len(_LABELLED.findall(text))
    references += sum(_normalized(each) in defined for each in _SHORT.findall(text))
    if references:
        counts["reference"] = references
    return counts


def _normalized(label: str) -> str:
    return " ".join(label.split()).casefold()
