"""Lines and regions of syntax that CommonMark does not know: directives, admonitions, tabs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from dragoman_documents.codec import RemarkKind
from dragoman_documents.markup.markdown.masks import Masks
from dragoman_documents.markup.markdown.titles import Title
from dragoman_documents.markup.sites import Site
from dragoman_documents.values import is_text

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
                     | \$?[\[{]\[?_?[Tt][Oo][Cc]_?\]?[\]}][ \t]*\r?$
                     | \\[A-Za-z]+\*?(?:\{[^{}\r\n]*\}|\[[^\[\]\r\n]*\])*[ \t]*\r?$ )
    | (?P<comment>     %%[ \t]*\r?$ )
    | (?P<metadata>    ---[ \t]*(?=\r?\n[A-Za-z_][\w.\-]*:(?:[ \t\r\n]|\Z))\r?$ )
    | (?P<list>        \{[ ]?[:#.\w][^{}\r\n]*\}[ \t]*\r?$ )
    | (?P<callout>     \[![A-Za-z]+(?:\|[^\]\r\n]*)?\][+-]?[^\r\n]* )
    | (?P<short>       \*\[[^\]\r\n]+\]:[^\r\n]* )
    | (?P<display>     \$\$ )
    | (?P<field>       :[A-Za-z][\w \-]{0,40}:[ \t]+[^\r\n]* )
    | (?P<example>     \(@[\w-]{0,6}\)[ \t]+(?=\S) | (?:[A-Za-z]|[ivxIVX]{1,6}|\#)[.)][ \t]+(?=\S)
                     | \((?:[A-Za-z0-9]|[ivxIVX]{1,5})\)[ \t]+(?=\S) )
    | (?P<bar>         \|[^\r\n]* )
    | (?P<grid>        \+[-=+:]+\+[ \t]*\r?$ )
    | (?P<dashes>      --+(?:[ ]+--+)+[ \t]*\r?$ )
    | (?P<markdown>    <[A-Za-z][^<>\r\n]*[ ]markdown(?:=[^<>\r\n]*)?>[ \t]*\r?$ )
    | (?P<html>        <!--|<(?:script|style|pre|textarea)\b )
    | (?P<heading>     \#{1,6}[ \t][^\r\n]*?[ \t]*\\?\{(?P<id>[^{}\r\n]*)\}(?P<after>[ \t\#]*)\r?$ )
    | (?P<definition>  (?=\S) )
    )""",
    re.VERBOSE | re.MULTILINE,
)
_LIKELY: Final = re.compile(
    rb"\n[ \t>]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*"
    rb"(?:```|~~~|:::|:[ \t]|!!!|\?\?\?|===|///|;-|--|-8<|<<<|<[A-Za-z!]|%[% \t]|\([^\s()]+\)="
    rb"|\{|\[[!\[_Tt]|(?:[A-Za-z]|[ivxIVX]{1,6}|#)[.)][ \t]"
    rb"|\((?:@|[\w]{1,5}\))|:[A-Za-z]|\$[\[{$]|\\[A-Za-z]|\*\[|\||\+[-=:+]|#{1,6}[ \t][^\n]*\{)"
)
"""A line that may be one of them: without groups it is found several times faster."""
_NOT_MDX: Final = frozenset({"list", "markdown", "html"})
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
_TAB: Final = re.compile(rb"===[!+]{0,2}[ ]+\"(?P<title>.*)\"[ \t]*\Z")
_SLASHES: Final = re.compile(rb"///[ ]*(?P<name>[\w\-]*)[ ]*(?:\|[ ]*(?P<title>.*?))?[ \t]*\Z")
_CALLOUT: Final = re.compile(rb"\[![^\]]*\][+-]?[ \t]*(?P<title>.*?)[ \t]*\Z")
_SHORT: Final = re.compile(rb"\*\[[^\]]+\]:[ \t]*(?P<title>.*?)[ \t]*\Z")
_QUOTED: Final = re.compile(rb"(?:[ \t]*>[^\n]*(?:\n|\Z))+")
_FIELD: Final = re.compile(rb":[^:]*:[ \t]+(?P<title>.*?)[ \t]*\Z")
_DISPLAY_END: Final = re.compile(
    rb"\$\$[ \t]*(?:\([\w:.\-]+\)|\{[^{}\r\n]*\})?[ \t]*\r?$", re.MULTILINE
)
_LONGEST_DISPLAY: Final = 4_000
_CODE: Final = re.compile(rb"`[^`\r\n]*`")
_OPTION: Final = re.compile(rb"[ \t>]*:(?P<name>[\w\-]+):[ \t]*(?P<value>[^\r\n]*)(?:\r?\n|\Z)")
_YAML: Final = re.compile(rb"[ \t>]*---[ \t]*\r?\n(?:[^\n]*\n){0,99}?[ \t>]*---[ \t]*(?:\r?\n|\Z)")
_KEYS: Final = re.compile(
    rb"(?:\r?\n(?:[A-Za-z_][\w.\-]*:(?=[ \t\r\n])|[ \t#]|-[ \t]|(?=\r?\n))[^\r\n]*)*+"
    rb"\r?\n(?:---|\.\.\.)[ \t]*(?=\r?\n|\Z)"
)
"""Lines of YAML up to the closing one: keys, their values, and comments."""
_INDENTED: Final = re.compile(rb"(?:[ \t>]*(?:[ ]{4}|\t)[^\r\n]*(?:\r?\n|\Z))+")
_SEPARATOR: Final = re.compile(rb"[ \t>]*[|:\-+= \t]*-[|:\-+= \t]*\r?\Z")
_ROWS: Final = re.compile(rb"(?:[ \t>]*[|+][^\n]*(?:\n|\Z))+")
_LINE: Final = re.compile(rb"^[ \t>]*(?P<line>[^\n]*?)[ \t]*\r?$", re.MULTILINE)
_PARAGRAPH: Final = re.compile(rb"(?:[ \t>]*[^ \t>\r\n][^\n]*(?:\n|\Z))+")


class Blocks:
    """Hides the lines and regions of other syntax of one document."""

    def __init__(self, masks: Masks, site: Site, *, mdx: bool) -> None:
        self._masks = masks
        self._text = masks.source
        self._site = site
        self._mdx = mdx
        self._directives: list[bytes] = []
        """Fences of directives with Markdown in them that are open."""
        self._quoted = 0
        self._missing: set[bytes] = set()
        self.code: list[tuple[int, int]] = []
        """Ranges of fenced code."""

    def hide(self, place: int) -> None:
        """Hide all of them from a place on; code in fences and comments stay."""
        while (start := self._likely(place)) is not None:
            match = _LINES.match(self._text, start)
            if match is None:
                place = start + 1
                continue
            place = max(match.end(), start + 1)
            self._hide_definition(match)
            kind = match.lastgroup if match.lastgroup not in ("id", "after") else "heading"
            if not (self._mdx and kind in _NOT_MDX):
                place = max(place, _HIDE[kind or ""](self, match) or place)

    def _hide_definition(self, match: re.Match[bytes]) -> None:
        """Let a definition be an item of a list, whose lines are indented as well."""
        for place, character in enumerate(match["prefix"], match.start("prefix")):
            if character == ord(":"):
                self._masks.spell(place, place + 1, b"-")

    def _likely(self, place: int) -> int | None:
        """Return the start of the next line that may be hidden; None if there is none."""
        if not place:
            if _LIKELY.match(b"\n" + self._text[: _behind_line(self._text, 0)]) is not None:
                return 0
            place = 1
        found = _LIKELY.search(self._text, place - 1)
        return found.start() + 1 if found else None

    # --- fences and directives --------------------------------------------------------------------

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
            return self._open(match, "fence", directive.encode())
        start, end = match.span("fence")
        self._masks.stay(start, end)
        self._add_attributes(start, end)
        if self._site.dialect == "myst" and self._is_unknown(info):
            self._left("directive", start)
        closing = re.compile(
            rb"^[ \t>]{0,%d}" % (len(match["prefix"]) + 3)
            + re.escape(run[:1])
            + b"{%d,}[ \t]*\r?$" % len(run),
            re.MULTILINE,
        ).search(self._text, end)
        behind = closing.end() if closing else len(self._text)
        if b">" in match["prefix"]:
            behind = min(behind, self._quote_end(match.start()))
        self.code.append((start, behind))
        return behind

    def _quote_end(self, start: int) -> int:
        """Return where the quote of a line ends, and with it the code in it."""
        if start >= self._quoted and (quoted := _QUOTED.match(self._text, start)) is not None:
            self._quoted = quoted.end()
        return self._quoted

    def _closing(self, pattern: re.Pattern[bytes], start: int) -> re.Match[bytes] | None:
        """Return what closes a region; what is not there is looked for once."""
        if pattern.pattern in self._missing:
            return None
        found = pattern.search(self._text, start)
        if found is None:
            self._missing.add(pattern.pattern)
        return found

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
        return self._options(_behind_line(self._text, end), known=known)

    def _options(self, place: int, *, known: bool) -> int:
        """Hide the options of a directive behind its first line; return the place behind them."""
        if (yaml := _YAML.match(self._text, place)) is not None:
            self._masks.region(place, yaml.end())
            return yaml.end()
        while (option := _OPTION.match(self._text, place)) is not None:
            self._masks.region(place, option.end())
            start = option.start("value")
            text = option["value"].decode("utf-8", "replace").strip()
            if option["name"].decode() in self._site.attributes and is_text(text):
                last = start + len(option["value"].rstrip())
                self._masks.attributes.append(Title(start, last, text, "plain"))
            place = option.end()
        if not known and (indented := _INDENTED.match(self._text, place)) is not None:
            self._masks.region(place, indented.end())
            return indented.end()
        return place

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
        behind = _behind_line(self._text, end)
        if found["name"] and (options := _INDENTED.match(self._text, behind)) is not None:
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

    def _definition(self, _match: re.Match[bytes]) -> None:
        """Leave the text of a line that may only be a definition."""

    def _field(self, match: re.Match[bytes]) -> None:
        if self._site.dialect == "myst":
            self._titled(match, "field", _FIELD)

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

    # --- tables -----------------------------------------------------------------------------------

    def _bar(self, match: re.Match[bytes]) -> int | None:
        """Leave tables to the parser, hide rows without a separator; lines of verse are items."""
        start = match.start()
        rows = _ROWS.match(self._text, match.start("bar"))
        assert rows is not None  # noqa: S101  the line matched
        lines = [line.strip(b" \t>\r") for line in rows[0].split(b"\n") if line.strip()]
        above = self._text[self._text.rfind(b"\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)]
        if b"|" in above or _SEPARATOR.match(above) or any(map(_SEPARATOR.match, lines)):
            self._hide_bars(start, rows.end())
            self._hide_bars_alone(start, rows.end())
            return rows.end()
        if not self._begins_paragraph(match):
            return rows.end()
        if all(line.endswith(b"|") and len(line) > 1 for line in lines):
            self._table(rows.start(), rows.end())
        elif all(line[1:2] in (b" ", b"") and b"|" not in line[1:] for line in lines) and (
            not self._text[rows.end() : _behind_line(self._text, rows.end())].strip(b" \t>\r\n")
        ):
            self._verses(rows.start(), rows.end())
        return rows.end()

    def _hide_bars(self, start: int, end: int) -> None:
        """Hide bars in inline code from the parser where they separate no cells."""
        if self._site.dialect == "python-markdown":
            for code in _CODE.finditer(self._text, start, end):
                if b"|" in code[0]:
                    self._masks.spell(*code.span(), code[0].replace(b"|", b"x"))

    def _hide_bars_alone(self, start: int, end: int) -> None:
        """Hide lines of one bar behind a table, which are no rows: they would become some."""
        for _ in range(2):  # the head and the separator may begin without a bar
            start = self._text.rfind(b"\n", 0, max(0, start - 1)) + 1
        head, in_table = b"", False
        for line in _LINE.finditer(self._text, start, end):
            cells = line["line"]
            if in_table and cells == b"|":
                self._masks.line(*line.span("line"))
            elif b"|" in head and _SEPARATOR.match(cells) and _columns(head) == _columns(cells):
                in_table = True
            head = cells

    def _verses(self, start: int, end: int) -> None:
        self._masks.spell(start, start + 1, b"-")
        for each in re.compile(rb"^[ \t>]*\|", re.MULTILINE).finditer(self._text, start + 1, end):
            self._masks.spell(each.end() - 1, each.end(), b"-")

    def _grid(self, match: re.Match[bytes]) -> int | None:
        rows = _ROWS.match(self._text, match.start("grid"))
        assert rows is not None  # noqa: S101  the line matched
        self._table(match.start("grid"), rows.end())
        return rows.end()

    def _dashes(self, match: re.Match[bytes]) -> int | None:
        """Hide a simple table of Pandoc: its columns are where its blanks are."""
        behind = _behind_line(self._text, match.end())
        rows = _PARAGRAPH.match(self._text, behind)
        head = self._text.rfind(b"\n", 0, max(0, match.start() - 1)) + 1
        has_head = match.start() and self._text[head : match.start()].strip()
        start = head if has_head else match.start()
        end = rows.end() if rows else match.end()
        self._table(start, end)
        return end

    def _table(self, start: int, end: int) -> None:
        if is_text(self._text[start:end].decode("utf-8", "replace")):
            self._left("table", start)
        self._masks.region(start, end)

    # --- lines ------------------------------------------------------------------------------------

    def _hidden(self, match: re.Match[bytes]) -> None:
        if not match["hidden"].startswith(b"% ") or self._begins_paragraph(match):
            self._hide(match, "hidden")

    def _begins_paragraph(self, match: re.Match[bytes]) -> bool:
        """Return whether a line begins a paragraph, or continues lines of comments."""
        if match["prefix"].strip(b" \t>"):
            return True
        end = max(0, match.start() - 1)
        above = self._text[self._text.rfind(b"\n", 0, end) + 1 : end].strip(b" \t>\r")
        return not above or above.startswith(b"%")

    def _list(self, match: re.Match[bytes]) -> None:
        """Hide a line that is a list of attributes."""
        inside = match["list"].strip()[1:-1].strip()
        if inside[:1] in (b":", b"#", b".") or b"=" in inside:
            self._hide(match, "list")
            self._add_attributes(*match.span("list"))

    def _markdown(self, match: re.Match[bytes]) -> None:
        """Hide the tag of an element whose content is Markdown."""
        self._hide(match, "markdown")

    def _heading(self, match: re.Match[bytes]) -> None:
        """Hide the attributes at the end of a heading."""
        inside = match["id"].strip()
        if inside[:1] in (b":", b"#", b".", b"/") or b"=" in inside:
            start = match.start("id") - 1
            if self._text[start - 1 : start] == b"\\":
                start -= 1  # of `\{#id}`, as MDX needs it
            while self._text[start - 1 : start] in (b" ", b"\t"):
                start -= 1
            end = match.end("id") + 1
            self._masks.text[start:end] = b" " * (end - start)
            self._add_attributes(start, end)

    # --- what they share --------------------------------------------------------------------------

    def _hide(self, match: re.Match[bytes], group: str) -> None:
        self._masks.line(*match.span(group))

    def _hide_but(self, start: int, end: int, title: tuple[int, int], head: bytes = b"#") -> None:
        """Hide a line but for a title in it."""
        first, last = title
        if not self._text[first:last].strip() or first < start + len(head) + 1:
            if head == b"#":
                self._masks.line(start, end)
            else:
                self._masks.head(start, end, head)
            return
        self._masks.head(start, first, head)
        self._masks.text[last:end] = b" " * (end - last)
        self._masks.title(first, last)

    def _add_attributes(self, start: int, end: int, title: tuple[int, int] = (0, 0)) -> None:
        self._masks.add_attributes(start, end, self._site.attributes, "references", title)

    def _left(self, kind: RemarkKind, place: int) -> None:
        self._masks.left.append((kind, place))


def _columns(row: bytes) -> int:
    """Return the number of cells of a row of a table."""
    return row.removeprefix(b"|").removesuffix(b"|").replace(b"\\|", b"").count(b"|") + 1


def _behind_line(text: bytes, place: int) -> int:
    found = text.find(b"\n", place)
    return found + 1 if found >= 0 else len(text)


_HIDE: Final[Mapping[str, Callable[[Blocks, re.Match[bytes]], int | None]]] = {
    name: getattr(Blocks, f"_{name}")
    for name in (
        "fence", "colons", "admonition", "tab", "slashes", "snippets", "hidden", "comment", "list",
        "environment", "display", "callout", "short", "definition", "field", "example", "bar",
        "grid", "dashes", "markdown", "html", "heading", "metadata",
    )
}  # fmt: skip
