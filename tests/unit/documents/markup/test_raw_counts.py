"""The count of constructs that shares no parser with the codec."""

from __future__ import annotations

from time import process_time
from typing import Final

import pytest

from dragoman_documents import registry
from dragoman_documents.markup.markdown.raw_counts import constructs, labels
from dragoman_documents.read_back import differing
from support.documents.laws import GERMAN

DEFINED: Final = labels(b"[a]: x\n\n- [B c]: y\n")
MOST_SECONDS: Final = 1.0
"""Of CPU, for 100 KB: quadratic work needs minutes."""


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
        assert constructs(source.encode(), DEFINED, mdx=mdx) == constructs(
            written.encode(), DEFINED, mdx=mdx
        )


@pytest.mark.parametrize(
    "more",
    [
        "[x](y)", "[x][y]", "[a]", "[[w]]", "[x]{.y}", "[@c]", "^[n]", "{{ x }}", "{% x %}",
        "{#id}", "<b>", "[^1]", "https://x.y", "\n::: tip", "\n```", "\n(x)=",
        "\n:class: x\n:name: y", "{width=3}",
    ],
)  # fmt: skip
def test_a_construct_more_is_counted(more: str) -> None:
    found = constructs(f"text {more}".encode(), DEFINED, mdx=False)
    assert found != constructs(b"text", DEFINED, mdx=False)


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("[x](/en/a)", "[x](/de/a)"),
        ("[x](/a (b))", "[x](/a b"),
        ('[x](/a "T")', '[x](/a "T"'),
        ("[x](<a b>)", "[x](<a c>)"),
        ("[x][a]", "[x][b c]"),
        ("https://e.org/a ja", "https://e.org/aja"),
        ("<b>x</b>", "<i>x</i>"),
        ("{{< ref a >}}", "{{< relref a >}}"),
        ("{{% note %}}", "{{% /note %}}"),
        ("[[Page|x]]", "[[Seite|x]]"),
        ("[^1]", "[^2]"),
        ("[x]{.a}", "[x]{.b}"),
    ],
)
def test_another_target_end_or_name_is_seen(source: str, written: str) -> None:
    found = constructs(source.encode(), DEFINED, mdx=False)
    assert found != constructs(written.encode(), DEFINED, mdx=False)


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ('[x](/a "Title")', '[y](/a "Titel")'),
        ("[x](/a_(b))", "[y](/a_(b))"),
        ("(https://e.org/a_b), x", "y <https://e.org/a_b>."),
        ('{{< figure alt="x" >}}', '{{< figure alt="y" >}}'),
        ('<img alt="x">', '<img alt="y">'),
        ("[[Page|x]]", "[[Page|y]]"),
    ],
)
def test_texts_inside_of_constructs_may_change(source: str, written: str) -> None:
    found = constructs(source.encode(), DEFINED, mdx=False)
    assert found == constructs(written.encode(), DEFINED, mdx=False)


@pytest.mark.parametrize(
    "opening", ["](", "[[", "[@", "{{", "{%", "{a", "https://", "<a", "[^", "\n", "[x][", '](a "']
)
def test_constructs_that_do_not_end_are_looked_for_in_linear_time(opening: str) -> None:
    for text in (opening * 30_000, f"{opening}a " * 20_000, opening + "a" * 100_000):
        start = process_time()
        constructs(text.encode(), DEFINED, mdx=False)
        assert process_time() - start < MOST_SECONDS


def test_a_line_of_other_syntax_that_a_translation_would_move_keeps_its_source() -> None:
    codec = registry.codec("markdown")
    data = b":one-word: First line\n:two-words: Second line\n"
    found = codec.extract(data, GERMAN)
    texts: list[str | None] = [f"Zz {each.text}" for each in found.segments]
    output = codec.splice(data, found, texts, GERMAN)
    assert output == data
    assert differing(codec, output, found, texts, GERMAN) == [0]


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (b'[x](a "See {{ y }} there")\n', b'"See {{ y }} there"'),
        (b"---\ntitle: See {{ y }} there\n---\nText\n", b"title: See {{ y }} there\n"),
        (b'::: card {title="See https://e.org/a"}\nText\n:::\n', b'"See https://e.org/a"'),
    ],
)
def test_titles_and_metadata_that_lose_a_construct_keep_their_source(
    data: bytes, kept: bytes
) -> None:
    codec = registry.codec("markdown")
    found = codec.extract(data, GERMAN)
    texts: list[str | None] = [
        each.text.replace("{{ y }}", "y").replace("org/a", "org/b") for each in found.segments
    ]
    assert kept in codec.splice(data, found, texts, GERMAN)
    texts = [f"Zz {each.text}" for each in found.segments]
    assert kept not in codec.splice(data, found, texts, GERMAN)


def test_text_that_looks_like_a_tag_is_written_with_escapes() -> None:
    codec = registry.codec("markdown")
    found = codec.extract(b"# Head\n\nText\n", GERMAN)
    answers = ["x<A.>x", "Use ]( here"]
    output = codec.splice(b"# Head\n\nText\n", found, answers, GERMAN)
    assert differing(codec, output, found, answers, GERMAN) == []
