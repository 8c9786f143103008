"""Removal of what surrounds the translation in a model's output, only where that is certain."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import Final

from dragoman_text.gates.openings import FINAL, OPENING, THOUGHTS, WRAPPER
from dragoman_worker.prompts import names

_THOUGHT: Final = re.compile(r"\A\s*(?:<think>)?.*?</think>\s*", re.DOTALL)
# Gemma 4 names the channel of its thoughts, which is empty where thinking is off.
_CHANNEL: Final = re.compile(r"\A\s*(?:<\|channel>)?thought\s*\n\s*(?:<channel\|>)?\s*")
_FENCE: Final = re.compile(
    r"\A\s*+```[\w-]*+[ \t]*+\n(.*?)\n?+(?<![ \t])[ \t]*+```\s*+\Z", re.DOTALL
)
_ELEMENT: Final = re.compile(r"([<\[])([A-Za-z_][\w:-]{0,30})[>\]](.*)[<\[]/\2[>\]]", re.DOTALL)
_LABEL: Final = re.compile(
    r"\A\s*(?:\*\*|__)?([^\W\d_][^\d_:：*\n]{0,29}[^\s\d_:：*])[ \u00a0\u202f]?"
    r"(?:[:：](?:\*\*|__)?|(?:\*\*|__)[ \u00a0\u202f]?[:：])\s*"
)
_COLON: Final = re.compile("[:：]")
_QUOTES: Final = {'"': '"', "“": "”", "„": "“", "'": "'"}
_QUOTED_OR_DASHED: Final = re.compile("[\"“”„‟«»‹›「」『』《》〈〉'‘’`—–―*_-]")

_LABELS: Final = (
    "ar bg bn ca cs da de el en es et fa fi fil fr he hi hr hu id it ja km ko lt lv ms my nl no "
    "pl pt ro ru sk sl sv ta th tr uk ur vi zh zh-Hans zh-Hant pt-BR pt-PT nb"
)


def cleaned(text: str, source: str | None) -> str:
    """Remove think tags, wrappers, introductions, and quotes that the source does not have."""
    text = _without_thought(text, source)
    steps: tuple[Callable[[str, str | None], str], ...] = (
        _without_wrappers,
        _without_opening,
        _without_wrappers,
        _without_quotes,
    )
    for step in steps:
        # A step that would leave nothing is undone. An output of thoughts alone stays empty.
        text = step(text, source).strip() or text
    return text.strip()


def _without_thought(text: str, source: str | None) -> str:
    if "</think>" in text and (source is None or "think>" not in source):
        text = _THOUGHT.sub("", text, count=1)
    for start, end in THOUGHTS:
        thought, found, rest = text.lstrip().partition(end)
        if found and thought.startswith(start) and (source is None or start not in source):
            text = rest.lstrip()
    if source is None:
        return text
    for mark in FINAL:
        if mark in text and mark not in source:
            text = text.rpartition(mark)[2]
    return text if _CHANNEL.match(source) else _CHANNEL.sub("", text, count=1)


def _without_wrappers(text: str, source: str | None) -> str:
    if source is None:
        return text
    found = _FENCE.match(text) if "```" not in source else None
    if found is not None and "```" not in found[1]:
        text = found[1]
    text = _without_tags(text.strip(), source)
    return _without_object(_without_element(text, source), source)


def _without_tags(text: str, source: str) -> str:
    """Return what is between `<translation>` and its end tag, if they surround all of the text."""
    found = list(islice(WRAPPER.finditer(text), 3))
    if len(found) != 2 or found[0].start() or WRAPPER.search(source):
        return text
    start, end = found
    pair = end.end() == len(text) and end[0].lower() == f"</{start[0][1:].lower()}"
    return text[start.end() : end.start()] if pair else text


def _without_element(text: str, source: str) -> str:
    """Return what is in the only element of any name, if the source has no tags at all."""
    found = _ELEMENT.fullmatch(text)
    if found is None or found[1] in source:
        return text
    inside = found[3]
    return text if found[1] in inside else inside


def _without_object(text: str, source: str) -> str:
    """Return the only value of a JSON object, if it is a string and the source is no such object.

    `{"translation": "Hallo!"}`
    """
    if not text.startswith("{") or not text.endswith("}") or source.lstrip().startswith("{"):
        return text
    try:
        values = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return text
    only = values[0][1] if len(values) == 1 else None
    return only if isinstance(only, str) else text


def _without_opening(text: str, source: str | None) -> str:
    """Remove "Here is the translation:", "German:" or "Deutsch:", if the source has no such."""
    if source is None or _COLON.search(source[:120]):
        return text
    found = OPENING.match(text)
    if found is None:
        label = _LABEL.match(text)
        found = label if label is not None and label[1].casefold() in _language_names() else None
    return text if found is None else text[found.end() :]


def _without_quotes(text: str, source: str | None) -> str:
    """Remove quotes around the whole output, if the source has none at its ends.

    Dashes and emphasis in the source count as quotes: other languages write quotes for them.
    """
    text = text.strip()
    if source is None or len(text) < 3 or _QUOTES.get(text[0]) != text[-1]:
        return text
    ends = source.strip()
    if not ends or _QUOTED_OR_DASHED.match(ends[0]) or _QUOTED_OR_DASHED.match(ends[-1]):
        return text
    inside = text[1:-1]
    return text if _QUOTES[text[0]] in inside or text[0] in inside else inside


@lru_cache(maxsize=1)
def _language_names() -> frozenset[str]:
    """Return the names of the languages in English and in themselves, in lower case."""
    return frozenset(
        name(tag).casefold()
        for tag in _LABELS.split()
        for name in (names.english_name, names.plain_name, names.own_name)
    )
