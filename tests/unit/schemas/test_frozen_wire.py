"""The published bytes of schema 1 are still read as on the day of their publication."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dragoman_schemas.fingerprint import fingerprint
from dragoman_schemas.wire import (
    InvalidRecord,
    UnreadableRecord,
    decode_job,
    decode_result,
    encode_result,
    open_record,
    replay_of,
)

V1 = Path(__file__).parents[2] / "data" / "wire" / "v1"


def catalogue(name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((V1 / name).read_bytes())
    return entries


def about(entry: dict[str, Any]) -> str:
    return str(entry.get("file") or entry["about"])


INVALID = [entry for entry in catalogue("invalid.json") if entry["job_id"]]
UNREADABLE = [entry for entry in catalogue("invalid.json") if not entry["job_id"]]
NEWER = "from_a_newer_worker.json"


@pytest.mark.parametrize("entry", catalogue("jobs.json"), ids=about)
def test_a_published_job_is_read(entry: dict[str, Any]) -> None:
    value = (V1 / entry["file"]).read_bytes()
    envelope = open_record(value)
    assert (envelope.job_id, envelope.fingerprint) == (entry["job_id"], entry["fingerprint"])
    job = decode_job(envelope, size=len(value))
    assert (job.target_lang, len(job.items)) == (entry["target_lang"], entry["items"])
    headers = [(name, text.encode()) for name, text in entry["headers"]]
    assert replay_of(headers) == entry["replay"]


def test_every_field_of_the_full_job_is_read() -> None:
    value = (V1 / "jobs" / "full.json").read_bytes()
    job = decode_job(open_record(value), size=len(value))
    assert job.model_fields_set == set(type(job).model_fields)
    assert job.source_lang == "en"
    assert job.sampling is not None
    assert job.sampling.model_fields_set == set(type(job.sampling).model_fields)


@pytest.mark.parametrize("entry", INVALID, ids=about)
def test_a_published_mistake_is_refused_with_its_code(entry: dict[str, Any]) -> None:
    value = (V1 / entry["file"]).read_bytes()
    envelope = open_record(value)
    assert (envelope.job_id, envelope.fingerprint) == (entry["job_id"], entry["fingerprint"])
    with pytest.raises(InvalidRecord) as raised:
        decode_job(envelope, size=len(value))
    assert raised.value.code == entry["code"]
    assert entry["message"] in str(raised.value)


@pytest.mark.parametrize("entry", UNREADABLE, ids=about)
def test_a_published_unreadable_record_is_unreadable(entry: dict[str, Any]) -> None:
    with pytest.raises(UnreadableRecord) as raised:
        open_record((V1 / entry["file"]).read_bytes())
    assert entry["message"] in str(raised.value)


@pytest.mark.parametrize("entry", catalogue("fingerprints.json"), ids=about)
def test_a_published_fingerprint_stands(entry: dict[str, Any]) -> None:
    assert fingerprint(json.loads(entry["record"])) == entry["fingerprint"]
    assert sha256(entry["canonical"].encode()).hexdigest() == entry["fingerprint"]


@pytest.mark.parametrize("path", sorted((V1 / "results").iterdir()), ids=lambda path: path.stem)
def test_a_published_result_is_read_and_written_alike(path: Path) -> None:
    result = decode_result(path.read_bytes())
    assert decode_result(encode_result(result)) == result
    if path.name != NEWER:
        assert json.loads(encode_result(result)) == json.loads(path.read_bytes())


def test_what_a_newer_worker_adds_is_ignored() -> None:
    result = decode_result((V1 / "results" / NEWER).read_bytes())
    assert result.error is not None
    assert result.error.code == "gone_fishing"
    assert result.document is not None
    assert result.document.total == 2


def test_every_published_file_is_in_a_catalogue() -> None:
    listed = {
        V1 / entry["file"] for name in ("jobs", "invalid") for entry in catalogue(f"{name}.json")
    }
    assert listed == {*(V1 / "jobs").iterdir(), *(V1 / "invalid").iterdir()}
