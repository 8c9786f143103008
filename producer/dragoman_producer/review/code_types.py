"""What an inline code is, in the terms of XLIFF 1.2, for people who see only its tag."""

from __future__ import annotations

import re
from typing import Final
from xml.sax.saxutils import quoteattr

from dragoman_documents.codec import InlineCode

_LONGEST: Final = 120
"""Characters of a code that are shown: a picture of DOCX has thousands."""
_NAME: Final = re.compile(r"<(?:[A-Za-z0-9]+:)?([A-Za-z][A-Za-z0-9_.-]*)")
_NOT_XML: Final = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_STYLES: Final = (("<w:b/>", "bold"), ("<w:i/>", "italic"), ("<w:u ", "underlined"))
_ELEMENTS: Final = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underlined",
    "a": "link",
    "hyperlink": "link",
    "img": "image",
    "drawing": "image",
    "br": "lb",
    "line-break": "lb",
}
_MARKS: Final = (
    ("![", "image"),
    ("[", "link"),
    ("***", "x-bold-italic"),
    ("**", "bold"),
    ("__", "bold"),
    ("*", "italic"),
    ("_", "italic"),
    ("~~", "x-strikethrough"),
    ("`", "x-code"),
    ("$", "x-formula"),
    ("{", "x-placeholder"),
    ("%", "x-placeholder"),
)


def described(code: InlineCode) -> str:
    """Return the attributes `ctype` and `equiv-text` of a code, each with a blank before it."""
    text = _NOT_XML.sub("", f"{code.opening}...{code.closing}" if code.closing else code.opening)
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 3] + "..."
    return f' ctype="{type_of(code)}" equiv-text={quoteattr(text)}'


def type_of(code: InlineCode) -> str:
    """Return the `ctype` of a code; `x-` and the name of its element for one without a standard."""
    opening = code.opening.lstrip()
    for mark, kind in (*_STYLES, *_MARKS):
        if opening.startswith(mark) or (mark.startswith("<") and mark in opening):
            return kind
    match = _NAME.match(opening)
    if match is None:
        return "x-code"
    return _ELEMENTS.get(match[1].lower(), f"x-{match[1]}")
