"""Rights of this user on topics and the group, as the broker reports them.

Metadata version 8 (Kafka 2.3) reports the authorized operations on a topic, so no test record has
to be written. Older brokers report none; then every operation counts as allowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    IncompatibleBrokerVersion,
    TopicAuthorizationFailedError,
    for_code,
)
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String

OPERATIONS: Final = {"READ": 3, "WRITE": 4, "DESCRIBE": 8}
"""The bits of Kafka's AclOperation."""
_NOT_REPORTED: Final = -(2**31)
_COORDINATOR_S: Final = 5.0


class _MetadataResponse(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY = 3  # type: ignore[assignment,misc,unused-ignore]  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]
    API_VERSION = 8  # type: ignore[assignment,misc,unused-ignore]  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            Array(
                ("node_id", Int32),
                ("host", String("utf-8")),
                ("port", Int32),
                ("rack", String("utf-8")),
            ),
        ),
        ("cluster_id", String("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("topic", String("utf-8")),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", Array(Int32)),
                        ("isr", Array(Int32)),
                        ("offline_replicas", Array(Int32)),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
        ("cluster_authorized_operations", Int32),
    )


class _MetadataRequestV8(RequestStruct):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = _MetadataResponse
    SCHEMA = Schema(
        ("topics", Array(String("utf-8"))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
    )


class _MetadataRequest(Request[_MetadataRequestV8]):  # type: ignore[misc]
    API_KEY = 3

    def __init__(self, topics: Sequence[str]) -> None:
        self._topics = list(topics)

    def build(self, request_struct_class: Any) -> Any:
        return request_struct_class(self._topics, False, False, True)


@dataclass(frozen=True, slots=True)
class TopicRights:
    """Existence and rights of one topic, as this user sees them."""

    name: str
    exists: bool
    hidden: bool
    """Whether the user may not describe the topic; its existence is then unknown."""
    partitions: int
    operations: int | None
    """One bit per operation; None if the broker does not report them."""

    def allows(self, operation: str) -> bool:
        """Whether the operation is allowed, or the broker reports no rights."""
        return self.operations is None or bool(self.operations >> OPERATIONS[operation] & 1)

    def problem(self, operation: str) -> str | None:
        """Return why a client cannot do this operation, and the fix; None if it can."""
        if self.hidden:
            return (
                "it does not exist, or this user may not see it (Kafka does not report which): "
                f"grant {operation} and DESCRIBE on the topic, or create it with "
                "`dragoman topics create`"
            )
        if not self.exists:
            return "it does not exist; create it with `dragoman topics create`"
        if not self.allows(operation):
            return f"this user has no right to it: grant {operation} on the topic"
        return None


async def topic_rights(admin: Any, names: Sequence[str]) -> list[TopicRights]:
    """Return the rights on each topic, in the order of `names`. Raises KafkaError."""
    try:
        response = await admin._send_request(_MetadataRequest(names))  # noqa: SLF001
    except IncompatibleBrokerVersion:
        return await _existing(admin, names)
    found = {topic[1]: _topic(topic) for topic in response.topics}
    return [found[name] for name in names]


def _topic(topic: tuple[Any, ...]) -> TopicRights:
    code, name, _, partitions, operations = topic
    error = for_code(code)
    return TopicRights(
        name=name,
        exists=bool(partitions),
        hidden=error is TopicAuthorizationFailedError,
        partitions=len(partitions),
        operations=None if operations == _NOT_REPORTED else operations,
    )


async def _existing(admin: Any, names: Sequence[str]) -> list[TopicRights]:
    """Return what an older broker reports: which topics the user may see."""
    seen = set(await admin.list_topics())  # a request for a missing topic by name could create it
    described = await admin.describe_topics([name for name in names if name in seen])
    counts = {topic["topic"]: len(topic["partitions"]) for topic in described}
    return [
        TopicRights(
            name=name,
            exists=name in counts,
            hidden=False,
            partitions=counts.get(name, 0),
            operations=None,
        )
        for name in names
    ]


async def may_read_group(admin: Any, group_id: str) -> bool:
    """Whether the user may join the group. Raises KafkaError.

    A heartbeat without a member id needs the same right as a member's and changes nothing.
    (DescribeGroups reports no operations for a group that has no member yet.)
    """
    try:
        async with asyncio.timeout(_COORDINATOR_S):
            node = await _coordinator(admin, group_id)
        request = HeartbeatRequest(group_id, -1, "")
        response = await admin._send_request(request, node)  # noqa: SLF001
    except GroupAuthorizationFailedError:
        return False
    except TimeoutError:
        return True
    return for_code(response.error_code) is not GroupAuthorizationFailedError


async def _coordinator(admin: Any, group_id: str) -> int:
    """Return the coordinator's node; a new broker first creates its offsets topic, so retry."""
    while True:
        try:
            node: int = await admin.find_coordinator(group_id)
        except GroupCoordinatorNotAvailableError:
            await asyncio.sleep(0.1)
        else:
            return node
