"""Remedies: how a text is asked for again after its answer failed gates.

Pure functions on frozen values. Protected spans have a ladder: the text as it is, the spans as
numbered tokens, sentences apart, and at last only the pieces around the spans, which cannot lose
any. For other gates the same text is asked for again, warmer and with a corrective sentence, and
then its halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from dragoman_text.masks import TAGS, TokenStyle
from dragoman_text.spans import Span, find_spans
from dragoman_text.terms import Term
from dragoman_text.verdicts import Finding, Judgement
from dragoman_worker.quality import corrections, cutting, joining
from dragoman_worker.quality.pieces import Piece, around, masked_pieces, whole, with_originals

Name = Literal["native", "tokens", "sentences", "pieces", "resample", "split", "paragraphs"]

WARMER: Final = 0.2
"""Added to the temperature for each answer to the same text: greedy decoding would repeat it."""
MOST_PIECES: Final = 256
"""Requests that one remedy may make of a text; a text of more pieces is asked for whole."""
_SPAN_GATES: Final = frozenset({"placeholders", "tags"})
_COPY_GATES: Final = frozenset({"copy", "language", "script"})
AS_IT_IS, TOKENS, SENTENCES, PIECES = range(4)
_RUNG_NAMES: Final[tuple[Name, ...]] = ("native", "tokens", "sentences", "pieces")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One text to translate, and all that a remedy needs to know about it."""

    source: str
    target_lang: str
    source_lang: str | None = None
    protect: tuple[str, ...] = ()
    """Literals to keep, wherever they occur."""
    do_not_translate: tuple[str, ...] = ()
    """Words to keep where they are whole words."""
    terms: tuple[Term, ...] = ()
    """Glossary entries that occur in the source."""
    max_chars: int | None = None
    style: TokenStyle = TAGS
    max_attempts: int = 3


@dataclass(frozen=True, slots=True)
class Try:
    """What to ask the engine for. Its pieces, joined, are the text."""

    pieces: tuple[Piece, ...]
    target_lang: str
    name: Name = "native"
    warmer: float = 0.0
    """Added to the temperature of the job or the profile."""
    correction: str | None = None
    """English sentences for the prompts of profiles that take instructions."""
    avoids_tokens: bool = False
    """Whether an answer to a text with tokens was a copy of it, so that none may be used again."""
    rung: int = AS_IT_IS
    """Place on the ladder of protected spans."""

    @property
    def asked(self) -> tuple[Piece, ...]:
        """The pieces that need an answer each, in order."""
        return tuple(piece for piece in self.pieces if not piece.kept)

    @property
    def tokens(self) -> bool:
        """Whether any piece has tokens in place of spans."""
        return any(piece.masked is not None for piece in self.pieces)


def first(wanted: Wanted) -> Try:
    """Return the first try: the text as it is."""
    return Try((whole(wanted.source),), wanted.target_lang)


def following(wanted: Wanted, previous: Try, judgement: Judgement, attempt: int) -> Try:
    """Return what to ask for as attempt `attempt` (2 or more), after `judgement` has failed.

    The last attempt at lost spans asks for the pieces around them.
    """
    failed = frozenset(finding.gate for finding in judgement.failed)
    base = replace(previous, correction=_correction(wanted, failed, judgement.text))
    if previous.tokens and failed & _COPY_GATES:
        return _unmasked(wanted, base)
    if failed & _SPAN_GATES:
        return _climbed(wanted, base, last=attempt >= wanted.max_attempts) or _resampled(base)
    if "paragraphs" in failed and previous.name != "paragraphs":
        return _recut(wanted, base, "paragraphs") or _resampled(base)
    if attempt > 2:
        return _recut(wanted, base, "split") or _resampled(base)
    return _resampled(base)


def join(tried: Try, answers: Sequence[str]) -> tuple[str, tuple[Finding, ...]]:
    """Return the text of the answers, one per asked piece, with the originals of their tokens.

    Tokens that are missing, repeated or unknown are findings, never an exception.
    """
    parts: list[joining.TranslatedPiece] = []
    findings: list[Finding] = []
    remaining = iter(answers)
    for piece in tried.pieces:
        text = piece.text
        if not piece.kept:
            text, found = with_originals(next(remaining), piece)
            findings += found
        parts.append(joining.TranslatedPiece(piece.before, piece.source, piece.after, text))
    if tried.rung == PIECES:
        findings.append(Finding("pieces", "warn", "translated in pieces around what must be kept"))
    return _joined(parts, tried), tuple(dict.fromkeys(findings))


def better(one: Judgement, other: Judgement) -> Judgement:
    """Return the better of two: fewer hard gates, fewer warnings, more usual length; then `one`."""
    return min(one, other, key=_rank)


def _joined(parts: Sequence[joining.TranslatedPiece], tried: Try) -> str:
    """Return the text of the parts; the blanks around spans stay, those between sentences may not.

    Only one of two languages may have blanks between sentences.
    """
    if tried.rung != PIECES:
        return joining.join(parts, tried.target_lang)
    return "".join(text for part in parts for text in (part.before, part.text, part.after))


def _rank(judgement: Judgement) -> tuple[int, int, float]:
    warned = sum(finding.severity == "warn" for finding in judgement.findings)
    return len(judgement.failed), warned, judgement.length_distance


def _climbed(wanted: Wanted, base: Try, *, last: bool) -> Try | None:
    """Return the next rung of the ladder that changes something; None if there is none."""
    spans = _spans(wanted)
    rungs = [PIECES] if last else range(base.rung + 1, PIECES + 1)
    for rung in rungs if spans else ():
        pieces = _rung_pieces(wanted, spans, rung, tokens=not base.avoids_tokens)
        same = (rung == TOKENS and base.avoids_tokens) or (rung == SENTENCES and len(pieces) == 1)
        if not same and sum(not piece.kept for piece in pieces) <= MOST_PIECES:
            return replace(base, pieces=pieces, name=_RUNG_NAMES[rung], rung=rung)
    return None


def _rung_pieces(
    wanted: Wanted, spans: Sequence[Span], rung: int, *, tokens: bool
) -> tuple[Piece, ...]:
    if rung == PIECES:
        return tuple(around(wanted.source, spans))
    source = wanted.source
    parts = [source]
    if rung == SENTENCES:
        parts = cutting.sentences_with_spans(source, wanted.source_lang, spans)
    return tuple(masked_pieces(parts, spans if tokens else (), wanted.style))


def _unmasked(wanted: Wanted, base: Try) -> Try:
    """Return the text as it is: the one with tokens came back as a copy of the source."""
    piece = whole(wanted.source)
    return replace(
        _resampled(base), pieces=(piece,), name="native", avoids_tokens=True, rung=AS_IT_IS
    )


def _resampled(base: Try) -> Try:
    return replace(base, name="resample", warmer=base.warmer + WARMER)


def _recut(wanted: Wanted, base: Try, name: Literal["split", "paragraphs"]) -> Try | None:
    """Return the text in smaller parts, masked if it was; None if there is nothing to cut."""
    if base.rung == PIECES:
        return None
    spans = _spans(wanted)
    if name == "paragraphs":
        parts = cutting.paragraphs(wanted.source, MOST_PIECES)
    else:
        most = 2 * max(1, len(base.asked)) if base.name == "split" else 2
        parts = cutting.sentences(wanted.source, wanted.source_lang, spans)
        parts = cutting.grouped(parts, min(most, MOST_PIECES))
    if len(parts) < 2:
        return None
    pieces = tuple(masked_pieces(parts, spans if base.tokens else (), wanted.style))
    return replace(_resampled(base), pieces=pieces, name=name)


def _spans(wanted: Wanted) -> list[Span]:
    return find_spans(wanted.source, wanted.protect, wanted.do_not_translate)


def _correction(wanted: Wanted, failed: frozenset[str], answer: str) -> str | None:
    folded = answer.casefold()
    return corrections.correction(
        failed,
        target_lang=wanted.target_lang,
        source_lang=wanted.source_lang,
        max_chars=wanted.max_chars,
        missed=[
            term
            for term in wanted.terms
            if not any(target.casefold() in folded for target in term.targets)
        ],
    )
