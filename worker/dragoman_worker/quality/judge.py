"""The judge of answers in a child process.

The gates and the language detection take 0.2 to 0.5 ms per text. On the event loop that would be
most of a core at 3,000 texts per second; in a thread they would hold the GIL as long. One call per
text to another process falls behind, so requests are handed over in batches: whatever arrives
while the process judges one batch is the next (docs/adr/0019).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from typing import Any, Final

from dragoman_connections.child import ChannelClosed, ChildProcess
from dragoman_text.detection import Detection
from dragoman_text.verdicts import Candidate, Judgement
from dragoman_worker.backoff import backoff, pause_s
from dragoman_worker.errors import Halt
from dragoman_worker.log import logger
from dragoman_worker.metrics import Metrics
from dragoman_worker.quality import judge_wire as wire
from dragoman_worker.quality.judge_queue import JudgeRequest, RequestQueue

GATES: Final = "dragoman_text.gates:judge"
"""The project's judging function, as `module:function`."""
START_S: Final = 60.0
"""Time limit of a start, which takes 1 s of CPU."""
_PATIENCE: Final = 5
"""Time limits, each with a start, for which a request waits in all while processes are replaced.

Two other requests that hang take four, each in a batch and again by itself.
"""
_AT_ONCE: Final = 3
"""Replacements in a row without a wait: a text that kills two processes must not delay others."""
_BACKOFF: Final = backoff(0.5, 10.0)
_RECOVERED_S: Final = 30.0
"""Seconds that a process must live for the next to be started without a wait."""
_ROUNDS: Final = 2
_ROUND_S: Final = 0.01
"""Rounds of the loop after the time limit: one that was held up reads answers before it judges."""
_PLACES: Final = 100
"""Places of exceptions in gates that are logged, each once."""


class ProcessJudge:
    """The port `Judge` with one child process, which is replaced when it dies or hangs.

    Requests that were handed over to a lost process are judged again one by one, see RequestQueue.
    """

    def __init__(self, *, timeout_s: float, metrics: Metrics, gates: str = GATES) -> None:
        """`timeout_s` bounds a batch, `gates` names the judging function (`module:function`)."""
        self._timeout_s = timeout_s
        self._metrics = metrics
        self._gates = gates
        self._queue = RequestQueue()
        self._process: ChildProcess | None = None
        """The process, once it is loaded and until it is lost."""
        self._keeper: asyncio.Task[None] | None = None
        self._first_start: asyncio.Future[str | None] | None = None
        """The failure of the first start; None if it succeeded."""
        self._start_s = 0.0
        """The longest start so far: a busy machine needs several times that of an idle one."""
        self._losses = 0
        """Processes in a row that did not live for `_RECOVERED_S`."""
        self._backing_off = self._closed = self._flushes = False
        self._overdue: asyncio.TimerHandle | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._places: set[str] = set()

    # --- the port ---------------------------------------------------------------------------------

    async def judge(self, candidate: Candidate) -> Judgement | None:
        """See `Judge`."""
        began = time.perf_counter()
        answer = await self._ask(wire.pack_candidate(candidate), 1)
        self._metrics.judge_seconds.observe(time.perf_counter() - began)
        return None if answer is None else wire.unpack_judgement(answer, candidate)

    async def detect(
        self,
        texts: Sequence[str],
        candidates: Collection[str] | None,
        target_lang: str | None = None,
    ) -> Sequence[Detection | None]:
        """See `Judge`."""
        request = wire.DetectRequest(texts, candidates, target_lang)
        answer = await self._ask(wire.pack_texts(request), len(texts))
        return [None] * len(texts) if answer is None else wire.unpack_detections(answer)

    # --- lifecycle --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process in the background. Otherwise the first request does. Idempotent."""
        if self._keeper is None and not self._closed:
            self._first_start = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep(self._first_start), name="judge")

    async def ready(self) -> None:
        """Return when the process has started once. Raises Halt if its first start failed."""
        self.start()
        if self._first_start is not None and (reason := await asyncio.shield(self._first_start)):
            raise Halt(f"the judge of translations cannot be started: {reason}")

    async def close(self) -> None:
        """Kill the process; every request that has no answer gets None. Idempotent."""
        self._closed = True
        for timer in (self._overdue, self._sweep):
            if timer is not None:
                timer.cancel()
        self._queue.resolve_all()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)

    async def _keep(self, first_start: asyncio.Future[str | None]) -> None:
        """Start the process, and start another each time it is lost."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            reason = await self._one_life(first_start)
            if not first_start.done():
                first_start.set_result(reason)
            self._metrics.judge_restarts.inc()
            logger().warning("judge_restarted", reason=reason, requests=len(self._queue.batch))
            self._queue.batch_lost()
            self._watch_patience()  # the next start may hang
            await self._back_off(lived_s=loop.time() - began)

    async def _one_life(self, first_start: asyncio.Future[str | None]) -> str:
        """Start a process, use it until it is lost, and return why it was."""
        process: ChildProcess | None = None
        began = time.monotonic()
        try:
            async with asyncio.timeout(START_S):
                process = await self._started()
                await process.channel.receive()  # it is loaded
            self._start_s = max(self._start_s, time.monotonic() - began)
            if not first_start.done():
                first_start.set_result(None)
            process.channel.deliver_to(self._received)
            self._process = process
            self._hand_over()
            return await process.channel.ended()
        except TimeoutError:
            return f"not ready within {START_S:g} s"
        except ChannelClosed as closed:
            return f"it {closed} before it was ready"
        except OSError as error:
            return str(error)
        finally:
            self._process = None
            if self._overdue is not None:
                self._overdue.cancel()
            if process is not None:
                await process.end()

    async def _started(self) -> ChildProcess:
        module = "dragoman_worker.quality.judge_child"
        return await ChildProcess.start(
            lambda descriptor: (sys.executable, "-P", "-m", module, descriptor, self._gates),
            own_session=False,
            stdout=subprocess.DEVNULL,
            # One text is judged at a time: threads of numpy would cost memory and time to start.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )

    async def _back_off(self, *, lived_s: float) -> None:
        self._losses = 1 if lived_s > _RECOVERED_S else self._losses + 1
        if self._losses > _AT_ONCE:
            self._backing_off = True
            self._watch_patience()
            await asyncio.sleep(pause_s(_BACKOFF, self._losses))
            self._backing_off = False

    # --- requests ---------------------------------------------------------------------------------

    async def _ask(self, payload: bytes, texts: int) -> Any:
        """Return the answer to a request, None if there is none."""
        if self._closed:
            return None
        request = JudgeRequest(payload, texts, asyncio.get_running_loop())
        self._queue.add(request)
        self.start()
        self._hand_over_soon()
        answer = await request.answer
        if isinstance(answer, wire.Failed):
            self._log_failure(answer)
            return None
        return answer

    def _hand_over_soon(self) -> None:
        """Hand over a batch at the end of this round of the loop, with all that it brings."""
        if self._process is None or self._queue.has_suspects:
            self._watch_patience()
        if self._process is not None and not self._queue.batch and not self._flushes:
            self._flushes = True
            asyncio.get_running_loop().call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._flushes = False
        if self._process is None or self._queue.batch:
            return
        if batch := self._queue.next_batch():
            self._process.channel.send(wire.pack([request.payload for request in batch]))
            loop = asyncio.get_running_loop()
            self._overdue = loop.call_later(self._timeout_s, self._give_up, self._process)

    def _received(self, message: bytes) -> None:
        """Resolve the requests of the batch with the answers to it, and hand over the next."""
        try:
            answers = wire.unpack(message)
        except Exception as error:  # noqa: BLE001  whatever broken bytes make of pickle
            if self._process is not None:
                name = type(error).__name__
                self._process.channel.abort(f"wrote an unreadable answer ({name})")
            return
        if self._overdue is not None:
            self._overdue.cancel()
        self._queue.answered(answers)
        self._hand_over()

    def _give_up(self, process: ChildProcess, rounds: int = _ROUNDS) -> None:
        """Replace the process, unless its answers are read in the next rounds of the loop."""
        if rounds:
            later = asyncio.get_running_loop().call_later
            self._overdue = later(_ROUND_S, self._give_up, process, rounds - 1)
        else:
            process.channel.abort(f"no answer within {self._timeout_s:g} s (quality.timeout_s)")

    def _watch_patience(self) -> None:
        """Keep requests from waiting for ever while there is no process, or suspects are judged."""
        if self._sweep is None and not self._closed:
            later = asyncio.get_running_loop().call_later
            self._sweep = later(self._timeout_s / 4, self._expire)

    def _expire(self) -> None:
        self._sweep = None
        if self._process is not None and not self._queue.has_suspects:
            return
        self._queue.expire(asyncio.get_running_loop().time() - self._patience_s())
        if not self._queue.empty:
            self._watch_patience()

    def _patience_s(self) -> float:
        if self._first_start is not None and not self._first_start.done():
            return START_S
        if self._backing_off:
            return self._timeout_s
        return _PATIENCE * (self._timeout_s + self._start_s)

    def _log_failure(self, failure: wire.Failed) -> None:
        if failure.place not in self._places and len(self._places) < _PLACES:
            self._places.add(failure.place)
            logger().error("judge_failed", error=failure.error, place=failure.place)
