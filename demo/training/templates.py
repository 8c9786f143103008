"""Sentences with gaps, which teach the model to copy names, links, code and placeholders.

The Tatoeba text has almost no placeholders, markup, links or software words. The few
sentences of templates.tsv, written by hand in all five languages, carry gaps that are filled
alike on every side. They are training material only; no score is measured on them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .tables import NAMES


@cache
def templates() -> tuple[dict[str, str], ...]:
    """Return every sentence with its gaps, by language code."""
    text = Path(__file__).with_name("templates.tsv").read_text(encoding="utf-8")
    languages, *rows = (line.split("\t") for line in text.splitlines())
    return tuple(dict(zip(languages, row, strict=True)) for row in rows)


def all_sentences() -> list[str]:
    """Return all sentences of all languages with names in the gaps, for the tokenizer."""
    texts = [text for row in templates() for text in row.values()]
    for gap, name in zip("XCDTE", NAMES, strict=False):
        texts = [text.replace(f"{{{gap}}}", name) for text in texts]
    return texts
