"""Gates that do what the source says, to be run in a judge process: hang, exit, raise, swell."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Final

from dragoman_text.gates import Detect
from dragoman_text.verdicts import Candidate, Finding, Judgement

NAME = f"{__name__}:judge"
_SLOW_S = 0.05


def judge(candidate: Candidate, *, detect: Detect) -> Judgement:
    """Judge by the first word of the source; any other source is fine."""
    word = candidate.source.split(" ", 1)[0]
    if word in _MISHAPS:
        _MISHAPS[word]()
    match word:
        case "#raise":
            raise ValueError(candidate.target)
        case "#language":
            found = detect(candidate.target, None)
            return Judgement(found.language if found else "")
        case "#fix":
            fixed = Finding("framing", "fixed", "blanks at the end were removed")
            return Judgement(candidate.target.rstrip(), (fixed,), 0.5)
        case "#echo":
            return Judgement(repr(candidate))
        case _:
            return Judgement(candidate.target)


_MISHAPS: Final[Mapping[str, Callable[[], object]]] = {
    "#hang": signal.pause,
    "#exit": lambda: os._exit(7),
    "#kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "#memory": lambda: [bytearray(64 * 1024 * 1024) for _ in range(1_000)],
    "#slow": lambda: time.sleep(_SLOW_S),
}
