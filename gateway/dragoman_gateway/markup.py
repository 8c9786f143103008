"""Texts as items of jobs: with markup each segment is one, without each text is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from dragoman_documents.inline_codes import plain
from dragoman_documents.markup.html.elements import Rules
from dragoman_documents.markup.html.fragments import Fragment, rules_for
from dragoman_gateway.errors import ApiError
from dragoman_gateway.parameters import Parameters
from dragoman_schemas.jobs import MAX_TEXT_BYTES
from dragoman_text.sentences import packed, split_sentences

_PIECE_BYTES: Final = 64 * 1024
"""Of a text that is too long for a job."""
_ENDS_LINES: Final = frozenset({"1"})
_SPLITS: Final = frozenset({"0", "1", "nonewlines"})


class Text(Protocol):
    """A text of a request."""

    @property
    def items(self) -> Sequence[str]:
        """What is translated; nothing where there is nothing to translate."""
        ...

    @property
    def prose(self) -> str:
        """The text without its markup, for the detection of its language."""
        ...

    def written(self, translations: Sequence[str]) -> str:
        """Return the translation of the text from those of its items."""
        ...


class UnmarkedText:
    """A text without markup, cut where it is too long for a job. Its edges' blanks stay."""

    __slots__ = ("_pieces", "items", "prose")

    def __init__(self, text: str) -> None:
        self.prose = text
        self._pieces = (text,) if size(text) <= MAX_TEXT_BYTES else _cut(text)
        self.items = [core for piece in self._pieces if (core := piece.strip())]
        if len(self._pieces) > 1 and any(size(item) > MAX_TEXT_BYTES for item in self.items):
            raise _too_long()

    def written(self, translations: Sequence[str]) -> str:
        """See Text."""
        found = iter(translations)
        return "".join(
            [
                piece.replace(core, next(found), 1) if (core := piece.strip()) else piece
                for piece in self._pieces
            ]
        )


class MarkedText:
    """A text with HTML or XML, whose segments are the items."""

    def __init__(self, text: str, rules: Rules, *, xml: bool) -> None:
        self._fragment = Fragment(text, rules, xml=xml)
        self.items = self._fragment.texts
        self.prose = plain(" ".join(self.items))
        self.unfitting = 0
        if any(size(item) > MAX_TEXT_BYTES for item in self.items):
            raise _too_long()

    def written(self, translations: Sequence[str]) -> str:
        """See Text. A segment whose translation lost markup stays as it is."""
        fitting = [self._fragment.fitting(*each) for each in enumerate(translations)]
        self.unfitting = fitting.count(None)
        return self._fragment.written(fitting)


@dataclass(frozen=True, slots=True)
class Markup:
    """How the markup of a request is read."""

    xml: bool
    rules: Rules


def markup_of(parameters: Parameters) -> Markup | None:
    """Return how DeepL's parameters want markup read; None for plain texts. Raises ApiError."""
    lines = parameters.chosen("split_sentences", _SPLITS)
    keeps = parameters.flag("preserve_formatting", default=False)
    outline = parameters.flag("outline_detection", default=True)
    handling = parameters.chosen("tag_handling", frozenset({"xml", "html"}))
    parameters.chosen("tag_handling_version", frozenset({"v1", "v2"}))
    if handling is None:
        return None
    xml = handling == "xml"
    rules = rules_for(
        xml=xml,
        splitting=_named(parameters, "splitting_tags"),
        non_splitting=_named(parameters, "non_splitting_tags"),
        ignored=_named(parameters, "ignore_tags"),
        outline=outline,
        preserved=xml or keeps or lines in _ENDS_LINES,
    )
    return Markup(xml, rules)


HTML: Final = Markup(xml=False, rules=rules_for(xml=False))


def read_texts(texts: Sequence[str], markup: Markup | None) -> list[Text]:
    """Return the texts as items. Raises ApiError."""
    if markup is None:
        return [UnmarkedText(text) for text in texts]
    return [MarkedText(text, markup.rules, xml=markup.xml) for text in texts]


def size(text: str) -> int:
    """Return the bytes of a text."""
    return len(text) if text.isascii() else len(text.encode())


def _named(parameters: Parameters, name: str) -> list[str]:
    """Return the names of elements: several values, each with commas or without."""
    return [each for value in parameters.all(name) for each in value.split(",")]


def _cut(text: str) -> Sequence[str]:
    sentences = split_sentences(text, "en")
    pieces = list(packed(sentences, lambda some: size(some) <= _PIECE_BYTES))
    if len(pieces) == 1:
        raise _too_long()
    return pieces


def _too_long() -> ApiError:
    return ApiError(413, f"A text without a place to cut is limited to {MAX_TEXT_BYTES} bytes.")
