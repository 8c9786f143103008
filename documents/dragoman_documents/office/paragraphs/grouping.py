"""Items of a paragraph to the pieces of a segment: text, and codes for all else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dragoman_documents.inline_codes import ClosingCode, OpeningCode, Piece, SingleCode
from dragoman_documents.office.paragraphs.items import Fixed, Format, Item, RunText, Wrapper, base


@dataclass(frozen=True, slots=True)
class FormatCode:
    """A pair of codes for a formatting."""

    format: Format


@dataclass(frozen=True, slots=True)
class WrapperCode:
    """A pair of codes for an element, and the base formatting in it."""

    opening: tuple[int, int]
    closing: tuple[int, int]
    base: Format
    before: bytes = b""
    after: bytes = b""


Code = FormatCode | WrapperCode | Fixed


@dataclass(slots=True)
class Grouping:
    """Makes pieces of items. The markup of a piece is the index of its code."""

    data: bytes
    codes: list[Code] = field(default_factory=list)

    def pieces(self, items: Sequence[Item]) -> Iterator[Piece]:
        """Yield the pieces of one level."""
        plain = base(items).key
        group: bytes | None = None
        waiting: list[Piece] = []
        for each in items:
            if isinstance(each, Fixed):
                waiting.append(SingleCode(self._add(each)))
                continue
            key = each.format.key if isinstance(each, RunText) else plain
            if group is not None and key != group:
                yield ClosingCode()
                group = None
            yield from waiting
            waiting.clear()
            if isinstance(each, Wrapper):
                yield from self._wrapped(each)
                continue
            if key not in {plain, group}:
                yield self._pair(FormatCode(each.format))
                group = key
            yield each.text
        if group is not None:
            yield ClosingCode()
        yield from waiting

    def _wrapped(self, wrapper: Wrapper) -> Iterator[Piece]:
        element = wrapper.element
        yield self._pair(
            WrapperCode(
                (element.start, element.content),
                (element.stop, element.end),
                base(wrapper.items),
                wrapper.before,
                wrapper.after,
            )
        )
        yield from self.pieces(wrapper.items)
        yield ClosingCode()

    def _pair(self, code: Code) -> OpeningCode:
        return OpeningCode(self._add(code), "")

    def _add(self, code: Code) -> str:
        self.codes.append(code)
        return f"\0{len(self.codes) - 1}"
