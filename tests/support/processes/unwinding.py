"""Orderly exit of a test program on SIGTERM: its contexts are left first, as on Ctrl-C."""

from __future__ import annotations

import signal
import sys
from types import FrameType


def unwind_on_sigterm() -> None:
    """Exit with 143 on SIGTERM, through every `finally`; a second SIGTERM changes nothing."""
    signal.signal(signal.SIGTERM, _exit)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it


def _exit(number: int, frame: FrameType | None) -> None:
    del frame
    signal.signal(number, _ignored_from_now)  # not SIG_IGN, which children would inherit
    sys.exit(128 + number)


def _ignored_from_now(number: int, frame: FrameType | None) -> None:
    del number, frame
