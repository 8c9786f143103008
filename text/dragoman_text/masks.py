"""Numbered tokens in place of protected spans, in spellings that models copy faithfully."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_text.spans import Span, has_letters, unprotected


@dataclass(frozen=True, slots=True)
class TokenStyle:
    """Spelling of numbered tokens; models differ in which style they copy faithfully."""

    name: str
    before: str
    after: str

    def token(self, number: int) -> str:
        """Return the token of a number."""
        return f"{self.before}{number}{self.after}"

    @property
    def pattern(self) -> re.Pattern[str]:
        """Pattern of tokens, tolerant of blanks inside, of case, full width and any digits."""
        before, after = (r"\s*".join(map(_variants, part)) for part in (self.before, self.after))
        return re.compile(rf"{before}\s*(\d{{1,6}})\s*{after}", re.IGNORECASE)


def _variants(character: str) -> str:
    """Return the set of a character of ASCII and its full-width form, as Chinese texts have it."""
    wide = chr(ord(character) + 0xFEE0) if "!" <= character <= "~" else ""
    return f"[{re.escape(character)}{wide}]"


BRACKETS: Final = TokenStyle("brackets", "⟦", "⟧")
TAGS: Final = TokenStyle("tags", "<x", "/>")
BRACES: Final = TokenStyle("braces", "{{", "}}")
STYLES: Final = (TAGS, BRACKETS, BRACES)


def style_named(name: str) -> TokenStyle:
    """Return the style of a name; the names are those of the setting `quality.token_style`."""
    return next(style for style in STYLES if style.name == name)


@dataclass(frozen=True, slots=True)
class Masked:
    """Text with numbered tokens in place of ``originals``; the first has the number ``first``."""

    text: str
    originals: tuple[str, ...]
    first: int
    style: TokenStyle


@dataclass(frozen=True, slots=True)
class Restored:
    """A translation with the originals in place of their tokens, and what was not as it should be.

    `missing` and `repeated` are originals, `unknown` are tokens that were never given.
    `moved_first` is whether the token that ends the masked text begins the translation: models
    that do not know where a token belongs put it there.
    """

    text: str
    missing: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    moved_first: bool = False


def mask(text: str, spans: Sequence[Span], style: TokenStyle = BRACKETS) -> Masked:
    """Replace each span by a numbered token; numbers that the text itself spells are skipped.

    ``spans`` must be in order and without overlaps, as ``find_spans`` returns them.
    """
    between = unprotected(text, spans)
    first = _first_free_number("\0".join(between), len(spans), style)
    tokens = [style.token(first + index) for index in range(len(spans))]
    pieces = [piece + token for piece, token in zip(between, [*tokens, ""], strict=True)]
    originals = tuple(text[span.start : span.end] for span in spans)
    return Masked("".join(pieces), originals, first, style)


def restore(translation: str, masked: Masked) -> Restored:
    """Replace the tokens by their originals, in whatever order and however often they occur.

    Tokens are recognised with other spaces, in other case and with digits of any script. Tokens
    that the masked text spells itself are text.
    """
    pattern, originals = masked.style.pattern, masked.originals
    spelled = {int(match[1]) for match in pattern.finditer(masked.text)}
    order: list[int] = []
    unknown: list[str] = []

    def original(match: re.Match[str]) -> str:
        index = int(match[1]) - masked.first
        if 0 <= index < len(originals):
            order.append(index)
            return originals[index]
        if int(match[1]) not in spelled:
            unknown.append(match[0])
        return match[0]

    text = pattern.sub(original, translation)
    seen = Counter(order)
    return Restored(
        text,
        missing=tuple(each for index, each in enumerate(originals) if not seen[index]),
        repeated=tuple(each for index, each in enumerate(originals) if seen[index] > 1),
        unknown=tuple(unknown),
        moved_first=_moved_first(translation, masked),
    )


def _moved_first(translation: str, masked: Masked) -> bool:
    """Return whether the token at the end, and only there, is the first of the translation."""
    pattern, count = masked.style.pattern, len(masked.originals)
    tokens = list(pattern.finditer(masked.text))
    begins = pattern.match(translation.lstrip())
    if begins is None or not tokens or int(begins[1]) - masked.first != count - 1:
        return False
    at_end = int(tokens[-1][1]) == int(begins[1]) and not has_letters(
        masked.text[tokens[-1].end() :]
    )
    return at_end and has_letters(masked.text[: tokens[0].start()])


def _first_free_number(text: str, count: int, style: TokenStyle) -> int:
    """Return the lowest start of ``count`` consecutive numbers that ``text`` does not spell."""
    first = 0
    for used in sorted({int(match[1]) for match in style.pattern.finditer(text)}):
        if first + count <= used:
            break
        first = used + 1
    return first
