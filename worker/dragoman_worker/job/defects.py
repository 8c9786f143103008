"""Turn an unexpected exception into the failure of one job."""

from __future__ import annotations

import asyncio
from typing import Final

from dragoman_worker.errors import Halt, Internal
from dragoman_worker.log import logger, where

_NO_DEFECT: Final = (Halt, asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)


def as_defect(error: BaseException, **names: str) -> Internal:
    """Return the failure of a job that met a defect of the worker, and log its traceback location.

    Raises `error` again if it is no defect. BaseException, because Rust extensions panic with one.
    The text of the error stays out of log and result: it may quote a document.
    """
    if isinstance(error, _NO_DEFECT):
        raise error
    logger().error("job_broke", where=where(error), **names)
    return Internal(f"a defect of the worker: {where(error)}")
