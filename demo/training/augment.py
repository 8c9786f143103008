"""Augmentation: names, marks, links and careless typing, put into both sides of a pair."""

from __future__ import annotations

import re
from random import Random

from .corpus import Example
from .tables import (
    COMMANDS,
    DOMAINS,
    ENDINGS,
    JAPANESE_NAMES,
    MARKS,
    NAMES,
    PLACEHOLDERS,
    SYMBOLS,
    WORDS,
    WRAPS,
)
from .templates import templates

_CAPITALISED = re.compile(r"\b[A-Z][a-z]{2,}\b|\b\d+\b")
_FINAL = re.compile(r"\s?[.!。！]$")
_GAP = re.compile(r"\{([XCDTE])\}")

SHARE_SWAPPED, SHARE_WRAPPED, SHARE_ATTACHED = 0.08, 0.04, 0.04
SHARE_LOWER, SHARE_BARE, SHARE_CAPITALS = 0.02, 0.02, 0.01


def augmented(example: Example, random: Random) -> Example:
    """Return `example`, changed on both sides in about a fifth of the calls."""
    draw = random.random()
    for share, change in (
        (SHARE_SWAPPED, _swap_word),
        (SHARE_WRAPPED, _wrap),
        (SHARE_ATTACHED, _attach),
        (SHARE_LOWER, _lower_source),
        (SHARE_BARE, _drop_final),
        (SHARE_CAPITALS, _capitals),
    ):
        if draw < share:
            return change(example, random)
        draw -= share
    return example


def from_template(random: Random, source_lang: str, target_lang: str) -> Example:
    """Return one hand-written sentence, with its gaps filled alike on both sides."""
    row = random.choice(templates())
    fillers = {gap: _filler(gap, random) for gap in "XCDTE"}
    source, target = (
        _GAP.sub(lambda gap: fillers[gap.group(1)], row[language])
        for language in (source_lang, target_lang)
    )
    return Example(source, target, source_lang, target_lang)


def link(random: Random) -> str:
    """Return a web address or an e-mail address."""
    if random.random() < 0.3:
        return f"{random.choice(WORDS)}@{random.choice(DOMAINS)}"
    steps = "/".join(random.choice(WORDS) for _ in range(random.randrange(3)))
    host = random.choice(("https://", "http://", "https://www.", "www.")) + random.choice(DOMAINS)
    anchor, query = f"#{random.choice(WORDS)}", f"?id={random.randrange(1000)}"
    ending = random.choice(("", "", "/", query, anchor))
    return f"{host}/{steps}{ending}" if steps else host


def code(random: Random) -> str:
    """Return a command, a file name or an identifier, mostly between backticks."""
    kind = random.random()
    if kind < 0.4:
        text = random.choice(COMMANDS)
        if random.random() < 0.5:
            text += " " + random.choice(WORDS)
    elif kind < 0.7:
        text = random.choice(WORDS) + random.choice(ENDINGS)
    else:
        text = random.choice(("_", "-", ".", "/")).join(random.sample(WORDS, 2))
    return f"`{text}`" if random.random() < 0.8 else text


def number(random: Random) -> str:
    """Return a number of one to five digits, sometimes with decimals or a percent sign."""
    whole = str(random.randrange(10 ** random.randrange(1, 6)))
    return whole + random.choice(("", "", "", "", f".{random.randrange(100)}", "%"))


def _copied(random: Random) -> str:
    kind = random.random()
    if kind < 0.45:
        return random.choice(NAMES)
    if kind < 0.75:
        return random.choice(PLACEHOLDERS)
    return link(random) if kind < 0.85 else _marked(random.choice(NAMES), random)


def _filler(gap: str, random: Random) -> str:
    if gap == "C":
        return code(random) if random.random() < 0.8 else random.choice(PLACEHOLDERS)
    if gap == "T":
        return f"{random.randrange(24)}:{random.randrange(60):02}"
    if gap in "DE":
        return number(random) if random.random() < 0.8 else random.choice(PLACEHOLDERS)
    return _copied(random)


def _marked(word: str, random: Random) -> str:
    before, after = random.choice(MARKS)
    return f"{before}{word}{after}"


def _shared_word(example: Example, random: Random) -> tuple[str, str] | None:
    """Return a word that occurs exactly once on each side, as each side spells it."""
    found: list[tuple[str, str]] = []
    words: list[str] = _CAPITALISED.findall(example.source + " " + example.target)
    for word in set(words):
        there = here = word
        if example.target_lang == "ja":
            there = JAPANESE_NAMES.get(word, word)
        elif example.source_lang == "ja":
            here = JAPANESE_NAMES.get(word, word)
        if _occurs_once(here, example.source) and _occurs_once(there, example.target):
            found.append((here, there))
    return random.choice(sorted(found)) if found else None


def _occurs_once(word: str, text: str) -> bool:
    if text.count(word) != 1:
        return False
    if not word.isascii():
        return True
    return re.search(rf"(?<!\w){word}(?!\w|'s)", text) is not None


def _swap_word(example: Example, random: Random) -> Example:
    shared = _shared_word(example, random)
    if shared is None:
        return _attach(example, random) if random.random() < 0.2 else example
    here, there = shared
    kind = random.random()
    if kind < 0.35:
        new_here = new_there = random.choice(NAMES) if not here.isdigit() else number(random)
    elif kind < 0.75:
        new_here = new_there = random.choice(PLACEHOLDERS)
    else:
        before, after = random.choice(MARKS)
        new_here, new_there = before + here + after, before + there + after
    return _with(
        example, example.source.replace(here, new_here), example.target.replace(there, new_there)
    )


def _wrap(example: Example, random: Random) -> Example:
    before, after = random.choice(WRAPS)
    return _with(example, before + example.source + after, before + example.target + after)


def _attach(example: Example, random: Random) -> Example:
    kind = random.random()
    if kind < 0.4:
        extra = link(random)
    elif kind < 0.6:
        extra = random.choice(PLACEHOLDERS)
    elif kind < 0.75:
        extra = code(random)
    elif kind < 0.9:
        extra = random.choice(SYMBOLS)
    else:
        extra = number(random)
    shape = random.choice(("{t} {x}", "{t} {x}", "{t} ({x})", "{x} {t}", "{x}: {t}"))
    return _with(
        example,
        shape.format(t=example.source, x=extra),
        shape.format(t=example.target, x=extra),
    )


def _lower_source(example: Example, random: Random) -> Example:
    source = example.source.lower()
    if random.random() < 0.5:
        source = _FINAL.sub("", source)
    return _with(example, source, example.target)


def _drop_final(example: Example, random: Random) -> Example:
    del random
    return _with(example, _FINAL.sub("", example.source), _FINAL.sub("", example.target))


def _capitals(example: Example, random: Random) -> Example:
    del random
    return _with(example, example.source.upper(), example.target.upper())


def _with(example: Example, source: str, target: str) -> Example:
    return Example(source, target, example.source_lang, example.target_lang)
