"""The count of constructs that shares no parser with the codec."""

from __future__ import annotations

import pytest

from dragoman_documents import registry
from dragoman_documents.markup.markdown.raw_counts import labels, raw_counts
from dragoman_documents.read_back import differing
from support.documents.laws import GERMAN

DEFINED = labels("[a]: x\n\n- [B c]: y\n")


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("[a]", "[Anders][a]"),
        ("[a][]", "[Anders][a]"),
        ("[x](y) and z", r"[x](y) \[und\](z)"),
        ("a [note]", "ein [Wort] mehr"),
        ("https://e.org", "https://e.org und https&#58;//x"),
        ("{{ a }} b", "b {{ a }}"),
    ],
)
def test_what_reads_the_same_counts_the_same(source: str, written: str) -> None:
    for mdx in (False, True):
        assert raw_counts(source, DEFINED, mdx=mdx) == raw_counts(written, DEFINED, mdx=mdx)


@pytest.mark.parametrize(
    "more",
    [
        "[x](y)", "[x][y]", "[a]", "[[w]]", "[x]{.y}", "[@c]", "^[n]", "{{ x }}", "{% x %}",
        "{#id}", "<b>", "[^1]", "https://x.y", "\n::: tip", "\n```", "\n(x)=",
        "\n:class: x\n:name: y", "{width=3}",
    ],
)  # fmt: skip
def test_a_construct_more_is_counted(more: str) -> None:
    assert raw_counts(f"text {more}", DEFINED, mdx=False) != raw_counts("text", DEFINED, mdx=False)


def test_a_line_of_other_syntax_that_a_translation_would_move_keeps_its_source() -> None:
    codec = registry.codec("markdown")
    data = b":one-word: First line\n:two-words: Second line\n"
    found = codec.extract(data, GERMAN)
    texts: list[str | None] = [f"Zz {each.text}" for each in found.segments]
    output = codec.splice(data, found, texts, GERMAN)
    assert output == data
    assert differing(codec, output, found, texts, GERMAN) == [0]
