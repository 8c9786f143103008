"""`dragoman translate -`: one document from stdin to stdout, by way of a temporary folder."""

from __future__ import annotations

import errno
import math
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from dragoman_connections.terminal import escaped
from dragoman_producer.cli.terminal import FAILURE, flushed

if TYPE_CHECKING:
    from dragoman_producer.runs.request import RunRequest

NAME: Final = "stdin"
"""Name of the document in messages."""
_CHUNK: Final = 1024 * 1024


def refusal(
    paths: list[str], out: str | None, given: Mapping[str, Any], *, as_json: bool
) -> str | None:
    """Return why these options cannot be used together; None if they can."""
    if "" in paths:
        return "a PATH is empty; name a file or folder, such as . for this one"
    if out == "":
        return "--out is empty; name a folder, such as . for this one"
    if "-" not in paths:
        return "--out DIR is missing: give the folder for the translations" if out is None else None
    rules = {
        "- reads one document from stdin; give no other PATH": len(paths) > 1,
        "- has no file name that shows its format: give --format markdown, or another": not any(
            "=" not in each for each in given["format"] or ()
        ),
        "--to: with -, give one language: the translation goes to stdout": len(
            set(given["to"].split(","))
        )
        > 1,
        "--out: with -, the translation goes to stdout; leave --out away": out is not None,
        "--json: stdout holds the translated document": as_json,
    }
    return next((why for why, is_broken in rules.items() if is_broken), None)


@contextmanager
def folders() -> Iterator[tuple[Path, Path]]:
    """Give the path for the document and the folder of outputs; both are removed at the end."""
    with TemporaryDirectory(prefix="dragoman-") as name:
        yield Path(name, NAME), Path(name, "out")


def stdin() -> BinaryIO:
    """Return stdin as bytes. Raises OSError if the caller has closed it."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return sys.stdin.buffer


def store(path: Path, source: BinaryIO, format_name: str) -> None:
    """Write a stream to a file: at most one byte more than is read at once. Raises OSError.

    Formats that are read in parts have no limit.
    """
    from dragoman_documents.parts import source as source_parts  # keeps --help fast
    from dragoman_documents.parts.cutting import PARTED

    most = math.inf if format_name in PARTED else source_parts.LARGEST_WHOLE + 1
    stored = 0
    with path.open("xb") as file:
        while stored < most and (chunk := source.read(int(min(_CHUNK, most - stored)))):
            stored += file.write(chunk)


def show(request: RunRequest, status: int) -> int:
    """Write the output to stdout, if there is one; return the exit status."""
    from dragoman_producer.runs.selecting import output_of  # keeps --help fast

    path = output_of(request, NAME, request.to[0])
    if not path.is_file():
        return status
    try:
        _print(path)
    except BrokenPipeError:
        flushed()
        return FAILURE
    return status if flushed() else FAILURE


def _print(path: Path) -> None:
    if sys.stdout.isatty():
        with path.open(encoding="utf-8", errors="replace") as text:
            sys.stdout.writelines(map(escaped, text))
        return
    with path.open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
