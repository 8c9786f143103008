"""Which jobs is measured with? The user's own, from a file or from the topic's last records."""

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
class Sample:
    """Jobs in a shuffled order that is always the same: no stretch of them is all long or short."""

    jobs: tuple[TranslationJob, ...]
    origin: str
    arrivals: Arrivals | None = None
    left_out: int = 0
    """Records that are no valid job."""

    @property
    def digest(self) -> str:
        """Names these very jobs in this order."""
        whole = hashlib.sha256()
        for job in self.jobs:
            whole.update(encode_job(job))
        return whole.hexdigest()[:16]

    def write(self, place: Path) -> None:
        """A job a line, for the processes that hold the engines. They are the users' texts.

        Raises OSError naming the file, and then leaves no part of them.
        """
        place.touch(mode=0o600)
        try:
            place.write_bytes(b"".join(encode_job(job) + b"\n" for job in self.jobs))
        except OSError as error:
            with suppress(OSError):
                place.unlink()
            raise OSError(error.errno, error.strerror, str(place)) from None


def from_file(place: Path, count: int) -> Sample:
    """At most `count` jobs of a JSONL file, drawn from all of it. Raises SettingsError."""
    try:
        # Not splitlines: it also cuts where a JSON string may go on, as at U+2028.
        lines = place.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--jobs {place}: {_reason(error)}") from None
    jobs = [_job(place, n, line) for n, line in enumerate(lines, 1) if line.strip()]
    if not jobs:
        raise SettingsError(f"--jobs {place}: there is no job in it, one a line is expected")
    return Sample(_drawn(jobs, count), str(place))


async def from_topic(settings: WorkerSettings, count: int, within: Deadline) -> Sample:
    """The last `count` jobs of the topic, without joining the group.

    Raises Unreachable, and SettingsError if there is no job.
    """
    records = await recent_records(settings.kafka, count, within)
    topics = ", ".join(settings.kafka.topic_names)
    return from_records(records, topics, count)


def from_records(records: Sequence[Recent], topics: str, count: int) -> Sample:
    """The jobs among the records, and how fast they came. Raises SettingsError of none."""
    read = [(job, record.timestamp_ms) for record in records if (job := _readable(record))]
    if not read:
        raise SettingsError(
            f"kafka.topics: {topics} holds no job to measure with; give a file of jobs by --jobs"
        )
    jobs = _drawn([job for job, _ in read], count)
    rates = arrivals([at for _, at in read])
    return Sample(jobs, f"the last records of {topics}", rates, len(records) - len(read))


def _drawn(jobs: Iterable[TranslationJob], count: int) -> tuple[TranslationJob, ...]:
    shuffled = list(jobs)
    random.Random(_SEED).shuffle(shuffled)  # noqa: S311  the same order every time is the point
    return tuple(shuffled[:count])


def _job(place: Path, number: int, line: str) -> TranslationJob:
    try:
        return TranslationJob.model_validate_json(line)
    except ValidationError as error:
        problems = sentence(error.errors(include_url=False))
        raise SettingsError(f"--jobs {place}, line {number}: {problems}") from None


def _readable(record: Recent) -> TranslationJob | None:
    try:
        return decode_job(open_record(record.value), size=len(record.value))
    except (UnreadableRecord, InvalidRecord):
        return None


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return error.strerror or "cannot be read" if isinstance(error, OSError) else "is no UTF-8 text"
