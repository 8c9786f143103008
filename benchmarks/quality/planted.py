"""Planted errors: human translations damaged in the ways in which models damage them.

Each function returns the damaged translation, or None where the pair has nothing to damage.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from corpora import Pair

from dragoman_text.gates.languages import same_family
from dragoman_text.gates.prose import prose
from dragoman_text.sentences import split_sentences
from dragoman_text.spans import find_spans

_NUMBER = re.compile(r"\d{2,}")
_WORD = re.compile(r"\w+")
_OPENINGS = (
    "Here is the translation:\n\n",
    "Sure! Here's the translated text: ",
    "The translation is: ",
    "<think>The user wants a translation.</think>",
    "analysisWe need to translate this. Simple.",
    "I'm sorry, but I can't assist with translating this. ",
    "Translate the following text from English into German. ",
)
_ENDINGS = (
    "\n\nNote: The idiom was adapted for natural flow.",
    "\n\n(Note: I kept the proper names.)",
    "\n\nLet me know if you need anything else!",
)
_CONTROL = ("<end_of_turn>", "<|im_end|>", "</s>", "\ufffd", "\u202e", "\x00", "▁", "<extra_0>")
_SHORTENED = ("length", "incomplete")
_PLACEHOLDERS = frozenset({"printf", "brace", "mustache", "template"})


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of error, the gate that is to find it, and how it is planted."""

    name: str
    gates: tuple[str, ...]
    plant: Callable[[Pair, random.Random, Sequence[Pair]], str | None]
    least_letters: int = 0


def dropped_placeholder(pair: Pair, chance: random.Random, _others: Sequence[Pair]) -> str | None:
    spans = [span for span in find_spans(pair.target) if span.kind in _PLACEHOLDERS]
    if not spans:
        return None
    span = chance.choice(spans)
    return pair.target[: span.start] + pair.target[span.end :]


def altered_placeholder(pair: Pair, chance: random.Random, _others: Sequence[Pair]) -> str | None:
    """Inflect or translate a placeholder: `%(country)s` becomes `%(country)ama`."""
    spans = [span for span in find_spans(pair.target) if span.kind in _PLACEHOLDERS]
    spans = [span for span in spans if pair.target[span.start : span.end] in pair.source]
    if not spans:
        return None
    span = chance.choice(spans)
    original = pair.target[span.start : span.end]
    if original == "%%":
        return None
    inner = original[:-1] + ("ama" if original[-1].isalpha() else "x" + original[-1])
    changed = chance.choice([inner, original[:-1], original[1:], original.replace("%", "% ")])
    return None if changed == original else _replaced(pair.target, span.start, span.end, changed)


def repeated_placeholder(pair: Pair, chance: random.Random, _others: Sequence[Pair]) -> str | None:
    spans = [span for span in find_spans(pair.target) if span.kind in _PLACEHOLDERS]
    if not spans:
        return None
    span = chance.choice(spans)
    return f"{pair.target} {pair.target[span.start : span.end]}"


def looped_end(pair: Pair, chance: random.Random, _others: Sequence[Pair]) -> str | None:
    """Repeat the last words until the limit of tokens, as small models do."""
    words = pair.target.split()
    if len(words) > 3:
        unit = " " + " ".join(words[-chance.randint(1, 6) :])
    else:
        unit = pair.target[-chance.randint(1, min(20, len(pair.target))) :]
    if not any(map(str.isalpha, unit)) or len(unit) > 60:
        return None
    return pair.target + unit * chance.randint(8, 60)


def looped_sentence(pair: Pair, chance: random.Random, _others: Sequence[Pair]) -> str | None:
    if len(prose(pair.target).strip()) < 40:
        return None
    return " ".join([pair.target.strip()] * chance.randint(3, 20))


def copied(pair: Pair, _chance: random.Random, _others: Sequence[Pair]) -> str | None:
    return pair.source


def nearly_copied(pair: Pair, chance: random.Random, _others: Sequence[Pair]) -> str | None:
    """Copy the source with one word of the translation in it."""
    words, ours = pair.source.split(), [word for word in pair.target.split() if len(word) < 10]
    if len(words) < 8 or not ours:
        return None
    words[chance.randrange(len(words))] = chance.choice(ours)
    return " ".join(words)


def wrong_language(pair: Pair, chance: random.Random, others: Sequence[Pair]) -> str | None:
    """Take a human translation into a language of another family."""
    other = chance.choice(others)
    return None if same_family(pair.target_lang, other.target_lang) else other.target


def half(pair: Pair, _chance: random.Random, _others: Sequence[Pair]) -> str | None:
    return pair.target[: len(pair.target) // 2] if len(pair.source) >= 40 else None


def half_of_sentences(pair: Pair, _chance: random.Random, _others: Sequence[Pair]) -> str | None:
    sentences = split_sentences(pair.target, pair.target_lang)
    if len(pair.source) < 40 or len(sentences) < 2:
        return None
    return "".join(sentences[: len(sentences) // 2])


def quarter(pair: Pair, _chance: random.Random, _others: Sequence[Pair]) -> str | None:
    return pair.target[: len(pair.target) // 4] if len(pair.source) >= 40 else None


def opened(pair: Pair, chance: random.Random, _others: Sequence[Pair]) -> str | None:
    return chance.choice(_OPENINGS) + pair.target


def ended(pair: Pair, chance: random.Random, _others: Sequence[Pair]) -> str | None:
    return pair.target.rstrip() + chance.choice(_ENDINGS)


def control(pair: Pair, chance: random.Random, _others: Sequence[Pair]) -> str | None:
    at = chance.randint(0, len(pair.target))
    return pair.target[:at] + chance.choice(_CONTROL) + pair.target[at:]


def changed_number(pair: Pair, chance: random.Random, _others: Sequence[Pair]) -> str | None:
    """Change one digit of a number that both texts have, or drop the number."""
    target, source = _blanked_spans(pair.target), _blanked_spans(pair.source)
    numbers = [found for found in _NUMBER.finditer(target) if found[0] in source]
    if not numbers:
        return None
    found = chance.choice(numbers)
    digit = str((int(found[0][-1]) + chance.randint(1, 9)) % 10)
    changed = chance.choice(["", found[0][:-1] + digit])
    return _replaced(pair.target, found.start(), found.end(), changed)


def dropped_tag(pair: Pair, chance: random.Random, _others: Sequence[Pair]) -> str | None:
    spans = [span for span in find_spans(pair.target) if span.kind == "tag"]
    if not any(pair.target[span.start : span.start + 2] == "</" for span in spans):
        return None
    span = chance.choice([each for each in spans if pair.target[each.start :].startswith("</")])
    return pair.target[: span.start] + pair.target[span.end :]


def dropped_link(pair: Pair, chance: random.Random, _others: Sequence[Pair]) -> str | None:
    spans = [span for span in find_spans(pair.target) if span.kind in {"url", "mail"}]
    spans = [span for span in spans if pair.target[span.start : span.end] in pair.source]
    if not spans:
        return None
    span = chance.choice(spans)
    return pair.target[: span.start] + pair.target[span.end :]


def merged_paragraphs(pair: Pair, _chance: random.Random, _others: Sequence[Pair]) -> str | None:
    if pair.source.strip().count("\n\n") < 1 or pair.target.strip().count("\n\n") < 1:
        return None
    return re.sub(r"\s*\n\n\s*", " ", pair.target.strip())


def blanked(_pair: Pair, chance: random.Random, _others: Sequence[Pair]) -> str | None:
    return chance.choice(["", " \n", "...", "\u200b", "123", "🙂"])


KINDS = (
    Kind("placeholder dropped", ("placeholders",), dropped_placeholder),
    Kind("placeholder altered", ("placeholders",), altered_placeholder),
    Kind("placeholder repeated", ("placeholders",), repeated_placeholder),
    Kind("tag dropped", ("tags",), dropped_tag),
    Kind("end looped", ("loop",), looped_end),
    Kind("sentence looped", ("loop",), looped_sentence),
    Kind("source copied, 20 letters", ("copy", "language"), copied, 20),
    Kind("source copied, 40 letters", ("copy", "language"), copied, 40),
    Kind("source nearly copied", ("copy", "language"), nearly_copied, 40),
    Kind("other language, 40 letters", ("language",), wrong_language, 40),
    Kind("other language, 20-39 letters", ("language",), wrong_language, 20),
    Kind("half of the answer", _SHORTENED, half),
    Kind("half of the sentences", _SHORTENED, half_of_sentences),
    Kind("quarter of the answer", _SHORTENED, quarter),
    Kind("text before the answer", ("chatter",), opened),
    Kind("text behind the answer", ("chatter",), ended),
    Kind("control token or character", ("control",), control),
    Kind("number changed or dropped", ("numbers",), changed_number),
    Kind("link or address dropped", ("verbatim",), dropped_link),
    Kind("paragraphs merged", ("paragraphs",), merged_paragraphs),
    Kind("no letters", ("blank",), blanked),
)


def _blanked_spans(text: str) -> str:
    for span in find_spans(text):
        text = text[: span.start] + " " * (span.end - span.start) + text[span.end :]
    return text


def _replaced(text: str, start: int, end: int, by: str) -> str:
    return text[:start] + by + text[end:]
