"""Files of approved translations: what a row becomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_producer.operations import memory_files
from dragoman_producer.operations.glossary_files import Languages
from dragoman_producer.operations.memory_files import MemoryRow, RefusedLine, escaped, read_memory
from dragoman_schemas.approved import ApprovedTranslation
from support.builders.tmx_files import unit, units


def rows(path: Path, content: str, **languages: str) -> list[MemoryRow | RefusedLine]:
    path.write_text(content, encoding="utf-8", newline="")
    return list(read_memory(path, Languages(**languages)))


def problems(found: list[MemoryRow | RefusedLine]) -> list[str | None]:
    return [row.problem if isinstance(row, RefusedLine) else None for row in found]


def translations(found: list[MemoryRow | RefusedLine]) -> list[ApprovedTranslation]:
    return [row.translation for row in found if isinstance(row, MemoryRow)]


def line(**members: Any) -> str:
    return json.dumps({"source": "a", "target": "b", "target_lang": "de"} | members) + "\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (line(source=" "), "incomplete"),
        (line(target=None), "incomplete"),
        (line(target_lang="xyzzy"), "language"),
        (line(source_lang="xyzzy"), "language"),
        (line(target_lang=None), "language"),
        (line(source=1), "invalid"),
        (line(more="x"), "invalid"),
        (line(source="\ud800"), "invalid"),
        (line(source="x" * 200_000), "too_long"),
        (line(context="x" * 9_000), "too_long"),
        ("[]\n", "invalid"),
        ("[" * 100_000 + "\n", "invalid"),
        ("no JSON\n", "invalid"),
        ("\n", "empty"),
        (line(), None),
    ],
)
def test_line_of_jsonl(tmp_path: Path, content: str, problem: str | None) -> None:
    found = rows(tmp_path / "a.jsonl", content)
    assert problems(found) == [problem]
    assert problem is None or problem in memory_files.KINDS


def test_languages_of_the_options_are_for_lines_that_have_none(tmp_path: Path) -> None:
    found = rows(tmp_path / "a.jsonl", line() + line(target_lang=None), source="en", target="fr")
    assert translations(found) == [
        ApprovedTranslation("a", "b", "de", "en"),
        ApprovedTranslation("a", "b", "fr", "en"),
    ]


def test_header_of_languages_gives_one_entry_per_column(tmp_path: Path) -> None:
    found = rows(tmp_path / "a.tsv", "en\tde\tfr\tcontext\nSave\tSpeichern\tEnregistrer\tmenu\n")
    assert translations(found) == [
        ApprovedTranslation("Save", "Speichern", "de", "en", "menu"),
        ApprovedTranslation("Save", "Enregistrer", "fr", "en", "menu"),
    ]


def test_table_without_languages_is_not_imported(tmp_path: Path) -> None:
    assert problems(rows(tmp_path / "a.tsv", "Save\tSpeichern\n")) == ["language"]


def test_backslashes_of_a_plain_table_are_no_escapes(tmp_path: Path) -> None:
    found = rows(tmp_path / "a.tsv", "a\\nb\tC:\\temp\n", target="de")
    assert translations(found) == [ApprovedTranslation("a\\nb", "C:\\temp", "de")]


_TEXT = st.text(
    st.sampled_from("ab\\nrt\t\n\r\u2028é") | st.characters(exclude_categories=["Cs"]), max_size=20
)


@given(_TEXT, _TEXT)
def test_exported_row_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, source: str, target: str
) -> None:
    source, target = f"x{source}x".replace("\0", ""), f"x{target}x".replace("\0", "")
    head = "source_lang\ttarget_lang\tsource\ttarget\tcontext\n"
    content = f"{head}\tde\t{escaped(source)}\t{escaped(target)}\t\n"
    found = rows(tmp_path_factory.getbasetemp() / "law.tsv", content)
    assert translations(found) == [ApprovedTranslation(source, target, "de")]


def test_to_chooses_a_variety_of_a_header_and_stores_it_under_the_given_tag(tmp_path: Path) -> None:
    found = rows(
        tmp_path / "a.tsv", "en-US\tde-DE\tfr\ngate\tTor\tporte\n", source="en", target="de"
    )
    assert translations(found) == [ApprovedTranslation("gate", "Tor", "de", "en")]


def test_words_that_look_like_tags_are_no_header_without_the_language_of_to(tmp_path: Path) -> None:
    found = rows(tmp_path / "a.tsv", "no\tnon\nyes\toui\n", source="en", target="fr")
    assert [one.source for one in translations(found)] == ["no", "yes"]


def test_a_second_text_of_a_language_in_a_unit_is_reported(tmp_path: Path) -> None:
    pair = (("en", "gate"), ("de", "Tor"))
    content = units(unit(*pair, ("de", "Pforte")), unit(*pair, ("de", "Tor")))
    found = rows(tmp_path / "a.tmx", content)
    assert problems(found) == [None, "unit", None]
    assert isinstance(found[1], RefusedLine)
    assert found[1].detail == "unit 1: another text in de: not imported"


def test_an_invalid_text_is_reported_unless_the_language_of_to_is_there(tmp_path: Path) -> None:
    content = units(unit(("en", "gate"), ("de", "Tor"), ("klingonese", "x")))
    assert problems(rows(tmp_path / "a.tmx", content)) == [None, "unit"]
    assert problems(rows(tmp_path / "a.tmx", content, target="de")) == [None]
    assert problems(rows(tmp_path / "a.tmx", content, target="fr")) == ["unit"]


def test_a_row_of_a_hundred_thousand_cells_is_one_problem(tmp_path: Path) -> None:
    tags = "\t".join(f"a{number}" for number in range(100_000))
    (row,) = rows(tmp_path / "a.tsv", tags + "\n", target="de")
    assert isinstance(row, RefusedLine)
    assert row.detail == "100,000 columns instead of 3: not imported"


def test_a_quoted_carriage_return_is_text(tmp_path: Path) -> None:
    for content in ('"a\rb",c', '"a\rb",c\n', '"a\rb\nd",c\n'):
        (entry,) = translations(rows(tmp_path / "a.csv", content, target="de"))
        assert entry.source.startswith("a\rb")
