"""Tests of DOCX: ruby, content controls, tooltips, locked canvases, and fields that are left."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents import registry
from dragoman_documents.codec import Options
from dragoman_documents.read_back import differing
from support.documents.laws import (
    GERMAN,
    assert_identity,
    assert_itself_again,
    assert_linear,
    assert_read_back,
    tagged,
    translations,
)
from support.documents.office import docx, paragraph, run

CODEC = registry.codec("docx")
BOLD = "<w:b/>"
RUBY = "<w:ruby><w:rubyPr/><w:rt>{}</w:rt><w:rubyBase>{}</w:rubyBase></w:ruby>"
KANJI = RUBY.format(run("reading"), run("base"))
TAB = "<w:tab/>"
TIP = '<w:hyperlink r:id="rId1" w:tooltip="Opens a page">{}</w:hyperlink>'
CANVAS = (
    '<w:r><w:drawing><wp:docPr id="1" name="n"/><lc:lockedCanvas xmlns:lc="urn:lc">'
    '<a:cNvPr id="2" name="n" descr="A box"/><a:txBody>{}</a:txBody></lc:lockedCanvas>'
    "</w:drawing></w:r>"
)


def control(content: str, properties: str = "") -> str:
    return (
        f"<w:sdt><w:sdtPr><w:id w:val='1'/>{properties}</w:sdtPr>"
        f"<w:sdtContent>{content}</w:sdtContent></w:sdt>"
    )


def field(instruction: str, result: str) -> str:
    return (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        f"<w:r><w:instrText>{instruction}</w:instrText></w:r><w:r><w:fldChar "
        f'w:fldCharType="separate"/></w:r>{result}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


def texts(data: bytes, options: Options = GERMAN) -> list[str]:
    return [each.text for each in assert_identity(CODEC, data, options).segments]


def remarks(data: bytes) -> list[tuple[str, int]]:
    return [(each.kind, each.count) for each in CODEC.extract(data, GERMAN).remarks]


def document(data: bytes) -> str:
    with zipfile.ZipFile(BytesIO(data)) as file:
        return file.read("word/document.xml").decode()


SENT = [
    (paragraph("A ", f"<w:r>{KANJI}</w:r>", " b"), ["A <g1>base</g1> b"]),
    (paragraph(f"<w:r>{KANJI}</w:r>"), ["base"]),
    (paragraph(f"<w:r><w:t>a </w:t>{KANJI}<w:t> b</w:t></w:r>"), ["a <g1>base</g1> b"]),
    (paragraph(f"<w:r>{TAB}{KANJI}{TAB}</w:r>", "b"), ["<x1/><g2>base</g2><x3/>b"]),
    (paragraph(f"<w:r><w:rPr>{BOLD}</w:rPr>{KANJI}</w:r>", "b"), ["<g1>base</g1>b"]),
    (
        paragraph("a", f"<w:r>{RUBY.format(run('r'), run('x') + run('y', BOLD))}</w:r>"),
        ["a<g1>x<g2>y</g2></g1>"],
    ),
    (paragraph("a ", f"<w:r>{RUBY.format(run('read'), '')}</w:r>", " b"), ["a <x1/> b"]),
    (paragraph("a ", "<w:r><w:ruby><w:rt/></w:ruby></w:r>", " b"), ["a <x1/> b"]),
    (paragraph("Dear ", control(run("reader")), ","), ["Dear <g1>reader</g1>,"]),
    (paragraph(control(run("Click here"), "<w:showingPlcHdr/>")), ["Click here"]),
    (paragraph("a ", control(control(run("b")) + run(" c"))), ["a <g1><g2>b</g2> c</g1>"]),
    (paragraph("a ", TIP.format(control(run("b")))), ["a <g1><g2>b</g2></g1>", "Opens a page"]),
    (paragraph("a ", control(f"<w:r>{KANJI}</w:r>")), ["a <g1><g2>base</g2></g1>"]),
    (paragraph("a ", control(f"<w:r>{TAB}</w:r>"), " b"), ["a <x1/> b"]),
    (paragraph("a ", "<w:sdt><w:sdtContent/></w:sdt>", " b"), ["a <x1/> b"]),
    (
        paragraph("a ", control(field('HYPERLINK "x"', run("link")))),
        ["a <g1><g2>link</g2></g1>"],
    ),
    (paragraph("See ", TIP.format(run("this")), "."), ["See <g1>this</g1>.", "Opens a page"]),
    (paragraph(TIP.format(run("this"))), ["this", "Opens a page"]),
    (
        paragraph("a ", CANVAS.format("<a:p><a:r><a:t>In it</a:t></a:r></a:p>"), " b"),
        ["a <x1/> b", "A box", "In it"],
    ),
    (
        paragraph(
            "a ",
            control(
                '<w:r><w:drawing><wp:docPr id="1" name="n" descr="A cat">'
                '<a:hlinkClick r:id="rId1" tooltip="More"/></wp:docPr></w:drawing></w:r>'
            ),
        ),
        ["a", "A cat", "More"],
    ),
]


@pytest.mark.parametrize(("content", "wanted"), SENT)
def test_what_readers_see_is_sent(content: str, wanted: list[str]) -> None:
    data = docx(content)
    assert sorted(texts(data)) == sorted(wanted)
    assert_itself_again(CODEC, data)
    assert_read_back(CODEC, data, tagged(CODEC.extract(data, GERMAN)))
    bilingual = Options("de", "en", bilingual=True)
    assert_read_back(CODEC, data, tagged(CODEC.extract(data, bilingual)), bilingual)
    assert remarks(data) == []


def test_the_reading_of_a_ruby_stays_over_its_translation() -> None:
    data = docx(paragraph("A ", f'<w:r w:rsidR="1">{KANJI}</w:r>', " b ", run("c", BOLD)))
    output = document(assert_read_back(CODEC, data, ["<g2>c</g2> und <g1>Wort</g1>"]))
    assert output.count("<w:ruby>") == 1
    assert re.search(r"<w:rt>.*?reading.*?</w:rt><w:rubyBase>.*?Wort", output)


def test_a_ruby_within_a_run_of_text_moves_into_a_run_with_its_formatting() -> None:
    mixed = f"<w:r><w:rPr>{BOLD}</w:rPr><w:t>a </w:t>{KANJI}<w:t> b</w:t></w:r>"
    data = docx(paragraph("x ", mixed))
    source = CODEC.extract(data, GERMAN).segments[0].text
    assert source == "x <g1>a </g1><g2>base</g2><g3> b</g3>"
    output = document(assert_read_back(CODEC, data, ["<g2>B</g2> y <g3>c</g3> <g1>d</g1>"]))
    assert f"<w:r><w:rPr>{BOLD}</w:rPr><w:ruby>" in output


def test_a_tooltip_is_translated_where_its_link_moves() -> None:
    data = docx(paragraph("See ", TIP.format(run("this")), " and ", run("that", BOLD), "."))
    answers = ["Eine Seite", "Hier: <g2>das</g2> und <g1>dies</g1>"]
    output = document(assert_read_back(CODEC, data, answers))
    assert 'w:tooltip="Eine Seite"' in output
    assert_read_back(CODEC, data, [None, answers[1]])


def test_tooltips_of_several_links_stay_so_that_the_links_may_move() -> None:
    more = TIP.replace("Opens a page", "Another one")
    data = docx(paragraph("See ", TIP.format(run("this")), more.format(run("that"))))
    assert remarks(data) == [("attribute", 1)]
    assert_read_back(CODEC, data, ["<g2>Das</g2> und <g1>dies</g1>"])
    parted = docx(paragraph("See ", TIP.format(run("this")), TIP.format(run("that"))))
    assert len(texts(parted)) == 2
    output = document(assert_read_back(CODEC, parted, ["Seite", "<g2>Das</g2> <g1>dies</g1>"]))
    assert output.count('w:tooltip="Seite"') == 2


def test_a_paragraph_whose_link_has_a_tooltip_is_doubled_as_any_other() -> None:
    data = docx(paragraph("See ", TIP.format(run("this"))))
    bilingual = Options("de", "en", bilingual=True)
    output = assert_read_back(CODEC, data, ["Seite", "Siehe <g1>das</g1>"], bilingual)
    assert document(output).count("<w:p>") == 2


VALUES = [
    '<w:dataBinding w:xpath="/a"/>', '<w15:dataBinding w:xpath="/a"/>', "<w:date/>",
    "<w:dropDownList/>", "<w:comboBox/>", "<w14:checkbox/>",
]  # fmt: skip


@pytest.mark.parametrize("properties", VALUES)
def test_values_of_content_controls_are_left_and_remarked(properties: str) -> None:
    inside = paragraph("a ", control(run("value"), properties), " b")
    assert texts(docx(inside)) == ["a <x1/> b"]
    around = control(paragraph("value"), properties)
    assert texts(docx(around)) == []
    empty = paragraph(control(run("12"), properties))
    assert remarks(docx(inside + around + empty)) == [("name", 1), ("name", 1)]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (field(" FORMTEXT ", run("your name")), "expression"),
        (field(" formtext ", run("\u2002\u2002")), None),
        (field("MACROBUTTON  NoMacro [Click here]", ""), "expression"),
        (field("MACROBUTTON NoMacro", ""), None),
        (field('QUOTE "some words"', ""), "expression"),
        (field(f'IF {field("PAGE", run("1"))} = 1 "first" "second"', run("second")), "expression"),
        (field("IF 1 = 1", run("12")), None),
        ('<w:fldSimple w:instr="FILLIN &quot;Your name?&quot;"/>', "expression"),
        (field("REF _1 \\h", run("Chapter")), "generated"),
        (field("REF _1 \\r", run("1.2")), None),
        (field("STYLEREF 1", run("Chapter")), "generated"),
        (field("PAGE", run("IF") + run("12")), None),
        ('<w:r><w:fldChar w:fldCharType="end"/><w:instrText>IF</w:instrText></w:r>', None),
    ],
)
def test_fields_with_words_are_remarked(content: str, kind: str | None) -> None:
    data = docx(paragraph("Some ", content))
    assert texts(data)[0].startswith("Some")
    assert remarks(data) == ([] if kind is None else [(kind, 1)])


def test_fields_that_do_not_end_take_linear_time() -> None:
    def reading(size: int) -> Callable[[], object]:
        begin = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        data = docx(paragraph(begin * size, run("IF") * size))
        return lambda: CODEC.extract(data, GERMAN)

    assert_linear(reading, 300)


PARTS = st.sampled_from(
    ["one ", run("two ", BOLD), f"<w:r>{KANJI}</w:r>", f"<w:r><w:t>a </w:t>{KANJI}</w:r>",
     control(run("c")), TIP.format(run("link")), control(f"<w:r>{TAB}</w:r>"),
     f"<w:r>{TAB}{KANJI}</w:r>"]
)  # fmt: skip


@given(st.lists(PARTS, min_size=1, max_size=5), st.data())
def test_any_translation_reads_back_as_it_was_put_in(
    parts: list[str], drawn: st.DataObject
) -> None:
    data = docx(paragraph(*parts))
    extraction = CODEC.extract(data, GERMAN)
    assert_itself_again(CODEC, data)
    held = []
    for segment in extraction.segments:
        tags = re.findall(r"<x\d+/>|<g\d+>[^<]*</g\d+>|<g\d+>.*</g\d+>", segment.text)
        order = drawn.draw(st.permutations(tags))
        held.append(drawn.draw(translations).replace("<", "") + "".join(order))
    output = CODEC.splice(data, extraction, held, GERMAN)
    assert differing(CODEC, output, extraction, held, GERMAN) == []
