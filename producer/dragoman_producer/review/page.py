"""Pages of a review: self-contained HTML files that load nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from string import Template
from typing import Any, Final, Literal

from dragoman_documents.codec import InlineCode

MOST_ROWS: Final = 10_000
"""Segments per page: some 10 MB of HTML, which a browser opens in about a second."""

Verdict = Literal["ok", "warn", "fail", "unchecked"]
Origin = Literal["new", "reused", "memory", "edited"]


@dataclass(frozen=True, slots=True)
class RowFinding:
    """What a gate found in a translation, or why there is none."""

    gate: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """A segment and its translation."""

    document: str
    """Path of the source document, relative to where the run read from."""
    segment: int
    """Index among the document's texts that were translated, from 0."""
    place: str
    source: str
    target: str | None
    verdict: Verdict
    findings: tuple[RowFinding, ...] = ()
    origin: Origin = "new"
    max_chars: int | None = None
    codes: tuple[InlineCode, ...] = ()
    """What stands behind the tags of the source, where it is known; for editors alone."""


@dataclass(frozen=True, slots=True)
class Review:
    """What all pages of a review have in common."""

    run: str
    """Id of the run; edits are kept in the browser under it."""
    target_lang: str
    source_lang: str | None
    apply: str
    """The command that applies downloaded edits."""


def file_name(target_lang: str, page: int, pages: int) -> str:
    """Return the name of a page's file; `page` counts from 1."""
    return f"review-{target_lang}.html" if pages == 1 else f"review-{target_lang}-{page}.html"


def pages(review: Review, rows: Iterable[ReviewRow], total: int) -> Iterator[tuple[str, str]]:
    """Yield the file name and the HTML of each page for `total` rows; one page if there are none.

    Only the rows of one page are in memory.
    """
    count = max(1, -(-total // MOST_ROWS))
    waiting = iter(rows)
    for number in range(1, count + 1):
        part = list(islice(waiting, MOST_ROWS))
        name = file_name(review.target_lang, number, count)
        yield name, _html(review, part, number, count)


def digest(source: str) -> str:
    """Return the digest of a source text by which edits find their segment again."""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _html(review: Review, rows: Sequence[ReviewRow], number: int, count: int) -> str:
    script, style = _part("page.js"), _part("page.css")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    title = f"Review of translations into {review.target_lang}"
    data = {
        "title": title,
        "run": review.run,
        "page": number,
        "target_lang": review.target_lang,
        "source_lang": review.source_lang,
        "apply": review.apply,
        "pages": _links(review, number, count),
        "rows": [_row(row) for row in rows],
    }
    return Template(_part("page.html")).substitute(
        policy=policy, title=html.escape(title), style=style, script=script, data=_embedded(data)
    )


def _links(review: Review, number: int, count: int) -> list[dict[str, str | None]]:
    if count == 1:
        return []
    return [
        {
            "title": f"page {other}",
            "href": None if other == number else file_name(review.target_lang, other, count),
        }
        for other in range(1, count + 1)
    ]


def _row(row: ReviewRow) -> dict[str, Any]:
    return {
        "document": row.document,
        "segment": row.segment,
        "place": row.place,
        "source": row.source,
        "digest": digest(row.source),
        "target": row.target,
        "verdict": row.verdict,
        "reasons": [{"gate": each.gate, "detail": each.detail} for each in row.findings],
        "origin": row.origin,
        "max_chars": row.max_chars,
    }


def _embedded(data: Any) -> str:
    """Return JSON that cannot end its script element, whatever text is in it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _hash(inline: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'"


@cache
def _part(name: str) -> str:
    return files("dragoman_producer.review").joinpath(name).read_text(encoding="utf-8")
