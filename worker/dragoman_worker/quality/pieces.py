"""Pieces of a text for the remedies: cut at spans or sentences, and restored from their answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_text.inline import respelled
from dragoman_text.masks import Masked, TokenStyle, mask, restore
from dragoman_text.spans import Span, has_letters, unprotected
from dragoman_text.verdicts import Finding
from dragoman_worker.quality import cutting

_MOST_SHOWN: Final = 60
"""Characters of an original that a finding shows."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text: kept as it is, or asked for between the blanks `before` and `after`."""

    text: str
    kept: bool = False
    before: str = ""
    after: str = ""
    masked: Masked | None = None
    """What the tokens in `text` stand for; None without tokens."""

    @property
    def source(self) -> str:
        """The part of the text that it stands for, without the blanks around it."""
        return self.text if self.masked is None else restore(self.text, self.masked).text


def masked_pieces(
    parts: Iterable[str], spans: Sequence[Span], style: TokenStyle
) -> Iterator[Piece]:
    """Yield a piece per part, with tokens for the spans; no span is in two parts."""
    start, remaining = 0, deque(spans)
    for part in parts:
        end, inside = start + len(part), list[Span]()
        while remaining and remaining[0].end <= end:
            span = remaining.popleft()
            inside.append(Span(span.start - start, span.end - start, span.kind))
        yield _masked(part, inside, style) if inside else whole(part)
        start = end


def whole(part: str) -> Piece:
    """Return the part without the blanks around it; one without letters is kept."""
    if not has_letters(part):
        return Piece(part, kept=True)
    before, core, after = cutting.framed(part)
    return Piece(core, before=before, after=after)


def _masked(part: str, spans: Sequence[Span], style: TokenStyle) -> Piece:
    """Return the part with tokens; one without letters outside its spans is kept."""
    if not any(map(has_letters, unprotected(part, spans))):
        return Piece(part, kept=True)
    masked = mask(part, spans, style)
    before, core, after = cutting.framed(masked.text)
    return Piece(core, before=before, after=after, masked=masked)


def around(source: str, spans: Sequence[Span]) -> Iterator[Piece]:
    """Yield the spans, kept, and the text around them, kept if it has no letters."""
    for index, text in enumerate(unprotected(source, spans)):
        if index:
            span = spans[index - 1]
            yield Piece(source[span.start : span.end], kept=True)
        if has_letters(text):
            before, core, after = cutting.framed_clause(text)
            yield Piece(core, before=before, after=after)
        elif text:
            yield Piece(text, kept=True)


def with_originals(answer: str, piece: Piece) -> tuple[str, list[Finding]]:
    """Return the answer with the originals of its tokens, and a finding for each that is wrong.

    Numbered tags of a piece without tokens get the spelling of the source.
    """
    if piece.masked is None:
        return respelled(answer, piece.text), []
    restored = restore(answer, piece.masked)
    findings = [_lost("is missing", each) for each in restored.missing]
    findings += [_lost("occurs more than once", each) for each in restored.repeated]
    if restored.unknown:
        detail = f"{len(restored.unknown)} tokens stand for nothing"
        findings.append(Finding("placeholders", "fail", detail))
    if not findings and restored.moved_first:
        detail = f"{_shown(piece.masked.originals[-1])} was the end and came first"
        findings.append(Finding(_gate(piece.masked.originals[-1]), "warn", detail))
    return restored.text, findings


def _lost(how: str, original: str) -> Finding:
    return Finding(_gate(original), "fail", f"{_shown(original)} {how}")


def _gate(original: str) -> str:
    return "tags" if original.startswith("<") and original.endswith(">") else "placeholders"


def _shown(original: str) -> str:
    return original if len(original) <= _MOST_SHOWN else f"{original[:_MOST_SHOWN]}…"
