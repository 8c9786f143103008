"""Tests of CSV and TSV."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman_documents import registry
from dragoman_documents.codec import MOST_CHARACTERS, DocumentError, Options
from dragoman_documents.putting_back import put_back
from dragoman_documents.read_back import SkeletonDiffers, differing
from dragoman_documents.tables.csv import CODECS
from dragoman_documents.tables.scanning import rows
from support.documents.laws import GERMAN, assert_identity, assert_read_back, translations

CSV, TSV = CODECS["csv"], CODECS["tsv"]
IN_PLACE = Options("de", "en", in_place=True)
SHOP = """\
id,title,"text",price,image
a-1,Red shoe,"A shoe, red",12.50,img/red.png
a-2,,"Second ""best""
of two",8.00,img/b.png
a-3,Hat
"""


def texts_of(text: str, options: Options = GERMAN) -> list[str]:
    return [each.text for each in assert_identity(CSV, text.encode(), options).segments]


def test_columns_with_text_get_new_columns() -> None:
    found = assert_identity(CSV, SHOP.encode()).segments
    assert [(each.text, each.place) for each in found] == [
        ("Red shoe", "line 2, title"),
        ("A shoe, red", "line 2, text"),
        ('Second "best"\nof two', "line 3, text"),
        ("Hat", "line 5, title"),
    ]
    texts = ["Roter Schuh", "Ein Schuh", "Zweiter, von zwei", None]
    assert assert_read_back(CSV, SHOP.encode(), texts).decode() == (
        'id,title,"text",price,image,title.de,"text.de"\n'
        'a-1,Red shoe,"A shoe, red",12.50,img/red.png,Roter Schuh,"Ein Schuh"\n'
        'a-2,,"Second ""best""\nof two",8.00,img/b.png,,"Zweiter, von zwei"\n'
        "a-3,Hat,,,,Hat,\n"
    )


def test_in_place_the_cells_change() -> None:
    options = Options("de", "en", columns=("title",), in_place=True)
    output = assert_read_back(CSV, SHOP.encode(), ["Schuh, rot", 'Der "Hut"'], options)
    assert output.decode() == SHOP.replace("Red shoe", '"Schuh, rot"').replace(
        "Hat", '"Der ""Hut"""'
    )


def test_columns_are_chosen_by_name_or_number() -> None:
    assert texts_of(SHOP, Options("de", columns=("2",))) == ["Red shoe", "Hat"]
    assert texts_of(SHOP, Options("de", columns=("id",))) == ["a-1", "a-2", "a-3"]


@pytest.mark.parametrize("name", ["name", "0", "9"])
def test_of_chosen_columns_those_that_exist_are_read(name: str) -> None:
    assert texts_of(SHOP, Options("de", columns=(name, "2"))) == ["Red shoe", "Hat"]
    assert texts_of(SHOP, Options("de", columns=(name,))) == []


def test_a_column_of_the_language_is_filled() -> None:
    text = "title,title.de,title.fr\nA hat,,Un chapeau\nA shoe,Schuh,\n"
    assert texts_of(text) == ["A hat", "A shoe"]
    output = assert_read_back(CSV, text.encode(), ["Ein Hut", None]).decode()
    assert output == text.replace("A hat,,", "A hat,Ein Hut,")


@pytest.mark.parametrize(
    "text", ["A hat.,It is red.\nA shoe,So is it\n", "Hello\n", "1,2\na b,c d\n", "a,a\nb c,d e\n"]
)
def test_a_first_row_that_names_nothing_is_translated(text: str) -> None:
    extraction = CSV.extract(text.encode(), GERMAN)
    assert extraction.segments[0].place.startswith("line ")
    assert "header" not in extraction.segments[0].place
    first = csv.reader(io.StringIO(text))
    words = [cell for cell in next(first) if any(map(str.isalpha, cell))]
    assert [each.text for each in extraction.segments][: len(words)] == words


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_recognised(delimiter: str) -> None:
    text = f"name{delimiter}weight\nA hat, red{delimiter}1,5\n".replace(
        "A hat, red", '"A hat, red"'
    ).replace("1,5", "1.5" if delimiter == "," else "1,5")
    assert texts_of(text) == ["A hat, red"]


def test_a_declared_delimiter_is_used() -> None:
    assert texts_of("sep=;\nname;n\nA, b;1\n") == ["A, b"]


def test_tables_of_one_column_are_read() -> None:
    assert texts_of("name\nA hat\n\nA shoe") == ["A hat", "A shoe"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_newlines_and_a_byte_order_mark_stay(newline: str, mark: str) -> None:
    data = (mark + "name,n\nA hat,1\nA shoe,2").replace("\n", newline).encode()
    assert_identity(CSV, data)
    output = assert_read_back(CSV, data, ["Hut", "Schuh"]).decode()
    assert output == mark + f"name,n,name.de{newline}A hat,1,Hut{newline}A shoe,2,Schuh"


def test_an_encoding_is_kept_or_becomes_utf_8() -> None:
    data = (
        "name,n\n" + "Gr\u00fc\u00dfe \u00fcber Gr\u00f6\u00dfe und L\u00f6sung,1\n" * 20
    ).encode("cp1252")
    extraction = CSV.extract(data, IN_PLACE)
    texts = ["Stra\u00dfe"] + [None] * 19
    assert b"Stra\xdfe" in CSV.splice(data, extraction, texts, IN_PLACE)
    texts = ["\u6f22\u5b57 x"] + [None] * 19
    assert "Gr\u00fc\u00dfe" in CSV.splice(data, extraction, texts, IN_PLACE).decode()


def test_a_changed_cell_or_row_is_noticed() -> None:
    extraction = CSV.extract(SHOP.encode(), GERMAN)
    with pytest.raises(SkeletonDiffers, match="markup"):
        differing(CSV, SHOP.replace("12.50", "12.51").encode(), extraction, [None] * 4, GERMAN)
    with pytest.raises(SkeletonDiffers, match="rows"):
        differing(CSV, SHOP.replace("a-3,Hat\n", "").encode(), extraction, [None] * 4, GERMAN)


@pytest.mark.parametrize("changed", ["2,A hat,x-9\n", "1,A hat,x-8\n"])
def test_a_changed_cell_beside_one_that_is_written_over_is_noticed(changed: str) -> None:
    data = b"id,name,code\n1,A hat,x-9\n"
    output = data.replace(b"1,A hat,x-9\n", changed.encode())
    with pytest.raises(SkeletonDiffers, match="markup"):
        differing(CSV, output, CSV.extract(data, IN_PLACE), [None], IN_PLACE)


@given(translations)
def test_any_text_reads_back(text: str) -> None:
    assume(not text.startswith("="))
    for codec, data in ((CSV, b"name,n\nA hat,1\n"), (TSV, b"name\tn\nA hat\t1\n")):
        for options in (GERMAN, IN_PLACE):
            output = assert_read_back(codec, data, [text], options)
            reader = csv.reader(io.StringIO(output.decode(), newline=""), delimiter=codec.delimiter)  # type: ignore[attr-defined]
            assert list(reader)[1][-2 if options.in_place else -1] == text


_cells = st.text(st.sampled_from('ab ",\n\r;'), max_size=8)


@given(st.lists(st.lists(_cells, min_size=2, max_size=4), min_size=1, max_size=4))
def test_cells_are_those_of_the_standard_library(table: list[list[str]]) -> None:
    written = io.StringIO(newline="")
    csv.writer(written).writerows(table)
    assert [[cell.value for cell in row.cells] for row in rows(written.getvalue(), ",")] == table


@given(st.text(st.sampled_from('ab ",\n\r;\t=sep'), max_size=40))
def test_any_text_is_a_table(text: str) -> None:
    assert_identity(CSV, text.encode())
    extraction = assert_identity(CSV, text.encode(), IN_PLACE)
    texts = [f"[de] {each.text}" for each in extraction.segments]
    assert_read_back(CSV, text.encode(), texts, IN_PLACE)


@pytest.mark.parametrize("body", ["x", '"', '""', ',"', "a,b\n", '"a,', "\r", ",", "_", "a."])
def test_huge_tables_take_linear_time(body: str) -> None:
    data = f"name,n\n{body * (2**17 // len(body))}".encode()
    extraction = assert_identity(CSV, data)
    CSV.splice(data, extraction, ["x"] * len(extraction.segments), GERMAN)


def test_a_table_that_would_become_mostly_empty_cells_is_refused() -> None:
    data = b"a," * 12_000 + b"\n" + b"b\n" * 12_000
    with pytest.raises(DocumentError) as caught:
        CODECS["csv"].extract(data, GERMAN)
    assert caught.value.reason == "too_large"


PAIRS = [
    (",en,es,ja\nKEY_HELLO,Hello!,Hola!,\n", ",en,es,ja,de\nKEY_HELLO,Hello!,Hola!,,X!\n"),
    ("keys,en,de\nA_KEY,Start game,\n", "keys,en,de\nA_KEY,Start game,X!\n"),
    ("keys,en,de\nA_KEY,Start game\n", "keys,en,de\nA_KEY,Start game,X!\n"),
    ("key,de,en\nstart,,Start\n", "key,de,en\nstart,X!,Start\n"),
    ("key,en_US,de_DE,fr_FR\na,Start,,Oui\n", "key,en_US,de_DE,fr_FR\na,Start,X!,Oui\n"),
    ("key,EN,FR\na,Start,Oui\n", "key,EN,FR,DE\na,Start,Oui,X!\n"),
    ("Key,Id,English(en),German(de)\na,1,Go,\n", "Key,Id,English(en),German(de)\na,1,Go,X!\n"),
    (
        "Key,English(en),French(fr)\na,Start,Oui\n",
        "Key,English(en),French(fr),German(de)\na,Start,Oui,X!\n",
    ),
    ("LANGUAGE,English,German\nSTR_A,Start,\n", "LANGUAGE,English,German\nSTR_A,Start,X!\n"),
    ("LANGUAGE,English,French\nSTR_A,Go,\n", "LANGUAGE,English,French,German\nSTR_A,Go,,X!\n"),
    ("id,title_en,title_de\n1,Start,\n", "id,title_en,title_de\n1,Start,X!\n"),
    ("id,title,title_fr\n1,Start,Oui\n", "id,title,title_fr,title_de\n1,Start,Oui,X!\n"),
    ("keys,fr,de\nStart the game,,\n", "keys,fr,de\nStart the game,,X!\n"),
    ("keys,en,de,notes\nA_KEY,Go,,A note.\n", "keys,en,de,notes\nA_KEY,Go,X!,A note.\n"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "wanted"), PAIRS)
def test_a_column_of_a_language_is_the_target_and_those_of_others_are_no_sources(
    source: str, wanted: str
) -> None:
    found = assert_identity(CSV, source.encode())
    assert len(found.segments) == 1
    assert assert_read_back(CSV, source.encode(), ["X!"]).decode() == wanted


def test_the_source_language_decides_which_column_is_translated() -> None:
    text = "keys,en,fr,de\nA_KEY,Start,Oui,\n"
    assert texts_of(text, Options("de", "fr")) == ["Oui"]
    assert texts_of(text, Options("de")) == ["Start"]
    assert texts_of(text, Options("de", "fr-CA")) == ["Oui"]
    assert texts_of(text, Options("de", "fr", columns=("en",))) == ["Start"]
    with pytest.raises(DocumentError, match="none of ja") as caught:
        CSV.extract(text.encode(), Options("de", "ja"))
    assert caught.value.reason == "wrong_type"


def test_a_column_of_a_language_takes_the_translations_of_one_column_alone() -> None:
    data = b"text,en,de\nA hat,A shoe,\n"
    for options in (
        Options("de", "ja", columns=("en", "text")),
        Options("de", columns=("text", "en")),
    ):
        found = CSV.extract(data, options)
        texts = [f"X {each.text}" for each in found.segments]
        output = assert_read_back(CSV, data, texts, options).decode()
        assert output == "text,en,de,text.de\nA hat,A shoe,X A shoe,X A hat\n"


def test_translations_that_a_column_holds_are_done_and_replaced_when_they_are_given() -> None:
    data = b"keys,en,de\nA,Start,Los\nB,Stop,\nC,End,Ende\n"
    found = CSV.extract(data, GERMAN)
    assert [(each.state, each.target) for each in found.segments] == [
        ("done", "Los"), ("empty", None), ("done", "Ende"),
    ]  # fmt: skip
    output = assert_read_back(CSV, data, [None, "Halt", "Ende"])
    assert output == data.replace(b"Stop,", b"Stop,Halt")
    assert b"Start,Anfang" in assert_read_back(CSV, data, ["Anfang", None, None])


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("name,no,is\nA hat,1,2\n", "no"),
        ("id,name\nan apple,A hat\n", "id"),
        ("name,No,It\nA hat,one,two\n", "it"),
        ("name,in,to,by\nA hat,a,b,c\n", "de"),
    ],
)
def test_words_that_are_codes_of_languages_too_are_no_columns_of_languages(
    text: str, language: str
) -> None:
    data = text.encode()
    found = CSV.extract(data, Options(language))
    assert all(each.state == "empty" for each in found.segments)
    assert "A hat" in [each.text for each in found.segments]
    output = CSV.splice(data, found, ["x" for _ in found.segments], Options(language)).decode()
    assert output.startswith(text.split("\n", maxsplit=1)[0] + ",")


def test_rows_without_the_cell_of_a_language_get_it_where_they_have_a_translation() -> None:
    data = b"keys,en,de,title,title.de\nA,One\nB,Two,,Three\nC\n"
    options = Options("de", "en", columns=("en", "title"))
    output = assert_read_back(CSV, data, ["Eins", None, "Drei"], options)
    assert output == b"keys,en,de,title,title.de\nA,One,Eins\nB,Two,,Three,Drei\nC\n"


def test_a_header_may_have_line_breaks_and_an_empty_corner() -> None:
    text = '"Title\n(short)",n\nA hat,1\n'
    assert texts_of(text, Options("de", columns=("Title (short)",))) == ["A hat"]
    output = assert_read_back(CSV, text.encode(), ["Hut"]).decode()
    assert output == '"Title\n(short)",n,"Title (short).de"\nA hat,1,Hut\n'
    assert texts_of(",title,body\n0,A hat,It is red.\n") == ["A hat", "It is red."]


@pytest.mark.parametrize(
    "name", ["\0", "German\0", "en\0", "title_\0", "zh_min_419_xc", "x-zh-min-a1"]
)
def test_names_that_no_library_of_languages_reads_are_names(name: str) -> None:
    found = assert_identity(CSV, f"key,{name},en\nA,A hat,A shoe\n".encode(), IN_PLACE)
    assert found.segments


@pytest.mark.parametrize("cell", ['=A:A&"/"', "=SUM(A1)", "=$B$2+1", "=1+1", "='Sheet 1'!A2"])
def test_a_formula_is_no_text(cell: str) -> None:
    quoted = cell.replace('"', '""')
    text = f'name,n\n"{quoted}",1\n== A title ==,2\n= b,3\n'
    assert texts_of(text, Options("de", columns=("name",))) == ["== A title ==", "= b"]


def test_a_translation_that_a_spreadsheet_would_compute_is_left_out() -> None:
    data = b"name,n\nA hat,1\n= b,2\n"
    found = CSV.extract(data, IN_PLACE)
    for text in ["=1+1", "=cmd|'/c x'!A0", "@SUM(A1)", "+x(1)"]:
        assert CSV.splice(data, found, [text, None], IN_PLACE) == data
    for text in ["-5 % (hat)", "+49 30", "@home", "- a (b)", "a = b"]:
        assert text.encode() in assert_read_back(CSV, data, [text, "= c"], IN_PLACE)


@pytest.mark.parametrize("name", ["en", "title_de", "x(", "a.", "de_DE_", "("])
def test_huge_headers_take_linear_time(name: str) -> None:
    header = ",".join(f"{name}{number}" if number else name for number in range(5_000))
    assert_identity(CSV, f"{header}\n{'A hat,' * 100}\n".encode(), IN_PLACE)


def test_a_name_that_two_columns_have_is_refused() -> None:
    data = b"title,title,id\nA hat,A shoe,1\n"
    with pytest.raises(DocumentError, match="2 of its columns are named title; rename one"):
        CSV.extract(data, Options("de", columns=("title",)))


@pytest.mark.parametrize("name", ["csv", "jsonl"])
def test_of_a_giant_value_the_segment_has_only_so_much_that_it_is_too_long(name: str) -> None:
    giant = "x y. " * 400_000
    data = f"t\n{giant}\nA hat\n" if name == "csv" else f'{{"t":"{giant}"}}\n{{"t":"A hat"}}\n'
    codec, options = registry.codec(name), Options("de", columns=("t",), fields=("t",))
    found = codec.extract(data.encode(), options)
    assert [len(each.text) for each in found.segments] == [MOST_CHARACTERS + 1, len("A hat")]
    spliced = put_back(codec, data.encode(), found, [None, "Ein Hut"], options)
    assert not spliced.changed
    assert spliced.data.count(giant.encode()) == (2 if name == "csv" else 1)
    assert b"Ein Hut" in spliced.data
