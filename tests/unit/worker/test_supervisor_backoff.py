"""How long is a replica's next start waited for?"""

from __future__ import annotations

from dragoman_worker.supervisor.backoff import Backoff


def waits(backoff: Backoff, failures: int) -> list[float]:
    found = []
    for _ in range(failures):
        backoff.failed()
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


def test_a_replica_that_was_ready_comes_back_soon() -> None:
    assert Backoff().delay_s() <= 0.5
