"""Inline HTML among Markdown tokens: pairs of tags, and elements whose content is not text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from dragoman_documents.markup.html.reader import TRANSLATED
from dragoman_documents.markup.markdown.attributes import attributes
from dragoman_documents.markup.markdown.events import MarkdownToken
from dragoman_documents.markup.markdown.titles import Title

_NAME: Final = re.compile(r"</?([A-Za-z][A-Za-z0-9:.\-]*)")
EMPTY_NAMES: Final = frozenset(
    "area base br col embed hr img input link meta source track wbr".split()  # noqa: SIM905
)
"""Elements without an end tag."""
CODE_NAMES: Final = frozenset(
    "code kbd math pre samp script style svg template textarea tt var".split()  # noqa: SIM905
)
"""Elements whose content is not text."""
_UNTRANSLATED: Final = re.compile(
    r"""\btranslate\s*=\s*["']?no\b|\bclass\s*=\s*["']?[^"'>]*\bnotranslate\b""", re.IGNORECASE
)


def with_pairs(tokens: list[MarkdownToken]) -> list[MarkdownToken]:
    """Return the tokens with HTML tags as pairs and single codes; code elements become one code."""
    if "html" not in [token.kind for token in tokens]:
        return tokens
    pairing = _Pairing(tokens, list(tokens))
    for index, token in enumerate(tokens):
        pairing.add(index, token)
    return _merged(pairing.tokens, pairing.opaque)


def titles_of_tags(tokens: Sequence[MarkdownToken], source: bytes) -> list[Title]:
    """Return the titles and other texts of tags outside of elements whose content is not text."""
    found: list[Title] = []
    code = ""
    for token in tokens:
        name = _NAME.match(token.text) if token.kind == "html" else None
        if name is None:
            continue
        if code:
            code = "" if token.text.startswith("</") and name[1].lower() == code else code
        elif name[1].lower() in CODE_NAMES or _UNTRANSLATED.search(token.text):
            is_open = not token.text.startswith("</") and name[1].lower() not in EMPTY_NAMES
            code = name[1].lower() if is_open and not token.text.endswith("/>") else ""
        elif "=" in token.text:
            found += attributes(source, token.start, token.end, TRANSLATED, "references")
    return found


@dataclass(slots=True)
class _Pairing:
    """Tags that are open, per pair of Markdown's own delimiters, which no HTML pair may cross."""

    originals: list[MarkdownToken]
    tokens: list[MarkdownToken]
    opaque: dict[int, int] = field(default_factory=dict)
    _opened: list[tuple[int, str]] = field(default_factory=list)
    """Index and name of each tag that is open; the name is empty for Markdown's delimiters."""
    _names: list[Counter[str]] = field(default_factory=lambda: [Counter()])

    def add(self, index: int, token: MarkdownToken) -> None:
        if token.kind == "open":
            self._opened.append((index, ""))
            self._names.append(Counter())
        elif token.kind == "close":
            self._names.pop()
            while self._opened.pop()[1]:
                pass
        elif token.kind == "html":
            self._add_tag(index, token)

    def _add_tag(self, index: int, token: MarkdownToken) -> None:
        self.tokens[index] = MarkdownToken("single", token.start, token.end)
        found = _NAME.match(token.text)
        name = found[1].lower() if found else ""
        if not name or name in EMPTY_NAMES or token.text.endswith("/>"):
            return
        if not token.text.startswith("</"):
            self._opened.append((index, name))
            self._names[-1][name] += 1
        elif self._names[-1][name]:
            self._close(index, name)

    def _close(self, index: int, name: str) -> None:
        while (last := self._opened.pop())[1] != name:
            self._names[-1][last[1]] -= 1
        self._names[-1][name] -= 1
        begin = self.tokens[last[0]]
        end = self.tokens[index]
        self.tokens[last[0]] = MarkdownToken("open", begin.start, begin.end)
        self.tokens[index] = MarkdownToken("close", end.start, end.end)
        if name in CODE_NAMES or self._is_untranslated(last[0]):
            self.opaque[last[0]] = index

    def _is_untranslated(self, index: int) -> bool:
        return _UNTRANSLATED.search(self.originals[index].text) is not None


def _merged(tokens: list[MarkdownToken], opaque: dict[int, int]) -> list[MarkdownToken]:
    """Return the tokens with each element of code as one."""
    merged: list[MarkdownToken] = []
    index = 0
    while index < len(tokens):
        last = opaque.get(index)
        if last is None:
            merged.append(tokens[index])
            index += 1
        else:
            merged.append(MarkdownToken("single", tokens[index].start, tokens[last].end))
            index = last + 1
    return merged
