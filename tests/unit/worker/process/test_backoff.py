"""The wait before a restart doubles, has a bound, and is reset by a replica that worked."""

from __future__ import annotations

from dragoman_worker.process.backoff import Backoff


def waits(backoff: Backoff, failures: int) -> list[float]:
    found = []
    for _ in range(failures):
        backoff.failed()
        backoff.exited()
        found.append(backoff.delay_s())
    return found


def test_the_wait_doubles_with_jitter_up_to_a_bound() -> None:
    found = waits(Backoff(initial_s=1.0, max_s=4.0, starts=9), 5)
    for wait, longest in zip(found, (1, 2, 4, 4, 4), strict=True):
        assert longest / 2 <= wait <= longest


def test_failed_starts_in_a_row_exhaust_it_and_readiness_resets_them() -> None:
    backoff = Backoff()
    waits(backoff, 4)
    assert not backoff.exhausted
    backoff.became_ready()
    waits(backoff, 4)
    assert not backoff.exhausted
    backoff.failed()
    assert backoff.exhausted


def test_a_replica_that_had_worked_is_restarted_soon() -> None:
    backoff = Backoff()
    waits(backoff, 9)
    backoff.recovered()
    backoff.exited()
    assert backoff.delay_s() <= 0.5


def test_readiness_does_not_shorten_the_wait() -> None:
    backoff = Backoff()
    waits(backoff, 9)
    backoff.became_ready()
    assert backoff.delay_s() >= 15.0


def test_thousands_of_exits_do_not_overflow_the_wait() -> None:
    backoff = Backoff(setbacks=5_000)
    assert 15.0 <= backoff.delay_s() <= 30.0
