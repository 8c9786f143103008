"""Odd gates in a judge process that takes long to start, as on a busy machine."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from support.fakes import odd_gates

NAME = f"{__name__}:judge"
_START_S = 4.0
"""Longer than the time-out of the test."""

judge = odd_gates.judge
if Path(sys.argv[0]).name == "judge_child.py":
    time.sleep(_START_S)
