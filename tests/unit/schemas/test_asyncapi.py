"""The AsyncAPI document follows AsyncAPI 3, and its messages are those of the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from dragoman_schemas import names

_ROOT = Path(__file__).parents[3]
_FOLDER = _ROOT / "docs" / "schema"
_V1 = _ROOT / "tests" / "data" / "wire" / "v1"
DOCUMENT: dict[str, Any] = json.loads((_FOLDER / "asyncapi.json").read_bytes())
FILES = {path.name: json.loads(path.read_bytes()) for path in _FOLDER.glob("*.json")}

# What the specification 3.0.0 names, and what it requires.
MEMBERS = {
    "document": "asyncapi id info servers defaultContentType channels operations components",
    "info": "title version description termsOfService contact license tags externalDocs",
    "channel": "address messages title summary description servers parameters tags externalDocs "
    "bindings",
    "operation": "action channel title summary description security tags externalDocs bindings "
    "traits messages reply",
    "message": "headers payload correlationId contentType name title summary description tags "
    "externalDocs bindings examples traits",
    "kafka channel": "topic partitions replicas topicConfiguration bindingVersion",
    "kafka message": "key schemaIdLocation schemaIdPayloadEncoding schemaLookupStrategy "
    "bindingVersion",
}
REQUIRED = {
    "document": {"asyncapi", "info"},
    "info": {"title", "version"},
    "operation": {"action", "channel"},
}


def objects() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the kind, the name and the content of every object of the document."""
    yield "document", "", DOCUMENT
    yield "info", "", DOCUMENT["info"]
    for name, channel in DOCUMENT["channels"].items():
        yield "channel", name, channel
        yield "kafka channel", name, channel["bindings"]["kafka"]
    for name, operation in DOCUMENT["operations"].items():
        yield "operation", name, operation
    for name, message in DOCUMENT["components"]["messages"].items():
        yield "message", name, message
        yield "kafka message", name, message["bindings"]["kafka"]


def references(part: Any) -> Iterator[str]:
    """Yield every `$ref`, at any depth."""
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"]
        for inner in part.values():
            yield from references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from references(inner)


def target_of(reference: str, file: str = "asyncapi.json") -> Any:
    """Return what a reference names; raises KeyError if it names nothing."""
    name, _, pointer = reference.partition("#")
    found = FILES[name.removeprefix("./") or file]
    for step in pointer.split("/")[1:]:
        found = found[step.replace("~1", "/").replace("~0", "~")]
    return found


def validator_of(schema: str) -> Draft202012Validator:
    return Draft202012Validator(
        FILES[schema],
        registry=Registry().with_resources(
            (name, Resource.from_contents(content))
            for name, content in FILES.items()
            if "$schema" in content
        ),
    )


def payload_of(message: str) -> Draft202012Validator:
    reference = DOCUMENT["components"]["messages"][message]["payload"]["$ref"]
    return validator_of(reference.removeprefix("./"))


def test_every_object_has_the_members_of_the_specification_and_no_others() -> None:
    for kind, name, found in objects():
        assert not found.keys() - MEMBERS[kind].split(), (kind, name)
        assert not REQUIRED.get(kind, set()) - found.keys(), (kind, name)
    assert DOCUMENT["asyncapi"] == "3.0.0"


@pytest.mark.parametrize("file", FILES)
def test_every_reference_leads_to_something(file: str) -> None:
    for reference in references(FILES[file]):
        assert target_of(reference, file) is not None


def test_every_operation_uses_messages_of_its_own_channel() -> None:
    used = []
    for operation in DOCUMENT["operations"].values():
        assert operation["action"] in {"send", "receive"}
        channel = operation["channel"]["$ref"]
        used.append(channel)
        for message in operation["messages"]:
            assert message["$ref"].startswith(f"{channel}/messages/")
    assert sorted(used) == sorted(f"#/channels/{name}" for name in DOCUMENT["channels"])


def test_every_message_is_one_of_a_channel() -> None:
    carried = [
        message["$ref"]
        for channel in DOCUMENT["channels"].values()
        for message in channel["messages"].values()
    ]
    known = [f"#/components/messages/{name}" for name in DOCUMENT["components"]["messages"]]
    assert sorted(carried) == sorted(known)


def test_channels_have_the_addresses_that_the_settings_default_to() -> None:
    channels = DOCUMENT["channels"]
    for name, topic in (("jobs", names.JOBS_TOPIC), ("deadLetters", names.DEAD_LETTER_TOPIC)):
        assert channels[name]["address"] == channels[name]["bindings"]["kafka"]["topic"] == topic


def test_every_payload_and_every_header_is_a_valid_json_schema() -> None:
    for message in DOCUMENT["components"]["messages"].values():
        Draft202012Validator.check_schema(message["headers"])
        Draft202012Validator.check_schema(message["bindings"]["kafka"]["key"])
        if "payload" in message:
            Draft202012Validator.check_schema(target_of(message["payload"]["$ref"]))


def test_a_dead_letter_declares_every_header_that_is_written() -> None:
    written = {
        value
        for name, value in vars(names).items()
        if name.startswith("HEADER_") and isinstance(value, str)
    }
    declared = DOCUMENT["components"]["messages"]["deadLetter"]["headers"]["properties"]
    assert declared.keys() == written


JOBS = json.loads((_V1 / "jobs.json").read_bytes())


# The worker reads null as an absent member; the schema describes what to write.
@pytest.mark.parametrize("file", [e["file"] for e in JOBS if e["file"] != "jobs/nulls.json"])
def test_published_jobs_are_valid_payloads(file: str) -> None:
    payload_of("job").validate(json.loads((_V1 / file).read_bytes()))


@pytest.mark.parametrize("file", [path.name for path in sorted((_V1 / "results").glob("*.json"))])
def test_published_results_are_valid_payloads(file: str) -> None:
    payload_of("result").validate(json.loads((_V1 / "results" / file).read_bytes()))


def test_a_schema_refuses_what_is_no_job() -> None:
    for invalid in ({}, {"job_id": "a1"}, {"job_id": "a1", "text": 1, "target_lang": "de"}):
        assert not payload_of("job").is_valid(invalid)
