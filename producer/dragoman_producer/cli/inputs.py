"""Jobs from the input of `dragoman submit`: a text, lines, or a JSONL file of jobs."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dragoman_producer.operations.bulk import JobLine
from dragoman_schemas.jobs import MAX_ITEMS, MAX_TEXT_BYTES, TranslationJob
from dragoman_schemas.languages import UnknownLanguage, normalise
from dragoman_schemas.wire import InvalidRecord, UnreadableRecord, decode_job, open_record

_OPTION_OF: Final = {
    "target_lang": "--to",
    "source_lang": "--from",
    "job_id": "--id",
    "ttl_s": "--ttl",
    "deadline": "--deadline",
    "profile": "--profile",
    "glossary_id": "--glossary",
}


_NO_ID: Final = "-"
"""Until the id of the content is known."""
_FILE_NAME: Final = re.compile(r"\S*[^\s.]\.[A-Za-z][A-Za-z0-9]{0,7}|\.{0,2}/\S+")
"""One word with a suffix, or with a folder in front."""


class InvalidInput(ValueError):
    """The input is not a valid job; the message names the option and the limit."""


@dataclass(frozen=True, slots=True)
class JobDefaults:
    """Values of the options, for jobs that lack them."""

    to: str | None
    """One language, or several with commas between them."""
    source: str | None = None
    job_id: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of jobs, by their names."""

    @property
    def languages(self) -> list[str]:
        """The languages of `to`, each once, as ids name them. Raises InvalidInput."""
        if self.to is None or "," not in self.to:
            return [] if self.to is None else [self.to]
        try:
            found = [normalise(each.strip()) for each in self.to.split(",")]
        except UnknownLanguage as error:
            raise InvalidInput(f"--to: {error}") from None
        return list(dict.fromkeys(found))

    def filled(self, fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the fields with missing ones filled in, once for each language.

        With several languages an id gets the language behind it.
        """
        added = {"job_id": self.job_id, "source_lang": self.source, **self.more}
        given = {name: value for name, value in (added | fields).items() if value is not None}
        targets = [] if "target_lang" in given else self.languages
        for tag in targets:
            own = f"{given['job_id']}.{tag}" if len(targets) > 1 and "job_id" in given else None
            yield {**given, "target_lang": tag, **({} if own is None else {"job_id": own})}
        if not targets:
            yield given


def jobs_of_text(text: str, wanted: JobDefaults) -> list[TranslationJob]:
    """Return a job with one item for each language. Raises InvalidInput."""
    fields = {"job_id": _id_of(wanted), "text": text}
    return [_by_options(each) for each in wanted.filled(fields)]


def jobs_of_lines(
    lines: Iterable[str], wanted: JobDefaults, refuse: Callable[[int, str], None]
) -> list[TranslationJob]:
    """Return jobs with one item per line, each with as many lines as fit.

    ``refuse`` is called with every line that is too long. Several jobs of a language form a
    document: their ids are ``<id>.<index>``. Raises InvalidInput.
    """
    batches = list(_batches(lines, refuse))
    fields = {"job_id": _id_of(wanted)}
    return [
        _by_options({**each, **part})
        for each in wanted.filled(fields)
        for part in _parts(each["job_id"], batches)
    ]


def _id_of(wanted: JobDefaults) -> str:
    return uuid.uuid4().hex if wanted.job_id is None else wanted.job_id


def _parts(job_id: str, batches: list[list[str]]) -> Iterator[dict[str, Any]]:
    """Yield the fields of jobs that differ from batch to batch."""
    if len(batches) == 1:
        yield {"text": batches[0]}
        return
    for index, batch in enumerate(batches):
        document = {"document_id": job_id, "index": index, "total": len(batches)}
        yield {"job_id": f"{job_id}.{index}", "text": batch, "document": document}


def jobs_of_file(
    path: Path, wanted: JobDefaults, refuse: Callable[[int, str], None]
) -> Iterator[JobLine]:
    """Yield the jobs of a JSONL file, line by line; call ``refuse`` with each invalid line."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield from _lines(_object(line), wanted)
            except (InvalidRecord, UnreadableRecord, InvalidInput) as error:
                refuse(number, str(error))


def _lines(fields: dict[str, Any], wanted: JobDefaults) -> list[JobLine]:
    given = {name: value for name, value in fields.items() if value is not None}
    has_id = "job_id" in given
    return [JobLine(_job({"job_id": _NO_ID, **each}), has_id) for each in wanted.filled(given)]


def looks_like_a_file(text: str) -> bool:
    """Return whether an argument is rather the name of a file than a text."""
    if _FILE_NAME.fullmatch(text):
        return True
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or a NUL in it
        return False


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
