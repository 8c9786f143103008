"""Gate `garbled`: the characters of the answer are damaged, whatever it says.

HTML and JSON escapes that the source does not have, UTF-8 read as another encoding, words without
blanks between them, words taken apart into letters.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman_text.gates import languages
from dragoman_text.gates.defect import Defect, listed
from dragoman_text.gates.prose import prose
from dragoman_text.verdicts import Candidate

_ESCAPE: Final = re.compile(
    r"&(?:amp|quot|apos|lt|gt|#0?3[49]|#x2[27]);|\\u[0-9a-fA-F]{4}", re.IGNORECASE
)
_ANY_ESCAPE: Final = re.compile(r"&#?\w{2,8};|\\u[0-9a-fA-F]{4}")
# The bytes 80 to BF in Windows-1252, which continue a character of UTF-8.
_REST: Final = "\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_MARKS: Final = "«»“”„‘’‚‹›…–—•°ºª´¨·\u00a0"
"""Those that may stand behind a capital letter anyway: "CAFÉ»"."""
_BEGINS: Final = re.compile(rf"[Â-ðРС][{_REST}Ђ-џҐґ№]")
"""Most texts have no such pair, and are read only once."""
_MOJIBAKE: Final = re.compile(
    rf"[ÂÃ](?![{_MARKS}])[{_REST}]|Â[»«\u00a0°](?=\s|\w)|â€[{_REST}]?"
    rf"|(?<=[a-z])[Â-ß][{_REST}]|[Ä-ß](?![{_MARKS}ƒŠŒŽšœžŸ])[{_REST}](?=[a-z])"
    rf"|(?:[Ä-ß](?![{_MARKS}])[{_REST}]){{2}}|(?:[à-ï](?![{_MARKS}])[{_REST}]{{2}}){{2}}"
    rf"|ðŸ[{_REST}]"
    "|(?:[РС][Ђ-ЏђѓљњќћџЎўЈҐЁЄЇІіґёєјЅѕї№‚„…†‡€‰‹‘’“”•–—™›\u00a0-\u00bf]){3}"
)

_UNSPACED: Final = frozenset(
    {"Hans", "Hant", "Hani", "Jpan", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"}
)
_BREAK: Final = re.compile(r"[\s\-‐‑–—/\\|.,;:!?…·&+=_*()\[\]{}<>«»“”„\"\d။၊،؛؟।۔።፣]+")
_LONGEST_WORD: Final = 36
_LONGEST_IN: Final = {"Kore": 16, "Ethi": 18, "Hebr": 16, "Arab": 22, "Taml": 45, "Mlym": 45}
_LONGEST_OF: Final = {"de": 42, "nl": 42, "fi": 42, "ug": 36}
"""Letters of the longest words: of most languages, of scripts with fewer or more, of compounds."""
_SHORT_WORD: Final = 16
_LEAST_WORDS: Final = 5
_LEAST_LETTERS: Final = 12


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if escapes, another encoding or lost blanks damage the answer."""
    source, target = candidate.source, candidate.target
    escape = _ESCAPE.search(target) if "&" in target or "\\" in target else None
    if escape is not None and not _ANY_ESCAPE.search(source):
        return Defect(f"The answer has the escape {listed([escape[0]])}.")
    if _is_misread(target) and not _is_misread(source):
        return Defect("The answer was read in another encoding than it was written in.")
    return _blanks(prose(source), prose(target), candidate.target_lang)


def _is_misread(text: str) -> bool:
    if text.isascii() or _BEGINS.search(text) is None:
        return False
    return _MOJIBAKE.search(text) is not None


def _blanks(source: str, target: str, tag: str) -> Defect | None:
    words, expected = target.split(), source.split()
    if len(words) >= _LEAST_LETTERS and _are_letters(words) and not _are_letters(expected):
        return Defect("The answer has its words taken apart into letters.")
    script = languages.script(tag)
    if script in _UNSPACED or not words or max(map(len, words)) < _SHORT_WORD:
        return None
    most = _LONGEST_OF.get(languages.base(tag), _LONGEST_IN.get(script or "", _LONGEST_WORD))
    longest = _longest(target)
    few = len(expected) >= _LEAST_WORDS and 4 * len(words) <= len(expected)
    if (longest > most or (few and 2 * longest > most)) and longest > 2 * _longest(source):
        return Defect("The answer has words without blanks between them.")
    return None


def _are_letters(words: list[str]) -> bool:
    return 5 * sum(len(word) == 1 for word in words) >= 4 * len(words)


def _longest(text: str) -> int:
    return max(map(len, _BREAK.split(text)))
