"""Whether an approved translation fits its item, and what it lacks."""

from __future__ import annotations

from dragoman_text.verdicts import Finding, Judgement
from dragoman_worker.memory.approved import lost, unfit, with_findings
from dragoman_worker.ports import Remembered

APPROVED = Remembered("Speichern", checks={"memory": {"origin": "approved"}}, approved=True)


def judged(*findings: Finding) -> Judgement:
    return Judgement("Speichern", findings)


def test_translation_fits_an_item_without_demands() -> None:
    assert unfit("Speichern", "Save") is None


def test_longer_than_max_chars_does_not_fit() -> None:
    assert unfit("Speichern", "Save", max_chars=9) is None
    assert unfit("Speichern", "Save", max_chars=8) is not None


def test_literal_must_come_as_often_as_in_the_source() -> None:
    assert unfit("%s von %s", "%s of %s", protect=["%s"]) is None
    assert unfit("von %s", "%s of %s", protect=["%s"]) is not None
    assert unfit("%s %s %s", "%s of %s", protect=["%s"]) is not None
    assert unfit("von", "of", protect=["%s"]) is None
    assert unfit(".*", ".*", protect=[".*"]) is None


def test_what_a_translation_has_lost_is_what_must_come_through() -> None:
    assert lost(judged(Finding("tags", "fail", "why"))) == "why"
    assert lost(judged(Finding("tags", "warn", "why"))) is None
    assert lost(judged(Finding("glossary", "fail", "why"))) is None


def test_a_person_has_decided_about_language_length_and_style() -> None:
    findings = (Finding("language", "fail", "x"), Finding("length", "fail", "x"))
    assert with_findings(APPROVED, judged(*findings)) == APPROVED


def test_what_the_job_asks_for_and_the_translation_lacks_is_a_warning() -> None:
    found = with_findings(APPROVED, judged(Finding("glossary", "fail", "why")))
    assert (found.quality, found.warnings) == ("warn", ("glossary: why",))
    assert found.checks == {
        "memory": {"origin": "approved"},
        "glossary": {"verdict": "warn", "detail": "why"},
    }
