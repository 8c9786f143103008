"""What does the log look like? One line an event, ids as fields, never a document's text."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger, Processor

    from dragoman_worker.settings import LogSettings


def configure(settings: LogSettings, *, worker_id: str, replica: int | None = None) -> None:
    """Send every log line, ours and the libraries' warnings, to stderr in one format."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render: Processor = (
        structlog.processors.JSONRenderer()
        if settings.format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
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


def _adopt_standard_logging(shared: list[Processor], render: Processor) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                render,
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


def logger() -> FilteringBoundLogger:
    """The worker's logger."""
    log: FilteringBoundLogger = structlog.get_logger()
    return log


def where(error: BaseException) -> str:
    """The innermost place an error comes from, without its message, which may quote a text."""
    trace = error.__traceback__
    if trace is None:
        return type(error).__name__
    while trace.tb_next:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f"{type(error).__name__} in {code.co_qualname}:{trace.tb_lineno}"
