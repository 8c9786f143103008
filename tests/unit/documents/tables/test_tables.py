"""Tests of CSV and TSV."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.codec import DocumentError, Options
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
