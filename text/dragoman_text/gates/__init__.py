"""The quality gates: one table, and the function that judges an answer by it.

Pure and synchronous: the judge's child process runs `judge` in batches. Every gate takes time
linear in the length of the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from dragoman_text.gates import (
    blank,
    chatter,
    control,
    copy,
    framing,
    garbled,
    glossary,
    incomplete,
    language,
    languages,
    length,
    loop,
    max_chars,
    numbers,
    paragraphs,
    placeholders,
    script,
    structure,
    tags,
    verbatim,
)
from dragoman_text.gates.defect import Defect
from dragoman_text.gates.detect import Detect
from dragoman_text.verdicts import Candidate, Finding, Judgement, Severity

__all__ = ["GATES", "ONCE", "Detect", "Gate", "judge"]

DETAIL_CHARACTERS: Final = 200
_ORDER: Final[tuple[Severity, ...]] = ("fail", "warn", "fixed")
FINDINGS_BYTES: Final = 1024
"""Limits of one finding and of all findings of an item: `checks` has at most 1 KiB."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One row of the table: `find` judges a candidate."""

    name: str
    find: Callable[[Candidate, Detect], Defect | None]
    basic: Severity = "fail"
    strict: Severity = "fail"
    """Severity of a defect at each level; a slight defect is a warning in `basic`."""
    slight_strict: Severity = "warn"
    joined: bool = False
    """Whether the gate judges joined items too."""
    once: bool = False
    """Whether the translator asks again only once for it and then reports a warning: some texts
    are copied or shortened rightly, and every answer says so."""


def _without_detector(
    find: Callable[[Candidate], Defect | None],
) -> Callable[[Candidate, Detect], Defect | None]:
    return lambda candidate, _detect: find(candidate)


GATES: Final = (
    Gate("blank", _without_detector(blank.find)),
    Gate("loop", _without_detector(loop.find)),
    Gate("placeholders", _without_detector(placeholders.find)),
    Gate("tags", _without_detector(tags.find), joined=True),
    Gate("structure", _without_detector(structure.find), joined=True),
    Gate("copy", copy.find, once=True),
    Gate("language", language.find, slight_strict="fail", joined=True),
    Gate("script", script.find, joined=True),
    Gate("length", _without_detector(length.find)),
    Gate("incomplete", _without_detector(incomplete.find), once=True),
    Gate("chatter", _without_detector(chatter.find)),
    Gate("control", _without_detector(control.find)),
    Gate("garbled", _without_detector(garbled.find)),
    Gate("paragraphs", _without_detector(paragraphs.find), joined=True),
    Gate("glossary", _without_detector(glossary.find), basic="warn"),
    Gate("max_chars", _without_detector(max_chars.find), basic="warn", joined=True),
    Gate("verbatim", _without_detector(verbatim.find)),
    Gate("numbers", _without_detector(numbers.find)),
)

ONCE: Final = frozenset(gate.name for gate in GATES if gate.once)
"""Names of the gates for which one more answer is enough."""


def judge(candidate: Candidate, *, detect: Detect) -> Judgement:
    """Return the findings about one answer, the worst first, and its repaired text."""
    text = candidate.target
    found: list[Finding] = []
    if not candidate.joined:
        text = framing.repaired(candidate)
        if text != candidate.target:
            found.append(Finding("framing", "fixed", "Blanks, full stop or quotes at the ends."))
            candidate = replace(candidate, target=text)
    found += _findings(candidate, detect)
    found.sort(key=lambda each: _ORDER.index(each.severity))
    return Judgement(text, _bounded(found), length.distance(candidate))


def _findings(candidate: Candidate, detect: Detect) -> Iterator[Finding]:
    for gate in GATES:
        if candidate.joined and not gate.joined:
            continue
        defect = gate.find(candidate, detect)
        if defect is not None:
            detail = _cut(defect.detail, DETAIL_CHARACTERS)
            yield Finding(gate.name, _severity(gate, defect, strict=candidate.strict), detail)
    given = candidate.source_lang
    if given and not candidate.joined and languages.same_language(given, candidate.target_lang):
        yield Finding("same_language", "warn", f'The source is in "{given}" already.')


def _severity(gate: Gate, defect: Defect, *, strict: bool) -> Severity:
    if defect.slight:
        return gate.slight_strict if strict else "warn"
    return gate.strict if strict else gate.basic


def _bounded(findings: list[Finding]) -> tuple[Finding, ...]:
    """Return the findings with details cut so that all together have at most 1 KiB."""
    if sum(len(each.detail.encode()) for each in findings) <= FINDINGS_BYTES:
        return tuple(findings)
    most = FINDINGS_BYTES // len(findings)
    return tuple(
        Finding(each.gate, each.severity, _cut_bytes(each.detail, most)) for each in findings
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _cut_bytes(text: str, most: int) -> str:
    encoded = text.encode()
    if len(encoded) <= most:
        return text
    return encoded[: most - len("…".encode())].decode(errors="ignore") + "…"
