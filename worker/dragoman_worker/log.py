"""The structured log: one line per event, ids as fields, never a document's text."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import structlog

from dragoman_connections.terminal import escaped

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger, Processor

    from dragoman_worker.settings import LogSettings


_EVERY_S: Final = 60.0
_KINDS: Final = 500
"""Kinds of lines remembered; some libraries format variable values into the template."""


class RepeatFilter(logging.Filter):
    """Passes a kind of line at once and then once per minute, with the number of repetitions.

    A kind is a logger, a level and a message before its arguments: a client of an unavailable
    server logs the same line about every node, a hundred times per second.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[str, int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the line; its field `repeated` counts suppressed lines."""
        kind = (record.name, record.levelno, str(record.msg)[:200])
        now = self._clock()
        written_at, repeated = self._kinds.pop(kind, (-_EVERY_S, 0))
        if now - written_at < _EVERY_S:
            self._kinds[kind] = (written_at, repeated + 1)
            return False
        if repeated:
            record.__dict__["repeated"] = repeated
        self._kinds[kind] = (now, 0)
        while len(self._kinds) > _KINDS:
            del self._kinds[next(iter(self._kinds))]
        return True


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
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(worker=worker_id)
    if replica is not None:
        structlog.contextvars.bind_contextvars(replica=replica)
    _adopt_standard_logging(shared, render)


def _text_renderer() -> Processor:
    """Return a renderer of lines for people. Values of fields never control a terminal."""
    if not sys.stderr.isatty():
        return structlog.dev.ConsoleRenderer(colors=False)
    render = structlog.dev.ConsoleRenderer(colors=True)

    def escaping(logger: Any, name: str, fields: EventDict) -> str:
        safe = {k: escaped(v) if isinstance(v, str) else v for k, v in fields.items()}
        return render(logger, name, safe)

    return escaping


def _adopt_standard_logging(shared: list[Processor], render: Processor) -> None:
    handler = logging.StreamHandler(sys.stderr)
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
