"""The page of outages says the seconds of the code."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from dragoman_connections.settings import DragomanSettings, KafkaSettings
from dragoman_producer.operations.outage import PATIENCE_S
from dragoman_producer.runs.report import RunReport
from dragoman_worker.backoff import LONGEST_S, backoff, pause_s
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.stores.connection import SOCKET_TIMEOUT_S
from dragoman_worker.stores.redis_memory import RECALL_LIMIT_S

PAGE = Path(__file__).parents[3] / "docs/explanation/recovery.md"
FIRST_S = min(pause_s(backoff(), 1) for _ in range(1_000))
CLIENT_S = DragomanSettings().connect_timeout_s
WORKER_S = WorkerSettings.model_fields["connect_timeout_s"].default


def exit_status(**documents: int) -> int:
    """Return the exit status of a run with these numbers of documents by status."""
    report = object.__new__(RunReport)
    stored = SimpleNamespace(
        statuses=lambda: documents, count_outputs=lambda _: 0, count_refused=lambda: 0
    )
    report._stored = stored  # type: ignore[assignment]
    return report.exit_status()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("worker at work", f"after {FIRST_S:.1f} to {LONGEST_S:g} s"),
        ("worker at work", f"after {SOCKET_TIMEOUT_S:g} s if Redis hangs"),
        ("worker at work", f"`kafka.session_timeout_s` ({KafkaSettings().session_timeout_s:g} s)"),
        ("translation memory", f"after {RECALL_LIMIT_S:g} s for the first"),
        ("worker that starts", f"({WORKER_S:g} s)"),
        ("`dragoman submit`", f"{CLIENT_S:g} s at the start"),
        ("`dragoman submit`", f"waits {PATIENCE_S:g} s"),
        ("`dragoman translate`", f"{CLIENT_S:g} s at the start"),
        ("`dragoman translate`", f"waits {PATIENCE_S:g} s"),
        ("`dragoman translate`", f"exit {exit_status(done=1, failed=1)} if any document is done"),
        ("`dragoman translate`", f"exit {exit_status(failed=1)} if none is"),
    ],
)
def test_the_table_of_outages_says_the_seconds_of_the_code(row: str, said: str) -> None:
    table = PAGE.read_text().partition("## When Redis or Kafka is away")[2].partition("\n## ")[0]
    (line,) = [line for line in table.splitlines() if line.startswith(f"| {row}")][:1]
    assert said in line
