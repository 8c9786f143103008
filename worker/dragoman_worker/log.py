"""The structured log: one line per event, ids as fields, never a document's text.

Logging never raises and never waits: a line that cannot be written at once is dropped and counted.
In the processes of `run` hardly any is, because `process/stderr_relay.py` reads what they write.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TextIO

import structlog

from dragoman_connections.terminal import escaped

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger, Processor

    from dragoman_worker.settings import LogSettings


_EVERY_S: Final = 60.0
_KINDS: Final = 500
"""Kinds of lines remembered; some libraries format variable values into the template."""


_PER_RECORD: Final = frozenset(
    {
        "batch_unreadable",
        "cancelling",
        "commit_failed",
        "end_lost",
        "error_ignored",
        "glossary_unreadable",
        "job_broke",
        "judge_restarted",
        "rejected",
        "release_failed",
        "replay_ignored",
    }
)
"""Events that records or jobs cause: a client could fill the disk with them."""
_KIND_FIELDS: Final = ("code", "where", "reason", "glossary")
"""Fields with few values, which distinguish kinds of an event."""


class Repeats:
    """Passes a kind of line at once and then once per minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kinds: dict[Hashable, tuple[float, int]] = {}

    def suppressed(self, kind: Hashable) -> int | None:
        """Return how many lines were suppressed before this one; None to suppress it too."""
        now = self._clock()
        written_at, repeated = self._kinds.pop(kind, (-_EVERY_S, 0))
        if now - written_at < _EVERY_S:
            self._kinds[kind] = (written_at, repeated + 1)
            return None
        self._kinds[kind] = (now, 0)
        while len(self._kinds) > _KINDS:
            del self._kinds[next(iter(self._kinds))]
        return repeated


class RepeatFilter(logging.Filter):
    """Passes a kind of line at once and then once per minute, with the number of repetitions.

    A kind is a logger, a level and a message before its arguments: a client of an unavailable
    server logs the same line about every node, a hundred times per second.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._repeats = Repeats(clock)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the line; its field `repeated` counts suppressed lines."""
        repeated = self._repeats.suppressed((record.name, record.levelno, str(record.msg)[:200]))
        if repeated:
            record.__dict__["repeated"] = repeated
        return repeated is not None


class RepeatProcessor:
    """The same for our own events that single records or jobs cause."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._repeats = Repeats(clock)

    def __call__(self, _: Any, level: str, event: EventDict) -> EventDict:
        """Return the event with its field `repeated`. Raises DropEvent to suppress it."""
        name = event["event"]
        if name not in _PER_RECORD:
            return event
        repeated = self._repeats.suppressed(
            (name, level, *(str(event.get(field)) for field in _KIND_FIELDS))
        )
        if repeated is None:
            raise structlog.DropEvent
        if repeated:
            event["repeated"] = repeated
        return event


class LineWriter:
    """Writes lines to a stream if that is possible at once. Never raises."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._descriptor = _descriptor(stream)
        self._torn = False

    def write(self, line: str) -> None:
        """Write one line, or drop it; see `take_dropped`."""
        try:
            written = self._written(line)
        except (OSError, ValueError):  # no reader, no space, closed
            written = False
        if not written:
            _count_dropped()

    debug = info = warning = warn = error = critical = write  # as structlog calls it

    def _written(self, line: str) -> bool:
        if self._descriptor is None:
            return bool(self._stream and self._stream.write(f"{line}\n"))
        left = f"{line}\n".encode(errors="backslashreplace")
        if self._torn:
            left = b"\n" + left
        while left and _writable(self._descriptor):
            # A pipe that is writable takes this much without a wait.
            left = left[os.write(self._descriptor, left[: select.PIPE_BUF]) :]
            self._torn = bool(left)
        return not left


class _LineHandler(logging.Handler):
    """The handler of standard logging that writes by a LineWriter."""

    def __init__(self, lines: LineWriter) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.write(self.format(record))
        except Exception:  # noqa: BLE001  a library's arguments may not fit its message
            _count_dropped()


_dropped: Final = [0]


def take_dropped() -> int:
    """Return how many lines this process has dropped since the last call."""
    dropped, _dropped[0] = _dropped[0], 0
    return dropped


def _count_dropped() -> None:
    _dropped[0] += 1


def _descriptor(stream: TextIO | None) -> int | None:
    """Return the stream's file descriptor; None if it has none."""
    try:
        return None if stream is None else stream.fileno()
    except (OSError, ValueError):  # closed, or in memory
        return None


def _writable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return any(events & select.POLLOUT for _, events in poll.poll(0))


def _never_raising(kind: type[FilteringBoundLogger]) -> type[FilteringBoundLogger]:
    """Return a logger class that drops and counts the events whose line cannot be made."""

    class Logger(kind):  # type: ignore[misc, valid-type]
        def _proxy_to_logger(self, *args: Any, **fields: Any) -> Any:
            try:
                return super()._proxy_to_logger(*args, **fields)  # pyright: ignore[reportAttributeAccessIssue]
            except Exception:  # noqa: BLE001  whatever a field's repr raises
                _count_dropped()

    return Logger


def configure(settings: LogSettings, *, worker_id: str, replica: int | None = None) -> None:
    """Send all log lines, including warnings of libraries, to stderr in one format."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render: Processor = (
        structlog.processors.JSONRenderer() if settings.format == "json" else _text_renderer()
    )
    lines = LineWriter(sys.stderr)
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    structlog.configure(
        processors=[RepeatProcessor(), *shared, render],
        wrapper_class=_never_raising(structlog.make_filtering_bound_logger(level)),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(worker=worker_id)
    if replica is not None:
        structlog.contextvars.bind_contextvars(replica=replica)
    _adopt_standard_logging(lines, shared, render)


def _text_renderer() -> Processor:
    """Return a renderer of lines for people. Values of fields never control a terminal."""
    if not _colored():
        return structlog.dev.ConsoleRenderer(colors=False)
    render = structlog.dev.ConsoleRenderer(colors=True)

    def escaping(logger: Any, name: str, fields: EventDict) -> str:
        safe = {k: escaped(v) if isinstance(v, str) else v for k, v in fields.items()}
        return render(logger, name, safe)

    return escaping


def _colored() -> bool:
    """Whether stderr is a terminal, perhaps behind the relay, which sets the variable."""
    return bool(os.environ.get("FORCE_COLOR")) or bool(sys.stderr and sys.stderr.isatty())


def _adopt_standard_logging(lines: LineWriter, shared: list[Processor], render: Processor) -> None:
    handler = _LineHandler(lines)
    handler.addFilter(RepeatFilter())
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder(allow=["repeated"])],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                render,
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


def adopt_interpreter() -> None:
    """Log what Python would print to stderr: warnings and uncaught errors."""
    logging.captureWarnings(True)

    def crashed(kind: type[BaseException], error: BaseException, _: object) -> None:
        logger().critical("crashed", error=kind.__name__, stack=_locations(error))

    def thread_crashed(how: threading.ExceptHookArgs) -> None:
        name = how.thread.name if how.thread else None
        error = how.exc_value or how.exc_type()
        logger().critical("crashed", thread=name, where=where(error), stack=_locations(error))

    def ignored(how: sys.UnraisableHookArgs) -> None:
        logger().error("error_ignored", where=where(how.exc_value or how.exc_type()))

    sys.excepthook, threading.excepthook, sys.unraisablehook = crashed, thread_crashed, ignored


def stacks() -> dict[str, list[str]]:
    """Return the stack of each thread, by its name: code locations, no values."""
    frames = sys._current_frames()  # noqa: SLF001  the documented way
    threads = ((thread.name, frames.get(thread.ident or 0)) for thread in threading.enumerate())
    return {name: _lines(traceback.walk_stack(frame)) for name, frame in threads if frame}


def _locations(error: BaseException) -> list[str]:
    return _lines(traceback.walk_tb(error.__traceback__))


def _lines(frames: Iterable[tuple[FrameType, int]]) -> list[str]:
    found = ((frame.f_code, line) for frame, line in frames)
    return [f"{code.co_qualname} {code.co_filename}:{line}" for code, line in found]


def logger() -> FilteringBoundLogger:
    """Return the worker's logger."""
    log: FilteringBoundLogger = structlog.get_logger()
    return log


def where(error: BaseException) -> str:
    """Return the innermost code location of an error, without its message, which may quote text."""
    trace = error.__traceback__
    if trace is None:
        return type(error).__name__
    while trace.tb_next:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f"{type(error).__name__} in {code.co_qualname}:{trace.tb_lineno}"
