"""Protected spans: the parts of a text that a translation must keep verbatim."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dragoman_text import icu
from dragoman_text.inline import TAG, find_tags
from dragoman_text.terms import Term, TermIndex

# One pass; the first alternative that matches at a position wins. Every repetition is bounded, or
# never rescans what another start has scanned: texts of 128 KiB take linear time.
_URL_CHARS: Final = r"A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%{}\u00C0-\u052F"
_MUSTACHE: Final = r"\{\{\{[^{}\n]{1,200}\}\}\}|\{\{[^{}\n]{1,200}\}\}"
_NAMED_PRINTF: Final = (
    r"%\([A-Za-z_]\w{0,60}\)[#0+\-]{0,3}[0-9]{0,4}(?:\.[0-9]{1,3})?[diouxXeEfFgGcrsa]"
)
# No space flag, and as a span no Latin letter after it: "100 % der" and "5 %ige" are prose. Korean,
# Japanese and Chinese have no blank there: "%s이어야".
_PRINTF: Final = (
    r"%(?:[0-9]{1,2}\$)?[#0+\-']{0,3}(?:[0-9]{1,4}|\*)?(?:\.(?:[0-9]{1,3}|\*))?"
    r"(?:hh|h|ll|l|q|j|z|t|L)?[diouxXeEfFgGaAcCsSp@]"
)
_QT: Final = r"%(?:L?[1-9][0-9]?|n)"
_TEMPLATES: Final = (
    r"\$t\([^()\n]{1,200}\)|<%[=\-#]?[^%\n]{1,200}%>|\[\[[a-z_][A-Za-z0-9_.\-]{0,60}\]\]"
)
"""Of i18next, ERB, and a name in two brackets; a link of a wiki has words there."""
_COLON: Final = r":[a-z_][a-z0-9_]{1,60}:?"
_KINDS: Final = {
    "url": rf"(?:https?://|ftp://|(?<![\w.])www\.)[{_URL_CHARS}]+",
    "mail": r"(?<![\w.%+\-])[A-Za-z0-9_.%+\-]{1,64}@(?:[A-Za-z0-9\-]{1,63}\.){1,8}[A-Za-z]{2,24}\b",
    # Not GNU's quotes: in "`%s', expected `)'" the text between the graves is no code.
    "code": r"``(?:(?!''|``)[^\n]){1,300}``|`[^`'\n]{1,1000}`"
    r"|`[^`\s][^`\n]{0,1000}+(?<!\s)`(?![A-Za-z0-9_])",
    "tag": TAG,
    "entity": r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});",
    "mustache": _MUSTACHE,
    "template": rf"\$\{{[^{{}}\n]{{1,200}}\}}|{_TEMPLATES}",
    "printf": rf"{_NAMED_PRINTF}|{_PRINTF}(?![A-Za-z\u00AA-\u024F\u1E00-\u1EFF])|%%",
    "qt": rf"{_QT}(?![0-9A-Za-z%])",
    "brace": r"\{(?:[A-Za-z0-9_][\w.\[\]]{0,60}(?:![rsa])?(?::[^{}\n]{0,40})?"
    r"|(?:![rsa])?(?::[<>=^+\-#0-9.,_%A-Za-z]{1,12})?|[ ]?\$[A-Za-z_][^{}\n]{0,100})\}",
    # Not within a word, and not "HH:MM[:ss]": `:name` of Laravel and SQL, `:smile:`.
    "colon": rf"(?<![^\s(\"'“„«>]){_COLON}(?!\w)",
}
_PATTERN: Final = re.compile("|".join(f"(?P<{kind}>{body})" for kind, body in _KINDS.items()))
_ANYWHERE: Final = re.compile(
    rf"{_NAMED_PRINTF}|{_PRINTF}|%%|{_QT}|{_MUSTACHE}|\$?\{{[^{{}}\n]{{0,200}}\}}|{_TEMPLATES}|{_COLON}"
)
_PERHAPS: Final = re.compile(r"://|www\.|[@`<&{%]|\$t\(|\[\[|(?<!\w):[a-z_]")
"""Matches every text with a placeholder; most texts have none and need no further search."""
_DIRECTIVE: Final = re.compile(
    r"%%|%(?:[0-9]{1,2}\$)?[-_0^#:]{0,2}[0-9]{0,2}(?:\.[0-9]{1,2})?"
    r"(?:(?:hh?|ll?|[Lqjzt])[diouxXeEfFgGcs]|[EO]?[A-Za-z](?:[TZ](?=%|\Z))?)"
)
"""Of strftime, or printf's: `%-d`, `%b`, `%.2f`, `%lld`, and the letters between date and time in
ISO 8601."""
_FIRST_WORD: Final = re.compile(
    r"[-*#\"'(\[>|.,;!?0-9 \n]*+"
    r"[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f]++(?=[,.:;!?]?(?:[ \n]|\Z))"
)
"""A word at the start of a text: spans that begin with such characters end at a blank."""
_FIRST_OF_QT: Final = re.compile("%(?:L?1(?![0-9])|n)")
"""Arguments count from 1: in "%50 indirim" there is none, but a percentage in Turkish."""
_COVERED: Final = re.compile(rb"\x01+")
_CLOSING: Final = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Range ``text[start:end]`` to keep; ``kind`` is ``term`` or the kind of placeholder."""

    start: int
    end: int
    kind: str


def find_spans(text: str, terms: Iterable[str] = (), words: Iterable[str] = ()) -> list[Span]:
    """Return placeholders, links, code, tags and each occurrence of terms and words, in order.

    ``terms`` are literals, found anywhere; ``words`` count only as whole words. Both are found in
    their own case alone. Spans are not empty and do not overlap: overlapping ones are merged.
    """
    found = list(_placeholders(text)) if _PERHAPS.search(text) else []
    if wanted := {term for term in terms if term and term in text}:
        found += _term_spans(text, wanted)
    if kept := frozenset(words):
        found += [Span(each.start, each.end, "term") for each in _index(kept).occurrences(text)]
    return _united(sorted(found))


def count_words(text: str, words: Iterable[str]) -> Counter[str]:
    """Return how often each word occurs as a whole word, in its own case; no blank ones."""
    index = _index(frozenset(words))
    return Counter(each.term.source for each in index.occurrences(text))


def possible_placeholders(text: str) -> Iterator[str]:
    """Yield what could be a placeholder, in order: also before a letter, in prose and in code.

    To count those that are certain by another text, such as its source.
    """
    return (match[0] for match in _ANYWHERE.finditer(text))


def has_letters(text: str) -> bool:
    """Return whether any character is a letter of any script."""
    return text[:1].isalpha() or any(map(str.isalpha, text))


def has_words(text: str) -> bool:
    """Return whether a letter stands outside of directives: there is none in `%d. %B %Y`."""
    return has_letters(_DIRECTIVE.sub("", text) if "%" in text else text)


def is_translatable(text: str, terms: Iterable[str] = ()) -> bool:
    """Return whether letters remain outside the protected spans.

    Otherwise (empty, blanks, digits, punctuation, emoji, a link, a placeholder, the format of a
    date) the text is its own translation.
    """
    if not terms and _FIRST_WORD.match(text):
        return True
    if not has_words(text):
        return False
    spans = find_spans(text, terms)
    return not spans or any(map(has_words, unprotected(text, spans)))


def unprotected(text: str, spans: Sequence[Span]) -> list[str]:
    """Return the text between the spans, in order; one piece more than there are spans."""
    starts = [0, *(span.end for span in spans)]
    ends = [*(span.start for span in spans), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


@lru_cache(maxsize=64)
def _index(words: frozenset[str]) -> TermIndex:
    return TermIndex(Term(word, (word,), case_sensitive=True) for word in words)


def _term_spans(text: str, terms: set[str]) -> Iterator[Span]:
    """Yield the spans of the terms, merged where they overlap.

    A byte map of the text, with one byte per character and per gap between two, collects the
    occurrences: hundreds of frequent terms would make millions of spans. Spans that only touch are
    kept apart by the gap's byte.
    """
    covered = bytearray(2 * len(text))
    for term in terms:
        kept = b"\1" * (2 * len(term) - 1)
        for start in _occurrences(text, term):
            covered[2 * start : 2 * start + len(kept)] = kept
    for run in _COVERED.finditer(covered):
        yield Span(run.start() // 2, (run.end() + 1) // 2, "term")


def _occurrences(text: str, term: str) -> Iterator[int]:
    start = text.find(term)
    while start >= 0:
        yield start
        start = text.find(term, start + len(term))


def _placeholders(text: str) -> Iterator[Span]:
    """Yield what is no prose: of an ICU message, all but the texts of its arms."""
    end = 0
    for start, after in icu.skeleton(icu.message(text) or ()):
        yield from _between(text, end, start)
        yield Span(start, after, "icu")
        end = after
    yield from _between(text, end, len(text))


def _between(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield what is no prose in a range. A tag that is prose, as `<file %s>`, may have some."""
    markup: Collection[int] | None = None
    for match in _PATTERN.finditer(text, start, end):
        if match.lastgroup == "qt" and _FIRST_OF_QT.search(text) is None:
            continue
        if match.lastgroup == "tag" and markup is None:
            markup = {tag.start for tag in find_tags(text)}
        if match.lastgroup != "tag" or match.start() in (markup or ()):
            yield _placeholder(match)
        else:
            inside = _PATTERN.finditer(text, match.start() + 1, match.end())
            yield from map(_placeholder, inside)


def _placeholder(match: re.Match[str]) -> Span:
    end = match.end()
    if match.lastgroup == "url":
        end = match.start() + len(_without_closing_punctuation(match[0]))
    return Span(match.start(), end, match.lastgroup or "")


def _without_closing_punctuation(url: str) -> str:
    """Strip a sentence's full stop or closing bracket that follows a link."""
    surplus = {close: url.count(close) - url.count(opened) for close, opened in _CLOSING.items()}
    end = len(url)
    while end:
        last = url[end - 1]
        if surplus.get(last, 0) > 0:
            surplus[last] -= 1
        elif last not in ".,;:!?'":
            break
        end -= 1
    return url[:end]


def _united(found: list[Span]) -> list[Span]:
    united: list[Span] = []
    for span in found:
        if united and span.start < united[-1].end:
            last = united[-1]
            longer = max(last, span, key=lambda either: either.end - either.start)
            united[-1] = Span(last.start, max(last.end, span.end), longer.kind)
        else:
            united.append(span)
    return united
