"""What the gates and codes in a report mean, in a sentence for the person who reviews."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

REASONS: Final[Mapping[str, str]] = {
    "blank": "it has no letters",
    "loop": "a part repeats again and again",
    "placeholders": "a placeholder is missing or too many, such as %s or {name}",
    "tags": "a tag is missing, too many or out of place; the source was kept if it could not stay",
    "structure": "rows, fences or separated values have another shape than the source's",
    "copy": "it is almost the source",
    "language": "it seems to be in another language",
    "script": "it has letters that its language does not use",
    "length": "it is much shorter or longer than such translations usually are",
    "incomplete": "its end may be missing",
    "chatter": "the model added an introduction, a note or a refusal",
    "control": "it has characters that do not belong into a text",
    "garbled": "its characters are damaged: escapes, a wrong encoding or lost blanks",
    "paragraphs": "it has another number of paragraphs",
    "glossary": "a term of the glossary is missing",
    "max_chars": "it is longer than its place allows",
    "verbatim": "a link, an address or code is missing",
    "numbers": "a number is missing",
    "framing": "blanks or marks at its ends were repaired",
    "same_language": "the source seems to be in the target language already",
    "unjudged": "the gates could not judge it",
    "pieces": "it was translated in pieces around protected parts",
    "uncut": "a stretch that no one can cut, such as base64, stayed as it was",
    "formality": "the form of address that was asked for may be missing",
    "memory": "an approved translation lacked what was asked for, so the model translated it",
    "read_back": "the document could not hold it; the source was kept",
    "plural": "the number did not come back; the general form was used",
    "plural_lost": "the number did not come back; it keeps its source",
    "message_incomplete": "another text of its message has no translation; the source was kept",
    "missing": "it has no translation",
    "quality_failed": "no answer passed the gates; the source was kept",
    "engine_failed": "the model gave no answer",
}
