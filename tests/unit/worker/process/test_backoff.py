"""How long is a replica's next start waited for?"""

from __future__ import annotations

from dragoman_worker.process.backoff import Backoff


def waits(backoff: Backoff, failures: int) -> list[float]:
    found = []
    for _ in range(failures):
        backoff.failed()
        backoff.ended()
        found.append(backoff.delay_s())
    return found


def test_the_wait_doubles_with_jitter_up_to_a_bound() -> None:
    found = waits(Backoff(initial_s=1.0, max_s=4.0, starts=9), 5)
    for wait, longest in zip(found, (1, 2, 4, 4, 4), strict=True):
        assert longest / 2 <= wait <= longest


def test_failures_in_a_row_exhaust_it_and_being_ready_forgets_them() -> None:
    backoff = Backoff()
    waits(backoff, 4)
    assert not backoff.exhausted
    backoff.became_ready()
    waits(backoff, 4)
    assert not backoff.exhausted
    backoff.failed()
    assert backoff.exhausted


def test_a_replica_that_had_worked_comes_back_soon() -> None:
    backoff = Backoff()
    waits(backoff, 9)
    backoff.recovered()
    backoff.ended()
    assert backoff.delay_s() <= 0.5


def test_being_ready_does_not_shorten_the_wait() -> None:
    backoff = Backoff()
    waits(backoff, 9)
    backoff.became_ready()
    assert backoff.delay_s() >= 15.0


def test_a_replica_may_end_for_ever() -> None:
    backoff = Backoff(setbacks=5_000)
    assert 15.0 <= backoff.delay_s() <= 30.0
