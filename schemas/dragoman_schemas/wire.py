"""How do jobs and results become bytes, and bytes jobs and results? (contract, sections 1, 2, 4)"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NoReturn

from pydantic import ValidationError

from dragoman_schemas.crowds import SMALLEST_CROWD, crowd
from dragoman_schemas.failures import FailureCode
from dragoman_schemas.fingerprint import MAX_SAFE_INTEGER, fingerprint_of_normal, normal
from dragoman_schemas.jobs import JOB_ID_PATTERN, SCHEMA_VERSION, TranslationJob
from dragoman_schemas.names import HEADER_REPLAY, MAX_RECORD_BYTES
from dragoman_schemas.problems import failure_code, sentence
from dragoman_schemas.results import TerminalStatus, TranslationResult

_JOB_ID: Final = re.compile(JOB_ID_PATTERN)
_POSITIVE_INTEGER: Final = re.compile(rb"[1-9][0-9]{0,15}")
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_LATEST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, the last year that a datetime can hold."""
_INTEGER_DIGITS: Final = len(str(MAX_SAFE_INTEGER)) + 1


class UnreadableRecord(ValueError):
    """The bytes hold no readable job id: nothing can be said under any job's name."""


class InvalidRecord(ValueError):
    """The id is readable, the job is not valid. ``code`` and the one-line message say why."""

    def __init__(self, code: FailureCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Envelope:
    """What is known of a record before its job is validated. ``fields`` has no null members."""

    job_id: str
    fingerprint: str
    fields: dict[str, object]


def open_record(value: bytes | None) -> Envelope:
    """The id, the fingerprint and the members of a record. Raises UnreadableRecord."""
    if not value:
        raise UnreadableRecord("the record has no value" if value is None else "the value is empty")
    try:
        fields = normal(_parse_object(value))
        job_id = _job_id(fields.members)
        return Envelope(job_id, fingerprint_of_normal(fields), fields.members)
    except RecursionError:
        raise UnreadableRecord("the record nests too deeply") from None
    except UnreadableRecord:
        raise
    except ValueError as error:
        raise UnreadableRecord(str(error)) from None


def decode_job(envelope: Envelope, *, size: int) -> TranslationJob:
    """The valid job of a record whose value has ``size`` bytes. Raises InvalidRecord."""
    if size > MAX_RECORD_BYTES:
        message = f"the record is {size} bytes, at most {MAX_RECORD_BYTES} are allowed"
        raise InvalidRecord(FailureCode.INVALID_JOB, message)
    _check_schema(envelope.fields)
    if size >= SMALLEST_CROWD and (crowded := crowd(envelope.fields)) is not None:
        raise InvalidRecord(FailureCode.INVALID_JOB, crowded)
    try:
        return TranslationJob.model_validate(envelope.fields)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=True)
        raise InvalidRecord(failure_code(problems), sentence(problems)) from None


def encode_job(job: TranslationJob) -> bytes:
    """The record's value in its smallest form: only what was set, UTF-8 JSON."""
    return job.model_dump_json(by_alias=True, exclude_unset=True, exclude_none=True).encode()


def encode_result(result: TranslationResult) -> bytes:
    """UTF-8 JSON with every member the contract lists; the optional ones only where given."""
    absent = {"translations"} if result.truncated else None
    return result.model_dump_json(by_alias=True, exclude=absent).encode()


def decode_result(value: bytes | str) -> TranslationResult:
    """A stored or streamed result; unknown members are ignored. Raises ValueError."""
    return TranslationResult.model_validate_json(value)


def stored_result(
    job_id: str, status: TerminalStatus, value: bytes | str | None
) -> TranslationResult:
    """The result that stands in a terminal key; a minimal one if the field cannot be read.

    A canceller may have written the status alone, or a result of another job or status.
    """
    try:
        found = decode_result(value or b"")
    except ValueError:
        found = None
    if found is None or (found.job_id, found.status) != (job_id, status):
        return TranslationResult(job_id=job_id, status=status)
    return found


def replay_of(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """The number of the one ``dragoman-replay`` header; 0 without one, or if it is not valid."""
    values = [value for name, value in headers if name == HEADER_REPLAY]
    if len(values) != 1 or not values[0] or not _POSITIVE_INTEGER.fullmatch(values[0]):
        return 0
    number = int(values[0])
    return number if number <= MAX_SAFE_INTEGER else 0


def rfc3339(ms: int) -> str:
    """``ms`` since the epoch as the contract writes times: ``2030-01-31T12:00:00.000Z``.

    Clamped to the years 1970 to 9999: Kafka stores any number that a producer calls a timestamp.
    """
    seconds, milliseconds = divmod(min(max(0, ms), _LATEST_MS), 1000)
    return f"{_to_the_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=64)
def _to_the_second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def now_rfc3339() -> str:
    """The present time by the system's clock, as ``rfc3339`` writes it."""
    return rfc3339(time.time_ns() // 1_000_000)


def _job_id(members: dict[str, object]) -> str:
    job_id = members.get("job_id")
    if isinstance(job_id, str) and _JOB_ID.match(job_id):
        return job_id
    raise UnreadableRecord("job_id: must be 1-128 of A-Z a-z 0-9 . _ : -")


def _check_schema(fields: dict[str, object]) -> None:
    version = fields.get("schema", SCHEMA_VERSION)
    if isinstance(version, bool) or not isinstance(version, int | float):
        raise InvalidRecord(FailureCode.INVALID_JOB, f"schema: must be {SCHEMA_VERSION}")
    if version != SCHEMA_VERSION:
        message = f"schema: is {version}, this version reads {SCHEMA_VERSION}"
        raise InvalidRecord(FailureCode.UNSUPPORTED_SCHEMA, message)


def _parse_object(value: bytes) -> dict[str, object]:
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        raise UnreadableRecord(f"the record is not UTF-8 (byte {error.start})") from None
    try:
        parsed = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise UnreadableRecord(
            f"the record is not JSON: {error.msg} at character {error.pos}"
        ) from None
    if not isinstance(parsed, dict):
        raise UnreadableRecord("the record is not a JSON object")
    if _SURROGATE_ESCAPE.search(text):
        _refuse_lone_surrogates(parsed)
    return parsed


def _refuse_lone_surrogates(parsed: dict[str, object]) -> None:
    try:
        json.dumps(parsed, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UnreadableRecord("the record holds a lone surrogate") from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise UnreadableRecord("an object repeats a name")
    return members


def _integer(digits: str) -> int:
    if len(digits) > _INTEGER_DIGITS:
        raise UnreadableRecord(f"an integer is beyond 2^53-1: {digits[:20]}")
    return int(digits)


def _constant(name: str) -> NoReturn:
    raise UnreadableRecord(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_constant=_constant
)
