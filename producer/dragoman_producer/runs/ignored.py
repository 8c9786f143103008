"""Options that a format does not have: one remark per document, as nothing else would show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dragoman_documents import registry
from dragoman_documents.codec import Codec, Options, Remark

_TABLES: Final = frozenset({"csv", "tsv"})
FORMATS: Final = {
    "columns": ("--column", _TABLES),
    "in_place": ("--in-place", _TABLES),
    "fields": ("--field", frozenset({"jsonl"})),
    "keys": ("--key", frozenset({"json", "arb", "chrome", "yaml", "markdown", "mdx"})),
    "headings": (
        "--context headings",
        frozenset(
            {"markdown", "mdx", "html", "xhtml", "epub", "ipynb", "docx", "odt", "pptx"},
        ),
    ),
}
"""Per member of Options its option and the formats that have it."""


def remarks(codec: Codec, options: Options) -> Iterator[Remark]:
    """Yield one remark for all options that were given and that the format does not have."""
    found = list(_ignored(codec, options))
    if found:
        detail = f"{', '.join(found)}: {codec.name} has no such option; ignored"
        yield Remark("", detail, "option", len(found))


def _ignored(codec: Codec, options: Options) -> Iterator[str]:
    """Yield the options; of formats of other packages only what their codecs say."""
    if options.bilingual and not codec.can_double:
        yield "--bilingual"
    if codec.name not in registry.ours():
        return
    for name, (option, formats) in FORMATS.items():
        if getattr(options, name) and codec.name not in formats:
            yield option
