"""State of a job's key, and whether it is the terminal state of an expected run."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from dragoman_producer.errors import IdTaken, Unreadable
from dragoman_schemas.results import TERMINAL_STATUSES, JobStatus, TranslationResult
from dragoman_schemas.wire import decode_result


@dataclass(frozen=True, slots=True)
class JobState:
    """Fields of a job's key that a poller needs, as stored."""

    status: str
    result: bytes | None = None
    replays: int = 0
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """Run of a job to wait for: ``fingerprint`` None compares nothing, ``replay`` 0 is the first.

    ``already`` is the status that the id had at submission, if the job is not run again.
    """

    job_id: str
    fingerprint: str | None = None
    replay: int = 0
    already: JobStatus | None = None

    def status_in(self, state: JobState | None) -> JobStatus | None:
        """Return the status of this run; None is unknown. Raises IdTaken and Unreadable.

        The key of a resubmitted job keeps its old result until a worker claims the new record.
        """
        if state is None:
            return None
        self._check_owner(state)
        if state.replays < self.replay:
            return JobStatus.QUEUED
        try:
            return JobStatus(state.status)
        except ValueError:
            raise Unreadable(self.job_id, f"status {state.status[:40]!r}") from None

    def result_in(self, state: JobState | None) -> TranslationResult | None:
        """Return the result once this run is terminal, else None. Raises IdTaken and Unreadable."""
        status = self.status_in(state)
        if state is None or status is None or status not in TERMINAL_STATUSES:
            return None
        if state.result:
            try:
                return decode_result(state.result)
            except ValidationError as error:
                raise Unreadable(self.job_id, f"result ({_first_problem(error)})") from None
        return TranslationResult.model_validate({"job_id": self.job_id, "status": status.value})

    def _check_owner(self, state: JobState) -> None:
        if self.fingerprint and state.fingerprint and state.fingerprint != self.fingerprint:
            raise IdTaken(self.job_id)


def _first_problem(error: ValidationError) -> str:
    """Return the first problem in one line, without the input: a result holds user text."""
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(step)[:40] for step in problem["loc"])
    return f"{place}: {problem['msg'][:200]}" if place else problem["msg"][:200]
