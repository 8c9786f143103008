"""Directives: fences and colons with a name, admonitions, tabs, blocks, callouts and fields."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from dragoman_documents.markup.markdown.lines import behind_line
from dragoman_documents.markup.markdown.masks import Masks
from dragoman_documents.markup.markdown.options import INDENTED, DirectiveOptions
from dragoman_documents.markup.sites import Site
from dragoman_documents.values import is_text

_FENCE: Final = re.compile(rb"(?P<run>`+|~+)[ \t]*(?P<info>[^\r\n]*?)[ \t]*\Z")
_DIRECTIVE: Final = re.compile(
    rb"(?P<run>[:`~]+)[ \t]*(?:\{(?P<braced>[A-Za-z][\w:.+\-]*)\}|(?P<name>[\w:.+\-]*))"
    rb"[ \t]*(?P<rest>.*?)[ \t]*\Z",
    re.DOTALL,
)
_BRACKETED: Final = re.compile(rb"\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]")
_ADMONITION: Final = re.compile(
    rb"(?:!!!|\?\?\?\+?)[ ]?[\w\-]+(?:[ ]+[\w\-]+)*(?:[ ]+\"(?P<title>.*)\")?[ \t]*\Z"
)
_ADMONISH: Final = re.compile(
    rb"[`~]+[ \t]*\{?admonish(?:[ \t]+[\w.\-]+)?[ \t]+\"(?P<title>.*)\"[ \t}]*\Z"
)
_TAB: Final = re.compile(rb"===[!+]{0,2}[ ]+\"(?P<title>.*)\"[ \t]*\Z")
_SLASHES: Final = re.compile(rb"///[ ]*(?P<name>[\w\-]*)[ ]*(?:\|[ ]*(?P<title>.*?))?[ \t]*\Z")
_CALLOUT: Final = re.compile(rb"\[![^\]]*\][+-]?[ \t]*(?P<title>.*?)[ \t]*\Z")
_SHORT: Final = re.compile(rb"\*\[[^\]]+\]:[ \t]*(?P<title>.*?)[ \t]*\Z")
_QUOTED: Final = re.compile(rb"(?:[ \t]*>[^\n]*(?:\n|\Z))+")
_FIELD: Final = re.compile(rb":[^:]*:[ \t]+(?P<title>.*?)[ \t]*\Z")


class Directives(DirectiveOptions):
    """Hides directives but for their titles and their bodies."""

    def __init__(self, masks: Masks, site: Site) -> None:
        super().__init__(masks, site)
        self._directives: list[bytes] = []
        """Fences of directives with Markdown in them that are open."""
        self._quoted = 0
        self.code: list[tuple[int, int]] = []
        """Ranges of fenced code."""

    def _fence(self, match: re.Match[bytes]) -> int | None:
        found = _FENCE.match(match["fence"])
        assert found is not None  # noqa: S101  the line matched
        run, info = found["run"], found["info"]
        top = self._directives[-1] if self._directives else b""
        if not info and run[:1] == top[:1] and len(run) >= len(top):
            self._directives.pop()
            self._hide(match, "fence")
            return None
        directive = self._directive_of(info)
        if directive is not None:
            self._directives.append(run)
            if directive == "admonish":
                self._admonish(match)
                return None
            return self._open(match, "fence", directive.encode())
        start, end = match.span("fence")
        self._masks.stay(start, end)
        self._add_attributes(start, end)
        if self._site.dialect == "myst" and self._is_unknown(info):
            self._left("directive", start)
        if self._site.dialect == "pandoc" and info.startswith(b"{"):
            self._read_cell(end)
        closing = _closing_fence(run, len(match["prefix"]) + 3).search(self._text, end)
        behind = closing.end() if closing else len(self._text)
        if b">" in match["prefix"]:
            behind = min(behind, self._quote_end(match.start()))
        self.code.append((start, behind))
        return behind

    def _admonish(self, match: re.Match[bytes]) -> None:
        """Hide the first line of a block of mdbook-admonish but for its title."""
        start, end = match.span("fence")
        found = _ADMONISH.match(match["fence"])
        first, last = found.span("title") if found else (-start, -start)
        self._hide_but(start, end, (start + first, start + last))
        if found is None:
            self._add_attributes(start, end)

    def _quote_end(self, start: int) -> int:
        """Return where the quote of a line ends, and with it the code in it."""
        if start >= self._quoted and (quoted := _QUOTED.match(self._text, start)) is not None:
            self._quoted = quoted.end()
        return self._quoted

    def _directive_of(self, info: bytes) -> str | None:
        """Return the name of a fence whose body is Markdown."""
        name = info.split(maxsplit=1)[0].strip(b"{}").decode("utf-8", "replace") if info else ""
        is_one = info.startswith(b"{") or name in ("admonish", "ad-note")
        return name if is_one and (name in self._site.blocks or name == "admonish") else None

    def _is_unknown(self, info: bytes) -> bool:
        """Return whether a fence is a directive that may have text in its body."""
        name = info[1:].split(b"}", 1)[0].strip().decode("utf-8", "replace")
        return info.startswith(b"{") and name[:1].isalpha() and name not in self._site.code

    def _colons(self, match: re.Match[bytes]) -> int | None:
        found = _DIRECTIVE.match(match["colons"])
        assert found is not None  # noqa: S101  the line matched
        name = found["braced"] or found["name"]
        if not name and not found["rest"]:
            self._hide(match, "colons")
            return None
        if name.decode("utf-8", "replace") in self._site.code:
            return self._until_colons(match, found["run"])
        return self._open(match, "colons", name)

    def _until_colons(self, match: re.Match[bytes], run: bytes) -> int:
        closing = re.compile(rb"^[ \t>]*:{%d,}[ \t]*\r?$" % len(run), re.MULTILINE)
        found = self._closing(closing, match.end())
        end = found.end() if found else match.end()
        self._masks.region(match.start() + len(match["prefix"]), end)
        return end

    def _open(self, match: re.Match[bytes], group: str, name: bytes) -> int:
        """Hide the first line of a directive but for its title, and its options."""
        start, end = match.span(group)
        found = _DIRECTIVE.match(self._text, start, end)
        assert found is not None  # noqa: S101  the line matched
        first, last = found.span("rest")
        known = name.decode("utf-8", "replace") in self._site.blocks
        title = (0, 0)
        if (bracketed := _BRACKETED.match(self._text, first, last)) is not None:
            title = bracketed.span(1)
        elif self._text[first : first + 1] != b"{" and is_text(found["rest"].decode()):
            if known:
                title = (first, last)
            elif b"=" not in found["rest"]:
                self._left("directive", start)
        self._hide_but(start, end, title)
        self._add_attributes(start, end, title)
        behind = self._options(behind_line(self._text, end), known=known)
        if name == b"glossary" and b">" not in match["prefix"]:
            self._glossary(behind, len(match["prefix"]), found["run"])
        return behind

    # --- admonitions, tabs, blocks ----------------------------------------------------------------

    def _admonition(self, match: re.Match[bytes]) -> None:
        found = _ADMONITION.match(match["admonition"])
        if found is not None:
            self._item(match, "admonition", found, b"-   #")

    def _tab(self, match: re.Match[bytes]) -> None:
        found = _TAB.match(match["tab"])
        if found is not None:
            self._item(match, "tab", found, b"-  #")

    def _item(
        self, match: re.Match[bytes], group: str, found: re.Match[bytes], head: bytes
    ) -> None:
        """Hide a line whose indented body is Markdown: the body of an item of a list."""
        start, end = match.span(group)
        first, last = found.span("title")
        self._hide_but(start, end, (start + first, start + last) if first >= 0 else (0, 0), head)

    def _slashes(self, match: re.Match[bytes]) -> int | None:
        found = _SLASHES.match(match["slashes"])
        if found is None:
            return None
        start, end = match.span("slashes")
        first, last = found.span("title")
        self._hide_but(start, end, (start + first, start + last) if first >= 0 else (0, 0))
        behind = behind_line(self._text, end)
        if found["name"] and (options := INDENTED.match(self._text, behind)) is not None:
            self._masks.region(behind, options.end())
            return options.end()
        return None

    def _titled(self, match: re.Match[bytes], group: str, pattern: re.Pattern[bytes]) -> None:
        found = pattern.match(match[group])
        if found is not None:
            start, end = match.span(group)
            first, last = found.span("title")
            self._hide_but(start, end, (start + first, start + last))

    def _callout(self, match: re.Match[bytes]) -> None:
        if b">" in match["prefix"]:
            self._titled(match, "callout", _CALLOUT)

    def _short(self, match: re.Match[bytes]) -> None:
        self._titled(match, "short", _SHORT)

    def _field(self, match: re.Match[bytes]) -> None:
        if self._site.dialect == "myst":
            self._titled(match, "field", _FIELD)


@lru_cache(64)
def _closing_fence(run: bytes, indent: int) -> re.Pattern[bytes]:
    """Return what closes code in a fence: it is found faster by the break before its line."""
    fence = re.escape(run[:1]) + b"{%d,}" % len(run)
    return re.compile(rb"\n[ \t>]{0,%d}%b[ \t]*\r?(?=\n|\Z)" % (indent, fence))
