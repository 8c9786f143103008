"""A short text in 127 languages: the same text in each, and most scripts of living languages."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from dragoman_worker.prompts.names import script_of

_CHARACTERS_SCANNED: Final = 200
_MANY_KANA: Final = 0.1
"""Share of kana among the letters above which a text is Japanese, not Chinese."""


@lru_cache(maxsize=1)
def by_tag() -> Mapping[str, str]:
    """Return the text by BCP-47 tag; the first language of a script is its likeliest one."""
    path = files("dragoman_worker.prompts").joinpath("parallel_text.tsv")
    lines = path.read_text(encoding="utf-8").splitlines()
    texts: dict[str, str] = {}
    for line in lines:
        tag, _, text = line.partition("\t")
        if text and not line.startswith("#"):
            texts[tag] = unicodedata.normalize("NFC", text)  # what people type, and models learned
    return MappingProxyType(texts)


@lru_cache(maxsize=1)
def tags_by_script() -> Mapping[str, Sequence[str]]:
    """Return the tags by script: by its ISO 15924 code, and by its name in Unicode."""
    tags: dict[str, list[str]] = defaultdict(list)
    for tag, text in by_tag().items():
        tags[script_of(tag)].append(tag)
        tags[script_name(text)].append(tag)
    return MappingProxyType(dict(tags))


def script_name(text: str) -> str:
    """Return the Unicode name of the script of most of the first letters, such as ``CYRILLIC``.

    Variants of letters (``µ``, ``ª``, full-width ones) count as what they stand for. The text may
    have no language of that script: ``SYRIAC``, or ``MODIFIER``, which is none.
    """
    start = text[:_CHARACTERS_SCANNED]
    if start.isascii():
        return "LATIN"
    letters = [
        character for character in unicodedata.normalize("NFKC", start) if character.isalpha()
    ]
    names = Counter(unicodedata.name(letter, "").split(" ")[0] for letter in letters)
    if names["HIRAGANA"] + names["KATAKANA"] > _MANY_KANA * len(letters):
        return "HIRAGANA"
    return max(names, key=lambda name: names[name], default="LATIN")


def likeliest_language(text: str) -> str:
    """Return the language that most texts in the script of `text` are in, English if unknown."""
    return tags_by_script().get(script_name(text), ("en",))[0]
