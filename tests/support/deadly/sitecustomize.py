"""Makes marked records kill the replica that opens them, as a crash in a library would.

For tests: a worker that is started with this folder on its PYTHONPATH. The product has no such
switch.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

KILLS_READ, KILLS_PLANNED = "kills its reader", "kills its planner"


def _deadly(original: Callable[..., Any], marker: str) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        if marker in str(arguments):
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **options)

    return call


if "replica" in sys.orig_argv:
    from dragoman_schemas import wire

    setattr(wire, "open_record", _deadly(wire.open_record, KILLS_READ))  # noqa: B010  typed so
    setattr(wire, "decode_job", _deadly(wire.decode_job, KILLS_PLANNED))  # noqa: B010
