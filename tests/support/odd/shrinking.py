"""Reduction of a failing round to its smallest failing record."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from support.builders.odd_records import OddRecord
from support.odd.cases import Case
from support.odd.random_records import readable_id

_WITHIN_S: Final = 240.0
Fails = Callable[[Sequence[Case]], bool]


def smallest(cases: Sequence[Case], fails: Fails) -> list[Case]:
    """Return the smallest part of the cases that still fails, all of them if no part does.

    Halves first, then the record's headers and timestamp, then the end of its value. `fails`
    costs a worker's start, so it is asked for a few minutes only.
    """
    until = time.monotonic() + _WITHIN_S

    def still_fails(some: Sequence[Case]) -> bool:
        return time.monotonic() < until and fails(some)

    left = [replace(case, records=[one]) for case in cases for one in case.records]
    while len(left) > 1:
        half = len(left) // 2
        part = next((part for part in (left[:half], left[half:]) if still_fails(part)), None)
        if part is None:
            return left
        left = part
    return [_plainer(left[0], still_fails)] if left else []


def _plainer(case: Case, fails: Fails) -> Case:
    without: tuple[dict[str, Any], ...] = ({"headers": []}, {"timestamp_ms": None}, {"key": None})
    for fields in without:
        case = _if_it_fails(case, replace(case.records[0], **fields), fails)
    while True:
        record = case.records[0]
        value = (record.value or b"")[: len(record.value or b"") // 2]
        shorter = _if_it_fails(case, replace(record, value=value, job_id=readable_id(value)), fails)
        if shorter is case or not value:
            return shorter
        case = shorter


def _if_it_fails(case: Case, record: OddRecord, fails: Fails) -> Case:
    if record == case.records[0]:
        return case
    simpler = replace(case, records=[record])
    return simpler if fails([simpler]) else case
