"""Markdown and MDX: what is translated, what is left alone, and every text read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.codec import Codec, Segment
from dragoman_documents.markup.markdown.bilingual import Doubling
from dragoman_documents.markup.markdown.codec import CODECS
from dragoman_documents.markup.markdown.extracting import MarkdownSlot
from dragoman_documents.read_back import differing
from dragoman_text.spans import has_letters
from support.documents.laws import (
    GERMAN,
    HOSTILE,
    assert_identity,
    assert_linear,
    assert_read_back,
    tagged,
    translations,
)

CODEC = CODECS["markdown"]
MDX = CODECS["mdx"]
DOCUMENT = """\
# A *heading* with `code` {#id .cl}

A paragraph &amp; an \\* escape, <b>HTML</b>,
wrapped ~~once~~ and broken  
hard, with [a *link* b](http://x "Its title") and ![an image](src.png 'Alt "x"').

Setext
heading
-------

> A quote
> goes on
lazily

- tight *item*
- [ ] a task
  1. nested

* loose `a` item\\
  broken

  another paragraph

| Head | `x` |
|------|-----|
| a \\| b | c |

    code block

```python
print("code")
```

<div>
A block of <b>HTML</b>

</div>

Reference [text][ref], [ref], [collapsed][], footnote[^1] and math $x_1$.

[^1]: The note
    goes on.

[ref]: http://y "Title of a definition"
[collapsed]: http://z
"""  # noqa: W291
DATA = DOCUMENT.encode()


def texts(document: str, codec: Codec = CODEC) -> list[str]:
    """Return the texts of the segments."""
    return [segment.text for segment in codec.extract(document.encode(), GERMAN).segments]


def spliced(document: str, *translated: str | None, codec: Codec = CODEC) -> str:
    """Return the document with translations, which must read back."""
    return assert_read_back(codec, document.encode(), translated).decode()


def test_every_text_of_a_document_is_a_segment() -> None:
    assert texts(DOCUMENT) == [
        "A <g1>heading</g1> with <x2/>",
        "Its title",
        'Alt "x"',
        (
            "A paragraph & an * escape, <g1>HTML</g1>, wrapped <g2>once</g2> and broken<x3/>hard, "
            "with <g4>a <g5>link</g5> b</g4> and <g6>an image</g6>."
        ),
        "Setext heading",
        "A quote goes on lazily",
        "tight <g1>item</g1>",
        "a task",
        "nested",
        "loose <x1/> item<x2/>broken",
        "another paragraph",
        "Head",
        "a | b",
        "c",
        "A block of <g1>HTML</g1>",
        "Reference <g1>text</g1>, <g2>ref</g2>, <g3>collapsed</g3>, footnote<x4/> and math <x5/>.",
        "The note goes on.",
        "Title of a definition",
    ]


def test_a_document_without_translations_stays_as_it_is() -> None:
    assert_identity(CODEC, DATA)
    assert_identity(CODEC, b"\xef\xbb\xbf" + DATA.replace(b"\n", b"\r\n"))
    assert_identity(CODEC, DATA.replace(b"\n", b"\r"))


def test_marked_translations_read_back() -> None:
    output = assert_read_back(CODEC, DATA, tagged(CODEC.extract(DATA, GERMAN)))
    assert b"[\\[de\\]" not in output.split(b"```")[1]
    assert b'print("code")' in output


@pytest.mark.parametrize("text", HOSTILE)
def test_text_like_markup_is_text_in_every_place(text: str) -> None:
    text = text if has_letters(text) else f"x {text} x"
    extraction = CODEC.extract(DATA, GERMAN)
    held = [_around(text, segment) if segment.codes else text for segment in extraction.segments]
    assert_read_back(CODEC, DATA, held)


def _around(text: str, segment: Segment) -> str:
    """Return a translation of this text with the tags of its segment behind it."""
    tags = "".join(
        f" <x{number}/>" if code.closing is None else f" <g{number}>{text}</g{number}>"
        for number, code in enumerate(segment.codes, 1)
    )
    return f"{text} x{tags} x"


@given(st.data())
def test_any_translation_reads_back(data: st.DataObject) -> None:
    extraction = CODEC.extract(DATA, GERMAN)
    lettered = translations.filter(has_letters)
    held = [
        _around(data.draw(lettered), segment) if segment.codes else data.draw(lettered)
        for segment in extraction.segments
    ]
    assert_read_back(CODEC, DATA, held)


def test_swapped_tags_read_back() -> None:
    assert spliced("One *a* and **b**, `c`.", "Zwei <x3/> x <g2>b</g2> und <g1>a</g1>.") == (
        "Zwei `c` x **b** und *a*."
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("<g1>「重要」</g1>です x", "**「重要」**&#12391;す x"),
        ("x です<g1>「重要」</g1>", "x で&#12377;**「重要」**"),
        ("<g1> wort </g1> x", "**&#32;wort&#32;** x"),
        ("Unter<g1>wort</g1>e x", "Unter**wort**e x"),
    ],
)
def test_emphasis_stays_where_punctuation_or_blanks_would_end_it(text: str, written: str) -> None:
    assert spliced("some **word** here", text) == written


def test_underscores_inside_words_become_asterisks() -> None:
    assert spliced("some _word_ here", "Unter<g1>wort</g1>e x") == "Unter*wort*e x"


def test_pairs_of_the_same_delimiter_stay_apart() -> None:
    assert spliced("*a* and *b*", "x <g1>a</g1><g2>b</g2>") == "x *a*_b_"


def test_markup_around_a_whole_text_is_not_a_tag() -> None:
    document = "**Note**\n\n[Home](/) | [About](/about)\n\n[![Build](a.svg)](ci)\n"
    assert texts(document) == ["Note", "Home", "About", "Build"]
    assert spliced(document, "Hinweis", "Start", "Über", "Bau") == (
        "**Hinweis**\n\n[Start](/) | [Über](/about)\n\n[![Bau](a.svg)](ci)\n"
    )


def test_each_of_equal_tags_has_the_translation_of_its_own_title() -> None:
    document = "[a](u 'Go') and ![a](u 'Go') <br title='Go'><br title='Go'>\n"
    assert texts(document) == ["Go", "Go", "Go", "Go", "<g1>a</g1> and <g2>a</g2> <x3/><x4/>"]
    text = "<g1>b</g1> und <g2>b</g2> <x3/><x4/>"
    assert spliced(document, "Eins", "Zwei", "Drei", "Vier", text) == (
        "[b](u 'Eins') und ![b](u 'Zwei') <br title='Drei'><br title='Vier'>\n"
    )


@pytest.mark.parametrize("quote", ["", "> "])
@pytest.mark.parametrize("definition", ["\n[child process]: /a\n", ""])
def test_a_link_by_its_text_is_itself_with_a_line_break_in_its_label(
    quote: str, definition: str
) -> None:
    data = f"{quote}See the [child process][]\n{quote}or the other one.\n{definition}".encode()
    text = "Wer mehr will, sehe <g1>child process</g1> oder das andere."
    output = assert_read_back(CODEC, data, [text]).decode()
    assert f"[child\n{quote}process][]" in output


def test_a_link_by_its_text_gets_its_label() -> None:
    document = "See [the guide] and [more][].\n\n[faq]\n\n[the guide]: a\n[more]: b\n[faq]: c\n"
    assert spliced(document, "Siehe <g1>Anleitung</g1> und <g2>mehr</g2>.", "Fragen") == (
        "Siehe [Anleitung][the guide] und [mehr][more].\n\n[Fragen][faq]\n\n"
        "[the guide]: a\n[more]: b\n[faq]: c\n"
    )


def test_lines_of_other_syntax_stay_lines() -> None:
    document = (
        ":::note Title\nA note.\n:::\n\n!!! tip\n    A tip.\n\nTerm\n: Its definition\n\n"
        "> [!info] Callout\n> Its text\n\n{% include x.html %}\nAfter it.\n\n"
        "Text {{ name }} here.\n"
    )
    assert texts(document) == [
        "Title", "A note.", "A tip.", "Term", "Its definition", "Callout", "Its text", "After it.",
        "Text <x1/> here.",
    ]  # fmt: skip
    assert_read_back(CODEC, document.encode(), tagged(CODEC.extract(document.encode(), GERMAN)))


@pytest.mark.parametrize(
    "text", [":::x", "!!! x", "=== x", ": x", "{: x}", "???x", "%% x", "{{x}}"]
)
def test_translations_like_other_syntax_are_text(text: str) -> None:
    spliced("one\ntwo\n\n- three\n", text, text)


@pytest.mark.parametrize("text", ["123", "…", "", "<g1>nur innen</g1>"])
def test_a_translation_that_would_not_be_found_again_leaves_the_source(text: str) -> None:
    document = b"before\n\n*some* text\n"
    extraction = CODEC.extract(document, GERMAN)
    held = [None, text if "<" in text else f"<g1></g1>{text}"]
    output = CODEC.splice(document, extraction, held, GERMAN)
    assert output == document
    assert differing(CODEC, output, extraction, held, GERMAN) == [1]


def test_a_newline_in_a_translation_becomes_a_blank() -> None:
    assert spliced("- one\n", "eins\n\n# zwei\r\n") == "- eins # zwei\n"


def test_a_carriage_return_alone_ends_a_line() -> None:
    document = "# One\r\rtwo\rthree\r\r- four\r- five\n"
    assert texts(document) == ["One", "two three", "four", "five"]
    assert (
        spliced(document, "Eins", None, "vier", None) == "# Eins\r\rtwo\rthree\r\r- vier\r- five\n"
    )


def test_titles_of_front_matter_are_found_behind_characters_of_several_bytes() -> None:
    document = '---\ntitle: "Ünë"\nx: é\nsummary: two words\n---\n'
    assert spliced(document, "Ein", "zwei") == '---\ntitle: "Ein"\nx: é\nsummary: zwei\n---\n'


def test_addresses_are_codes_and_do_not_grow() -> None:
    assert texts("See https://x.y/a_b.") == ["See <x1/>."]
    assert spliced("See https://x.y/a_b.", "Nach <x1/>en!") == "Nach <https://x.y/a_b>en!"
    assert spliced("Text", "https://new.example") == "https&#58;//new.example"


def test_letters_behind_an_address_are_no_part_of_it() -> None:
    document = "See https://x.y/a now."
    assert spliced(document, "<x1/>。次") == "<https://x.y/a>。次"
    assert spliced(document, "Nach <x1/>. Und") == "Nach https://x.y/a. Und"
    assert_identity(CODEC, "見る https://x.y/a。次".encode())
    assert MDX.splice(
        document.encode(), MDX.extract(document.encode(), GERMAN), ["<x1/>。次"], GERMAN
    ).decode() == ("https://x.y/a。次")


@pytest.mark.parametrize("start", ["#12", "2. Mai", "~ so", "$$", "a) so", "(@x) so", "[a]: so"])
def test_no_line_break_begins_what_a_generator_reads_as_a_block(start: str) -> None:
    text = f"Eins zwei drei vier {start} acht neun."
    wrapped = "- One two three four\n  five six seven eight.\n"
    assert f"\n  {start}" not in spliced(wrapped, text)
    assert_identity(CODEC, f"Eins zwei\n{start} acht neun.\n".encode())


@pytest.mark.parametrize(
    ("source", "text", "written"),
    [
        ("Fixed by #12", "#12 hilft", "\\#12 hilft"),
        ("#12 helps", "#12 hilft", "#12 hilft"),
        ("A note", "[Note]: ein Text hier", "\\[Note]: ein Text hier"),
        ("A note", "[Note]: eins", "\\[Note]: eins"),
        ("A note", "so ~~a~~ hier", "so &#126;&#126;a~~ hier"),
    ],
)
def test_what_opens_is_escaped_where_generators_differ(
    source: str, text: str, written: str
) -> None:
    assert spliced(source, text) == written


README = """\
<p align="center">
  <img alt="The logo" src="logo.svg">
  Fast <b>tools</b>
  for people
</p>

<details><summary>More &amp; more</summary>

- item

  <table>
    <tr><td>A cell</td><td><code>make</code></td></tr>
  </table>

</details>

<div translate="no">Name</div>

<pre>
Listing
</pre>
"""


def test_blocks_of_html_are_translated_as_html_is() -> None:
    found = CODEC.extract(README.encode(), GERMAN)
    assert [(each.text, each.place) for each in found.segments] == [
        ("The logo", "line 2"),
        ("<x1/> Fast <g2>tools</g2> for people", "line 2"),
        ("More & more", "line 7"),
        ("item", "line 9"),
        ("A cell", "line 12"),
    ]
    assert found.remarks == ()
    texts = ["Logo", "<x1/> <g2>Werkzeuge</g2> < 3\n\nEuro", "Mehr & mehr", "Punkt", "Zelle"]
    output = CODEC.splice(README.encode(), found, texts, GERMAN).decode()
    assert output.startswith(
        '<p align="center">\n  <img alt="Logo" src="logo.svg">\n'
        "  <b>Werkzeuge</b>\n  &lt; 3 Euro\n</p>\n"
        "\n<details><summary>Mehr &amp; mehr</summary>\n\n- Punkt\n"
    )
    assert "<tr><td>Zelle</td><td><code>make</code></td></tr>" in output
    assert output.endswith(README[README.index("</details>") :])
    assert differing(CODEC, output.encode(), found, texts, GERMAN) == []
    assert_identity(CODEC, README.encode())
    assert_read_back(CODEC, README.encode(), tagged(found), replace(GERMAN, bilingual=True))


@pytest.mark.parametrize("end", ["\n\n", "\r\n \r\n"])
def test_a_copy_in_an_open_element_does_not_join_what_follows_to_its_block(end: str) -> None:
    source = f"<p>Text{end}**Bold** text\n"
    options = replace(GERMAN, bilingual=True)
    found = CODEC.extract(source.encode(), options)
    output = assert_read_back(CODEC, source.encode(), tagged(found), options).decode()
    assert f"</p>{end}**Bold** text" in output


@pytest.mark.parametrize(
    ("codec", "block"),
    [
        (CODEC, "> <p>Text</p>"),
        (CODEC, '<p title="{{ t }}">Text</p>'),
    ],
)
def test_blocks_of_html_that_stay_in_the_source_language_are_remarked_on(
    codec: Codec, block: str
) -> None:
    found = codec.extract(f"One\n\n{block}\n\n<!-- no -->\n\n{block}\n".encode(), GERMAN)
    assert [each.text for each in found.segments] == ["One"]
    [remark] = found.remarks
    assert (remark.place, remark.kind, remark.count) == ("line 3", "html", 2)


def test_inline_html_is_paired_and_code_elements_are_one_code() -> None:
    assert texts("Press <kbd>Ctrl</kbd> and <b>hold <i>it</b> <br> now</x>") == [
        "Press <x1/> and <g2>hold <x3/>it</g2> <x4/> now<x5/>"
    ]


def test_a_bilingual_document_has_each_translation_behind_its_source() -> None:
    document = (
        "# Head {#id}\n\nOne *a*\nline\n\n> - Quoted\n>\n>   and `x` more\n\n"
        "- tight\n- [ ] *task*\n\n"
        "| a | [b](c) |\n|---|---|\n\nUnder\n===\n\n[^1]: A note\n\n1. [x] loose\n\n   item\n"
    )
    data, options = document.encode(), replace(GERMAN, bilingual=True)
    output = assert_read_back(CODEC, data, tagged(CODEC.extract(data, options)), options)
    assert output.decode().startswith(
        "# Head {#id}\n\n# [de] Head\n\nOne *a*\nline\n\n[de] One\n*a* line\n\n"
        "> - Quoted\n>\n>   [de] Quoted\n"
    )
    assert b"- tight<br/>[de] tight\n" in output
    assert b"[b / [de] b](c)" in output


def test_mdx_keeps_modules_components_and_expressions() -> None:
    document = (
        "import {A} from './a'\nexport const b = 1\n\n# Title\n\n<Tabs>\n\nText {props.x} with "
        "<A b={{c: 1}}>inner</A> text.\n\n</Tabs>\n\n{/* comment */}\n"
    )
    assert texts(document, MDX) == ["Title", "Text <x1/> with <g2>inner</g2> text."]
    assert_identity(MDX, document.encode())
    output = spliced(document, "a <{b}", "Wo <x1/> mit <g2>x</g2>", codec=MDX)
    assert "# a \\<&#123;b}\n" in output


def test_headings_above_a_segment_are_given_if_asked() -> None:
    data = b"# A\n\n## B `c`\n\nx\n\n# D\n\ny\n"
    extraction = CODEC.extract(data, replace(GERMAN, headings=True))
    assert [segment.headings for segment in extraction.segments] == [
        (), ("A",), ("A", "B"), (), ("D",),
    ]  # fmt: skip


def test_text_like_our_own_tags_is_kept() -> None:
    assert texts("Write \\<g1> here") == ["Write <x1/> here"]
    assert spliced("Write \\<g1> here", "Schreib hier <x1/>") == "Schreib hier \\<g1>"


@pytest.mark.parametrize(
    "unit",
    [
        "*a ",
        "[",
        "<b>",
        "`",
        "_x",
        "> ",
        "- ",
        "|",
        "{{",
        "$",
        "![a](",
        "&a",
        "\\",
        "<g1>",
        "http://",
    ],
)
def test_repeated_markup_takes_linear_time_and_stays(unit: str) -> None:
    document = (unit * (131_072 // len(unit)))[:131_072] + "x"
    extraction = assert_identity(CODEC, document.encode())
    CODEC.splice(document.encode(), extraction, tagged(extraction), GERMAN)


@pytest.mark.parametrize(
    "unit",
    [
        '[a](b "title") ',
        "*a* ",
        "|c|d",
        "<b>*a</b>* ",
        "word {{ a }} ",
        "- a\n",
        "[a]: b 'c'\n",
        "<p>a\n\n",
    ],
)
def test_twice_the_document_takes_twice_the_steps(unit: str) -> None:
    def call(size: int) -> Callable[[], object]:
        return lambda: CODEC.extract(unit.encode() * size, GERMAN)

    assert_linear(call, 400)


class Unsearched(bytes):
    """A document that must not be searched from its end or its beginning."""

    def rfind(self, *_arguments: object) -> int:
        """Fail: a search per block takes quadratic time."""
        raise AssertionError("the document is searched for the start of a line")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_line_of_each_doubled_block_is_looked_up_without_a_search(newline: str) -> None:
    document = "# a\n\nb\n".replace("\n", newline).encode()
    layout = CODEC.extract(document, GERMAN).layout
    slots = cast("Sequence[MarkdownSlot]", layout.slots)  # type: ignore[attr-defined]
    doubling = Doubling(Unsearched(document))
    inserted = [doubling.doubled(slot, b"x").content.decode() for slot in slots]
    assert inserted == [f"{newline}{newline}# x", f"{newline}{newline}x"]


@pytest.mark.parametrize(
    ("source", "text", "output"),
    [
        ("<*T**", "[T]", "<*T**"),  # before `\\`, the `*` would both open and close
        ("1**T**", "[T]", "1**T**"),  # beside a word, `**` does not open before punctuation
        ("**T**1", "[T]", "**T**1"),
        ("\ufeff**T**", "[T]", "\ufeff**[T]**"),  # a byte order mark is no text
        ("\n\ufeff**T**", "[T]", "\n\ufeff**T**"),
        ("<*T**", "U", "<*U**"),
        ("<*T*", "[T]", "<*[T]*"),
    ],
)
def test_a_translation_that_would_end_the_emphasis_around_it_is_left_out(
    source: str, text: str, output: str
) -> None:
    extraction = CODEC.extract(source.encode(), GERMAN)
    assert CODEC.splice(source.encode(), extraction, [text], GERMAN) == output.encode()
    left_out = [0] if output == source else []
    assert differing(CODEC, output.encode(), extraction, [text], GERMAN) == left_out


def test_a_reference_of_many_digits_is_no_character() -> None:
    assert texts(f'[a](b "t &#{"9" * 5000}; &#{"0" * 5000}65;")') == ["a", "t \ufffd A"]


def test_a_character_that_the_encoding_lacks_becomes_a_reference() -> None:
    data = "Déjà vu, c'était l'été à la forêt près du château où la fenêtre était fermée.\n".encode(
        "cp1252"
    )
    extraction = CODEC.extract(data, GERMAN)
    assert CODEC.splice(data, extraction, ["漢 x"], GERMAN) == b"&#28450; x\n"


def test_other_markup_in_a_segment_is_another_document() -> None:
    skeletons = {CODEC.extract(text, GERMAN).skeleton for text in (b"a [b](c)", b"a [b](d)")}
    assert len(skeletons) == 2


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_front_matter_has_its_titles_translated_in_place(newline: str) -> None:
    document = (
        "---\ntitle: A page  # shown\nslug: a-page\ndescription: >\n  Some text\n  goes on\n"
        "nested: {title: Kept}\n---\n\nText\n"
    ).replace("\n", newline)
    assert texts(document) == ["A page", "Some text goes on", "Text"]
    assert_identity(CODEC, document.encode())
    output = spliced(document, "Seite: eins", "Ein Text", "x")
    assert output == document.replace("A page  #", '"Seite: eins"  #').replace(
        f"Some text{newline}  goes on", f"Ein{newline}  Text"
    ).replace(f"{newline * 2}Text", f"{newline * 2}x")
    options = replace(GERMAN, bilingual=True)
    data = document.encode()
    assert_read_back(CODEC, data, tagged(CODEC.extract(data, options)), options)


def test_front_matter_that_is_no_yaml_is_left_alone() -> None:
    assert texts("---\ntitle: a: b: {{ x }}\n---\n\nText\n") == ["Text"]


@pytest.mark.parametrize(
    ("document", "translations", "expected"),
    [
        (
            '<img src="a.png" alt="A dog">\nSome text\n',
            ("Ein Hund", "<x1/> Ein Text"),
            '<img src="a.png" alt="Ein Hund">\nEin Text\n',
        ),
        (
            '<a href="x">\n<img src="y"></a>\nmore text\n',
            ("<g1> <x2/></g1> mehr",),
            '<a href="x">\n<img src="y"></a> mehr\n',
        ),
        ("- <img src='a'>\n  after\n", ("<x1/> danach",), "- <img src='a'>\n  danach\n"),
        ("<b>\r\nbold</b> text\r\n", ("<g1> fett</g1> Text",), "<b>\r\nfett</b> Text\r\n"),
    ],
)
def test_a_tag_alone_in_the_first_line_of_a_block_of_html_stays_alone(
    document: str, translations: tuple[str, ...], expected: str
) -> None:
    found = CODEC.extract(document.encode(), GERMAN)
    output = CODEC.splice(document.encode(), found, translations, GERMAN)
    assert output.decode() == expected
    assert differing(CODEC, output, found, translations, GERMAN) == []
    assert_identity(CODEC, document.encode())
    assert_read_back(CODEC, document.encode(), tagged(found), replace(GERMAN, bilingual=True))
