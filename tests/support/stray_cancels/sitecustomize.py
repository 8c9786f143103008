"""Cancels the tasks of all jobs in flight, as a library with a defect would, when a file appears.

For tests: a worker that is started with this folder on its PYTHONPATH and the file's path in
STORM_CANCEL. The product has no such switch.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any


def _cancel_once(flag: Path) -> None:
    try:
        flag.unlink()
    except FileNotFoundError:
        return
    for task in asyncio.all_tasks():
        if task.get_name().count("/") == 2:  # a job's task is named TOPIC/PARTITION/OFFSET
            task.cancel()


if "replica" in sys.orig_argv and (_flag := os.environ.get("STORM_CANCEL")):
    from dragoman_worker.engines.echo import EchoEngine

    _file = Path(_flag)

    _generate = EchoEngine.generate

    async def _generate_or_cancel(self: EchoEngine, *arguments: Any, **options: Any) -> Any:
        _cancel_once(_file)
        return await _generate(self, *arguments, **options)

    setattr(EchoEngine, "generate", _generate_or_cancel)  # noqa: B010  typed so
