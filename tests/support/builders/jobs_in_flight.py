"""Jobs in flight without a record behind them."""

from __future__ import annotations

from dragoman_schemas.wire import Envelope
from dragoman_worker.job.in_flight import JobInFlight, JobsInFlight
from dragoman_worker.job.opening import Opening, Openings
from dragoman_worker.ports import Delivery


def entered(
    in_flight: JobsInFlight,
    job_id: str = "a1",
    *,
    replay: int = 0,
    document_id: str | None = None,
    topic: str = "dragoman.jobs",
) -> JobInFlight:
    """Return a job that has just been put in flight."""
    delivery = Delivery(topic, 0, 0, 1, None, None, (), 0)
    envelope = Envelope(job_id=job_id, fingerprint="f" * 64, fields={})
    job = JobInFlight(delivery, envelope, replay, document_id, Opening(Openings(), job_id))
    in_flight.enter(job)
    return job
