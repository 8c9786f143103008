"""Tests of glossary files: tables and TMX as people have them, and as nobody should."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_producer.operations import glossary_draft, text_files
from dragoman_producer.operations.glossary_draft import Draft
from dragoman_producer.operations.glossary_files import Languages, read_glossary
from dragoman_producer.operations.text_files import InvalidFile
from dragoman_schemas.glossaries import LONGEST_TERM, GlossaryEntry
from support.builders.tmx_files import unit, units

EN_DE = Languages("en", "de")
HEADER = '<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>'


def file(tmp_path: Path, content: str | bytes, name: str = "terms.tsv") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(
    tmp_path: Path, content: str | bytes, name: str = "terms.tsv", *, languages: Languages = EN_DE
) -> Draft:
    return read_glossary([file(tmp_path, content, name)], languages)


def pairs(draft: Draft, tag: str = "de") -> list[tuple[str, tuple[str, ...]]]:
    return [(entry.source, entry.targets) for entry in draft.entries()[tag]]


def remarks(draft: Draft) -> list[tuple[str, int, int | None]]:
    return [(one.kind, one.line, one.earlier) for one in draft.remarks]


# --- tables ---------------------------------------------------------------------------------------


def test_a_table_without_header_has_two_columns(tmp_path: Path) -> None:
    draft = read(tmp_path, "gate\tTor\ncloud\tWolke\n")
    assert pairs(draft) == [("gate", ("Tor",)), ("cloud", ("Wolke",))]
    assert draft.source_lang == "en"


def test_a_header_of_tags_gives_several_languages(tmp_path: Path) -> None:
    content = "EN\tde_de\tfr\tnote\tcase_sensitive\ngate\tTor\tportail\tat airports\t\n"
    content += "Go\tGo\t\t\tyes\n"
    draft = read(tmp_path, content, languages=Languages())
    assert draft.source_lang == "en"
    assert draft.entries() == {
        "de-DE": [
            GlossaryEntry("gate", ("Tor",), note="at airports"),
            GlossaryEntry("Go", ("Go",), case_sensitive=True),
        ],
        "fr": [GlossaryEntry("gate", ("portail",), note="at airports")],
    }


def test_to_chooses_one_language_of_a_header(tmp_path: Path) -> None:
    draft = read(tmp_path, "en\tde\tfr\ngate\tTor\tportail\n", languages=Languages(None, "fr"))
    assert draft.entries() == {"fr": [GlossaryEntry("gate", ("portail",))]}


def test_to_chooses_a_variety_of_a_header_and_stores_it_under_the_given_tag(tmp_path: Path) -> None:
    draft = read(tmp_path, "en-US\tde-DE\tfr\ngate\tTor\tporte\n")
    assert pairs(draft) == [("gate", ("Tor",))]


def test_a_header_of_column_names_is_no_term(tmp_path: Path) -> None:
    draft = read(tmp_path, "source\ttarget\ngate\tTor\n")
    assert pairs(draft) == [("gate", ("Tor",))]


def test_a_csv_whose_separator_is_in_doubt_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="in doubt"):
        read(tmp_path, "Hello, dear world;Hallo, liebe Welt\n", "terms.csv")


def test_quoted_cells_may_hold_other_separators(tmp_path: Path) -> None:
    draft = read(tmp_path, '"Hello, world";"Hallo, Welt"\n', "terms.csv")
    assert pairs(draft) == [("Hello, world", ("Hallo, Welt",))]


def test_terms_that_look_like_tags_are_no_header(tmp_path: Path) -> None:
    draft = read(tmp_path, "is\tist\nno\tnein\n")
    assert pairs(draft) == [("is", ("ist",)), ("no", ("nein",))]


@pytest.mark.parametrize(
    "content",
    ['gate,Tor\n"a, b","c ""d"""\n', 'gate;Tor\n"a, b";"c ""d"""\n'],
)
def test_csv_may_be_separated_by_commas_or_semicolons(tmp_path: Path, content: str) -> None:
    assert pairs(read(tmp_path, content, "terms.csv")) == [("gate", ("Tor",)), ("a, b", ('c "d"',))]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_unicode_with_a_mark_is_read(tmp_path: Path, encoding: str, end: str) -> None:
    content = f"gate\tTür{end}日本\tJapan{end}".encode(encoding)
    assert pairs(read(tmp_path, content)) == [("gate", ("Tür",)), ("日本", ("Japan",))]


def test_duplicates_conflicts_and_empty_lines_are_reported_by_number(tmp_path: Path) -> None:
    content = "gate\tTor\n\ngate\tTor\nGate\tSchranke\ncloud\t\n\t\n\tWolke\n"
    draft = read(tmp_path, content)
    assert pairs(draft) == [("gate", ("Tor", "Schranke"))]
    assert remarks(draft) == [
        ("empty", 2, None),
        ("duplicate", 3, 1),
        ("alternative", 4, 1),
        ("incomplete", 5, None),
        ("empty", 6, None),
        ("incomplete", 7, None),
    ]


def test_only_the_first_remarks_of_a_kind_are_listed(tmp_path: Path) -> None:
    draft = read(tmp_path, "gate\tTor\n" * 1_000)
    assert len(draft.remarks) == glossary_draft.MOST_LISTED
    assert draft.counts["duplicate"] == 999


def test_case_sensitive_terms_may_differ_by_case(tmp_path: Path) -> None:
    content = "en\tde\tcase_sensitive\nGo\tGo\tx\ngo\tgehen\t\n"
    assert pairs(read(tmp_path, content)) == [("Go", ("Go",)), ("go", ("gehen",))]


@pytest.mark.parametrize(
    "term",
    ["(a+)+$", ".*", "[", "\\", "a|b", "%s", "{{x}}", "⟦0⟧", "<x0/>", "עברית", "می‌خواهم", "👩‍🚀"],
)
def test_a_term_is_literal_in_any_script(tmp_path: Path, term: str) -> None:
    assert pairs(read(tmp_path, f"{term}\t{term}\n")) == [(term, (term,))]


def test_zero_width_characters_at_the_ends_are_no_part_of_a_term(tmp_path: Path) -> None:
    assert pairs(read(tmp_path, "\u200bgate\ufeff\t\u2060Tor\n")) == [("gate", ("Tor",))]


@pytest.mark.parametrize("term", ["\u200b", "\u00ad", "\u200e\u200f", "\u3000", "\u200d"])
def test_a_term_of_nothing_visible_is_empty(tmp_path: Path, term: str) -> None:
    assert remarks(read(tmp_path, f"{term}\tTor\ngate\tTor\n")) == [("incomplete", 1, None)]


INVALID = {
    "one column": ("gate\n", "line 1: 1 columns instead of 2"),
    "three columns": ("gate\tTor\tx\n", "line 1: 3 columns instead of 2"),
    "a later line": ("gate\tTor\ncloud\n", "line 2: 1 columns instead of 2"),
    "a short line under a header": (
        "en\tde\tfr\na\tb\n",
        "line 2: 2 columns instead of 3; give every",
    ),
    "a long line under a header": ("en\tde\na\tb\tc\n", "instead of 2; a cell holds no tab"),
    "a long term": ("gate\t" + "x" * 10_000, "line 1: a term of 10,000 characters"),
    "control characters": ("gate\tT\x07or\n", "line 1: a term with the control character U+0007"),
    "an override": ("gate\t\u202eroT\n", "line 1: a term with the control character U+202E"),
    "a line separator": ("ga\u2028te\tTor\n", "line 1: a term with the control character U+2028"),
    "Latin-1": ("gate\tTür\n".encode("latin-1"), "line 1: byte 7 (0xFC) is not UTF-8"),
    "mixed": ("a\tü\n".encode() + "b\tü\n".encode("latin-1"), "line 2: byte 3 (0xFC)"),
    "UTF-16 without a mark": ("gate\tTor\n".encode("utf-16-le"), "line 1: a zero byte"),
    "UTF-16 cut off": ("gate\tTor\n".encode("utf-16")[:-1], "line 1: the text is not valid UTF-16"),
    "UTF-32": ("gate\tTor\n".encode("utf-32"), "line 1: the text is UTF-32"),
    "a program": (b"\x7fELF\0\0", "line 1: a zero byte"),
    "one endless line": ("x" * 3_000_000, "line 1: longer than"),
    "old line ends": ("gate\tTor\rcloud\tWolke\r", "line 1: its lines end in CR only"),
    "nothing": ("", "the file is empty"),
    "no term": ("\n\n", "no term was found"),
    "a flag": ("en\tde\tcase_sensitive\na\tb\tperhaps\n", "line 2: case_sensitive is 'perhaps'"),
    "another language": ("fr\tde\nporte\tTor\n", "line 1: the header is from fr, not from en"),
    "a language twice": ("en\tde\tde\na\tb\tc\n", "line 1: a header names a language twice"),
}


@pytest.mark.parametrize(("content", "named"), INVALID.values(), ids=INVALID)
def test_an_invalid_table_is_refused_by_file_and_line(
    tmp_path: Path, content: str | bytes, named: str
) -> None:
    with pytest.raises(InvalidFile) as caught:
        read(tmp_path, content)
    assert named in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "terms.tsv"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ('gate,"Tor\ncloud,Wolke\n', "is a quote not closed"),
        ('gate,"' + "x" * 200_000, "is a quote not closed"),
        ('gate,"Tor"x\n', "is a quote not closed"),
        ('gate,"T\nor"\n', "line 2: a term with the control character U+000A"),
    ],
)
def test_an_invalid_csv_is_refused(tmp_path: Path, content: str, named: str) -> None:
    with pytest.raises(InvalidFile, match=named.replace("+", r"\+")):
        read(tmp_path, content, "terms.csv")


def test_without_to_a_table_needs_a_header(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"line 1: no header of language tags.*--to"):
        read(tmp_path, "gate\tTor\n", languages=Languages())


@pytest.mark.parametrize("name", ["terms.txt", "terms.xlsx", "terms"])
def test_another_kind_of_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidFile, match=r"give a file in \.tsv"):
        read(tmp_path, "gate\tTor\n", name)


def test_files_from_two_languages_are_refused(tmp_path: Path) -> None:
    paths = [file(tmp_path, "en\tde\na\tb\n", "a.tsv"), file(tmp_path, "fr\tde\na\tb\n", "b.tsv")]
    with pytest.raises(
        InvalidFile, match=r"b\.tsv: its source language is fr, but the glossary's is en"
    ):
        read_glossary(paths, Languages())


def test_too_many_terms_are_refused_at_the_first_one_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glossary_draft, "MOST_TERMS", 3)
    with pytest.raises(InvalidFile, match="line 4: more than 3 terms for de"):
        read(tmp_path, "".join(f"t{n}\tx\n" for n in range(10)) + "invalid")


def test_too_many_rows_are_refused_early_and_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glossary_draft, "MOST_ROWS", 20_000)
    path = file(tmp_path, "gate\tTor\n" * 2_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidFile, match=r"line 20,001: more than 20,000 rows"):
            read_glossary([path], EN_DE)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


# --- TMX ------------------------------------------------------------------------------------------


def test_a_tmx_is_a_glossary(tmp_path: Path) -> None:
    content = units(unit(("EN-US", "gate"), ("DE-DE", "Tor")), unit(("en", "x"), ("fr", "y")))
    draft = read(tmp_path, content, "terms.tmx")
    assert pairs(draft) == [("gate", ("Tor",))]
    assert remarks(draft) == [("incomplete", 1, None)]


def test_without_options_a_tmx_names_its_languages(tmp_path: Path) -> None:
    content = units(unit(("en", "gate"), ("de", "Tor"), ("fr", "portail")))
    draft = read(tmp_path, content, "terms.tmx", languages=Languages())
    assert draft.source_lang == "en"
    assert set(draft.entries()) == {"de", "fr"}


def test_a_tmx_of_another_language_is_refused_with_its_languages(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"no term from en to de.*en-GB, fr"):
        read(tmp_path, units(unit(("en-GB", "gate"), ("fr", "portail"))), "terms.tmx")


def test_an_invalid_unit_is_refused_by_file_line_and_number(tmp_path: Path) -> None:
    content = units(unit(("en", "a"), ("de", "b")), "\n" + unit(("en", "x"), ("german", "y")))
    with pytest.raises(InvalidFile, match=r"terms.tmx, line 2: unit 2: 'german' is not a language"):
        read(tmp_path, content, "terms.tmx")


def test_a_term_of_an_earlier_file_is_named_with_that_file(tmp_path: Path) -> None:
    first, second = (file(tmp_path, "gate\tTor\n", f"{name}.tsv") for name in "ab")
    [remark] = read_glossary([first, second], EN_DE).remarks
    assert (remark.file, remark.earlier_file) == (str(second), str(first))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    for name in ("t.tsv", "t.csv", "t.tmx"):
        with suppress(InvalidFile):
            read(folder, content, name)


def test_a_folder_and_a_missing_file_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "folder.tsv"
    folder.mkdir()
    for path in (folder, tmp_path / "missing.tmx"):
        with pytest.raises(InvalidFile, match="give a readable file"):
            read_glossary([path], EN_DE)


def test_the_longest_line_is_larger_than_any_row_of_terms() -> None:
    assert text_files.LONGEST_LINE > 256 * (LONGEST_TERM * 4 + 1)
