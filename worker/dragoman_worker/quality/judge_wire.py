"""Messages between a worker and its judge process: pickled tuples.

Both ends are this package in the same version of Python. A request is pickled alone, so a batch
can be judged again in parts without pickling it again.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, NamedTuple

from dragoman_text.detection import Detection
from dragoman_text.terms import Term
from dragoman_text.verdicts import Candidate, Finding, Judgement

READY: Final = b""
"""The first message of a judge process: its gates and its language model are loaded."""

_CANDIDATE_FIELDS: Final = tuple(field.name for field in fields(Candidate))
_TERMS_AT: Final = _CANDIDATE_FIELDS.index("terms")
_of_candidate: Final = attrgetter(*_CANDIDATE_FIELDS)
_of_term: Final = attrgetter(*(field.name for field in fields(Term)))
_of_finding: Final = attrgetter(*(field.name for field in fields(Finding)))
_of_detection: Final = attrgetter(*(field.name for field in fields(Detection)))


class Failed(NamedTuple):
    """The answer to a request that raised an exception: its type and place, never its message.

    The message may quote the texts, which are never logged.
    """

    error: str
    place: str


class DetectRequest(NamedTuple):
    """The texts of one job whose languages are wanted."""

    texts: Sequence[str]
    candidates: Collection[str] | None
    target_lang: str | None


def pack_candidate(candidate: Candidate) -> bytes:
    """Return the request to judge an answer."""
    values = _of_candidate(candidate)
    if candidate.terms:
        terms = tuple(map(_of_term, candidate.terms))
        values = (*values[:_TERMS_AT], terms, *values[_TERMS_AT + 1 :])
    return pickle.dumps(values, pickle.HIGHEST_PROTOCOL)


def pack_texts(request: DetectRequest) -> bytes:
    """Return the request to detect the languages of texts."""
    texts, candidates, target_lang = request
    return pickle.dumps((tuple(texts), candidates, target_lang), pickle.HIGHEST_PROTOCOL)


def unpack_request(payload: bytes) -> Candidate | DetectRequest:
    """Return what one request asks for."""
    values = pickle.loads(payload)  # noqa: S301  from the worker that started this process
    if len(values) != len(_CANDIDATE_FIELDS):
        return DetectRequest(*values)
    given = dict(zip(_CANDIDATE_FIELDS, values, strict=True))
    given["terms"] = tuple(Term(*term) for term in given["terms"])
    return Candidate(**given)


def pack_judgement(judgement: Judgement, candidate: Candidate) -> tuple[Any, ...]:
    """Return a judgement as plain values; an unchanged text is not sent back."""
    text = None if judgement.text == candidate.target else judgement.text
    return text, tuple(map(_of_finding, judgement.findings)), judgement.length_distance


def unpack_judgement(values: Sequence[Any], candidate: Candidate) -> Judgement:
    """Return the judgement about the candidate."""
    text, findings, distance = values
    return Judgement(
        candidate.target if text is None else text,
        tuple(Finding(*finding) for finding in findings) if findings else (),
        distance,
    )


def pack_detections(detections: Sequence[Detection | None]) -> tuple[Any, ...]:
    """Return detections as plain values."""
    return tuple(each and _of_detection(each) for each in detections)


def unpack_detections(values: Sequence[Any]) -> list[Detection | None]:
    """Return the detections."""
    return [None if each is None else Detection(*each) for each in values]


def pack(batch: Sequence[Any]) -> bytes:
    """Return the message that has the requests of a batch, or the answers to it."""
    return pickle.dumps(batch, pickle.HIGHEST_PROTOCOL)


def unpack(message: bytes) -> list[Any]:
    """Return what `pack` was given."""
    batch: list[Any] = pickle.loads(message)  # noqa: S301  from our own process
    return batch
