"""Java's choices, `There {0,choice,0#are no files|1#is one file}.`, as whole sentences.

Each arm is translated with the text around it. Read as java.text.MessageFormat and ChoiceFormat do:
an apostrophe is two, and four in an arm with an argument, which is read as a message again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.codec import InlineCode, Segment
from dragoman_documents.inline_codes import Piece, SingleCode, composed, fits, plain, rendered
from dragoman_text.spans import is_translatable

NO_CHOICE: Final = "messages with several choices, or with quotes in one, are left as they are"
_HEAD: Final = re.compile(r"\{\s*[0-9]{1,3}\s*,\s*choice\s*,")
_LIMIT: Final = re.compile(
    r"\s*(?:-?(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][-+]?[0-9]{1,3})?|-?\u221e)\s*"
    r"[#<\u2264]"
)
_ARGUMENT: Final = re.compile(r"\{[^{}']*\}")
_SIMPLE: Final = re.compile(r"\{[0-9]{1,3}\}")
_SPECIAL: Final = re.compile(r"[|#<\u2264]")
_LONGEST: Final = 65_536


def has_choice(value: str) -> bool:
    """Return whether a value may be a message with a choice."""
    return _HEAD.search(value) is not None


@dataclass(frozen=True, slots=True)
class _Arm:
    limit: str
    raw: str
    meant: str
    """What it says, with its arguments as they are spelled."""


@dataclass(frozen=True, slots=True)
class JavaChoice:
    """A message with one choice. `before` and `behind` are what is around it, as spelled."""

    before: str
    head: str
    arms: tuple[_Arm, ...]
    behind: str
    source: str

    @property
    def signature(self) -> str:
        """Return what no translation may change: the argument, limits, sentences without words."""
        fixed = (each for each in self._sentences() if not _is_segment(each))
        return "\0".join([self.head, *(each.limit for each in self.arms), *fixed])

    def segments(self, place: str) -> tuple[Segment, ...]:
        """Return a segment per arm, with the text around the choice; the limit is in its place."""
        found = zip(self.arms, self._sentences(), strict=True)
        return tuple(
            Segment(text.strip(), f"{place}, {arm.limit.strip()}", "message", codes)
            for arm, sentence in found
            if _is_segment(sentence)
            for text, codes in [_tagged(sentence)]
        )

    def spelled(self, texts: Sequence[str | None]) -> str:
        """Return the message with a translation for each segment; the source where it is None.

        A message whose arms would hold a bar or another sign of ChoiceFormat stays.
        """
        given = iter(texts)
        sentences = [
            _translated(each, next(given)) if _is_segment(each) else each
            for each in self._sentences()
        ]
        before, behind = self._shared(sentences)
        inner = [each[len(before) : len(each) - len(behind)] for each in sentences]
        if any(map(_SPECIAL.search, inner)):
            return self.source
        arms = (arm.limit + _arm(arm, text) for arm, text in zip(self.arms, inner, strict=True))
        start, end = self.before if before else "", self.behind if behind else ""
        return f"{start}{self.head}{'|'.join(arms)}}}{end}"

    def _sentences(self) -> list[str]:
        before, behind = _meaning(self.before, "''"), _meaning(self.behind, "''")
        return [f"{before}{arm.meant}{behind}" for arm in self.arms]

    def _shared(self, sentences: Sequence[str]) -> tuple[str, str]:
        """Return the text that can stay around the choice because all sentences have it."""
        before, behind = _meaning(self.before, "''"), _meaning(self.behind, "''")
        if not all(each.startswith(before) for each in sentences):
            before = ""
        room = len(before) + len(behind)
        if not all(each.endswith(behind) and len(each) >= room for each in sentences):
            behind = ""
        return before, behind


def _is_segment(sentence: str) -> bool:
    return is_translatable(plain(_tagged(sentence)[0]))


def _tagged(sentence: str) -> tuple[str, tuple[InlineCode, ...]]:
    return composed(_pieces(sentence))


def _pieces(sentence: str) -> Iterator[Piece]:
    """Yield the text of a sentence; `{0}` stays in it, `{0,number,integer}` is a code."""
    end = 0
    for match in _ARGUMENT.finditer(sentence):
        yield sentence[end : match.start()]
        yield match[0] if _SIMPLE.fullmatch(match[0]) else SingleCode(match[0])
        end = match.end()
    yield sentence[end:]


def _translated(sentence: str, text: str | None) -> str:
    """Return the translation of a sentence; its source where a translation does not fit."""
    tagged, codes = _tagged(sentence)
    if text is None or not fits(text, codes) or not is_translatable(plain(text)):
        return sentence
    new = rendered(text, codes, str)
    if _has_brace(new):
        return sentence
    lead, _, trail = tagged.partition(tagged.strip())
    return f"{lead}{new.strip()}{trail}"


def _has_brace(sentence: str) -> bool:
    return any(each in "{}" for each in _ARGUMENT.sub("", sentence))


def _arm(arm: _Arm, text: str) -> str:
    """Return the text of an arm as it is spelled."""
    return arm.raw if text == arm.meant else text.replace("'", _quote(text))


def _quote(spelled: str) -> str:
    return "''''" if "{" in spelled else "''"


def _meaning(spelled: str, quote: str) -> str:
    return spelled.replace(quote, "'")


def choice(value: str) -> JavaChoice | None:
    """Return the message that a value is; None if it has no choice, or one that is not plain.

    Not plain are two choices, one in an arm, quoted braces, and arms with other apostrophes than
    those that Java shows.
    """
    heads = list(_HEAD.finditer(value)) if len(value) <= _LONGEST else []
    if len(heads) != 1:
        return None
    head = heads[0]
    end = _closing(value, head.end())
    before, behind = value[: head.start()], value[end + 1 :]
    if end < 0 or not all(map(_is_plain, (before, behind))):
        return None
    arms = list(map(_arm_of, value[head.end() : end].split("|")))
    found = tuple(each for each in arms if each is not None)
    return JavaChoice(before, head[0], found, behind, value) if len(found) == len(arms) else None


def _closing(value: str, start: int) -> int:
    depth = 1
    for place in range(start, len(value)):
        depth += (value[place] == "{") - (value[place] == "}")
        if not depth:
            return place
    return -1


def _is_plain(spelled: str) -> bool:
    return "'" not in spelled.replace("''", "") and not _has_brace(spelled)


def _arm_of(spelled: str) -> _Arm | None:
    limit = _LIMIT.match(spelled)
    if limit is None:
        return None
    raw = spelled[limit.end() :]
    quote = _quote(raw)
    if "'" in raw.replace(quote, "") or _SPECIAL.search(raw) or _has_brace(raw):
        return None
    return _Arm(limit[0], raw, _meaning(raw, quote))
