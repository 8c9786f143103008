"""Fragments of HTML and XML that an API is given: segments out, translations in, markup kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from dragoman_documents.codec import Options
from dragoman_documents.inline_codes import fits
from dragoman_documents.markup.html.codec import replacements_of
from dragoman_documents.markup.html.elements import BLOCKS, HTML_RULES, Rules
from dragoman_documents.markup.html.reader import read_page
from dragoman_documents.splicing import replaced
from dragoman_text.inline import respelled

_NOTHING: Final[frozenset[str]] = frozenset()


def rules_for(
    *,
    xml: bool,
    splitting: Collection[str] = (),
    non_splitting: Collection[str] = (),
    ignored: Collection[str] = (),
    outline: bool = True,
    preserved: bool = False,
) -> Rules:
    """Return the rules of a caller who names elements; names count in any case.

    `splitting` elements end a segment, `non_splitting` ones never do, and the content of `ignored`
    ones stays. Without `outline` only the `splitting` ones end a segment. Elements of XML have no
    meaning of their own, and their attributes are no text.
    """
    blocks = (BLOCKS if outline else _NOTHING) | _names(splitting)
    never = _NOTHING if xml else HTML_RULES.never_text
    return Rules(
        blocks - _names(non_splitting),
        (_NOTHING if xml else HTML_RULES.no_text) | _names(ignored),
        never | _names(ignored),
        attributes=not xml,
        preserved=preserved,
    )


class Fragment:
    """A text with markup. Malformed markup is kept as it is; nothing is refused."""

    def __init__(self, text: str, rules: Rules, *, xml: bool) -> None:
        self._page = read_page(text, xml=xml, rules=rules)

    @property
    def texts(self) -> list[str]:
        """The segments, with inline markup as `<g1>..</g1>` and `<x2/>`."""
        return [segment.text for segment in self._page.segments]

    def written(self, translations: Sequence[str | None]) -> str:
        """Return the fragment with a translation for each segment; None leaves its source.

        A translation that does not fit its segment must be None: see `fitting`.
        """
        options = Options(target_lang="und")
        return replaced(self._page.text, replacements_of(self._page, translations, options))

    def fitting(self, index: int, translation: str) -> str | None:
        """Return a translation as the segment can hold it; None if its tags are other ones."""
        segment = self._page.segments[index]
        text = respelled(translation, segment.text)
        return text if fits(text, segment.codes) else None


def _names(given: Collection[str]) -> frozenset[str]:
    return frozenset(name.strip().rpartition(":")[2].lower() for name in given if name.strip())
