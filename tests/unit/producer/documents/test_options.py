"""Tests of what the options of `dragoman translate` may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman_producer.documents.options import Unusable, _glossary


def test_a_glossary_that_is_a_folder_is_not_taken_for_the_name_of_a_stored_one(
    tmp_path: Path,
) -> None:
    with pytest.raises(Unusable, match=r"--glossary.*it is no file"):
        _glossary(str(tmp_path), "en", "de")
    assert _glossary(str(tmp_path / "none"), "en", "de") == ({}, str(tmp_path / "none"))
