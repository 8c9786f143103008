"""Lines and regions of syntax that CommonMark does not know: directives, admonitions, tabs."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from dragoman_documents.markup.markdown.directives import Directives
from dragoman_documents.markup.markdown.elements import Elements
from dragoman_documents.markup.markdown.flow import Region
from dragoman_documents.markup.markdown.lines import behind_line
from dragoman_documents.markup.markdown.masks import Masks
from dragoman_documents.markup.markdown.tables import Tables
from dragoman_documents.markup.sites import Dialect, Site

_LINES: Final = re.compile(
    rb"""
    ^(?P<prefix>[ \t>]*(?:(?:[-*+:]|[0-9]{1,9}[.)])[ \t]+)*)(?:
      (?P<fence>       (?:`{3,}(?=[^`\r\n]*\r?$)|~{3,})[^\r\n]* )
    | (?P<colons>      :{3,}[^\r\n]* )
    | (?P<admonition>  (?:!!!|\?\?\?\+?)[ ]?(?=[\w-])[^\r\n]* )
    | (?P<tab>         ===[!+]{0,2}[ ]+"[^\r\n]* )
    | (?P<slashes>     ///(?=[ ]|\r?$)[^\r\n]* )
    | (?P<snippets>    ;?-+8<-+[ \t]*\r?$ )
    | (?P<environment> \\begin\{[^{}\r\n]*\} )
    | (?P<hidden>      ;?-+8<-+[^\r\n]* | <<<[ ][^\r\n]* | %[ \t][^\r\n]*
                     | \+{3}(?:[ \t][^\r\n]*|\r?$) | %%[^\r\n]+%%[ \t]*\r?$
                     | \([^\s()]+\)=[ \t]*\r?$ | \{[*!][^\r\n]*[*!]\}[ \t]*\r?$
                     | ::[a-z][\w\-]*::[ \t]*\r?$ | ::include\{[^{}\r\n]*\}[ \t]*\r?$
                     | (?:id::[ ]\S+|collapsed::[ ](?:true|false))[ \t]*\r?$
                     | (?:SCHEDULED|DEADLINE):[ ]<[^<>\r\n]*>[ \t]*\r?$
                     | r\[[a-z][a-z0-9_\-]*(?:\.[a-z0-9_\-]+)*\][ \t]*\r?$
                     | \$?[\[{]\[?_?[Tt][Oo][Cc]_?\]?[\]}][ \t]*\r?$
                     | \\[A-Za-z]+\*?(?:\{[^{}\r\n]*\}|\[[^\[\]\r\n]*\])*[ \t]*\r?$ )
    | (?P<comment>     %%[ \t]*\r?$ )
    | (?P<metadata>    ---[ \t]*(?=\r?\n[A-Za-z_][\w.\-]*:(?:[ \t\r\n]|\Z))\r?$ )
    | (?P<list>        \{[ ]?[:#.\w][^{}\r\n]*\}[ \t]*\r?$ )
    | (?P<task>        (?<=[ \t])\[[!-Z^-~](?=\][ \t]) )
    | (?P<callout>     \[![A-Za-z]+(?:\|[^\]\r\n]*)?\][+-]?[^\r\n]* )
    | (?P<short>       \*\[[^\]\r\n]+\]:[^\r\n]* )
    | (?P<display>     \$\$ )
    | (?P<field>       :[A-Za-z][\w .*/+\-]{0,40}:[ \t]+[^\r\n]* )
    | (?P<example>     \(@[\w-]{0,6}\)[ \t]+(?=\S) | (?:[A-Za-z]|[ivxIVX]{1,6}|\#)[.)][ \t]+(?=\S)
                     | \((?:[A-Za-z0-9]|[ivxIVX]{1,5})\)[ \t]+(?=\S) )
    | (?P<bar>         \|[^\r\n]* )
    | (?P<grid>        \+[-=+:]+\+[ \t]*\r?$ )
    | (?P<separator>   :?-+:?[ \t]*\|[|:\- \t]*\r?$ )
    | (?P<dashes>      --+(?:[ ]+--+)+[ \t]*\r?$ )
    | (?P<markdown>    <[A-Za-z][^<>\r\n]*[ ]markdown(?:[ ]*=[^<>\r\n]*)?>[ \t]*\r?$ )
    | (?P<line>        <(?P<of>[A-Za-z][\w\-]*)(?=[ ])[^<>\r\n]*[ ]markdown(?:[ ]*=[^<>\r\n]*)?>
                       (?P<inner>[^\r\n]*)</(?P=of)>[ \t]*\r?$ )
    | (?P<html>        <!--|<(?:script|style|pre|textarea)\b )
    | (?P<tag>         </?(?P<name>[A-Za-z][\w\-]*)(?=[\s/>])[^\r\n]* )
    | (?P<heading>     \#{1,6}[ \t][^\r\n]*?[ \t]*\\?\{(?P<id>[^{}\r\n]*)\}(?P<after>[ \t\#]*)\r?$ )
    | (?P<definition>  (?=\S) )
    )""",
    re.VERBOSE | re.MULTILINE,
)
_LIKELY: Final = re.compile(
    rb"\n[ \t>]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*"
    rb"(?:```|~~~|:::|:[ \t]|!!!|\?\?\?|===|///|;-|--|-8<|<<<|<[A-Za-z!/]|%[% \t]|\([^\s()]+\)="
    rb"|\{|:?-+:?[ \t]*\||\[(?:[!\[_Tt]|[^\]\n]\])|(?:[A-Za-z]|[ivxIVX]{1,6}|#)[.)][ \t]"
    rb"|::?[A-Za-z]|id::|collapsed::|SCHEDULED:|DEADLINE:|r\["
    rb"|\((?:@|[\w]{1,5}\))|\$[\[{$]|\\[A-Za-z]|\*\[|\||\+[-=:+]|#{1,6}[ \t][^\n]*\{)"
)
"""A line that may be one of them: without groups it is found several times faster."""
_WITH_BARE_NAMES: Final[frozenset[Dialect]] = frozenset({"markdown-it", "pulldown-cmark"})
_NOT_MDX: Final = frozenset({"list", "markdown", "line", "html", "tag"})
_DISPLAY_END: Final = re.compile(
    rb"\$\$[ \t]*(?:\([\w:.\-]+\)|\{[^{}\r\n]*\})?[ \t]*\r?$", re.MULTILINE
)
_LONGEST_DISPLAY: Final = 4_000
_KEYS: Final = re.compile(
    rb"(?:\r?\n(?:[A-Za-z_][\w.\-]*:(?=[ \t\r\n])|[ \t#]|-[ \t]|(?=\r?\n))[^\r\n]*)*+"
    rb"\r?\n(?:---|\.\.\.)[ \t]*(?=\r?\n|\Z)"
)
"""Lines of YAML up to the closing one: keys, their values, and comments."""


class Blocks(Directives, Elements, Tables):
    """Hides the lines and regions of other syntax of one document."""

    def __init__(self, masks: Masks, site: Site, *, mdx: bool) -> None:
        super().__init__(masks, site)
        self._mdx = mdx

    def hide(self, place: int, wholes: Iterable[Region]) -> None:
        """Hide all of them from a place on; code in fences and comments stay.

        In `wholes` there are none.
        """
        rest = deque(wholes)
        while (start := self._likely(place)) is not None:
            while rest and rest[0].end <= start:
                rest.popleft()
            if rest and rest[0].start <= start:
                place = rest[0].end
                continue
            match = _LINES.match(self._text, start)
            if match is None:
                place = start + 1
                continue
            place = max(match.end(), start + 1)
            self._hide_definition(match)
            kind = match.lastgroup or ""
            if not (self._mdx and kind in _NOT_MDX):
                place = max(place, _HIDE[kind](self, match) or place)

    def _hide_definition(self, match: re.Match[bytes]) -> None:
        """Let a definition be an item of a list, whose lines are indented as well."""
        for place, character in enumerate(match["prefix"], match.start("prefix")):
            if character == ord(":"):
                self._masks.spell(place, place + 1, b"-")

    def _likely(self, place: int) -> int | None:
        """Return the start of the next line that may be hidden; None if there is none."""
        if not place:
            if _LIKELY.match(b"\n" + self._text[: behind_line(self._text, 0)]) is not None:
                return 0
            place = 1
        found = _LIKELY.search(self._text, place - 1)
        return found.start() + 1 if found else None

    def _task(self, match: re.Match[bytes]) -> None:
        """Let the mark of a task be one that the parser knows."""
        if self._site.dialect == "obsidian" and match["prefix"].strip(b" \t>"):
            self._masks.spell(match.end() - 1, match.end(), b"x")

    def _definition(self, _match: re.Match[bytes]) -> None:
        """Leave the text of a line that may only be a definition."""

    def _example(self, match: re.Match[bytes]) -> None:
        """Let the items of Pandoc's lists be items: `(@label)`, `a.`, `#.`, `(iv)`."""
        if self._site.dialect == "pandoc":
            start, end = match.span("example")
            marker = match["example"].rstrip()
            number = b"0" * (len(marker) - 2) + b"1." if len(marker) > 1 else b"-"
            self._masks.spell(start, end, number + b" " * (end - start - len(number)))

    # --- regions ----------------------------------------------------------------------------------

    def _snippets(self, match: re.Match[bytes]) -> int:
        closing = re.compile(rb"^[ \t>]*;?-+8<-+[ \t]*\r?$", re.MULTILINE)
        return self._region(match, "snippets", self._closing(closing, match.end()))

    def _metadata(self, match: re.Match[bytes]) -> int | None:
        """Hide keys of a slide or a section, as of Slidev and Pandoc: behind a blank line."""
        line = match.start()
        text = self._masks.text
        before = text[text.rfind(b"\n", 0, max(0, line - 1)) + 1 : line]
        keys = _KEYS.match(self._text, match.end("metadata"))
        if before.strip() or keys is None:
            return None
        self._masks.region(match.start("metadata"), keys.end())
        return keys.end()

    def _comment(self, match: re.Match[bytes]) -> int:
        closing = re.compile(rb"^[ \t>]*%%[ \t]*\r?$", re.MULTILINE)
        return self._region(match, "comment", self._closing(closing, match.end()))

    def _display(self, match: re.Match[bytes]) -> int | None:
        """Hide a formula with its label."""
        limit = match.end() + _LONGEST_DISPLAY
        closing = _DISPLAY_END.search(self._text, match.end(), limit)
        return self._region(match, "display", closing) if closing else None

    def _environment(self, match: re.Match[bytes]) -> int:
        name = match["environment"][len(b"\\begin") :]
        closing = re.compile(re.escape(b"\\end" + name) + rb"[^\r\n]*")
        return self._region(match, "environment", self._closing(closing, match.end()))

    def _region(self, match: re.Match[bytes], group: str, closing: re.Match[bytes] | None) -> int:
        """Hide lines up to the closing one; the first one alone if there is none."""
        end = closing.end() if closing else match.end()
        self._masks.region(match.start(group), end)
        return end

    def _html(self, match: re.Match[bytes]) -> int:
        """Skip comments and scripts, whose lines are no blocks."""
        opening = match["html"]
        name = opening[1:].lower()
        ending = b"-->" if opening == b"<!--" else b"</" + name
        found = self._closing(re.compile(re.escape(ending), re.IGNORECASE), match.end())
        return found.end() if found else match.end()

    # --- lines ------------------------------------------------------------------------------------

    def _hidden(self, match: re.Match[bytes]) -> None:
        is_comment = match["hidden"].startswith(b"% ") and self._site.dialect != "myst"
        if not is_comment or self._begins_paragraph(match):
            self._hide(match, "hidden")

    def _list(self, match: re.Match[bytes]) -> None:
        """Hide a line that is a list of attributes."""
        inside = match["list"].strip()[1:-1].strip()
        if inside[:1] in (b":", b"#", b".") or b"=" in inside:
            self._hide(match, "list")
            self._add_attributes(*match.span("list"))

    def _heading(self, match: re.Match[bytes]) -> None:
        """Hide the attributes at the end of a heading."""
        start = match.start("id") - 1
        if self._are_attributes(match["id"].strip(), start):
            if self._text[start - 1 : start] == b"\\":
                start -= 1  # of `\{#id}`, as MDX needs it
            while self._text[start - 1 : start] in (b" ", b"\t"):
                start -= 1
            end = match.end("id") + 1
            self._masks.text[start:end] = b" " * (end - start)
            self._add_attributes(start, end)

    def _are_attributes(self, inside: bytes, start: int) -> bool:
        """Return whether braces are attributes: words alone, as in `{id}`, are text for most."""
        if inside[:1] in (b":", b"#", b".", b"/") or b"=" in inside:
            return True
        spaced = self._text[start - 1 : start] == b" "
        dialect = self._site.dialect
        is_one = dialect in _WITH_BARE_NAMES or (spaced and dialect == "python-markdown")
        return is_one and bool(inside)


_HIDE: Final[Mapping[str, Callable[[Blocks, re.Match[bytes]], int | None]]] = {
    name: getattr(Blocks, f"_{name}")
    for name in (
        "fence", "colons", "admonition", "tab", "slashes", "snippets", "hidden", "comment", "list",
        "environment", "display", "callout", "short", "definition", "field", "example", "bar",
        "grid", "separator", "dashes", "markdown", "html", "heading", "metadata",
        "task", "tag", "line",
    )
}  # fmt: skip
