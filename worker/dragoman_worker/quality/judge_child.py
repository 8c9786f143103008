"""Judge process: judges batches of answers and detects languages for the worker that started it.

Run as `python -m dragoman_worker.quality.judge_child DESCRIPTOR GATES`, with one end of the channel
and the name of the judging function as `module:function`. It exits when the worker closes the
channel, and is killed when the worker dies. It ignores stop signals: one to the process group must
not end it while the worker drains.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol

from dragoman_connections.child import STOP_SIGNALS, Channel, connected
from dragoman_text.detection import LanguageDetector
from dragoman_text.gates import Detect
from dragoman_text.verdicts import Candidate, Judgement
from dragoman_worker.quality import judge_wire as wire

MEMORY_BYTES: Final = 1024**3
"""Address space that judging may take beyond what the loaded process has: a batch of the largest
answers takes less than 100 MB."""
OUT_OF_MEMORY: Final = 3
"""Exit status of a process whose memory bound was reached: only a new one has its memory back."""

_YOUNG_OBJECTS: Final = 50_000


class Gates(Protocol):
    """The judging function."""

    def __call__(self, candidate: Candidate, *, detect: Detect) -> Judgement:
        """Return the findings about one answer."""
        ...


class Work:
    """Answers requests, one after another."""

    def __init__(self, gates: Gates, detector: LanguageDetector) -> None:
        self._gates = gates
        self._detector = detector

    def answer(self, payload: bytes) -> Any:
        """Return the answer to a request as plain values, `Failed` if it raised an exception.

        Raises MemoryError.
        """
        try:
            request = wire.unpack_request(payload)
            if isinstance(request, Candidate):
                judgement = self._gates(request, detect=self._detector.detect)
                return wire.pack_judgement(judgement, request)
            return wire.pack_detections(self._detector.detect_job(*request))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  one text must not stop the judge
            return wire.Failed(type(error).__name__, _place(error.__traceback__))


def main() -> None:
    """Load the gates and the language model, then answer batches until the worker closes."""
    channel = Channel(connected(int(sys.argv[1]), ignored=STOP_SIGNALS))
    detector = LanguageDetector()
    detector.load()
    work = Work(load_gates(sys.argv[2]), detector)
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 10, 10)
    _bound_memory(MEMORY_BYTES)
    with suppress(ConnectionError):
        channel.send(wire.READY)
        _serve(channel, work)


def load_gates(name: str) -> Gates:
    """Return the judging function called `module:function`."""
    module, _, function = name.partition(":")
    gates: Gates = getattr(importlib.import_module(module), function)
    return gates


def _serve(channel: Channel, work: Work) -> None:
    while (message := channel.receive()) is not None:
        try:
            answers = wire.pack([work.answer(payload) for payload in wire.unpack(message)])
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        channel.send(answers)


def _place(trace: TracebackType | None) -> str:
    """Return file and line of the innermost frame."""
    place = ""
    while trace is not None:
        place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _bound_memory(more: int) -> None:
    """Limit the address space to what it is now and `more` bytes. Linux only."""
    with suppress(OSError, ValueError):
        import resource  # noqa: PLC0415  it does not exist for every platform

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + more
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main()
