"""Languages that the gateway offers, and their codes in the APIs: DeepL's and LibreTranslate's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dragoman_schemas.languages import UnknownLanguage, language_name, lookup_tags, normalise

_USUAL_NAMES: Final = (
    "ar bg cs da de el en es et fi fr he hu id it ja ko lt lv nb nl pl pt ro ru sk sl sv th tr uk"
    " vi zh"
)
_USUAL: Final = tuple(_USUAL_NAMES.split())
"""What is offered while no worker has said more than that its model knows many languages."""
_FORMAL: Final = frozenset({"de", "fr", "it", "es", "nl", "pl", "pt", "ja", "ru"})
"""Languages in which a register can be asked for, of a profile that takes one."""
_VARIANTS: Final[Mapping[str, tuple[str, ...]]] = {
    "en": ("en-GB", "en-US"),
    "pt": ("pt-BR", "pt-PT"),
    "zh": ("zh", "zh-Hans", "zh-Hant"),
}
"""What stands for a base language in DeepL's list of targets."""
_ALIASES: Final[Mapping[str, str]] = {"zt": "zh-Hant", "pb": "pt-BR", "no": "nb"}
_SAME: Final[Mapping[str, tuple[str, ...]]] = {"nb": ("no",), "no": ("nb",), "fil": ("tl",)}
"""Other tags under which a model may list a language."""


@dataclass(frozen=True)
class OfferedLanguages:
    """Tags as the workers spell them, and those with a register."""

    tags: tuple[str, ...] = _USUAL
    formality: frozenset[str] = frozenset()

    @cached_property
    def bases(self) -> tuple[str, ...]:
        """The languages without variants, sorted: what texts may be in."""
        return tuple(sorted({base(tag) for tag in self.tags}))

    def target(self, code: str) -> str | None:
        """Return the tag of a code in any spelling; None if it is not offered."""
        tag = _normalised(code)
        if tag is None:
            return None
        candidates = [*lookup_tags(tag), *_SAME.get(base(tag), ())]
        known = any(each in self.tags for each in candidates)
        return tag if known or (base(tag) in self.tags) else None

    def source(self, code: str) -> str | None:
        """Return the tag of a code that texts may be in; None if it is not offered."""
        tag = _normalised(code)
        if tag is None or not ({base(tag), *_SAME.get(base(tag), ())} & set(self.bases)):
            return None
        return tag

    def takes_formality(self, tag: str) -> bool:
        """Return whether a register can be asked for in a language."""
        return tag in self.formality or base(tag) in self.formality

    def of_deepl(self, *, targets: bool) -> list[dict[str, object]]:
        """Return DeepL's list: base languages of sources, variants of targets."""
        if not targets:
            return [{"language": tag.upper(), "name": language_name(tag)} for tag in self.bases]
        return [
            {
                "language": tag.upper(),
                "name": language_name(tag),
                "supports_formality": self.takes_formality(tag),
            }
            for tag in _with_variants(self.bases)
        ]

    def of_libretranslate(self) -> list[dict[str, object]]:
        """Return LibreTranslate's list: each language with those it is translated to."""
        codes = [*self.bases, *(tag for tag in _with_variants(self.bases) if "-" in tag)]
        return [
            {"code": code, "name": language_name(code), "targets": codes} for code in sorted(codes)
        ]


def base(tag: str) -> str:
    """Return the language of a tag, without script and region."""
    return tag.partition("-")[0]


def offered(
    announced: Iterable[tuple[Sequence[str] | None, bool]],
    languages: Sequence[str] | None,
    formality: Sequence[str] | None,
) -> OfferedLanguages:
    """Return the languages of settings, or else of workers, or else the usual ones.

    Each worker says its languages (None: any) and whether its profile takes a register.
    """
    found = list(announced)
    tags = tuple(languages or ()) or _all_of([said for said, _ in found])
    if formality is None:
        formal = any(takes for _, takes in found)
        formality = [tag for tag in tags if base(tag) in _FORMAL] if formal else ()
    return OfferedLanguages(tags, frozenset(formality))


def _all_of(said: Sequence[Sequence[str] | None]) -> tuple[str, ...]:
    named = {tag for each in said if each is not None for tag in each}
    return tuple(sorted(named)) or _USUAL


def _normalised(code: str) -> str | None:
    try:
        return normalise(_ALIASES.get(code.lower(), code))
    except UnknownLanguage:
        return None


def _with_variants(bases: Iterable[str]) -> list[str]:
    return [tag for each in bases for tag in _VARIANTS.get(each, (each,))]
