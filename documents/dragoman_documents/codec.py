"""The interface of a document format, and the values that cross it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

Reason = Literal[
    "unsupported_format", "encrypted", "corrupt", "wrong_type", "bomb", "too_large", "encoding"
]
"""Why a document cannot be read; a part of the reasons of the report."""
Kind = Literal[
    "paragraph", "heading", "list_item", "cell", "caption", "attribute", "title", "metadata",
    "code", "cue", "message", "plural", "value", "note", "link",
]  # fmt: skip
"""What a segment is in its document."""
RemarkKind = Literal[
    "html", "directive", "shortcode", "attribute", "expression", "table", "front_matter", "message",
    "name", "characters", "plural", "language", "direction", "signature", "generated", "missing",
    "time", "check", "list", "length", "option", "unmatched", "encoding",
]  # fmt: skip
"""What a remark is about."""
LEFT: Final[frozenset[RemarkKind]] = frozenset(
    {"html", "directive", "shortcode", "attribute", "expression", "table", "front_matter",
     "message", "name", "characters", "list", "length"}
)  # fmt: skip
"""The kinds of text that readers see and that stays in the source language."""
MOST_CHARACTERS: Final = 2**20
"""Of a segment that is translated: longer ones are left. One of 200 MB, cut into sentences, takes
6 GB in the parent."""
State = Literal["empty", "draft", "done"]
"""What a format with a place for translations holds there: nothing, one to be looked at, one."""

Layout = TypeVar("Layout")


class DocumentError(Exception):
    """A document that cannot be read. Its message names the place and what to do, without text."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason: Reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Options:
    """How documents are read and written. Each codec ignores what does not concern it."""

    target_lang: str
    """A normalised tag, such as `de` or `zh-Hant`."""
    source_lang: str | None = None
    columns: tuple[str, ...] = ()
    """CSV, TSV and Parquet: columns to translate, names or numbers from 1; default: all with text.
    Parquet has no default."""
    fields: tuple[str, ...] = ()
    """JSONL: members to translate, `a.b` for nested ones; default: all with text."""
    keys: tuple[str, ...] = ()
    """JSON and YAML: patterns of paths to translate, such as `pages.*.title`; default: all.
    Front matter: patterns of paths to translate in addition to those of the site."""
    ids: tuple[str, ...] = ()
    """Tables and JSONL: the column or member whose value places name beside the row."""
    in_place: bool = False
    """Tables: write over the source column instead of adding `name.de`."""
    add: bool = False
    """JSONL: add members `name.de` instead of writing over their sources."""
    bilingual: bool = False
    """Keep the source and put the translation after it, where blocks can be doubled."""
    headings: bool = False
    """Fill `Segment.headings`."""
    encoding: str | None = None
    """Of files that declare none and are not UTF-8; for `encodings.Notes`, not for codecs."""
    site: str | None = None
    """The site whose Markdown it is, for `sites.site`; None: nothing names it."""
    drafts: frozenset[int] = frozenset()
    """For `splice`, formats with a place for translations: the indices of the segments whose
    translation a person should look at (PO: `fuzzy`; XLIFF: `needs-review-translation`)."""


class InlineCode(NamedTuple):
    """Markup inside a segment: what stands behind `<g1>..</g1>` or, without `closing`, `<x1/>`.

    Codes are numbered from 1 in the order in which they begin, pairs and single ones together.
    """

    opening: str
    closing: str | None = None


class Segment(NamedTuple):
    """A block of text that is translated as one.

    A named tuple, because a frozen dataclass of 13 fields takes four times as long to make, and a
    document has 10,000 of them per MB.
    """

    text: str
    """What is translated: decoded, with inline markup as `<g1>..</g1>` and `<x2/>`."""
    place: str
    """Where it is, for people: `line 12`, `slide 3`, `sheet Sales, B7`, `menu.file.open`."""
    kind: Kind = "paragraph"
    codes: tuple[InlineCode, ...] = ()
    max_chars: int | None = None
    state: State = "empty"
    """Only where there is a place for translations (`Codec.has_targets`, columns of tables)."""
    target: str | None = None
    """The translation that the document holds, with the same tags; None if there is none."""
    plural: str | None = None
    """The plural category (`one`, `few`, ...) of the target language, for one form of a message.

    Forms of one message are neighbours with the same `place`; see `plurals.settled`."""
    number: int | None = None
    """The number in `text` that stands for the count of a plural form."""
    number_optional: bool = False
    """Whether a translation may say the number as a word: the form is of 1 alone."""
    context: str | None = None
    """What disambiguates the text in its format: gettext's msgctxt, a comment for translators."""
    headings: tuple[str, ...] = ()
    """The headings above, outermost first."""
    doubled: bool = True
    """Whether a bilingual document has source and translation as two segments of this kind."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something a person should know of a document, without its text."""

    place: str
    """Of the first one, if there are several."""
    detail: str
    kind: RemarkKind
    """Remarks of one kind are one line of the report, with the detail of the first."""
    count: int = 1


@dataclass(frozen=True, slots=True)
class Extraction:
    """The segments of a document, and a digest of everything else."""

    segments: tuple[Segment, ...]
    skeleton: str
    """Hex digest of what no translation may change: markup, keys, numbers of cells, times."""
    encoding: str = "utf-8"
    """Name for Python's codecs; `utf-8-sig` and the like mean a byte order mark."""
    remarks: tuple[Remark, ...] = ()
    layout: object = field(default=None, compare=False, repr=False)
    """Of the codec: where the segments are in the bytes. Never stored; extract again instead."""


def layout_of(extraction: Extraction, kind: type[Layout]) -> Layout:
    """Return the layout of an extraction. Raises TypeError if it is of another codec."""
    if not isinstance(extraction.layout, kind):
        raise TypeError("the extraction is of another codec")
    return extraction.layout


class Codec(Protocol):
    """A document format.

    `extract` and `splice` are deterministic, linear in the size of the document, and safe to call
    in any thread. `splice(data, extract(data, o), [None] * n, o)` returns `data`.
    """

    @property
    def name(self) -> str:
        """Name of the format, as `--format` takes it: `markdown`."""
        ...

    @property
    def suffixes(self) -> frozenset[str]:
        """Suffixes of file names, with the dot and in lower case: `.md`."""
        ...

    @property
    def by_language(self) -> bool:
        """Whether the segments depend on the target language, as plural forms do."""
        ...

    @property
    def has_targets(self) -> bool:
        """Whether a document holds sources and translations side by side, as PO and XLIFF do."""
        ...

    @property
    def can_double(self) -> bool:
        """Whether `Options.bilingual` is supported."""
        ...

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return the segments of a document in their order. Raises DocumentError."""
        ...

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the document with a translation for each segment.

        `extraction` is `extract(data, options)`, `texts` has as many members; None leaves a segment
        as the format leaves what is not translated: the source, an empty msgstr. Tags in a text
        are those of its segment, in any order that nests (see `inline_codes.fits`).
        """
        ...


@runtime_checkable
class Regrouping(Protocol):
    """A codec whose segments depend on their texts, as cues that end with a sentence do."""

    def extract_like(self, data: bytes, options: Options, before: Extraction) -> Extraction:
        """Return the segments of an output, grouped as `before`, the extraction of its source.

        Bilingual: each source is followed by its translation, if it has one. Raises DocumentError.
        """
        ...


@runtime_checkable
class Naming(Protocol):
    """A codec with columns, members or keys that `Options` names."""

    def names(self, data: bytes) -> Iterator[Sequence[str]]:
        """Yield the path of each value that can be named, repeats included. Raises DocumentError.

        `("menu", "title")` is `menu.title`; a column is a path of one name.
        """
        ...
