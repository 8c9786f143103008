"""A file that holds the records of a failed round, for a replay."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.builders.odd_records import OddRecord
from support.odd.cases import ANY, Case


def keep(file: Path, cases: Sequence[Case], **about: Any) -> None:
    """Write the cases and the details of the failure."""
    lines = [{"codec": case.codec, "records": [*map(_plain, case.records)]} for case in cases]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**about, "cases": lines}, indent=1), encoding="utf-8")


def kept(file: Path) -> list[Case]:
    """Return the cases of such a file."""
    return [
        Case([*map(_record, line["records"])], codec=line["codec"])
        for line in json.loads(file.read_text(encoding="utf-8"))["cases"]
    ]


def _plain(record: OddRecord) -> dict[str, Any]:
    return {
        "value": _text(record.value),
        "key": _text(record.key),
        "headers": [
            [_text(name.encode() if isinstance(name, str) else name), _text(value)]
            for name, value in record.headers
        ],
        "timestamp_ms": record.timestamp_ms,
        "job_id": record.job_id,
    }


def _record(fields: dict[str, Any]) -> OddRecord:
    return OddRecord(
        _bytes(fields["value"]),
        ANY,
        _bytes(fields["key"]),
        headers=[(_bytes(name) or b"", _bytes(value)) for name, value in fields["headers"]],
        timestamp_ms=fields["timestamp_ms"],
        job_id=fields["job_id"],
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
