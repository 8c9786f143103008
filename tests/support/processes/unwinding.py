"""SIGTERM ends a program of the tests as Ctrl-C does: what it has started is ended first."""

from __future__ import annotations

import signal
import sys
from types import FrameType


def unwind_on_sigterm() -> None:
    """Exit with 143 on SIGTERM, through every `finally`; a second SIGTERM changes nothing."""
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    signal.signal(number, _already_ending)  # not SIG_IGN, which what is started would inherit
    sys.exit(128 + number)


def _already_ending(number: int, frame: FrameType | None) -> None:
    del number, frame
