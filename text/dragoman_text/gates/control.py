"""Gate `control`: the answer has control tokens, hidden characters or gaps, and the source none."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from dragoman_text.gates import languages
from dragoman_text.gates.defect import Defect, listed
from dragoman_text.verdicts import Candidate

_TOKEN: Final = re.compile(
    r"<[|｜][^|｜<>\s]{1,40}[|｜]>|<\|[a-z_]{1,20}>|<[a-z_]{1,20}\|>"
    r"|<(?:pad|unk|bos|eos|mask|s|/s|start_of_turn|end_of_turn|extra_[0-9]{1,3}|unused[0-9]{1,4}"
    r"|0x[0-9A-F]{2})>|\[/?INST\]|<</?SYS>>"
    # Numbered tokens of the protection that no original belongs to; `tags` finds `<x1/>`.
    r"|⟦\s*\d{1,6}\s*⟧|\{\{\s*\d{1,6}\s*\}\}"
)
# Control characters but tab, line feed and return; the replacement and SentencePiece characters;
# byte-order marks; private use, which has the marks of `prompts/shapes.py`; non-characters.
_CHARACTER: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2581\ufeff\ufff9-\ufffd\ue000-\uf8ff"
    "\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff]"
)
# Tags, but those of a flag; variation selectors of old ideographs; fillers and operators that
# nobody sees.
_HIDDEN: Final = re.compile(
    "(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]|[\U000e0080-\U000e01ef]"
    "|[\u2061-\u2064\u206a-\u206f\u115f\u1160\u3164\uffa0]"
)
_LINE_BREAKS: Final = re.compile(r"\n(?:[^\S\n]*+\n){9,}+")
_BIDI: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_RIGHT_TO_LEFT: Final = frozenset({"Arab", "Hebr", "Thaa", "Syrc", "Nkoo", "Adlm"})


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the answer has such tokens or characters more often than the source.

    Marks of direction are usual in right-to-left scripts.
    """
    for pattern in (_TOKEN, _CHARACTER, _HIDDEN):
        if new := _new(pattern, candidate):
            return Defect(f"The answer has {listed([*map(_visible, new)])}.")
    if _LINE_BREAKS.search(candidate.target) and not _LINE_BREAKS.search(candidate.source):
        return Defect("The answer has a gap of empty lines.")
    if languages.script(candidate.target_lang) in _RIGHT_TO_LEFT:
        return None
    new = _new(_BIDI, candidate)
    return Defect(f"The answer has {listed([*map(_visible, new)])}.") if new else None


def _new(pattern: re.Pattern[str], candidate: Candidate) -> list[str]:
    found = Counter(pattern.findall(candidate.target))
    return list(found - Counter(pattern.findall(candidate.source))) if found else []


def _visible(found: str) -> str:
    return f"U+{ord(found):04X}" if len(found) == 1 else found
