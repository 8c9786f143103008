"""Planted errors that speak: refusals, openings, endings, wrappers, and leaked prompts.

The wordings are in two tables. Those who write the rules of the gates read wordings.tsv only;
held_out_wordings.tsv tells whether the rules find what they have not seen.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from pairs import Pair
from planting import OWN, Kind, Material, Planted, changed, language

from dragoman_worker.prompts.base import PromptInput
from dragoman_worker.prompts.table import PROFILES

_OPEN, _HELD_OUT = (
    Path(__file__).with_name(name) for name in ("wordings.tsv", "held_out_wordings.tsv")
)
_SEPARATORS: Final = ("\n\n", "\n", " ")
_ESCAPES: Final = (("\\n", "\n"), ("\\\\", "\\"))
_CONTEXT: Final = "A letter of a landlord to the tenants of a house in Leeds, sent in March."
_TERMS: Final = {"house": "Gebäude", "rent": "Mietzins"}
_ENGLISH: Final = "en"


@cache
def wordings(place: Path) -> dict[tuple[str, str], list[str]]:
    """Return the texts by kind and language; none where the table is not there."""
    table: dict[tuple[str, str], list[str]] = {}
    for line in place.read_text(encoding="utf-8").splitlines() if place.exists() else ():
        if not line.startswith("#"):
            kind, tag, text = line.split("\t")
            for escape, character in _ESCAPES:
                text = text.replace(escape, character)
            table.setdefault((kind, tag), []).append(text)
    return table


def _choice(place: Path, kind: str, tag: str, chance: random.Random) -> str | None:
    table = wordings(place)
    found = table.get((kind, tag)) or table.get((kind, tag.partition("-")[0]))
    return chance.choice(found) if found else None


def _said(kind: str, place: Path, own: bool, held_out: bool) -> Kind:
    """Return the kind that says something before, behind or instead of the translation."""

    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        pair = pairs[0]
        if not own and language(pair) == _ENGLISH:
            return None
        text = _choice(place, kind, pair.target_lang if own else _ENGLISH, chance)
        if text is None:
            return None
        separator = chance.choice(_SEPARATORS)
        answers = {
            "opening": f"{text}{separator}{pair.target}",
            "ending": f"{pair.target}{separator}{text}",
        }
        return Planted(pair, answers.get(kind, text))

    names = {"about": "speaks about the task"}
    which = "in the target language" if own else "in English, another target"
    return Kind(f"{names.get(kind, kind)}, {which}", plant, held_out=held_out)


def _into_english(kind: Kind, name: str) -> Kind:
    return Kind(name, kind.plant, "into English", held_out=kind.held_out)


def _wrapped(kind: str, name: str, place: Path, held_out: bool) -> Kind:
    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        text = _choice(place, kind, "*", chance)
        return None if text is None else Planted(pairs[0], text.replace("{}", pairs[0].target))

    return Kind(name, plant, held_out=held_out)


def _alike(name: str, place: Path, held_out: bool) -> Kind:
    """Return the kind of right answers that only sound like a refusal or a reply."""

    def plant(_pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        table = wordings(place)
        found = [
            (tag, text) for (kind, tag), texts in table.items() for text in texts if kind == "alike"
        ]
        if not found:
            return None
        languages, text = chance.choice(found)
        source, target = text.split(" => ")
        source_lang, target_lang = languages.split(">")
        return Planted(Pair(OWN, source, target, source_lang, target_lang), target)

    return Kind(name, plant, held_out=held_out, right=True)


def _said_by_source(kind: str, name: str, place: Path, held_out: bool) -> Kind:
    """Return the kind of sources that speak as a chat does, and are translated rightly."""

    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        pair = pairs[0]
        found = wordings(place).get((kind, f"en>{pair.target_lang}"))
        if not found:
            return None
        source, target = chance.choice(found).split(" => ")
        sources, targets = [source, pair.source], [target, pair.target]
        if kind == "behind":
            sources.reverse()
            targets.reverse()
        good = changed(pair, " ".join(sources), " ".join(targets))
        return Planted(good, good.target)

    return Kind(name, plant, held_out=held_out, right=True)


def _segment(pair: Pair) -> PromptInput:
    return PromptInput(
        pair.source, pair.target_lang, pair.source_lang, context=_CONTEXT, glossary=_TERMS
    )


def _prompt(profile: str, pair: Pair) -> str | None:
    try:
        prompt = PROFILES[profile].render(_segment(pair)).prompt
    except Exception:  # noqa: BLE001 (a language that the profile has not)
        return None
    contents = (message.content for message in prompt.messages)
    return prompt.completion or "\n".join(
        each if isinstance(each, str) else "\n".join(part.get("text", "") for part in each)
        for each in contents
    )


def _leaked(whole: bool) -> Kind:
    """Return the kind in which a prompt stands before the translation, or its first line does."""

    def plant(pairs: Sequence[Pair], chance: random.Random, _material: Material) -> Planted | None:
        pair = pairs[0]
        prompt = _prompt(chance.choice(sorted(PROFILES)), pair)
        if prompt is None:
            return None
        head = prompt.partition(pair.source)[0].strip().partition("\n")[0]
        return Planted(pair, f"{prompt if whole else head}\n\n{pair.target}") if head else None

    return Kind("prompt leaked, whole" if whole else "prompt leaked, its first line", plant)


def _leaked_block(name: str, mark: str) -> Kind:
    def plant(pairs: Sequence[Pair], _chance: random.Random, _material: Material) -> Planted | None:
        prompt = _prompt("chat", pairs[0]) or ""
        blocks = [block for block in prompt.split("\n\n") if mark in block]
        return Planted(pairs[0], f"{blocks[0]}\n\n{pairs[0].target}") if blocks else None

    return Kind(name, plant)


def _kinds() -> Iterator[Kind]:
    for place, held_out in ((_OPEN, False), (_HELD_OUT, True)):
        refusal = _said("refusal", place, True, held_out)
        yield refusal
        yield _said("refusal", place, False, held_out)
        yield _into_english(refusal, "refusal, into English")
        about = _said("about", place, True, held_out)
        yield about
        yield _into_english(about, "speaks about the task, into English")
        opening, ending = (_said(kind, place, True, held_out) for kind in ("opening", "ending"))
        yield opening
        yield _said("opening", place, False, held_out)
        yield _into_english(opening, "opening, into English")
        yield ending
        yield _said("ending", place, False, held_out)
        yield _into_english(ending, "ending, into English")
        yield _alike("right: sounds like a reply", place, held_out)
        yield _said_by_source("before", "right: an opening in the source too", place, held_out)
        yield _said_by_source("behind", "right: an ending in the source too", place, held_out)
        yield _wrapped("wrapper", "wrapper: JSON, tags, headings, thoughts", place, held_out)
        yield _wrapped("marks", "marks around or before the answer", place, held_out)
    yield _wrapped("repaired", "quotes or a fence around the answer", _OPEN, False)
    yield _leaked(True)
    yield _leaked(False)
    yield _leaked_block("context of the prompt leaked", _CONTEXT)
    yield _leaked_block("terms of the prompt leaked", "Mietzins")


KINDS: Final = tuple(_kinds())
