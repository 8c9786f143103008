"""The load of a storm: sent through all faults, entered in the ledger once acknowledged."""

from __future__ import annotations

import contextlib
import heapq
import json
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

import redis
from confluent_kafka import Producer

from dragoman_schemas.names import Keys
from dragoman_schemas.scripts import CANCEL, CancelEffect, cancel_args, parse_cancel
from support.chaos.ledger import Ledger
from support.chaos.load import CANCEL_AFTER_S
from support.chaos.sent import Kind, Sent
from support.chaos.system import Place

_FLUSH_S: Final = 180.0
_LIVE_TTL_MS: Final = 7 * 86_400_000


class Feeder:
    """A librdkafka producer (acks=all, idempotent, unlimited retries) at a steady rate.

    A record goes into the ledger when its acknowledgement has come. Jobs that are to be cancelled
    are, some seconds after.
    """

    def __init__(self, place: Place, ledger: Ledger, *, rate: float) -> None:
        self._place = place
        self._ledger = ledger
        self._rate = rate
        self._to_cancel: list[tuple[float, str]] = []
        self.over = threading.Event()
        self.cancels = 0
        self._stopped = threading.Event()

    def feed(self, records: Iterable[Sent]) -> None:
        """Send all records at `rate` per second and wait for their acknowledgements."""
        producer = Producer(
            {
                "bootstrap.servers": self._place.kafka,
                "acks": "all",
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "message.max.bytes": 2_000_000,
                "queue.buffering.max.messages": 1_000_000,
                "linger.ms": 5,
                "log_level": 0,
            }
        )
        began = time.monotonic()
        for number, sent in enumerate(records):
            while (wait := began + number / self._rate - time.monotonic()) > 0:
                producer.poll(min(wait, 0.05))
            if self._stopped.is_set():
                break
            self._produce(producer, sent)
        left = producer.flush(_FLUSH_S)
        self.over.set()
        assert left == 0, f"{left} records have no acknowledgement after {_FLUSH_S:g} s"

    def stop(self) -> None:
        """Stop sending."""
        self._stopped.set()

    def _produce(self, producer: Producer, sent: Sent) -> None:
        def done(error: Any, message: Any) -> None:
            if error is not None:
                self._ledger.given_up(sent)
                return
            self._ledger.acknowledged(sent, (message.partition(), message.offset()))
            if sent.kind is Kind.CANCEL and sent.job_id is not None:
                heapq.heappush(self._to_cancel, (time.monotonic() + CANCEL_AFTER_S, sent.job_id))

        odd: dict[str, Any] = {"key": sent.job_id}
        if sent.odd is not None:
            odd = {"key": sent.odd.key, "headers": list(sent.odd.headers)}
            odd["timestamp"] = sent.odd.timestamp_ms or 0
        producer.produce(self._place.topic, sent.value, on_delivery=done, **odd)
        producer.poll(0)

    # --- cancelling -----------------------------------------------------------------------------

    def cancel_all(self) -> None:
        """Cancel the jobs that are due until all are sent and cancelled, through every outage."""
        with redis.Redis.from_url(self._place.redis, socket_timeout=2) as client:
            while self._to_cancel or not self.over.is_set():
                if not self._to_cancel or self._to_cancel[0][0] > time.monotonic():
                    time.sleep(0.05)
                    continue
                try:
                    self._cancel(client, self._to_cancel[0][1])
                except redis.RedisError:
                    time.sleep(0.5)
                else:
                    heapq.heappop(self._to_cancel)
                    self.cancels += 1

    def _cancel(self, client: redis.Redis, job_id: str) -> None:
        keys, now = Keys(), datetime.now(UTC).isoformat(timespec="milliseconds")
        result = json.dumps({"schema": 1, "job_id": job_id, "status": "cancelled"}).encode()
        arguments = cancel_args(
            now=now.replace("+00:00", "Z"), live_ttl_ms=_LIVE_TTL_MS, result=result
        )
        reply: Any = client.eval(CANCEL.text, 1, keys.job(job_id), *arguments)
        if parse_cancel(reply).effect is CancelEffect.REQUESTED:
            fields: Any = {"job_id": job_id}
            client.xadd(keys.cancels, fields, maxlen=10_000)


@contextlib.contextmanager
def running(*targets: Any) -> Any:
    """Run each target in a thread; leaving waits for all and raises the error of one of them."""
    errors: list[BaseException] = []

    def guarded(target: Any) -> None:
        try:
            target()
        except BaseException as error:  # noqa: BLE001  raised again where the threads are joined
            errors.append(error)

    threads = [
        threading.Thread(target=guarded, args=(target,), daemon=True, name=str(target))
        for target in targets
    ]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
