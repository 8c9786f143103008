"""Encoding and decoding of jobs and results (docs/reference/jobs.md)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple, NoReturn

from pydantic import ValidationError

from dragoman_schemas.failures import FailureCode
from dragoman_schemas.fingerprint import MAX_SAFE_INTEGER, fingerprint_of_normal, normal
from dragoman_schemas.jobs import JOB_ID_PATTERN, SCHEMA_VERSION, TranslationJob
from dragoman_schemas.member_limits import MIN_CHECKED_BYTES, too_many_members
from dragoman_schemas.names import HEADER_REPLAY, MAX_RECORD_BYTES
from dragoman_schemas.problems import failure_code, sentence
from dragoman_schemas.results import TerminalStatus, TranslationResult

_JOB_ID: Final = re.compile(JOB_ID_PATTERN)
_POSITIVE_INTEGER: Final = re.compile(rb"[1-9][0-9]{0,15}")
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_LATEST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, the last year of a datetime."""
_INTEGER_DIGITS: Final = len(str(MAX_SAFE_INTEGER)) + 1


class UnreadableRecord(ValueError):
    """The bytes hold no readable job id, so no job can get a result."""


class InvalidRecord(ValueError):
    """The job is invalid, its id is readable. ``code`` and a one-line message give the reason."""

    def __init__(self, code: FailureCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Envelope(NamedTuple):
    """Parsed record before its job is validated. ``fields`` has no null members."""

    job_id: str
    fingerprint: str
    fields: dict[str, object]


def open_record(value: bytes | None) -> Envelope:
    """Return the id, the fingerprint and the members of a record. Raises UnreadableRecord."""
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
    """Return the validated job of a record whose value has ``size`` bytes. Raises InvalidRecord."""
    if size > MAX_RECORD_BYTES:
        message = f"the record is {size} bytes, at most {MAX_RECORD_BYTES} are allowed"
        raise InvalidRecord(FailureCode.INVALID_JOB, message)
    _check_schema(envelope.fields)
    if size >= MIN_CHECKED_BYTES and (excess := too_many_members(envelope.fields)) is not None:
        raise InvalidRecord(FailureCode.INVALID_JOB, excess)
    try:
        return TranslationJob.model_validate(envelope.fields)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=True)
        raise InvalidRecord(failure_code(problems), sentence(problems)) from None


def encode_job(job: TranslationJob) -> bytes:
    """Return the record's value in its smallest form: UTF-8 JSON of the fields that were set."""
    return job.model_dump_json(by_alias=True, exclude_unset=True, exclude_none=True).encode()


def encode_result(result: TranslationResult) -> bytes:
    """Return UTF-8 JSON with every member of the contract; optional ones only if set."""
    absent = {"translations"} if result.truncated else None
    return result.model_dump_json(by_alias=True, exclude=absent).encode()


def decode_result(value: bytes | str) -> TranslationResult:
    """Return a stored or published result; ignore unknown members. Raises ValueError."""
    return TranslationResult.model_validate_json(value)


def stored_result(
    job_id: str, status: TerminalStatus, value: bytes | str | None
) -> TranslationResult:
    """Return the stored result of a terminal key; a minimal one if the field cannot be read.

    Another program may have written only the status, or a result of another job or status.
    """
    try:
        found = decode_result(value or b"")
    except ValueError:
        found = None
    if found is None or (found.job_id, found.status) != (job_id, status):
        return TranslationResult(job_id=job_id, status=status)
    return found


def replay_of(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """Return the number of the one ``dragoman-replay`` header; 0 if absent, repeated or invalid."""
    values = [value for name, value in headers if name == HEADER_REPLAY]
    if len(values) != 1 or not values[0] or not _POSITIVE_INTEGER.fullmatch(values[0]):
        return 0
    number = int(values[0])
    return number if number <= MAX_SAFE_INTEGER else 0


@lru_cache(maxsize=1024)  # a busy worker formats several times of each millisecond
def rfc3339(ms: int) -> str:
    """Return ``ms`` since the epoch as the contract's time: ``2030-01-31T12:00:00.000Z``.

    Clamped to the years 1970 to 9999: Kafka stores any number as a record's timestamp.
    """
    seconds, milliseconds = divmod(min(max(0, ms), _LATEST_MS), 1000)
    return f"{_to_the_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=64)
def _to_the_second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def now_rfc3339() -> str:
    """Return the system's time, formatted by ``rfc3339``."""
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
            f"the record is not JSON: {error.msg.removesuffix(' at')} at character {error.pos}"
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
