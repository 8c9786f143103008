"""Gate `framing`: blanks, end punctuation and quotes around the answer are as in the source.

It repairs the answer instead of judging it, and only where the source leaves no doubt.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from dragoman_worker.quality.gates import languages

_STOP_OF: Final = {
    **dict.fromkeys(("zh", "ja", "yue"), "。"),
    **dict.fromkeys(("hi", "ne", "bn", "as", "or"), "।"),
    **dict.fromkeys(("am", "ti"), "።"),
    "my": "။",
    "km": "។",
    "hy": "։",
    "ur": "۔",
}
_NO_STOP: Final = frozenset({"Thai", "Laoo", "Tibt"})
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
_MARKS: Final = "\"'“”„‟«»‹›「」『』《》〈〉‘’`"


def repaired(source: str, target: str, target_lang: str) -> str:
    """Return the answer with the source's blanks at both ends, final stop and quotes."""
    core, wanted = target.strip(), source.strip()
    if not core or not wanted:
        return target
    core = _quoted(wanted, _stopped(wanted, core, target_lang))
    start = source[: len(source) - len(source.lstrip())]
    end = source[len(source.rstrip()) :]
    return f"{start}{core}{end}"


def _stopped(source: str, target: str, tag: str) -> str:
    """Add the full stop that the source has, where the answer ends in a letter or its mark."""
    script = languages.script(tag) or ""
    if script in _NO_STOP or not source.endswith((".", "。")) or source.endswith(".."):
        return target
    if unicodedata.category(target[-1])[0] not in "LM":
        return target
    return target + _STOP_OF.get(languages.base(tag), ".")


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
