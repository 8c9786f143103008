"""Options that a format does not have: one remark per document, as nothing else would show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dragoman_documents import registry
from dragoman_documents.codec import Codec, Options

_TABLES: Final = frozenset({"csv", "tsv"})
_FORMATS: Final = {
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


def remarks(codec: Codec, options: Options) -> Iterator[str]:
    """Yield a remark for each option that was given and that the format does not have.

    Formats of other packages are not known here, but for what their codecs say.
    """
    if options.bilingual and not codec.can_double:
        yield f"--bilingual does not exist for {codec.name}: the output has the translation alone"
    if codec.name not in registry.ours():
        return
    for name, (option, formats) in _FORMATS.items():
        if getattr(options, name) and codec.name not in formats:
            yield f"{option} does not exist for {codec.name} and was ignored"
