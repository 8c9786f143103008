"""Concurrent parts of one job's work: all of them, or the first failure."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from dragoman_worker.errors import Halt

T = TypeVar("T")


async def together(parts: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of all parts, in order. Once one fails, the others are cancelled.

    Raises a Halt before any other failure.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part) for part in parts]
    except ExceptionGroup as failures:
        raise first_failure(failures) from None
    return [task.result() for task in tasks]


def first_failure(failures: ExceptionGroup[Exception]) -> Exception:
    """Return the Halt among the failures of a task group, otherwise the first of them."""
    halts = (error for error in failures.exceptions if isinstance(error, Halt))
    return next(halts, failures.exceptions[0])
