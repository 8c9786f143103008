"""Tests of what the options of `dragoman translate` may be."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from dragoman_producer.cli.translate import translate
from dragoman_producer.cli.translate_stdin import refusal
from dragoman_producer.runs.options import (
    Unusable,
    _encoding,
    _formats,
    _glossary,
    _lines,
    request_of,
    site_of,
)
from dragoman_producer.runs.request import IN_FLIGHT


def test_a_glossary_that_is_a_folder_is_not_taken_for_the_name_of_a_stored_one(
    tmp_path: Path,
) -> None:
    with pytest.raises(Unusable, match=r"--glossary.*it is a folder"):
        _glossary(str(tmp_path), "en", "de")
    assert _glossary(str(tmp_path / "none"), "en", "de") == ({}, str(tmp_path / "none"), ())


@pytest.mark.parametrize("name", ["no-such", "base64", "nul\0"])
def test_an_encoding_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(Unusable, match="--encoding: there is no encoding"):
        _encoding(name)
    assert _encoding("Windows-1252") == "cp1252"


def test_the_language_of_the_source_is_no_target(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=r"--to: de is the language of the source"):
        request_of([tmp_path], tmp_path, {"to": "fr,de", "source": "DE"})


def test_a_file_is_no_folder_of_outputs(tmp_path: Path) -> None:
    out = tmp_path / "guide.md"
    out.write_text("# Guide")
    with pytest.raises(Unusable, match=r"--out .*guide\.md: it is a file"):
        request_of([tmp_path], out, {"to": "de", "source": None})


def test_an_empty_path_is_not_taken_for_the_current_folder(tmp_path: Path) -> None:
    why = refusal(["a", ""], str(tmp_path), {}, as_json=False)
    assert why is not None
    assert "a PATH is empty" in why


def test_an_empty_folder_of_outputs_is_not_taken_for_the_current_folder() -> None:
    why = refusal(["a"], "", {}, as_json=False)
    assert why is not None
    assert "--out is empty" in why


def test_texts_to_keep_that_cannot_be_read_are_named_without_a_number_of_the_system(
    tmp_path: Path,
) -> None:
    with pytest.raises(Unusable) as caught:
        list(_lines(tmp_path))
    assert str(caught.value) == f"--keep {tmp_path}: Is a directory; give a readable file"
    (tmp_path / "keep").write_bytes(b"a\xff")
    with pytest.raises(Unusable, match=r"it is not UTF-8 \(byte 1\)"):
        list(_lines(tmp_path / "keep"))


def test_terms_of_a_file_with_several_targets_are_named(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("cat\tKatze\ncat\tKater\ndog\tHund\n")
    terms, name, [note] = _glossary(str(path), "en", "de")
    assert (terms, name) == ({"cat": "Katze", "dog": "Hund"}, None)
    assert "terms.tsv: only the first target is used of 1 term with several" in note


@pytest.mark.parametrize(
    ("given", "general", "by_glob"),
    [
        (None, None, ()),
        (["json"], "json", ()),
        (["*.js=json", "a=b/*.x=yaml", "txt"], "txt", ("*.js=json", "a=b/*.x=yaml")),
    ],
)
def test_formats_are_of_all_files_or_of_a_pattern(
    given: list[str] | None, general: str | None, by_glob: tuple[str, ...]
) -> None:
    assert _formats(given or ()) == (general, by_glob)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["json", "yaml"], "all files cannot be json and yaml; give GLOB=NAME"),
        (["=json"], "'=json' has no pattern"),
        (["*.x=none"], "'none' is not valid; choose"),
    ],
)
def test_formats_that_cannot_be_are_refused(given: list[str], why: str) -> None:
    with pytest.raises(Unusable, match=why):
        _formats(given)


@pytest.mark.parametrize(("given", "near"), [("docusaurs", "docusaurus"), ("mkdoc", "mkdocs")])
def test_a_site_that_does_not_exist_is_answered_by_the_nearest_one(given: str, near: str) -> None:
    with pytest.raises(Unusable, match=rf"{near}\?"):
        site_of(given)


def test_the_command_has_as_many_segments_in_flight_as_the_functions() -> None:
    assert inspect.signature(translate).parameters["in_flight"].default == IN_FLIGHT
