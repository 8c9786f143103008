"""Gate `chatter`: the answer speaks about the translation, after cleaning.

A worker's profiles remove what is certainly no translation. This gate finds what is left: reasoning
that has no end, introductions where the source has a colon too, notes behind the translation,
refusals and repeated instructions. What the source has as well is translated rightly.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman_text.gates import languages, leaks, replies, versions
from dragoman_text.gates.defect import Defect, listed
from dragoman_text.gates.openings import MARKS, OPENING, WRAPPER
from dragoman_text.gates.paragraphs import count
from dragoman_text.verdicts import Candidate

_HEAD: Final = 200
_COLON: Final = re.compile("[:：]")
_OBJECT: Final = re.compile(r"\s*[\[{]\s*\"")
_TAG: Final = re.compile(
    r"\s*(?:<[A-Za-z_][\w:-]{0,30}>|\[/?[A-Z_]{3,30}\]"
    r"|[◁<\[]\|?[\w: ]{0,20}(?:think|thought|reason)|\\(?:boxed|text)\{)"
)
_REASONING: Final = re.compile(r"\A\s*(?:analysis(?=[A-Z\"'“]|The\b)|thought\s*\n)")
_ABOUT_TRANSLATION: Final = re.compile(
    "translat|tradu[czit]|überset|vertal|перев|翻|译|譯|訳|번역", re.IGNORECASE
)
_ECHO: Final = re.compile(
    r"""\btranslate[ ]the[ ](?:following|text|above)\b
      | \bproduce[ ]only[ ]the\b
      | \bonly[ ](?:output|return)[ ]the[ ]translat
      | \byou[ ]are[ ]a[ ]professional\b[^.\n]{0,40}\btranslator\b
      | \bwithout[ ]any[ ](?:additional[ ])?explanation""",
    re.IGNORECASE | re.VERBOSE,
)
_NOTE: Final = re.compile(
    r"""\A\W{0,4}(?:
        (?:translator['’]s[ ])?notes?|explanations?|anmerkung(?:en)?|hinweis|erklärung|remarque
      | nota|notas|explicación|примечание|注|注意|注釈|説明|译注|譯註|说明|說明
    )\W{0,3}[:：]""",
    re.IGNORECASE | re.VERBOSE,
)
_OFFER: Final = re.compile(
    "(?:please )?let me know if|i hope this|feel free to|would you like me", re.IGNORECASE
)


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the answer has text about the translation, and the source has none."""
    source, target = candidate.source, candidate.target
    for mark in MARKS:
        if mark in target and mark not in source:
            return Defect(f"The answer has the mark {listed([mark])} of reasoning.")
    if _is_wrapped(source, target):
        return Defect("The answer has a wrapper around the translation.")
    if _REASONING.match(target) and not _REASONING.match(source):
        return Defect("The answer begins with reasoning.")
    if "```" in target and "```" not in source:
        return Defect("The answer has a code fence that the source does not have.")
    return (
        leaks.find(candidate)
        or _opening(candidate)
        or replies.find(candidate)
        or versions.find(candidate)
        or _echo(candidate)
        or _tail(source, target)
    )


def _is_wrapped(source: str, target: str) -> bool:
    """Return whether tags such as `<answer>`, or JSON, surround an answer to another source."""
    if WRAPPER.search(target) and not WRAPPER.search(source):
        return True
    begins = source.lstrip()[:1].isalnum()
    tag = _TAG.match(target) if begins and "<" not in source and "[" not in source else None
    if tag is not None and tag[0].strip("<>[]/ ") not in source:
        return True
    return bool(_OBJECT.match(target)) and "{" not in source and "[" not in source


def _opening(candidate: Candidate) -> Defect | None:
    """Return a defect for "Here is the translation:" that is no translation itself."""
    head = candidate.target[:_HEAD]
    if OPENING.match(head) is None:
        return None
    source = candidate.source[:_HEAD]
    more = len(_COLON.findall(head)) > len(_COLON.findall(source))
    if not more and (_into_english(candidate) or _ABOUT_TRANSLATION.search(source)):
        return None
    return Defect("The answer begins with an introduction.")


def _echo(candidate: Candidate) -> Defect | None:
    """Return a defect for repeated instructions; into English they are slight."""
    if _ECHO.search(candidate.target) and not _ECHO.search(candidate.source):
        return Defect("The answer repeats an instruction.", slight=_into_english(candidate))
    return None


def _tail(source: str, target: str) -> Defect | None:
    """Return a defect for a last paragraph with a note, if the answer has more of them."""
    if count(target) > count(source):
        last = target.strip().rsplit("\n\n", 1)[-1].strip()
        if _NOTE.match(last) or _OFFER.match(last):
            return Defect("The answer ends with a note.")
        return None
    lines = target.strip().splitlines()
    if len(lines) > 1 and len(source.strip().splitlines()) == 1 and _NOTE.match(lines[-1]):
        return Defect("The answer ends with a note.")
    return None


def _into_english(candidate: Candidate) -> bool:
    return languages.base(candidate.target_lang) == "en"
