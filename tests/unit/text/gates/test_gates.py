"""Tests of the table of gates: severities by level, joined items, limits of details, time."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_text.detection import Detection
from dragoman_text.gates import (
    DETAIL_CHARACTERS,
    FINDINGS_BYTES,
    GATES,
    _bounded,
    judge,
)
from dragoman_text.terms import Term
from dragoman_text.verdicts import Candidate, Finding
from support.pace import LINEAR_S


def no_language(_text: str, _candidates: Collection[str] | None = None) -> Detection | None:
    return None


def found(source: str, target: str, **members: object) -> dict[str, str]:
    """Return the severities by gate."""
    candidate = Candidate(source, target, "de", **members)  # type: ignore[arg-type]
    return {each.gate: each.severity for each in judge(candidate, detect=no_language).findings}


def test_a_faithful_answer_has_no_findings() -> None:
    assert found("Hello, world!", "Hallo, Welt!") == {}


def test_a_limit_of_characters_is_a_warning_in_basic_and_a_failure_in_strict() -> None:
    assert found("Hello!", "Hallo!", max_chars=5) == {"max_chars": "warn"}
    assert found("Hello!", "Hallo!", max_chars=5, strict=True) == {"max_chars": "fail"}
    assert found("Hello!", "Hallo!", max_chars=6) == {}


def test_only_some_gates_judge_a_joined_item() -> None:
    assert found("Hello {name}!", "…", max_chars=0, joined=True) == {"max_chars": "warn"}
    assert {gate.name for gate in GATES if gate.joined} == {
        "language",
        "max_chars",
        "paragraphs",
        "script",
        "structure",
        "tags",
    }


def test_the_page_of_the_gates_has_a_row_for_each_in_their_order() -> None:
    page = (Path(__file__).parents[4] / "docs/explanation/quality.md").read_text("utf-8")
    table = page.partition("## The gates\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert rows == [*(gate.name for gate in GATES), "framing"]


@pytest.mark.parametrize("name", [gate.name for gate in GATES])
def test_a_gate_has_tests_in_a_module_that_names_it_first(name: str) -> None:
    """A module's first line lists the gates that it tests, in backquotes."""
    modules = Path(__file__).parent.glob("test_*.py")
    assert any(f"`{name}`" in module.read_text("utf-8").partition("\n")[0] for module in modules)


def test_failures_come_before_warnings() -> None:
    candidate = Candidate("Hello {name}!", "Hallo!", "de", max_chars=1)
    severities = [each.severity for each in judge(candidate, detect=no_language).findings]
    assert severities == ["fail", "warn"]


def test_details_are_bounded() -> None:
    literals = tuple(f"{'漢' * 100}{number}" for number in range(50))
    candidate = Candidate(" ".join(literals), "x" * 400, "de", protected=literals, max_chars=1)
    findings = judge(candidate, detect=no_language).findings
    assert all(len(each.detail) <= DETAIL_CHARACTERS for each in findings)
    assert sum(len(each.detail.encode()) for each in findings) <= FINDINGS_BYTES


def test_many_long_details_share_one_kibibyte() -> None:
    long = [Finding("tags", "fail", "漢" * DETAIL_CHARACTERS) for _number in range(7)]
    bounded = _bounded(long)
    assert len(bounded) == 7
    assert sum(len(each.detail.encode()) for each in bounded) <= FINDINGS_BYTES
    assert all(each.detail.endswith("…") for each in bounded)


PIECES = (
    "Qt|KDE|sorry, |无法翻译|翻译：| |\n|\n\n|1.5 |万|12:30|%1$s|{n, plural, other {#}}|{|}"
    "|<0>|</b>|:name"
    '|«|"|ال|&amp;|Ã¼|፡፡|。|- |...|\u200f|ก|的|ы|א'
)
TEXTS = st.text(max_size=200) | st.lists(
    st.sampled_from([*PIECES.split("|"), "|"]), max_size=30
).map("".join)
TAGS = st.sampled_from(
    ["de", "en", "zh-Hans", "zh", "ja", "ko", "th", "am", "ar", "he", "sr", "ckb", "xx"]
)


@given(source=TEXTS, target=TEXTS, given_lang=st.none() | TAGS, asked=TAGS, strict=st.booleans())
def test_no_text_makes_a_gate_raise(
    source: str, target: str, given_lang: str | None, asked: str, strict: bool
) -> None:
    candidate = Candidate(
        source, target, asked, given_lang, strict=strict, protected=(source[:2],), prompt=(target,)
    )
    judge(candidate, detect=no_language)


@pytest.mark.parametrize("name", [gate.name for gate in GATES])
def test_each_gate_has_its_own_module(name: str) -> None:
    __import__(f"dragoman_text.gates.{name}")


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "<b>",
        "{a}",
        "漢",
        "e\u0301",
        "\u200b",
        "👩\u200d👧",
        "\u202e",
        "<|im_end|>",
        "1.",
        "\n\n",
    ],
)
def test_a_hostile_text_takes_linear_time_through_all_gates(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    terms = tuple(Term(f"t{number}", (f"z{number}", unit)) for number in range(50))
    candidate = Candidate(text, text[1:], "zh-Hans", "en", protected=(unit,), terms=terms)
    started = time.process_time()
    judge(candidate, detect=no_language)
    assert time.process_time() - started < LINEAR_S


def test_a_source_in_the_target_language_is_a_warning() -> None:
    assert found("Die Sitzung", "Die Sitzung", source_lang="de-AT") == {"same_language": "warn"}
    assert found("Die Sitzung", "Die Sitzung", source_lang="de", joined=True) == {}


def test_a_repaired_end_is_reported_and_returned() -> None:
    judgement = judge(Candidate('"It is late"', " Es ist spät", "de"), detect=no_language)
    assert judgement.text == '"Es ist spät"'
    assert [each.severity for each in judgement.findings] == ["fixed"]
    assert judgement.verdict == "ok"


def test_the_light_client_can_import_the_gates_without_their_libraries() -> None:
    code = (
        "import sys, dragoman_text.gates, dragoman_text.detection;"
        "print(sorted({'py3langid', 'rapidfuzz', 'numpy', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"
