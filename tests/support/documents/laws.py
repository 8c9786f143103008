"""Laws that every codec keeps, and the texts that try to break them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final

from hypothesis import strategies as st

from dragoman_documents.codec import Codec, Extraction, Options
from dragoman_documents.read_back import differing, usable

GERMAN: Final = Options("de", "en")
HOSTILE: Final = (
    "a|b", "- x", "# x", "1. x", "<b>&amp;", "*a*", "_a_", "`a`", "\"q\" 'q'", "\\\\", "x\\",
    "{x}", "%s x", "a: b", "a #b", "a\tb", "a\u2028b", "]]>x", "--x", "x --> y", "\U0001f600 x",
    "\u05e9\u05dc\u05d5\u05dd", "'x", '"x', "a,b;c", "a\u00a0b", "\ufeffx", "\u200bx", "[de] x",
    "x" * 5_000, "WEBVTT", "NOTE x", "=x", "!x", "@x", "x\\{x", "x\\n", "\\u0041x", "a  b",
)  # fmt: skip
"""Translations, without blanks at their ends and newlines, that look like markup somewhere."""
translations: Final = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(
        st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=30
    ).map(lambda text: f"x{text}x"),
)
"""Any line of text that begins and ends with a letter, or one of the hostile ones."""


def assert_identity(codec: Codec, data: bytes, options: Options = GERMAN) -> Extraction:
    """Check that a document without translations stays as it is; return its extraction."""
    extraction = codec.extract(data, options)
    assert codec.splice(data, extraction, [None] * len(extraction.segments), options) == data
    return extraction


def assert_itself_again(codec: Codec, data: bytes, options: Options = GERMAN) -> None:
    """Check that texts that are their own translations give the bytes of their document."""
    extraction = codec.extract(data, options)
    texts = [each.text for each in extraction.segments]
    assert codec.splice(data, extraction, texts, options) == data


def assert_read_back(
    codec: Codec, data: bytes, texts: Sequence[str | None], options: Options = GERMAN
) -> bytes:
    """Check that translations read back as they were put in; return the output.

    Texts whose tags do not fit their segments are left out, as the run does.
    """
    extraction = codec.extract(data, options)
    held = usable(texts, extraction.segments)
    output = codec.splice(data, extraction, held, options)
    assert differing(codec, output, extraction, held, options) == []
    return output


def tagged(extraction: Extraction, language: str = "de") -> list[str | None]:
    """Return the translations of the echo engine in `tag` mode."""
    return [f"[{language}] {segment.text}" for segment in extraction.segments]


def steps(call: Callable[[], object]) -> int:
    """Return the instructions of Python that a call executes: its time, at any machine's pace.

    Work inside one instruction, such as a search in a long string, counts as one.
    """
    counted = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal counted
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        counted += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return counted


def assert_linear(call: Callable[[int], Callable[[], object]], size: int) -> None:
    """Check that work of twice the size needs about twice the steps; quadratic work needs four.

    `call` prepares the work of a size, and its result does the work.
    """
    steps(call(size))  # from Python 3.12 on the first count of a function misses its opcodes
    once, twice = steps(call(size)), steps(call(2 * size))
    assert twice < 2.6 * once, f"{once} steps for {size}, {twice} for twice as much"
