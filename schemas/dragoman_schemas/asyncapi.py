"""The topics as an AsyncAPI 3 document: channels, keys, headers and payloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman_schemas import names
from dragoman_schemas.failures import FailureCode
from dragoman_schemas.jobs import SCHEMA_VERSION

_NUMBER: Final = {"type": "string", "pattern": "^[0-9]+$"}
_TEXT: Final = {"type": "string"}
_TIME: Final = {"type": "string", "description": "Milliseconds since 1970, or RFC 3339."}
_JOB_ID: Final = {"type": "string", "description": "The job's id."}

_TRACE_HEADERS: Final[Mapping[str, Any]] = {
    names.HEADER_TRACEPARENT: {"type": "string", "description": "W3C Trace Context."},
}
_JOB_HEADERS: Final[Mapping[str, Any]] = {
    **_TRACE_HEADERS,
    names.HEADER_REPLAY: {
        "type": "string",
        "pattern": "^[1-9][0-9]*$",
        "description": "Run a failed, cancelled or expired job again.",
    },
}
_DEAD_LETTER_HEADERS: Final[Mapping[str, Any]] = {
    **_JOB_HEADERS,
    names.HEADER_ORIGINAL_TOPIC: _TEXT,
    names.HEADER_ORIGINAL_PARTITION: _NUMBER,
    names.HEADER_ORIGINAL_OFFSET: _NUMBER,
    names.HEADER_ORIGINAL_TIMESTAMP: _TIME,
    names.HEADER_CONSUMER_GROUP: _TEXT,
    names.HEADER_JOB_ID: _JOB_ID,
    names.HEADER_ERROR_CODE: {"type": "string", "enum": [code.value for code in FailureCode]},
    names.HEADER_ERROR_MESSAGE: {"type": "string", "description": "At most 1 KiB, no text."},
    names.HEADER_ATTEMPTS: _NUMBER,
    names.HEADER_DELIVERIES: _NUMBER,
    names.HEADER_FIRST_SEEN: _TIME,
    names.HEADER_WORKER: _TEXT,
    names.HEADER_ORIGINAL_SHA256: {
        "type": "string",
        "description": "In place of a record too large to publish again.",
    },
    names.HEADER_ORIGINAL_SIZE: _NUMBER,
}


def asyncapi(version: str) -> dict[str, Any]:
    """Return the document; payloads refer to the JSON Schemas in the same folder."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Dragoman",
            "version": version,
            "description": "Translation jobs from Kafka. Results are kept in Redis; "
            "a topic of results is optional (`kafka.results_topic`).",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": _CHANNELS,
        "operations": _OPERATIONS,
        "components": {"messages": _MESSAGES},
    }


def _message(title: str, payload: str | None, headers: Mapping[str, Any]) -> dict[str, Any]:
    # The bytes of a dead letter may be anything, so it has no schema of a payload.
    return {
        "title": title,
        "headers": {"type": "object", "properties": dict(headers)},
        **({"payload": {"$ref": f"./{payload}.v{SCHEMA_VERSION}.json"}} if payload else {}),
        "bindings": {"kafka": {"key": _JOB_ID}},
    }


def _channel(address: str, message: str, description: str) -> dict[str, Any]:
    return {
        "address": address,
        "description": description,
        "messages": {message: {"$ref": f"#/components/messages/{message}"}},
        "bindings": {"kafka": {"topic": address}},
    }


def _operation(action: str, channel: str, message: str, summary: str) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "summary": summary,
        "messages": [{"$ref": f"#/channels/{channel}/messages/{message}"}],
    }


_MESSAGES: Final = {
    "job": _message("TranslationJob", "job", _JOB_HEADERS),
    "deadLetter": _message("A record that was not translated", None, _DEAD_LETTER_HEADERS),
    "result": _message("TranslationResult", "result", _TRACE_HEADERS),
}
_CHANNELS: Final = {
    "jobs": _channel(names.JOBS_TOPIC, "job", "Jobs to translate; the key is the job's id."),
    "deadLetters": _channel(
        names.DEAD_LETTER_TOPIC,
        "deadLetter",
        "Every failed job, every conflict, and every record without a readable id: the original "
        "key, bytes and headers, with the reason in further headers.",
    ),
    "results": _channel(
        "dragoman.results",
        "result",
        "Every result as it becomes terminal, at least once. Only if `kafka.results_topic` is set, "
        "to any name.",
    ),
}
_OPERATIONS: Final = {
    "takeJobs": _operation("receive", "jobs", "job", "The worker reads jobs in one group."),
    "publishDeadLetters": _operation(
        "send", "deadLetters", "deadLetter", "The worker publishes what it could not translate."
    ),
    "publishResults": _operation("send", "results", "result", "The worker publishes results."),
}
