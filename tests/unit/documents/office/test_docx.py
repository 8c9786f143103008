"""Tests of DOCX: what is a segment, what is left alone, and what is written."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents import registry
from dragoman_documents.codec import DocumentError, Options
from dragoman_documents.read_back import differing
from support.documents.laws import (
    GERMAN,
    HOSTILE,
    assert_identity,
    assert_itself_again,
    assert_read_back,
    tagged,
    translations,
)
from support.documents.office import STRICT_WORD, WORD, docx, package, paragraph, run, zipped

CODEC = registry.codec("docx")
BOLD, ITALIC = "<w:b/>", "<w:i/>"
LINK = '<w:hyperlink r:id="rId1">{}</w:hyperlink>'
TAB = "<w:r><w:tab/></w:r>"
FIELD = (
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>'
    '<w:r><w:fldChar w:fldCharType="separate"/></w:r>{}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
)
BOX = (
    '<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing>'
    '<wp:docPr id="1" name="n" descr="A cat"/><w:txbxContent>{0}</w:txbxContent></w:drawing>'
    "</mc:Choice><mc:Fallback><w:pict><w:txbxContent>{0}</w:txbxContent></w:pict></mc:Fallback>"
    "</mc:AlternateContent></w:r>"
)


NESTED = f"</w:instrText></w:r>{FIELD.format(run('3'))}<w:r><w:instrText>"
JUMP = FIELD.replace("PAGE", ' HYPERLINK "https://e.org" \\\\o "tip" ')


def texts(data: bytes, options: Options = GERMAN) -> list[str]:
    return [each.text for each in assert_identity(CODEC, data, options).segments]


def document(data: bytes, name: str = "word/document.xml") -> str:
    with zipfile.ZipFile(BytesIO(data)) as file:
        return file.read(name).decode()


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (paragraph("One ", "two"), ["One two"]),
        (paragraph(run("On", "<w:lang/>"), run("e", "<w:noProof/>")), ["One"]),
        (paragraph("One ", run("two", BOLD), " three"), ["One <g1>two</g1> three"]),
        (paragraph(run("One ", BOLD), run("two", BOLD)), ["One two"]),
        (paragraph("See ", LINK.format(run("this")), "."), ["See <g1>this</g1>."]),
        (paragraph(LINK.format(run("this"))), ["this"]),
        (paragraph("See ", JUMP.format(run("this")), "."), ["See <g1>this</g1>."]),
        (
            paragraph("See ", JUMP.format(run("t") + run("his", BOLD)), "."),
            ["See <g1>t<g2>his</g2></g1>."],
        ),
        (paragraph(JUMP.format(run("this"))), ["this"]),
        (paragraph("See ", JUMP.format(""), "."), ["See <x1/>."]),
        (paragraph("See ", JUMP.format(FIELD.format(run("3"))), "."), ["See <x1/>."]),
        (
            paragraph("See ", JUMP.format(run("the book ") + FIELD.format(run("3")) + run(" of"))),
            ["See <g1>the book <x2/> of</g1>"],
        ),
        (
            paragraph("See ", JUMP.replace("e.org", "e" + NESTED).format(run("this")), "."),
            ["See <g1>this</g1>."],
        ),
        (
            paragraph("See ", JUMP.format(run("a ") + JUMP.format(run("b"))), "."),
            ["See <g1>a <x2/></g1>."],
        ),
        (
            paragraph("Two ", JUMP.format(run("one")), JUMP.format(run("two"))),
            ["Two <g1>one</g1><g2>two</g2>"],
        ),
        (
            paragraph("A ", '<w:fldSimple w:instr="HYPERLINK x">' + run("b") + "</w:fldSimple>"),
            ["A <g1>b</g1>"],
        ),
        (paragraph("a", TAB, "b"), ["a<x1/>b"]),
        (paragraph(TAB, "a", TAB), ["a"]),
        (paragraph("Page ", FIELD.format(run("12")), " of"), ["Page <x1/> of"]),
        (paragraph("a &lt;g1&gt; b"), ["a <x1/> b"]),
        (paragraph("12", " %"), []),
        (paragraph("a", "<w:del><w:r><w:delText>b</w:delText></w:r></w:del>", "c"), ["a<x1/>c"]),
        (paragraph("a", "<w:ins>" + run("b") + "</w:ins>"), ["a<g1>b</g1>"]),
        (paragraph("a", "<m:oMath><m:t>x</m:t></m:oMath>"), ["a"]),
        (
            paragraph("a", "<w:sdt><w:sdtContent>" + run("v") + "</w:sdtContent></w:sdt>", "b"),
            ["a<g1>v</g1>b"],
        ),
        ("<w:sdt><w:sdtContent>" + paragraph("a") + "</w:sdtContent></w:sdt>", ["a"]),
        (
            "<w:tbl><w:tr><w:tc>" + paragraph("a") + "</w:tc><w:tc>" + paragraph("b"),
            ["a", "b"],
        ),
        (paragraph("a ", BOX.format(paragraph("in")), " b"), ["a <x1/> b", "A cat", "in"]),
    ],
)
def test_segments_of_a_body(content: str, wanted: list[str]) -> None:
    if "<w:tbl>" in content:
        content += "</w:tc></w:tr></w:tbl>"
    data = docx(content)
    assert texts(data) == wanted
    extraction = CODEC.extract(data, GERMAN)
    assert_read_back(CODEC, data, tagged(extraction))


def test_a_field_over_paragraphs_is_left_alone() -> None:
    begin, end = FIELD.split("{}")
    assert texts(docx(paragraph("a", begin, "x") + paragraph("y") + paragraph("z", end, "b"))) == [
        "a",
        "b",
    ]


def test_the_text_of_a_link_that_is_a_field_is_written_into_it() -> None:
    data = docx(paragraph("See ", JUMP.format(run("this", BOLD) + run(" page", BOLD)), " now."))
    output = assert_read_back(CODEC, data, ["Hier: <g1>diese Seite</g1>"])
    assert document(output).count("fldChar ") == 3
    assert re.findall(r"HYPERLINK[^<]*|(?<=>)[^<]*(?=</w:t>)", document(output)) == [
        "Hier: ", 'HYPERLINK "https://e.org" \\\\o "tip" ', "diese ", "Seite", "",
    ]  # fmt: skip
    moved = assert_read_back(CODEC, data, ["<g1>Diese Seite</g1> jetzt"])
    assert document(moved).index("HYPERLINK") < document(moved).index("jetzt")


def test_tables_of_contents_are_left_alone_and_remarked() -> None:
    toc = FIELD.replace("PAGE", "TOC \\\\o")
    entry = JUMP.format(run("Chapter"))
    data = docx(paragraph(toc.format(entry)) + paragraph("Text"))
    assert texts(data) == ["Text"]
    assert [each.count for each in CODEC.extract(data, GERMAN).remarks] == [1]


def test_links_that_do_not_end_take_linear_time() -> None:
    begin, end = JUMP.split("{}")
    deep = begin * 5_000 + run("text") + end * 5_000
    data = docx(paragraph(begin * 5_000, run("text"), JUMP.format(run("x")) * 500))
    assert_identity(CODEC, data)
    assert_identity(CODEC, docx(paragraph(deep)))


def test_strict_documents_are_read() -> None:
    data = docx(paragraph("One"))
    strict = document(data).replace(WORD, STRICT_WORD)
    types = document(data, "[Content_Types].xml")
    assert texts(zipped({"[Content_Types].xml": types, "word/document.xml": strict})) == ["One"]


def test_headers_notes_and_the_title_are_read() -> None:
    data = docx(
        paragraph("Body"),
        header1=f"<w:hdr>{paragraph('Head')}</w:hdr>",
        footnotes=f"<w:footnotes><w:footnote>{paragraph('Note')}</w:footnote></w:footnotes>",
    )
    files = {name: document(data, name) for name in zipfile.ZipFile(BytesIO(data)).namelist()}
    core = (
        '<c:p xmlns:c="urn:c" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>T</dc:title>'
        "</c:p>"
    )
    assert texts(zipped({**files, "docProps/core.xml": core})) == ["Body", "Head", "Note", "T"]


def test_alternative_texts_of_tables_and_of_old_shapes_are_read() -> None:
    table = (
        '<w:tbl><w:tblPr><w:tblCaption w:val="Sales"/><w:tblDescription w:val="By year"/>'
        f"</w:tblPr><w:tr><w:tc>{paragraph('Cell')}</w:tc></w:tr></w:tbl>"
    )
    shape = (
        '<w:r><w:pict><v:shape alt="A cat"><v:textpath string="Draft"/></v:shape></w:pict></w:r>'
    )
    data = docx(table + paragraph("Text ", shape, "goes on"))
    wanted = ["Sales", "By year", "Cell", "Text <x1/>goes on", "A cat", "Draft"]
    assert sorted(texts(data)) == sorted(wanted)
    output = assert_read_back(CODEC, data, tagged(CODEC.extract(data, GERMAN)))
    assert '<v:shape alt="[de] A cat"><v:textpath string="[de] Draft"/>' in document(output)


def test_headings_are_known_by_their_styles() -> None:
    named = '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
    styles = f"<w:styles>{named}</w:styles>"
    style = '<w:pPr><w:pStyle w:val="berschrift1"/></w:pPr>'
    data = docx(paragraph("Top", properties=style) + paragraph("Text"), styles=styles)
    heading, text = CODEC.extract(data, Options("de", headings=True)).segments
    assert (heading.kind, text.kind, text.headings) == ("heading", "paragraph", ("Top",))


def test_a_text_box_is_written_in_both_of_its_places() -> None:
    data = docx(paragraph("a ", BOX.format(paragraph("in")), " b"))
    output = assert_read_back(CODEC, data, ["A <x1/> B", None, "drin"])
    assert document(output).count("drin") == 2
    assert "A cat" in document(output)


def test_the_formatting_of_a_translation_is_that_of_its_tags() -> None:
    data = docx(paragraph("One ", run("two", BOLD), " three"))
    output = assert_read_back(CODEC, data, ["<g1>Zwei</g1> und mehr"])
    plain = re.sub(r' xml:space="preserve"', "", document(output))
    assert "<w:r><w:rPr><w:b/></w:rPr><w:t>Zwei</w:t></w:r><w:r><w:t> und mehr</w:t></w:r>" in plain


RUNS = (
    '<w:r w:rsidR="1"><w:t>One</w:t></w:r><w:proofErr/>'
    '<w:r w:rsidR="2"><w:rPr><w:noProof/></w:rPr><w:t xml:space="preserve"> two</w:t><w:tab/>'
    "<w:t>three</w:t></w:r>"
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("One<x1/>three", ("<w:t>One<", "></w:t><w:tab/>", "<w:t>three<")),
        ("One more two<x1/>three", ("<w:t>One<", "> more two<")),
        ("Eins zwei<x1/>drei", ('<w:t xml:space="preserve">Eins <', ">zwei<", "<w:t>drei<")),
        ("Eins<x1/>", (">Eins<", "<w:tab/><w:t><")),
        ("一二三<x1/>四", ("<w:t></w:t>", ">一二三<")),
    ],
)
def test_a_translation_is_put_into_the_runs_of_its_source(
    text: str, wanted: tuple[str, ...]
) -> None:
    data = docx(f"<w:p>{RUNS}</w:p>")
    written = document(assert_read_back(CODEC, data, [text]))
    assert all(each in written for each in wanted)
    assert re.sub(r"<w:t\b[^>]*>[^<]*", "<w:t>", written) == re.sub(
        r"<w:t\b[^>]*>[^<]*", "<w:t>", document(data)
    )


def test_a_document_that_is_its_own_translation_stays_as_it_is() -> None:
    cell = "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>it&apos;s &#8222;q&#x201C;</w:t></w:r></w:p></w:tc>"
    box = BOX.replace("A cat", "Joe's &gt;\n&quot;cat&quot;").format(paragraph(RUNS))
    assert_itself_again(CODEC, docx(f"{cell}</w:tr></w:tbl><w:p>{RUNS}{box}{RUNS}</w:p>"))


def test_pairs_of_one_formatting_side_by_side_stay_two() -> None:
    data = docx(paragraph("a ", run("b", BOLD), " c ", run("d", BOLD)))
    assert_read_back(CODEC, data, ["<g1>B</g1><g2>D</g2> a"])


def test_a_formatting_inside_another_costs_its_segment_alone() -> None:
    data = docx(paragraph("a ", run("b", BOLD), " c ", run("d", ITALIC)))
    extraction = CODEC.extract(data, GERMAN)
    nested = ["A <g1><g2></g2> </g1>"]
    output = CODEC.splice(data, extraction, nested, GERMAN)
    assert differing(CODEC, output, extraction, nested, GERMAN) == [0]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_read_back_or_keep_the_source(text: str) -> None:
    data = docx(paragraph("One ", run("two", BOLD)))
    extraction = CODEC.extract(data, GERMAN)
    given_text = f"{text}<g1>{text}</g1>"
    output = CODEC.splice(data, extraction, [given_text], GERMAN)
    wrong = differing(CODEC, output, extraction, [given_text], GERMAN)
    assert not wrong or not any(map(str.isalpha, text))


CONTENTS = st.lists(
    st.one_of(
        st.sampled_from(["a", " b ", " ", "", "<x>"]).map(
            lambda text: run(text.replace("<", "&lt;"))
        ),
        st.sampled_from([run("c", BOLD), run(" ", ITALIC), run("", BOLD), run("d ", ITALIC)]),
        st.sampled_from([TAB, '<w:bookmarkStart w:id="1"/>', "<w:proofErr/>", FIELD.format("")]),
        st.sampled_from([LINK.format(run("e", BOLD)), LINK.format(TAB + run("f"))]),
        st.just("<w:r><w:t>g</w:t><w:tab/><w:t> </w:t></w:r>"),
        st.just(BOX.format(paragraph("in"))),
        st.sampled_from([
            '<w:r w:rsidR="1"><w:t>h</w:t></w:r>', "<w:r><w:t>i &quot;j&quot;</w:t></w:r>",
            "<w:r><w:t> &#107;</w:t><w:t/><w:t>l&gt; </w:t></w:r>", "<w:r><w:t/></w:r>",
            "<w:r><w:rPr><w:lang/></w:rPr><w:t>m</w:t></w:r>",
            "<w:r><w:t>o&gt;</w:t><w:lastRenderedPageBreak/><w:t>p</w:t></w:r>",
            "<w:r><w:t>\r\n&lt;g2></w:t></w:r>",
        ]),
    ),
    max_size=6,
)  # fmt: skip


@given(CONTENTS, translations, st.randoms(use_true_random=False))
def test_any_order_of_tags_keeps_the_document(
    content: list[str], text: str, random: object
) -> None:
    data = docx(paragraph(*content))
    extraction = assert_identity(CODEC, data)
    assert_itself_again(CODEC, data)
    assert_read_back(CODEC, data, [f"x {each.text} x" for each in extraction.segments])
    given_texts = [
        "".join(
            f"<x{n}/>" if code.closing is None else f"<g{n}>{'' if n % 2 else text}</g{n}>"
            for n, code in reversed(list(enumerate(each.codes, 1)))
        )
        + text
        for each in extraction.segments
    ]
    output = CODEC.splice(data, extraction, given_texts, GERMAN)
    differing(CODEC, output, extraction, given_texts, GERMAN)  # raises if the skeleton differs


def test_a_bilingual_document_has_the_translation_after_each_paragraph() -> None:
    options = Options("de", bilingual=True)
    style = '<w:pPr><w:pStyle w:val="s"/><w:numPr><w:ilvl w:val="0"/></w:numPr></w:pPr>'
    data = docx(paragraph("One ", run("two", BOLD), properties=style) + paragraph("Three"))
    extraction = assert_identity(CODEC, data, options)
    held = ["Eins <g1>zwei</g1>", None]
    output = CODEC.splice(data, extraction, held, options)
    assert differing(CODEC, output, extraction, held, options) == []
    assert texts(output) == ["One <g1>two</g1>", "Eins <g1>zwei</g1>", "Three"]
    assert document(output).count("w:numPr") == document(data).count("w:numPr")


def test_a_bilingual_paragraph_shows_its_pictures_and_text_boxes_once() -> None:
    options = Options("de", bilingual=True)
    picture = '<w:r><w:drawing><wp:docPr id="1" name="n" descr="A cat"/></w:drawing></w:r>'
    for inside in (picture, BOX.format(paragraph("in"))):
        data = docx(paragraph("a ", inside, " b ", run("c", BOLD)) + paragraph("d"))
        output = assert_read_back(CODEC, data, tagged(CODEC.extract(data, options)), options)
        assert document(output).count("<wp:docPr") == document(data).count("<wp:docPr")
        moved = ["<g2>C</g2> <x1/>", "Katze", "innen", "D"]
        held = moved if inside != picture else [*moved[:2], moved[3]]
        assert_read_back(CODEC, data, held, options)


def test_a_section_ends_after_both_languages() -> None:
    options = Options("de", bilingual=True)
    data = docx(paragraph("One", properties="<w:pPr><w:sectPr/></w:pPr>"))
    extraction = CODEC.extract(data, options)
    output = CODEC.splice(data, extraction, ["Eins"], options)
    assert document(output).count("sectPr") == document(data).count("sectPr")
    assert texts(output) == ["One<x1/>Eins"]
    assert differing(CODEC, output, extraction, ["Eins"], options) == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (zipped({"a": "b"}), "wrong_type"),
        (package({"xl/workbook.xml": "<workbook/>"}), "wrong_type"),
        (docx("<w:p>"), "corrupt"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        (docx("<w:sdt>" * 300), "bomb"),
    ],
)
def test_what_is_no_document_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError) as caught:
        CODEC.extract(data, GERMAN)
    assert caught.value.reason == reason


def test_a_text_without_letters_keeps_the_source() -> None:
    data = docx(paragraph("One"))
    extraction = CODEC.extract(data, GERMAN)
    assert CODEC.splice(data, extraction, ["1"], GERMAN) == data


def test_right_to_left_targets_are_remarked() -> None:
    assert CODEC.extract(docx(paragraph("One")), Options("ar")).remarks


def test_styles_beyond_the_nine_headings_are_no_headings() -> None:
    names = ("heading 9", "heading 10", "heading \u00b2", "Heading 1")
    styles = "".join(
        f'<w:style w:styleId="s{index}"><w:name w:val="{name}"/></w:style>'
        for index, name in enumerate(names)
    )
    body = "".join(
        paragraph(name, properties=f'<w:pPr><w:pStyle w:val="s{index}"/></w:pPr>')
        for index, name in enumerate(names)
    )
    data = docx(body, styles=f"<w:styles>{styles}</w:styles>")
    kinds = [each.kind for each in assert_identity(CODEC, data).segments]
    assert kinds == ["heading", "paragraph", "paragraph", "heading"]


def test_paragraphs_in_paragraphs_are_written_however_deep() -> None:
    data = docx(("<w:p>" + run("a b")) * 190 + "</w:p>" * 190)
    assert_read_back(CODEC, data, tagged(assert_identity(CODEC, data)))


def test_a_package_whose_names_have_backslashes_is_read_and_keeps_them() -> None:
    data = docx(paragraph(run("One text")))
    data = re.sub(rb"(?<![/\"])word/document\.xml", rb"word\\document.xml", data)
    assert texts(data) == ["One text"]
    output = CODEC.splice(data, CODEC.extract(data, GERMAN), ["Ein Text"], GERMAN)
    assert texts(output) == ["Ein Text"]
    assert output.count(b"word\\document.xml") == 2  # before the member, and in the directory


def test_a_document_without_a_body_is_refused() -> None:
    data = package({"word/document.xml": "<w:other/>"})
    with pytest.raises(DocumentError, match="body"):
        CODEC.extract(data, GERMAN)
