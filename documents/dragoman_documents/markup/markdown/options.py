"""Options of directives and of cells of code, and the terms of glossaries."""

from __future__ import annotations

import re
from typing import Final

from dragoman_documents.markup.markdown.lines import Lines, behind_line
from dragoman_documents.markup.markdown.titles import Title
from dragoman_documents.values import is_text

_OPTION: Final = re.compile(rb"[ \t>]*:(?P<name>[\w\-]+):[ \t]*(?P<value>[^\r\n]*)(?:\r?\n|\Z)")
_YAML: Final = re.compile(rb"[ \t>]*---[ \t]*\r?\n(?:[^\n]*\n){0,99}?[ \t>]*---[ \t]*(?:\r?\n|\Z)")
_YAML_OPTION: Final = re.compile(
    rb"^[ \t>]*(?P<name>[\w\-]+):[ \t]+(?P<value>[^\r\n]+)", re.MULTILINE
)
_CELL_OPTION: Final = re.compile(
    rb"[ \t>]*(?:\#|//|%|--)\|"
    rb"(?:[ ]*(?P<name>[\w\-]+):[ ]*(?P<value>[^\r\n]*)|[^\r\n]*)(?:\r?\n|\Z)"
)
_NAMED: Final = ("name", "value")
_CODE_INDENT: Final = 4
_LINE_OF_GLOSSARY: Final = re.compile(
    rb"(?P<break>(?<=\n)|\r?\n)(?P<indent>[ \t]*)(?P<line>[^\r\n]*?)[ \t]*(?=\r?\n|\Z)"
)
INDENTED: Final = re.compile(rb"(?:[ \t>]*(?:[ ]{4}|\t)[^\r\n]*(?:\r?\n|\Z))+")


class DirectiveOptions(Lines):
    """Hides what stands between the first line of a directive and its body."""

    def _options(self, place: int, *, known: bool) -> int:
        """Hide the options of a directive behind its first line; return the place behind them."""
        if (yaml := _YAML.match(self._text, place)) is not None:
            self._masks.region(place, yaml.end())
            self._read_yaml(place, yaml.end())
            return yaml.end()
        while (option := _OPTION.match(self._text, place)) is not None:
            self._masks.region(place, option.end())
            start = option.start("value")
            text = option["value"].decode("utf-8", "replace").strip()
            if option["name"].decode("utf-8", "replace") in self._site.attributes and is_text(text):
                last = start + len(option["value"].rstrip())
                self._masks.attributes.append(Title(start, last, text, "plain"))
            place = option.end()
        if not known and (indented := INDENTED.match(self._text, place)) is not None:
            self._masks.region(place, indented.end())
            return indented.end()
        return place

    def _read_yaml(self, place: int, end: int) -> None:
        """Note that options in YAML hold text."""
        for option in _YAML_OPTION.finditer(self._text, place, end):
            value = option["value"].decode("utf-8", "replace")
            if option["name"].decode("utf-8", "replace") in self._site.attributes and is_text(
                value.strip("\"' \t")
            ):
                self._left("attribute", option.start("name"))

    def _read_cell(self, place: int) -> None:
        """Note that the options of a cell of code hold text, such as `#| fig-cap: "A caption"`."""
        place = behind_line(self._text, place)
        while (option := _CELL_OPTION.match(self._text, place)) is not None:
            name, value = ((option[each] or b"").decode("utf-8", "replace") for each in _NAMED)
            if name in self._site.attributes and is_text(value.strip("\"' \t")):
                self._left("attribute", option.start("name"))
            place = option.end()

    def _glossary(self, place: int, width: int, run: bytes) -> None:
        """Leave the terms of a glossary, which roles name elsewhere; definitions are Markdown.

        A definition that is indented like code moves to the start of its line for the parser.
        """
        begins = True
        for line in _LINE_OF_GLOSSARY.finditer(self._text, place):
            text, indent = line["line"], line["indent"]
            if text.startswith(run):
                return
            if not text:
                begins = True
            elif len(indent) <= width and not text.startswith((b": ", b"%")):
                self._masks.line(*line.span("line"))
                if is_text(text.decode("utf-8", "replace")):
                    self._left("directive", line.start("line"))
                begins = True
            else:
                is_fence = text.startswith((b"```", b"~~~"))
                if begins and not is_fence and len(indent.expandtabs()) >= width + _CODE_INDENT:
                    start, end = line.start("break"), line.end("indent")
                    self._masks.text[start:end] = b" " * len(indent) + line["break"]
                begins = False
