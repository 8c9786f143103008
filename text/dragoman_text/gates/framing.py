"""Gate `framing`: blanks, end punctuation and quotes around the answer are as in the source.

It repairs the answer instead of judging it, and only where the source leaves no doubt.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from dragoman_text.gates import incomplete, languages, sentence_ends
from dragoman_text.gates.prose import weighed_letters
from dragoman_text.verdicts import Candidate

_STOP_OF: Final = {
    **dict.fromkeys(("zh", "ja", "yue"), "。"),
    **dict.fromkeys(("hi", "ne", "bn", "as", "or"), "।"),
    **dict.fromkeys(("am", "ti"), "።"),
    "my": "။",
    "km": "។",
    "hy": "։",
    "ur": "۔",
}
_LONG_SENTENCE: Final = 60
"""Letters of a single sentence, about twelve words."""
_QUOTES: Final = {
    '"': '"',
    "“": "”",
    "„": "“",
    "«": "»",
    "「": "」",
    "『": "』",
    "‘": "’",
    "'": "'",
}
_ADDED: Final = (
    ("«", "»"),
    ("‹", "›"),
    ("「", "」"),
    ("『", "』"),
    ("(", ")"),
    ("（", "）"),
    ("[", "]"),
    ("【", "】"),
    ("<", ">"),
    ("《", "》"),
    ("〈", "〉"),
    ("{", "}"),
    ("***", "***"),
    ("**", "**"),
    ("~~", "~~"),
    ("==", "=="),
    ("``", "``"),
    ("`", "`"),
    ("|", "|"),
    ("__", "__"),
    ("*", "*"),
    ("_", "_"),
)
"""Marks that models put around a whole answer; `prompts/cleaning.py` removes usual quotes."""
_ROW: Final = re.compile(r"([^\w\s.!?…。！？]|_)\1{2,7}")
"""Three or more equal marks at both ends: `---`, `===`, three quotes."""
_OF_TITLES: Final = frozenset("《〈『")
"""Chinese and Japanese write titles in these, where others have capitals or italics: a source that
is no sentence may be one."""
_LIST_MARK: Final = re.compile(r"(?:[-*•>–‣▪●◦·→+]|#{1,6})[ \t]+(?=[^\s\d])")
"""Not before a digit: `- 5` may be minus five, `# 5` number five."""
_MARKS: Final = "\"'“”„‟«»‹›「」『』《》〈〉‘’`"


def repaired(candidate: Candidate) -> str:
    """Return the answer with the source's blanks at both ends, final stop and quotes.

    An answer that looks unfinished gets no stop: it would look complete.
    """
    source, target = candidate.source, candidate.target
    core, wanted = target.strip(), source.strip()
    if not core or not wanted:
        return target
    core = _unmarked(wanted, core)
    if not incomplete.looks_unfinished(candidate):
        core = _stopped(wanted, core, candidate.target_lang)
    core = _quoted(wanted, core)
    start = source[: len(source) - len(source.lstrip())]
    end = source[len(source.rstrip()) :]
    return f"{start}{core}{end}"


def _unmarked(source: str, target: str) -> str:
    """Remove marks around the answer, or in front of its only line, that no source has.

    Only if the source begins with a letter or digit: other marks may stand for its own. Numbers
    stay: "19. Januar" and "1. Dünya Savaşı" are right.
    """
    if not source[0].isalnum() or source[-1] in _MARKS or target == source:
        return target
    before, is_sentence = None, sentence_ends.ends_sentence(source)
    while before != target:
        before = target
        target = _without_list_mark(source, target)
        row = _ROW.match(target)
        if row is not None and row[0] not in source:
            target = _inside(target, row[0], row[0])
        for opening, closing in _ADDED:
            if opening in _OF_TITLES and not is_sentence:
                continue
            if target.startswith(opening) and opening not in source and closing not in source:
                target = _inside(target, opening, closing)
    return target


def _without_list_mark(source: str, target: str) -> str:
    found = _LIST_MARK.match(target)
    if found is None or "\n" in target or _LIST_MARK.match(source):
        return target
    return target[found.end() :]


def _inside(target: str, opening: str, closing: str) -> str:
    """Return what is between the marks, if they surround all of the text and are not inside."""
    inside = target[len(opening) : len(target) - len(closing)]
    if not target.endswith(closing) or opening in inside or closing in inside:
        return target
    return inside.strip() or target


def _stopped(source: str, target: str, tag: str) -> str:
    """Add the full stop that prose has, where the answer ends in a letter or its mark."""
    if not source.endswith((".", "。")) or source.endswith(".."):
        return target
    if unicodedata.category(target[-1])[0] not in "LM" or not sentence_ends.are_written(tag):
        return target
    if not _is_prose(source, target):
        return target
    return target + _STOP_OF.get(languages.base(tag), ".")


def _is_prose(source: str, target: str) -> bool:
    """Return whether the answer has end marks elsewhere, or the source is one long sentence.

    Translators leave the stop of messages and labels out on purpose: in 4 % of the sources with
    up to twelve words, in Tamil, Hebrew and Hindi in 15 to 20 %.
    """
    if sentence_ends.count(source) > 1:
        return sentence_ends.count(target) > 0
    return weighed_letters(source) >= _LONG_SENTENCE


def _quoted(source: str, target: str) -> str:
    """Put the answer into the quotes around the whole source, if it has none at its ends."""
    closing = _QUOTES.get(source[0])
    inside = source[1:-1]
    if len(source) < 3 or closing is None or source[-1] != closing:
        return target
    if source[0] in inside or closing in inside:
        return target
    if target[0] in _MARKS or target[-1] in _MARKS:
        return target
    return f"{source[0]}{target}{closing}"
