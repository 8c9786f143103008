"""Selection of the jobs to measure with: from a file or from the last records of the topic."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from dragoman_connections.settings import SettingsError
from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.problems import sentence
from dragoman_schemas.wire import (
    InvalidRecord,
    UnreadableRecord,
    decode_job,
    encode_job,
    open_record,
)
from dragoman_worker.deadline import Deadline
from dragoman_worker.kafka.recent import Recent, recent_records
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.measure.statistics import Arrivals, arrivals

_SEED: Final = 7


@dataclass(frozen=True, slots=True)
class JobSample:
    """Jobs in a fixed shuffled order, so that no part of them is all long or all short."""

    jobs: tuple[TranslationJob, ...]
    origin: str
    arrivals: Arrivals | None = None
    left_out: int = 0
    """Number of records that were no valid job."""

    @property
    def digest(self) -> str:
        """Hash of these jobs in this order."""
        digest = hashlib.sha256()
        for job in self.jobs:
            digest.update(encode_job(job))
        return digest.hexdigest()[:16]

    def write(self, path: Path) -> None:
        """Write one job per line, readable by the owner alone: they contain users' texts.

        Raises OSError naming the file; then no part of the jobs remains.
        """
        path.touch(mode=0o600)
        try:
            path.write_bytes(b"".join(encode_job(job) + b"\n" for job in self.jobs))
        except OSError as error:
            with suppress(OSError):
                path.unlink()
            raise OSError(error.errno, error.strerror, str(path)) from None


def from_file(path: Path, count: int) -> JobSample:
    """Draw up to `count` jobs from all of a JSONL file. Raises SettingsError."""
    try:
        # Not splitlines, which also splits at U+2028: a JSON string may contain it.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--jobs {path}: {_reason(error)}") from None
    jobs = [_job(path, n, line) for n, line in enumerate(lines, 1) if line.strip()]
    if not jobs:
        raise SettingsError(f"--jobs {path}: it contains no job; give one job per line")
    return JobSample(_drawn(jobs, count), str(path))


async def from_topic(settings: WorkerSettings, count: int, within: Deadline) -> JobSample:
    """Read the last `count` jobs of the topics without joining the consumer group.

    Raises Unreachable, and SettingsError if there is no job.
    """
    records = await recent_records(settings.kafka, count, within)
    topics = ", ".join(settings.kafka.topic_names)
    return from_records(records, topics, count)


def from_records(records: Sequence[Recent], topics: str, count: int) -> JobSample:
    """Return the valid jobs and their arrival rates. Raises SettingsError if there are none."""
    read = [(job, record.timestamp_ms) for record in records if (job := _readable(record))]
    if not read:
        raise SettingsError(
            f"kafka.topics: {topics} holds no job to measure with; give a file of jobs by --jobs"
        )
    jobs = _drawn([job for job, _ in read], count)
    rates = arrivals([at for _, at in read])
    return JobSample(jobs, f"the last records of {topics}", rates, len(records) - len(read))


def _drawn(jobs: Iterable[TranslationJob], count: int) -> tuple[TranslationJob, ...]:
    shuffled = list(jobs)
    random.Random(_SEED).shuffle(shuffled)  # noqa: S311  always the same order
    return tuple(shuffled[:count])


def _job(path: Path, number: int, line: str) -> TranslationJob:
    try:
        return TranslationJob.model_validate_json(line)
    except ValidationError as error:
        problems = sentence(error.errors(include_url=False))
        raise SettingsError(f"--jobs {path}, line {number}: {problems}") from None


def _readable(record: Recent) -> TranslationJob | None:
    try:
        return decode_job(open_record(record.value), size=len(record.value))
    except (UnreadableRecord, InvalidRecord):
        return None


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return (
        error.strerror or "it cannot be read"
        if isinstance(error, OSError)
        else "it is not UTF-8 text"
    )
