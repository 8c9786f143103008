"""Corrective sentences: what the next prompt says about the gates that the last answer failed.

In English, as the prompts are. A gate without a sentence has none that could help.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

from langcodes import Language

from dragoman_text.terms import Term
from dragoman_worker.prompts import names

MOST_TERMS: Final = 50
"""Glossary entries that one correction names, as many as a prompt does."""

_PLAIN_SCRIPTS: Final = frozenset({None, "Latn", "Hans", "Hant"})
_SENTENCES: Final = {
    "placeholders": "Copy every placeholder exactly, as often as it occurs in the text.",
    "tags": "Copy every tag exactly, around the words that it marks.",
    "structure": "Keep the structure of the text: its lines, delimiters, keys and table columns.",
    "copy": "Do not copy the text: translate {pair}.",
    "language": "Write the whole translation in {target}.",
    "script": "Write every word of the translation in the letters of {target}.",
    "paragraphs": "Keep every paragraph of the text as a paragraph of its own.",
    "length": "Translate the whole text; leave nothing out and add nothing.",
    "incomplete": "Translate the text to its end.",
    "loop": "Translate each part of the text once, without repetitions.",
    "blank": "Write the translation in words.",
    "chatter": "Reply with the translation alone, without introduction, notes or quotation marks.",
    "control": "Write plain text, without special tokens.",
    "garbled": "Write whole words with blanks between them, and plain characters, not escapes.",
    "max_chars": "Use at most {max_chars} characters.",
    "glossary": "{terms}",
}


def correction(
    gates: Collection[str],
    *,
    target_lang: str,
    source_lang: str | None = None,
    max_chars: int | None = None,
    missed: Iterable[Term] = (),
) -> str | None:
    """Return the sentences for the failed gates, in the order of the table; None without any."""
    target = _with_script(target_lang)
    values = {
        "target": target,
        "pair": f"it from {_with_script(source_lang)} into {target}"
        if source_lang
        else f"it into {target}",
        "max_chars": max_chars,
        "terms": _terms(missed),
    }
    chosen = [text.format(**values) for gate, text in _SENTENCES.items() if gate in gates]
    return " ".join(filter(None, chosen)) or None


def _terms(terms: Iterable[Term]) -> str:
    rules = [f"Translate “{term.source}” as “{term.targets[0]}”." for term in terms if term.targets]
    return " ".join(rules[:MOST_TERMS])


@lru_cache(maxsize=1024)
def _with_script(tag: str) -> str:
    """Return the language's English name, with its script where that is not plain from the name."""
    name = names.english_name(tag)
    language = Language.get(tag).maximize()
    script = language.script_name("en")
    if language.script in _PLAIN_SCRIPTS or script in name:
        return name
    return f"{name} in {script} script"
