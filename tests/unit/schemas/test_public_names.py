"""The package's public names and schemas are stable, and it imports no Redis or Kafka client."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dragoman_schemas
from dragoman_schemas.export import json_schemas, main
from dragoman_schemas.failures import RETRYABLE, FailureCode
from dragoman_schemas.results import TERMINAL_STATUSES, JobStatus

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "docs" / "schema"


@pytest.mark.parametrize("name", dragoman_schemas.__all__)
def test_every_public_name_is_that_of_one_module(name: str) -> None:
    files = Path(dragoman_schemas.__file__).parent.glob("[a-z]*.py")
    modules = [import_module(f"dragoman_schemas.{file.stem}") for file in files]
    found = getattr(dragoman_schemas, name)
    assert any(vars(module).get(name) is found for module in modules)


def test_another_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Translation'"):
        _ = dragoman_schemas.Translation  # type: ignore[attr-defined]


def test_the_public_names_are_in_alphabetical_order_of_their_kind() -> None:
    def kind(name: str) -> tuple[int, str]:
        return (0 if name.isupper() else 1 if name[0].isupper() else 2), name

    assert dragoman_schemas.__all__ == sorted(dragoman_schemas.__all__, key=kind)


def test_neither_redis_nor_kafka_is_loaded() -> None:
    code = (
        "import sys, dragoman_schemas, dragoman_schemas.scripts, dragoman_text;"
        "print(sorted({'redis', 'aiokafka', 'vllm', 'torch'} & set(sys.modules)))"
    )
    path = f"import sys; sys.path[:0] = [{str(ROOT / 'schemas')!r}, {str(ROOT / 'text')!r}];"
    done = subprocess.run([sys.executable, "-c", path + code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


@pytest.mark.parametrize("name", sorted(json_schemas()))
def test_the_published_schema_is_the_models(name: str) -> None:
    """After a change run `python -m dragoman_schemas.export docs/schema`."""
    assert (PUBLISHED / name).read_text(encoding="utf-8") == json_schemas()[name]


def test_the_schemas_are_written_into_a_folder(tmp_path: Path) -> None:
    main(tmp_path / "new")
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(json_schemas())


def test_the_failure_codes_are_the_contracts() -> None:
    assert [code.value for code in FailureCode] == [
        *("invalid_job", "unsupported_schema", "unsupported_language", "unknown_profile"),
        *("unknown_glossary", "too_long", "conflict", "quality_failed", "engine_failed"),
        *("poisoned", "deadline_exceeded", "cancelled", "internal"),
    ]
    assert set(FailureCode) >= RETRYABLE


def test_the_statuses_are_the_contracts() -> None:
    assert {status.value for status in TERMINAL_STATUSES} == {
        *("completed", "failed", "cancelled", "expired"),
    }
    assert set(JobStatus) - TERMINAL_STATUSES == {JobStatus.QUEUED, JobStatus.RUNNING}
