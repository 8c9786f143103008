"""Cut the text of an item into the texts of several requests, and put units in place of one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from dragoman_text.detection import Detection
from dragoman_text.sentences import pack, split_sentences
from dragoman_text.spans import find_spans, unprotected
from dragoman_worker.job.plan import Plan, PlannedItem, Unit
from dragoman_worker.job.requests import framed
from dragoman_worker.ports import Decoding
from dragoman_worker.prompts.parallel_text import likeliest_language

MOST_SPLITS: Final = 3
"""How often a text that is cut off is split: into eight pieces in the end, so that a budget may be
eight times too small, and a model that never stops costs no more than a few long answers."""
LEAST_SPLIT_CHARS: Final = 200
"""A single sentence that is shorter is not split when it is cut off: it is not its length. A longer
stretch without a place to cut it is no prose, and stays as it is."""


def cut_off(plan: Plan, planned: PlannedItem, unit: Unit) -> list[str] | None:
    """Return parts of about half the text of a unit whose answer was cut off; None to give it up.

    A text is split MOST_SPLITS times at most. A stretch that cannot be cut is the only part.
    """
    if unit.splits >= MOST_SPLITS:
        return None
    source, half = unit.source, math.ceil(len(unit.source) / 2)
    literals = literals_of(plan, planned)
    sentences = split_sentences(source, planned.source_lang or "en", literals)
    if len(sentences) == 1 and len(source) < LEAST_SPLIT_CHARS:
        return None
    return pack(sentences, lambda chunk: len(chunk) <= half, literals)


def untranslated(text: str, *, uncut: bool = False) -> Unit:
    """Return a unit that is kept as it is: it has nothing to translate, or cannot be cut."""
    core, before, after = framed(text)
    return Unit(core, (), Decoding(max_tokens=0), before, after, text=core, uncut=uncut)


def stays_uncut(chunk: str) -> bool:
    """Return whether a chunk that fits no request and cannot be cut is to stay as it is.

    A shorter one is a word: the context leaves no room for the text, and the item fails.
    """
    return len(chunk) >= LEAST_SPLIT_CHARS


def is_kept(chunk: str, literals: Sequence[str]) -> bool:
    """Return whether spans that are kept in any case are all of a chunk."""
    return not "".join(unprotected(chunk, find_spans(chunk, literals))).strip()


def in_place_of(unit: Unit, pieces: list[Unit]) -> list[Unit]:
    """Return the pieces of a unit with its blanks, and with what was spent on it."""
    first, last = pieces[0], pieces[-1]
    first.before, last.after = unit.before + first.before, last.after + unit.after
    first.prompt_tokens, first.completion_tokens = unit.prompt_tokens, unit.completion_tokens
    for piece in pieces:
        piece.splits, piece.item = unit.splits + 1, unit.item
        piece.earlier_attempts = unit.earlier_attempts + unit.attempts
    return pieces


def literals_of(plan: Plan, planned: PlannedItem) -> tuple[str, ...]:
    """Return the literals inside which the item's text is not split."""
    return (*(plan.job.do_not_translate or ()), *(planned.item.protect or ()))


def few_sentences(plan: Plan, planned: PlannedItem) -> bool:
    """Return whether the item has no more sentences than the profile takes at once."""
    most, text = plan.profile.max_source_sentences, planned.item.text
    if most is None or len(text) < 2 * most:  # a sentence has two characters at least
        return True
    return len(split_sentences(text, planned.source_lang or "en")) <= most


def assumed_lang(plan: Plan, planned: PlannedItem, guess: Detection | None) -> str:
    """Return the language to name where the prompt needs one and the item's is in doubt.

    The guess for the item, the language of most items of the job, or the likeliest one in the
    item's script.
    """
    if guess is not None:
        return guess.language
    found = Counter(each.language for each in plan.detections or () if each is not None)
    if found:
        return found.most_common(1)[0][0]
    return likeliest_language(planned.item.text)
