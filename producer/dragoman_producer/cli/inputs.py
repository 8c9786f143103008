"""Jobs from the input of `dragoman submit`: a text, lines, or a JSONL file of jobs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dragoman_schemas.jobs import MAX_ITEMS, MAX_TEXT_BYTES, TranslationJob
from dragoman_schemas.wire import InvalidRecord, UnreadableRecord, decode_job, open_record

_OPTION_OF: Final = {"target_lang": "--to", "source_lang": "--from", "job_id": "--id"}


class InvalidInput(ValueError):
    """The input is not a valid job; the message names the option and the limit."""


@dataclass(frozen=True, slots=True)
class JobDefaults:
    """Values of the options, for jobs that lack them."""

    to: str | None
    source: str | None = None
    job_id: str | None = None

    def fill(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with missing ones filled in; a missing id is generated."""
        given = {name: value for name, value in fields.items() if value is not None}
        added = {
            "job_id": uuid.uuid4().hex if self.job_id is None else self.job_id,
            "target_lang": self.to,
            "source_lang": self.source,
        }
        return {name: value for name, value in added.items() if value is not None} | given


def job_of_text(text: str, wanted: JobDefaults) -> TranslationJob:
    """Return a job with one item. Raises InvalidInput."""
    return _by_options(wanted.fill({"text": text}))


def jobs_of_lines(
    lines: Iterable[str], wanted: JobDefaults, refuse: Callable[[int, str], None]
) -> list[TranslationJob]:
    """Return jobs with one item per line, each with as many lines as fit.

    ``refuse`` is called with every line that is too long. Several jobs form a document: their ids
    are ``<id>.<index>``. Raises InvalidInput.
    """
    batches = list(_batches(lines, refuse))
    document_id = uuid.uuid4().hex if wanted.job_id is None else wanted.job_id
    if len(batches) == 1:
        return [_by_options(wanted.fill({"job_id": document_id, "text": batches[0]}))]
    return [
        _by_options(
            wanted.fill(
                {
                    "job_id": f"{document_id}.{index}",
                    "text": batch,
                    "document": {
                        "document_id": document_id,
                        "index": index,
                        "total": len(batches),
                    },
                }
            )
        )
        for index, batch in enumerate(batches)
    ]


def jobs_of_file(
    path: Path, wanted: JobDefaults, refuse: Callable[[int, str], None]
) -> Iterator[TranslationJob]:
    """Yield the jobs of a JSONL file, line by line; call ``refuse`` with each invalid line."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield _job(wanted.fill(_object(line)))
            except (InvalidRecord, UnreadableRecord, InvalidInput) as error:
                refuse(number, str(error))


def count_lines(path: Path) -> int:
    """Count the lines of a file, for the progress bar."""
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _batches(lines: Iterable[str], refuse: Callable[[int, str], None]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for number, line in enumerate(lines, 1):
        line_size = len(line.encode())
        if line_size > MAX_TEXT_BYTES:
            refuse(number, f"is {line_size:,} bytes, at most {MAX_TEXT_BYTES:,} are allowed")
            continue
        if len(batch) == MAX_ITEMS or size + line_size > MAX_TEXT_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += line_size
    if batch:
        yield batch


def _by_options(fields: dict[str, Any]) -> TranslationJob:
    try:
        return _job(fields)
    except (InvalidRecord, UnreadableRecord) as error:
        raise InvalidInput(_with_options(str(error))) from None


def _with_options(message: str) -> str:
    for name, option in _OPTION_OF.items():
        if message.startswith(f"{name}:"):
            return option + message.removeprefix(name)
    return message


def _job(fields: dict[str, Any]) -> TranslationJob:
    value = json.dumps(fields).encode()
    return decode_job(open_record(value), size=len(value))


def _object(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line.decode("utf-8-sig"), object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"is not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise InvalidInput("is nested too deeply") from None
    if not isinstance(fields, dict):
        raise InvalidInput("is not a JSON object")
    return fields


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidInput("an object repeats a name")
    return fields
