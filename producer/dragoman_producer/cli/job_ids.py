"""Ids of jobs as commands take them: as arguments, in a file or on stdin, or of a document."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dragoman_producer.cli.terminal import USAGE_ERROR, print_note

if TYPE_CHECKING:
    from dragoman_connections.settings import DragomanSettings

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID...|FILE|-", help="Job ids, a file of job ids, or - for stdin."),
]
Document = Annotated[
    str | None,
    typer.Option("--document", metavar="ID", help="All jobs of a document: ID.0, ID.1, ..."),
]
_LONGEST_LINE: Final = 1024 * 1024


class InvalidIds(ValueError):
    """The ids cannot be read; the message says where and why."""


@dataclass(frozen=True, slots=True)
class ChosenJobs:
    """The jobs that a command is about."""

    arguments: list[str]
    file: str | None = None
    """A path, or `-`."""
    document_id: str | None = None

    @property
    def is_batch(self) -> bool:
        """Whether these may be many, so that lines name their job and a summary ends the output."""
        return self.file is not None or self.document_id is not None

    async def ids(self, settings: DragomanSettings) -> AsyncIterator[str]:
        """Yield the ids. Raises InvalidIds for a line of a file that has none."""
        from dragoman_producer.operations.document_jobs import document_total  # keeps --help fast

        if self.document_id is not None:
            for index in range(await document_total(settings, self.document_id)):
                yield f"{self.document_id}.{index}"
        for job_id in self.arguments if self.file is None else _ids_in(self.file):
            yield job_id


def chosen(
    command: str, job_ids: list[str] | None, document_id: str | None, *, files: bool = True
) -> ChosenJobs:
    """Return the jobs of the arguments. Exits with 2 if they are none, or no ids."""
    from dragoman_producer.handle import check_document_id, check_job_id  # keeps --help fast

    given = job_ids or []
    what = "ID..., FILE or -," if files else "ID..."
    if bool(given) == (document_id is not None):
        _refuse(f"{command}: give either {what} or --document ID")
    try:
        if document_id is not None:
            return ChosenJobs([], None, check_document_id(document_id))
        if files and len(given) == 1 and (given[0] == "-" or _is_file(given[0])):
            return ChosenJobs([], given[0])
        return ChosenJobs([check_job_id(each) for each in given])
    except ValueError as error:
        _refuse(f"dragoman: {error}")
        raise


def _refuse(why: str) -> None:
    print_note(why)
    raise typer.Exit(USAGE_ERROR)


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def _ids_in(name: str) -> Iterator[str]:
    if name == "-":
        if sys.stdin is None:
            raise InvalidIds("stdin is closed: give ID... or FILE")
        yield from _ids_of(sys.stdin.buffer, "stdin")
        return
    with Path(name).open("rb") as file:
        yield from _ids_of(file, name)


def _ids_of(lines: Iterable[bytes], name: str) -> Iterator[str]:
    from dragoman_producer.handle import check_job_id  # keeps --help fast

    for number, line in enumerate(lines, 1):
        try:
            if found := _id_of(line):
                yield check_job_id(found)
        except ValueError as error:
            raise InvalidIds(f"{name}:{number}: {error}") from None


def _id_of(line: bytes) -> str:
    """Return the id of a line: its first column, or the member `job_id` of JSON."""
    if len(line) > _LONGEST_LINE:
        raise ValueError("is longer than 1 MiB; give a file of ids, or of JSON with job_id")
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    if not text.startswith("{"):
        return text.split("\t")[0].strip()
    try:
        return str(json.loads(text)["job_id"])
    except KeyError:
        raise ValueError("has no job_id; give the ids that `dragoman submit` printed") from None
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
