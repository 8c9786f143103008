"""A JSONL file of results that is written in several runs: what it has is not read again."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from dragoman_producer.errors import DragomanError
from dragoman_producer.operations.seen import SeenLines
from dragoman_schemas.results import JobStatus


class ResultFile:
    """Results, a line each, that are appended as they come.

    Opening it keeps complete lines of completed jobs: a line that a killed run left unfinished is
    cut off, and other jobs are read again, because a replay may have completed them.
    """

    def __init__(self, path: Path) -> None:
        """Open the file. Raises DragomanError if another command writes it, or others are in it."""
        self._path = path
        self._seen = SeenLines()
        self.kept = 0
        """Number of results that it has."""
        self._file = self._opened()

    def _opened(self) -> BinaryIO:
        file = self._path.open("a+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file if self._keeps_all(file) else self._kept(file)
        except BlockingIOError:
            file.close()
            raise DragomanError(f"{self._path}: another command writes it; wait for it") from None
        except BaseException:
            file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._file:
            self._file.flush()
            os.fsync(self._file.fileno())

    def lacks(self, job_id: str) -> bool:
        """Return whether the file has no result of a job yet, and count on one from now on."""
        return self._seen.add(job_id.encode())

    def add(self, result: bytes) -> None:
        """Append a result in its encoded form."""
        self._file.write(result + b"\n")

    def _keeps_all(self, file: BinaryIO) -> bool:
        """Note the results to keep; return whether these are all lines but an unfinished one."""
        file.seek(0)
        end, keeps_all = 0, True
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            end += len(line)
            if self._is_complete(number, line):
                self.kept += 1
            else:
                keeps_all = False
        file.truncate(end)
        return keeps_all

    def _kept(self, file: BinaryIO) -> BinaryIO:
        """Replace the file by one with the results to keep; return it, open and locked."""
        self._seen, self.kept = SeenLines(), 0
        name = self._path.with_name(f".{self._path.name}.new")
        with name.open("wb") as output:
            file.seek(0)
            for number, line in enumerate(file, 1):
                if self._is_complete(number, line):
                    output.write(line)
                    self.kept += 1
            output.flush()
            os.fsync(output.fileno())
        made = name.open("a+b")
        fcntl.flock(made, fcntl.LOCK_EX)
        name.replace(self._path)
        file.close()
        return made

    def _is_complete(self, number: int, line: bytes) -> bool:
        """Return whether a line is the first result of a completed job."""
        try:
            fields = json.loads(line)
            status, job_id = fields["status"], fields["job_id"]
        except (ValueError, LookupError, TypeError):
            what = f"{self._path}:{number}: is no result; give another --out"
            raise DragomanError(what) from None
        return status == JobStatus.COMPLETED.value and self._seen.add(str(job_id).encode())
