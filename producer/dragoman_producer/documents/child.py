"""The child process that reads and writes documents: limited in memory and time.

`python -m dragoman_producer.documents.child` answers requests on stdin until stdin ends. A hostile
file ends this process at most.
"""

from __future__ import annotations

import errno
import gc
import hashlib
import os
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from dragoman_producer.documents.codecs import registry
from dragoman_producer.documents.codecs.codec import (
    Codec,
    DocumentError,
    Extraction,
    Options,
    Segment,
)
from dragoman_producer.documents.frames import ROWS_PER_FRAME, Text, options_of, receive, send
from dragoman_producer.documents.putting_back import Unwritable, put_back

MEMORY_BYTES: Final = 2 * 1024**3
LARGEST_FILE: Final = 200_000_000
PATIENCE: Final = 10
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class _Refused(Exception):
    """A document that ends as one line of the report."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def main() -> None:
    """Answer requests until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which closes stdin
    _limit_memory()
    gc.set_threshold(100_000, 50, 50)  # trees of documents hold no cycles: a ninth of the time
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a parser prints must not be read as an answer
    while (request := receive(source)) is not None:
        texts = _texts(source) if request["do"] == "write" else []
        for answer in _answers(request, texts):
            send(sink, answer)


def _limit_memory() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(hard, MEMORY_BYTES)
    with suppress(ValueError, OSError):  # macOS does not limit the address space
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _texts(source: BinaryIO) -> list[Text]:
    texts: list[Text] = []
    while (some := receive(source)) is not None and some:
        texts += some
    return texts


def _answers(request: dict[str, Any], texts: Sequence[Text]) -> Iterator[object]:
    try:
        with _time_limit(request["seconds"]):
            answers = _read(request) if request["do"] == "read" else _write(request, texts)
    except (_Refused, DocumentError) as refused:
        answers = [{"reason": refused.reason, "detail": refused.detail}]
    except Unwritable as error:
        answers = [{"reason": "skeleton", "detail": str(error)}]
    except MemoryError:
        detail = f"it needs more than {MEMORY_BYTES // 1024**3} GiB of memory; split the file"
        answers = [{"reason": "too_large", "detail": detail}]
    except RecursionError:
        answers = [{"reason": "corrupt", "detail": "it is nested too deeply"}]
    except OSError as error:
        reason = "no_space" if error.errno in _FULL else "corrupt"
        answers = [{"reason": reason, "detail": error.strerror or type(error).__name__}]
    except Exception as error:  # noqa: BLE001  a codec that fails ends this document alone
        detail = f"the codec failed with {type(error).__name__}; please report it"
        answers = [{"reason": "corrupt", "detail": detail}]
    yield from answers


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    """Terminate this process after that CPU time, or PATIENCE times as long on the clock.

    A parser in C is not interrupted otherwise. On a busy machine the clock alone would refuse
    documents that are merely large.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(seconds * PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def _opened(request: dict[str, Any]) -> tuple[bytes, Codec, Options]:
    """Return the file, its codec, and the options as far as the format supports them."""
    data = _data(Path(request["path"]))
    try:
        codec = registry.codec(request["format"])
    except registry.MissingExtra as error:
        raise _Refused("unsupported_format", str(error)) from None
    options = options_of(request["options"])
    return data, codec, replace(options, bilingual=options.bilingual and codec.can_double)


def _data(path: Path) -> bytes:
    size = path.stat().st_size
    if size > LARGEST_FILE:
        detail = f"it has {size:,} bytes, at most {LARGEST_FILE:,} are read; split the file"
        raise _Refused("too_large", detail)
    return path.read_bytes()


def _read(request: dict[str, Any]) -> list[object]:
    """Return the answers to `read`: rows of segments, then what is known of the file."""
    data, codec, options = _opened(request)
    found = codec.extract(data, options)
    rows = [_row(segment) for segment in found.segments]
    frames: list[object] = [
        {"rows": rows[first : first + ROWS_PER_FRAME]}
        for first in range(0, len(rows), ROWS_PER_FRAME)
    ]
    return [*frames, _known(data, found, codec)]


def _row(segment: Segment) -> list[object]:
    """Return a segment as [text, place, max_chars, state, context, headings].

    A text that no encoding can express, as of a JSON escape for half a surrogate, is None.
    """
    context = [segment.context, list(segment.headings)]
    text = segment.text if _is_encodable(segment.text) else None
    return [text, segment.place, segment.max_chars, segment.state, *context]


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _known(data: bytes, found: Extraction, codec: Codec) -> dict[str, object]:
    return {
        "by_language": codec.by_language,
        "sha256": hashlib.sha256(data).hexdigest(),
        "encoding": found.encoding,
        "segments": len(found.segments),
        "remarks": [[remark.place, remark.detail] for remark in found.remarks],
    }


def _write(request: dict[str, Any], texts: Sequence[Text]) -> list[object]:
    """Return the answer to `write`: the output is in the temporary file by then."""
    data, codec, options = _opened(request)
    if hashlib.sha256(data).hexdigest() != request["sha256"]:
        raise _Refused("changed", "it changed while it was translated; run the command again")
    extraction = codec.extract(data, options)
    if len(extraction.segments) != len(texts):
        raise _Refused("changed", "its segments are not those that were translated")
    drafts = frozenset(index for index, text in enumerate(texts) if isinstance(text, list))
    plain = [text[0] if isinstance(text, list) else text for text in texts]
    spliced = put_back(codec, data, extraction, plain, replace(options, drafts=drafts))
    _store(Path(request["temporary"]), spliced.data)
    return [
        {
            "sha256": hashlib.sha256(spliced.data).hexdigest(),
            "tags": spliced.tags,
            "general": spliced.general,
            "lost": spliced.lost,
            "changed": spliced.changed,
        }
    ]


def _store(path: Path, data: bytes) -> None:
    """Write a new file. Nothing is left of one that does not fit on the disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        with os.fdopen(os.open(path, flags, 0o666), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    main()
