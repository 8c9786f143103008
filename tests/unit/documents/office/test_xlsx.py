"""Tests of XLSX."""

from __future__ import annotations

import zipfile
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents import registry
from dragoman_documents.office.xlsx.tables import unique
from dragoman_documents.read_back import differing
from support.documents.laws import (
    GERMAN,
    assert_identity,
    assert_itself_again,
    assert_read_back,
    tagged,
)
from support.documents.office import package

CODEC = registry.codec("xlsx")
RELATION = '<Relationships><Relationship Id="{}" Target="{}"/></Relationships>'


def xlsx(
    cells: str, *strings: str, columns: tuple[str, ...] = (), more: str = "", names: str = ""
) -> bytes:
    parts = {
        "xl/workbook.xml": f'<workbook><sheet name="Data" r:id="rId1"/>{names}</workbook>',
        "xl/_rels/workbook.xml.rels": RELATION.format("rId1", "worksheets/sheet1.xml"),
        "xl/worksheets/sheet1.xml": f"<worksheet><sheetData>{cells}</sheetData>{more}</worksheet>",
        "xl/sharedStrings.xml": f"<sst>{''.join(f'<si>{each}</si>' for each in strings)}</sst>",
    }
    if columns:
        names = "".join(f'<tableColumn id="1" name="{each}"/>' for each in columns)
        relation = RELATION.format("rId1", "/xl/tables/table1.xml")
        parts["xl/worksheets/_rels/sheet1.xml.rels"] = relation
        parts["xl/tables/table1.xml"] = f'<table ref="Z1:AB3">{names}</table>'
    return package(parts)


def shared(cell: str, index: int) -> str:
    return f'<c r="{cell}" t="s"><v>{index}</v></c>'


def part(data: bytes, name: str) -> str:
    with zipfile.ZipFile(BytesIO(data)) as file:
        return file.read(name).decode()


def segments(data: bytes) -> list[tuple[str, str]]:
    return [(each.text, each.place) for each in assert_identity(CODEC, data).segments]


def test_shared_strings_are_read_where_a_cell_shows_them() -> None:
    rich = "<r><t>A </t></r><r><rPr><b/></rPr><t>b</t></r>"
    data = xlsx(
        shared("A1", 0) + shared("B2", 2) + shared("C3", 0), "<t> One</t>", "<t>x</t>", rich
    )
    assert segments(data) == [("One", "sheet Data, A1"), ("A <g1>b</g1>", "sheet Data, B2")]
    output = assert_read_back(CODEC, data, ["Eins", "<g1>B</g1> a"])
    assert "<t> Eins</t>" in part(output, "xl/sharedStrings.xml")


def test_inline_strings_are_read_and_results_of_formulas_are_not() -> None:
    data = xlsx(
        '<c r="A1" t="inlineStr"><is><t>One</t></is></c>'
        '<c r="A2" t="str"><f>A1&amp;"x"</f><v>Onex</v></c>'
    )
    assert segments(data) == [("One", "sheet Data, A1")]
    assert_read_back(CODEC, data, ["Eins"])


RULE = (
    '<dataValidations><dataValidation sqref="B2:B9" prompt="a &gt; b_x000a_or not" error="x > y"'
    ' promptTitle="Choose"><formula1>"yes,no"</formula1></dataValidation></dataValidations>'
)


@pytest.mark.parametrize("inline", [False, True])
def test_messages_of_cells_are_read_but_not_lists_of_values(inline: bool) -> None:
    cell = '<c r="A1" t="inlineStr"><is><t>One</t></is></c>' if inline else ""
    data = xlsx(cell, more=RULE)
    place = "sheet Data, message of B2:B9"
    messages = [("Choose", place), ("a > b\nor not", place), ("x > y", place)]
    assert segments(data) == ([("One", "sheet Data, A1")] if inline else []) + messages
    texts: list[str | None] = [*(["Eins"] if inline else []), "Wähle", '"c"\nd', "k < l"]
    output = part(assert_read_back(CODEC, data, texts), "xl/worksheets/sheet1.xml")
    assert 'prompt="&quot;c&quot;_x000a_d" error="k &lt; l" promptTitle="Wähle"' in output


def test_a_message_longer_than_excel_allows_keeps_its_source() -> None:
    data = xlsx("", more=RULE)
    extraction = CODEC.extract(data, GERMAN)
    assert [each.max_chars for each in extraction.segments] == [32, 255, 255]
    output = CODEC.splice(data, extraction, ["T" * 33, "P" * 255, None], GERMAN)
    assert differing(CODEC, output, extraction, ["T" * 33, "P" * 255, None], GERMAN) == [0]


def test_phonetic_runs_are_dropped() -> None:
    data = xlsx(
        shared("A1", 0), '<t>東京</t><rPh sb="0" eb="2"><t>トウキョウ</t></rPh><phoneticPr/>'
    )
    assert segments(data) == [("東京", "sheet Data, A1")]
    output = assert_read_back(CODEC, data, ["Tokio"])
    assert "rPh" not in part(output, "xl/sharedStrings.xml")


def test_a_phonetic_run_stays_while_its_characters_stand_where_they_were() -> None:
    readings = '<rPh sb="0" eb="2"><t>a</t></rPh><rPh sb="3" eb="4"><t>b</t></rPh><phoneticPr/>'
    data = xlsx(shared("A1", 0), f"<t>東京の駅</t>{readings}")
    output = part(assert_read_back(CODEC, data, ["東京の家"]), "xl/sharedStrings.xml")
    assert '<t>東京の家</t><rPh sb="0" eb="2"><t>a</t></rPh><phoneticPr/>' in output


def test_a_workbook_that_is_its_own_translation_stays_as_it_is() -> None:
    strings = (
        "<t> it&apos;s _x000D_\n&#8222;_x0041_ b_x000D_</t>",
        "<r><t>A </t></r><r><rPr><b/></rPr><t>bc</t></r><rPh sb='0' eb='1'><t>x</t></rPh>",
        '<t xml:space="preserve"> Cost </t>',
    )
    rule = RULE.replace("Choose", " it's &#x43;hoose_x000A_")
    columns = (" it's _x000d__x000a_&#8222;A b", "A bc", " Cost ")
    assert_itself_again(CODEC, xlsx(HEADERS, *strings, columns=columns, more=rule))


HEADERS = shared("Z1", 0) + shared("AA1", 1) + shared("AB1", 2)
NAMES = ("<t>Name</t>", "<t>Size</t>", "<t>Cost</t>")


def test_the_names_of_columns_follow_their_headers() -> None:
    data = xlsx(HEADERS, *NAMES, columns=("Name", "Size", "Cost"))
    output = assert_read_back(CODEC, data, ['N"ame', None, "Kosten\nje"])
    names = part(output, "xl/tables/table1.xml")
    assert 'name="N&quot;ame"' in names
    assert 'name="Size"' in names
    assert 'name="Kosten_x000a_je"' in names


def test_the_names_of_columns_stay_unique() -> None:
    data = xlsx(HEADERS, *NAMES, columns=("Name", "Size", "Cost"))
    extraction = assert_identity(CODEC, data)
    given_texts: list[str | None] = ["size", "Groß", "GROSS"]
    output = CODEC.splice(data, extraction, given_texts, GERMAN)
    assert differing(CODEC, output, extraction, given_texts, GERMAN) == [2]
    given_texts = ["Size", None, "Kosten"]
    output = CODEC.splice(data, extraction, given_texts, GERMAN)
    assert differing(CODEC, output, extraction, given_texts, GERMAN) == [0]


def test_columns_that_formulas_name_are_left_alone() -> None:
    formula = '<c r="A9"><f>SUM(Table1[Size])</f></c>'
    data = xlsx(HEADERS + formula, *NAMES, columns=("Name", "Size", "Cost"))
    assert [text for text, _ in segments(data)] == ["Name", "Cost"]
    assert [each.place for each in CODEC.extract(data, GERMAN).remarks] == ["sheet Data, AA1"]


@pytest.mark.parametrize(
    "more",
    [
        '<c r="A9"><f>IF(B1="done",1,0)</f></c>',
        '<c r="A9"><f>COUNTIF(B1:B2,"&lt;&gt;Done")</f></c>',
        '<c r="A9"><f>COUNTIF(B1:B2,"Do*")</f></c>',
        '<c r="A9"><f>COUNTIF(B1:B2,"*one")</f></c>',
        '<dataValidation type="list"><formula1>"open, Done"</formula1></dataValidation>',
        '<f xmlns="http://schemas.microsoft.com/office/excel/2006/main">"open,Done"</f>',
        '<autoFilter><filterColumn><filter val="Done"/></filterColumn></autoFilter>',
    ],
)
def test_texts_that_formulas_and_lists_name_stay(more: str) -> None:
    data = xlsx(shared("B1", 0) + shared("B2", 1), "<t>Done</t>", "<t>Other</t>", more=more)
    extraction = assert_identity(CODEC, data)
    assert [each.text for each in extraction.segments] == ["Other"]
    assert [(each.place, each.kind) for each in extraction.remarks] == [("sheet Data, B1", "name")]
    assert_read_back(CODEC, data, tagged(extraction))


def test_a_text_that_a_defined_name_lists_stays() -> None:
    names = '<definedNames><definedName name="States">{"Open","Done"}</definedName></definedNames>'
    data = xlsx(shared("B1", 0) + shared("B2", 1), "<t>Done</t>", "<t>Other</t>", names=names)
    assert [text for text, _ in segments(data)] == ["Other"]


def test_a_text_that_looks_like_a_formula_is_no_text() -> None:
    data = xlsx(shared("A1", 0) + shared("A2", 1), '<t>=A:A&amp;"/"</t>', "<t>= is equal</t>")
    assert [text for text, _ in segments(data)] == ["= is equal"]


@given(st.lists(st.tuples(st.sampled_from("abcdeABC"), st.sampled_from([None, *"abcdeABC"]))))
def test_names_are_unique_whatever_is_translated(pairs: list[tuple[str, str | None]]) -> None:
    sources = list({name.casefold(): (name, text) for name, text in pairs}.values())
    columns = [(name, index) for index, (name, _) in enumerate(sources)]
    kept = unique([columns], [text for _, text in sources])
    names = [
        (name if text is None else text).casefold()
        for (name, _), text in zip(sources, kept, strict=True)
    ]
    assert len(set(names)) == len(names)


def test_spelled_characters_are_read_and_written() -> None:
    data = xlsx(
        shared("A1", 0) + shared("A2", 1) + shared("A3", 2),
        "<t>One_x000D_\ntwo</t>", "<t>a_x005F_x0041_b</t>", "<t>a_x0001_b</t>",
    )  # fmt: skip
    assert [text for text, _ in segments(data)] == ["One\ntwo", "a_x0041_b", "a_x0001_b"]
    output = assert_read_back(CODEC, data, ["Eins\nzwei", "c_x0041_x0042_", "d_x0001_"])
    strings = part(output, "xl/sharedStrings.xml")
    assert ">Eins_x000D_\nzwei<" in strings
    assert ">c_x005F_x0041_x005F_x0042_<" in strings
    assert ">d_x0001_<" in strings


def test_a_part_that_is_named_often_is_read_once() -> None:
    table = '<table ref="A1:A2"><tableColumn name="Size"/></table>'
    names = [("rId1", "worksheets/sheet1.xml"), ("rId2", "worksheets/sheet1.xml")]
    data = package(
        {
            "xl/workbook.xml": '<workbook><sheet name="A" r:id="rId1"/>'
            '<sheet name="B" r:id="rId2"/></workbook>',
            "xl/_rels/workbook.xml.rels": _relations(*names),
            "xl/worksheets/sheet1.xml": f"<worksheet>{shared('A1', 0)}</worksheet>",
            "xl/worksheets/_rels/sheet1.xml.rels": _relations(
                ("rId1", "/xl/tables/table1.xml"), ("rId2", "/xl/tables/table1.xml")
            ),
            "xl/tables/table1.xml": table,
            "xl/sharedStrings.xml": "<sst><si><t>Size</t></si></sst>",
        }
    )
    assert segments(data) == [("Size", "sheet A, A1")]
    output = assert_read_back(CODEC, data, ["Gr\u00f6\u00dfe"])
    assert part(output, "xl/tables/table1.xml").count("Gr\u00f6\u00dfe") == 1


def test_pivot_tables_are_reported() -> None:
    data = package(
        {
            "xl/workbook.xml": '<workbook><sheet name="Data" r:id="rId1"/></workbook>',
            "xl/_rels/workbook.xml.rels": RELATION.format("rId1", "worksheets/sheet1.xml"),
            "xl/worksheets/sheet1.xml": "<worksheet/>",
            "xl/pivotCache/pivotCacheDefinition1.xml": "<pivotCacheDefinition/>",
        }
    )
    assert [each.place for each in CODEC.extract(data, GERMAN).remarks] == ["document"]


def _relations(*targets: tuple[str, str]) -> str:
    each = (f'<Relationship Id="{name}" Target="{target}"/>' for name, target in targets)
    return f"<Relationships>{''.join(each)}</Relationships>"


def test_messages_of_rules_of_newer_workbooks_and_tooltips_are_read() -> None:
    more = (
        '<hyperlinks><hyperlink ref="B2" tooltip="Opens a page" display="x"/></hyperlinks>'
        '<extLst><ext><x14:dataValidations><x14:dataValidation prompt="A number">'
        "<xm:sqref>A1</xm:sqref></x14:dataValidation></x14:dataValidations></ext></extLst>"
    )
    data = xlsx("", more=more)
    wanted = [("Opens a page", "sheet Data, message of B2"), ("A number", "sheet Data, message")]
    assert segments(data) == wanted
    assert_itself_again(CODEC, data)
    assert_read_back(CODEC, data, ["Seite", "Zahl"])
    longer = CODEC.splice(data, CODEC.extract(data, GERMAN), ["x" * 256, "Zahl"], GERMAN)
    assert 'tooltip="Opens a page"' in part(longer, "xl/worksheets/sheet1.xml")


def test_printed_headers_captions_and_links_in_shapes_are_remarked() -> None:
    header = (
        '<headerFooter><oddHeader>&amp;C&amp;"Arial,Bold"&amp;12&amp;P &amp;A</oddHeader>'
        "<oddFooter>&amp;LDraft &amp;D</oddFooter></headerFooter>"
    )
    sheet = package({
        "xl/workbook.xml": '<workbook><sheet name="Data" r:id="rId1"/></workbook>',
        "xl/_rels/workbook.xml.rels": RELATION.format("rId1", "worksheets/sheet1.xml"),
        "xl/worksheets/sheet1.xml": f"<worksheet>{header}</worksheet>",
        "xl/drawings/vmlDrawing1.vml": "<xml><div><font a='b'>Press</font><br></div></xml>",
        "xl/drawings/drawing1.xml": '<xdr:wsDr><a:p><a:r><a:rPr><a:hlinkClick tooltip="Tip"/>'
        "</a:rPr><a:t>here</a:t></a:r></a:p></xdr:wsDr>",
    })  # fmt: skip
    remarks = CODEC.extract(sheet, GERMAN).remarks
    assert sorted((each.kind, each.place, each.count) for each in remarks) == [
        ("attribute", "drawing 1", 1), ("directive", "sheet Data", 1), ("html", "drawing 1", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "urn:example:a", "https://e.org/a", "www.e.org", "a@e.org", "mailto:a@e.org", "tel:+49-1",
        "{{item.name}}", "C:\\data\\a.txt", "\\\\server\\a", "/docs/a.xml",
    ],
)  # fmt: skip
def test_cells_with_an_address_alone_are_left(text: str) -> None:
    assert segments(xlsx(shared("A1", 0), f"<t>{text}</t>")) == []
    assert len(segments(xlsx(shared("A1", 0), f"<t>see {text}</t>"))) == 1


@pytest.mark.parametrize(
    "text",
    ["a.de", "first.name", "and/or", "Art.Nr", "e.g.", "CEILING.PRECISE", "note:this", "urn:",
     "/day/person", "B2B", "user_id", "\\x"],
)  # fmt: skip
def test_cells_that_may_hold_words_are_sent(text: str) -> None:
    assert len(segments(xlsx(shared("A1", 0), f"<t>{text}</t>"))) == 1
