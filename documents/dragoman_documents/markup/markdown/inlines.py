"""Inline syntax that CommonMark takes for text: wiki links, notes, spans, roles, merge tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Final

from dragoman_documents.markup.markdown.lines import behind_line
from dragoman_documents.markup.markdown.masks import Masks
from dragoman_documents.markup.sites import Dialect, Site

_INLINE: Final = re.compile(
    rb"""
      (?P<wiki> !?\[\[ [^\[\]\r\n]+ \]\] (?![(\[]) )
    | (?P<code> \[\^ [^\]\s]+ \] (?!:)                   # a mark of a footnote
              | \[-?@ [^\[\]\r\n]+ \] (?![(\[:])         # a citation
              | \{\* [^*\r\n]* \*\} | \{! [^{}\r\n]* !\} # an included file
              | (?<![A-Za-z0-9:/]) : (?:[A-Za-z][\w+\-]* | [+\-]1) : (?![A-Za-z0-9:]|//)  # an emoji
              | (?<=[\w)\]]) (?: ~[^\s~]{1,40}~ (?!~) | \^[^\s^\[\]]{1,40}\^ (?!\^) )
              | \*\| [\w:.\-]+ \|\* | %% [^%\r\n]+ %% | \$\{ [^{}\r\n]* \}
              | \\\( (?=(?:(?!\\\)).){0,400}?(?:\\[A-Za-z]|\^|[A-Za-z]_[A-Za-z0-9{]))
                (?:(?!\\\)).){1,400} \\\)                # a formula
              | \\\[ (?=(?:(?!\\\]).){0,400}?(?:\\[A-Za-z]|\^|[A-Za-z]_[A-Za-z0-9{]))
                (?:(?!\\\]).){1,400} \\\] )
    | (?P<image> !\[ (?: bg(?=[ \]])
                          | (?:w|h|width|height|blur|brightness|opacity):[0-9][\w.%]*+ )
                (?: [ ]+ (?: bg | left | right | fit | contain | cover | auto | vertical | [0-9]+%
                 | (?:w|h|width|height|left|right|blur|brightness|opacity):[0-9][\w.%]*+ ) )*
                (?=[ \]]) )
    | (?P<size> \]\( [^\s()<>]{1,400}+ [ ]+ =[0-9]*%?x[0-9]*%?[ ]* \) )
    | (?P<vue> <[A-Za-z][\w.\-]*+(?:[^<>"']++|"[^"<]{0,400}+"|'[^'<]{0,400}+')*+> )
    | (?P<cite> (?<![\w@./]) @ (?:\{[^{}\s]+\}|[\w\x80-\xff](?:[:.\#$%&\-+?~/]?[\w\x80-\xff])*+) )
    | (?P<obsidian> (?<![^ \t\n])\^[A-Za-z0-9\-]+(?=[ \t]*\r?(?:\Z|\n(?:[ \t>]*\r?(?:\n|\Z)
                    | [ \t>]*(?:[-*+]|[0-9]{1,9}[.)]|\#{1,6})[ \t])))              # of a block
                  | \|[0-9]+(?:x[0-9]+)?(?=\]\() )
    | (?P<note> \^\[ )
    | (?P<label> \] \[ (?P<name> [^\[\]\r\n]* ) \] )
    | (?P<span> \] \{ \ ?(?:[\#.:]|[^{}\r\n=]*=) (?:[^{}\r\n]|\r?\n(?![ \t>]*\r?\n))* \} )
    | (?P<after> (?:(?<=[)`]) | (?<=[^\s*_][*_]) | (?<=[^\s*_][*_]{2}) | (?<=\w:))
                 \{ \ ?(?:[\#.:]|[^{}\r\n=]*=) (?:[^{}\r\n]|\r?\n(?![ \t>]*\r?\n))* \}
               | \{ \ ? [\#.:][A-Za-z] [^{}\r\n]* \} )
    | (?P<before> \{ [A-Za-z][\w:+\-]* \} (?=`) )
    | (?P<address> (?:https?|ftp):// [^\s<>"'`\\()\[\]{}|]*+ )
    """,
    re.VERBOSE,
)
_NOT_MDX: Final = frozenset({"span", "after", "before", "vue"})
"""In MDX braces are expressions, and tags are components."""
_OF_DIALECTS: Final[Mapping[str, Dialect]] = {"cite": "pandoc", "obsidian": "obsidian"}
_LABEL_MAY_BE_FIRST: Final = frozenset({"", "github"})
"""Sites on which `[[a|b]]` may be a link to `b`, as in GitHub's wikis."""
_ATTRIBUTE: Final = re.compile(rb"\"[^\"]*\"|'[^']*'|=[ \t\r\n]*[^\s\"'<>]+|[^\s\"'<>=/]+")
_NO_NAME: Final = re.compile(rb"[^\w.:\-]")
_ADDRESS: Final = rb"tps?://[^\s<>\"'`\\()\[\]{}|*_~^%:]*[*_~^%:]"
_LIKELY: Final = re.compile(
    rb"!\[(?:\[|bg[ \]]|[a-z]+:[0-9])|\[[\[\^@\-]|\](?:[\[{]|\((?=[^\s()<>]{1,400}+[ ]+=))"
    rb"|\{(?:[*!]|[ ]?[#.:]|[^{}\r\n=]*=|[A-Za-z][\w:+\-]*\}`)"
    rb"|:(?:[A-Za-z][\w+\-]*|[+\-]1):|~[^\s~]|\^(?:\[|[^\s^])|\*\||%%|\$\{|\\[(\[]"
    rb"|\|[0-9]+(?:x[0-9]+)?\]"
    rb"|<[A-Za-z](?:[^<>\"'@#]++|\"[^\"<]{0,400}+\"|'[^'<]{0,400}+')*+(?<=\s)[@#][A-Za-z\[]"
    rb"|h(?=t" + _ADDRESS + rb")|f(?=" + _ADDRESS + rb")"
)
"""The beginning of one of them. Each branch begins with a character of its own: the search skips to
those, which is several times faster."""
_WITH_CITATIONS: Final = re.compile(_LIKELY.pattern + rb"|@[{\w]")
_DEFINED: Final = re.compile(
    rb"""
    ^(?P<prefix>[ \t>]* (?:(?:[-*+]|[0-9]+[.)])[ \t]+)*)
    \[ (?P<label> \^[^\[\]\n]+ (?=\]:) | [^\[\]\n^][^\[\]\n]*
    (?= \]:[ \t]*(?:\r?\n[ \t>]*)?
      (?:<[^<>\n]*> | (?!<)(?:(?>\{[{%][^\n]{0,400}?[%}]\})|\S)++) [ \t]*
      (?: \r?$ | [^\n]*\}[ \t]*\r?$ | (?:"(?:[^"\n]|\n(?!\s)){0,999}"
        | '(?:[^'\n]|\n(?!\s)){0,999}' | \((?:[^()\n]|\n(?!\s)){0,999}\))[ \t]*\r?$ )
    ) )
    """,
    re.VERBOSE | re.MULTILINE,
)
"""A definition of a link, with its target and nothing but a title behind it, or a footnote."""
_NO_PARAGRAPH: Final = re.compile(
    rb"""
    [ \t>]* (?: \r?\Z | \[(?!\^)[^\[\]]+\]: | ["'(].*["')][ \t]*\r?\Z | \#{1,6}[ \t] | `{3} | ~{3}
      | <!.*>[ \t]*\r?\Z | .*</(?:script|pre|style|textarea)>[ \t]*\r?\Z | [-*_=]{3}
      | \{.*\}[ \t]*\r?\Z | :{3} | !!! | /// | %[ \t] )
    """,
    re.VERBOSE,
)
"""A line that a definition may follow: it cannot interrupt a paragraph."""
_LABEL: Final = re.compile(rb"!?\[\[[^\[\]|\\]*\\?\|")
_NOTE: Final = re.compile(rb"(?:[^\[\]\r\n]|\r?\n(?![ \t>]*\r?\n)|\[[^\[\]]*\])*\]")
_EMPHASIS: Final = re.compile(rb"[*_~]+(?=[A-Za-z0-9\-._/?#&=%+])")
_LABEL_ALONE: Final = re.compile(rb"[ \t>]*\[[^\[\]]+\]\Z")
_LONGEST_LABEL: Final = 400


class Inlines:
    """Hides the inline syntax of one document."""

    def __init__(self, masks: Masks, site: Site, *, mdx: bool) -> None:
        self._masks = masks
        self._site = site
        self._mdx = mdx

    def hide(self) -> None:
        """Hide all of it; what is hidden already stays so."""
        text = bytes(self._masks.text)
        place = 0
        likely_syntax = _WITH_CITATIONS if self._site.dialect == "pandoc" else _LIKELY
        while (likely := likely_syntax.search(text, place)) is not None:
            place = likely.start() + 1
            match = _INLINE.match(text, likely.start())
            name = match.lastgroup or "" if match is not None else ""
            if match is None or text[match.start() - 1 : match.start()] == b"\\":
                continue
            if not self._is_foreign(name):
                hide: Callable[[re.Match[bytes]], int | None] = getattr(self, f"_hide_{name}")
                place = max(place, hide(match) or match.end())

    def _is_foreign(self, name: str) -> bool:
        """Return whether a syntax is not that of this document."""
        dialect = _OF_DIALECTS.get(name)
        of_another = dialect is not None and dialect != self._site.dialect
        return of_another or (self._mdx and name in _NOT_MDX)

    def _hide_image(self, match: re.Match[bytes]) -> None:
        """Hide what Marp reads in the place of an alternative text."""
        self._masks.mark(match.start() + len(b"!["), match.end())

    def _hide_cite(self, match: re.Match[bytes]) -> None:
        start, end = match.span()
        is_bare = match.string[start - 1 : start] == b"-"  # the year alone
        self._masks.mark(start - is_bare, end)

    def _hide_obsidian(self, match: re.Match[bytes]) -> None:
        self._masks.mark(*match.span())

    def _hide_size(self, match: re.Match[bytes]) -> None:
        """Let an image with its size behind its target be one."""
        start, end = match.span()
        self._masks.spell(start, end, b"](" + b"," * (end - start - 3) + b")")

    def _hide_vue(self, match: re.Match[bytes]) -> int:
        """Let a tag with attributes such as `@click` and `#slot` be one of HTML."""
        for each in _ATTRIBUTE.finditer(match[0], 1):
            if each[0][:1] not in b"\"'=" and _NO_NAME.search(each[0]):
                start, end = match.start() + each.start(), match.start() + each.end()
                self._masks.spell(start, end, _NO_NAME.sub(b"x", each[0]))
        return match.start() + 1

    def _hide_code(self, match: re.Match[bytes]) -> None:
        if match[0].startswith(b":") and _begins_definition(match):
            return
        self._masks.mark(*match.span())

    def _hide_before(self, match: re.Match[bytes]) -> None:
        self._masks.mark(*match.span(), "before")

    def _hide_after(self, match: re.Match[bytes]) -> None:
        self._masks.mark(*match.span(), "after")
        self._masks.lists.append(match.span())

    def _hide_wiki(self, match: re.Match[bytes]) -> None:
        """Hide a wiki link: its label is text, an embedded file has none."""
        start, end = match.span()
        label = _LABEL.match(match[0])
        if label is not None and self._site.name in _LABEL_MAY_BE_FIRST:
            self._masks.mark(start, end, "unread")
            return
        if label is None or match[0].startswith(b"!") or b"|" in match[0][label.end() :]:
            self._masks.mark(start, end)
            return
        self._masks.mark(start, start + label.end(), "open", end - 2)
        self._masks.mark(end - 2, end, "close", start)

    def _hide_note(self, match: re.Match[bytes]) -> int | None:
        start, inside = match.span()
        whole = _NOTE.match(match.string, inside)
        if whole is not None:
            self._masks.mark(start, inside, "open", whole.end() - 1)
            self._masks.mark(whole.end() - 1, whole.end(), "close", start)
        return inside

    def _hide_label(self, match: re.Match[bytes]) -> int:
        """Let a reference whose label is defined elsewhere be a link with a target."""
        start, end = match.span()
        name = match["name"]
        if not name or not _is_defined(name, self._defined):
            self._masks.spell(start, end, b"](" + b"," * (end - start - 3) + b")")
        return end - match.string.startswith(b"{", end)  # what follows may be attributes

    def _hide_span(self, match: re.Match[bytes]) -> None:
        start, end = match.span()
        self._masks.lists.append((start, end))
        if self._is_label(start):
            self._masks.mark(start + 1, end, "after")
            return
        self._masks.spell(start, end, b"](" + b"," * (end - start - 3) + b")")

    def _is_label(self, end: int) -> bool:
        """Return whether what ends at a bracket is the label of a link, which has attributes then.

        For Pandoc a label alone is the text of a span.
        """
        source = self._masks.source
        line = source.rfind(b"\n", 0, end) + 1
        start = source.rfind(b"[", max(line, end - _LONGEST_LABEL), end) + 1
        label = source[start:end]
        if not start or b"]" in label:
            return False
        is_alone = source[start - 2 : start - 1] != b"]"
        return not is_alone or (
            self._site.dialect != "pandoc" and _is_defined(label, self._defined)
        )

    def _hide_address(self, match: re.Match[bytes]) -> None:
        for each in _EMPHASIS.finditer(match[0]):
            start, end = match.start() + each.start(), match.start() + each.end()
            self._masks.spell(start, end, b"x" * (end - start))

    @cached_property
    def _defined(self) -> frozenset[str]:
        return frozenset(normalized(each) for each in defined(self._masks.source))


def defined(source: bytes) -> Iterator[str]:
    """Yield the labels of links and footnotes that a document defines."""
    for match in _definitions(source):
        above = source[source.rfind(b"\n", 0, max(0, match.start() - 1)) + 1 : match.start()]
        prefix = match["prefix"]
        begins = prefix.strip(b"> \t") or prefix.count(b">") > above.count(b">")
        if begins or _NO_PARAGRAPH.match(above.rstrip(b"\n")):
            yield match["label"].decode()


def _definitions(source: bytes) -> Iterator[re.Match[bytes]]:
    """Yield what may be definitions: lines are tried that have the mark of one."""
    place = 0
    while (colon := source.find(b"]:", place)) >= 0:
        match = _DEFINED.match(source, source.rfind(b"\n", 0, colon) + 1)
        if match is not None:
            yield match
        place = behind_line(source, colon)


def _begins_definition(match: re.Match[bytes]) -> bool:
    """Return whether a colon stands behind a label at the start of a line: `[1]:tel:+1`."""
    start = match.start()
    if match.string[start - 1 : start] != b"]":
        return False
    line = match.string[max(0, start - _LONGEST_LABEL) : start].rpartition(b"\n")[2]
    return _LABEL_ALONE.match(line) is not None


def _is_defined(label: bytes, labels: frozenset[str]) -> bool:
    return normalized(label.decode("utf-8", "replace")) in labels


def normalized(label: str) -> str:
    """Return a label of a link as labels are compared."""
    return " ".join(label.split()).casefold()
