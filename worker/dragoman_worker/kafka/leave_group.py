"""LeaveGroup requests in the name of dead consumers, which end their group memberships."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable
from typing import Any, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.errors import KafkaError, UnknownMemberIdError, for_code
from aiokafka.protocol.group import LeaveGroupRequest

from dragoman_connections.kafka_client import client_options
from dragoman_connections.settings import KafkaSettings, SettingsError
from dragoman_worker.kafka.connection import forbidden, loggable, quietly
from dragoman_worker.log import logger

WITHIN_S: Final = 5.0
"""Longest duration of the attempts: afterwards the session timeout ends the membership soon."""
RETRY_S: Final = 0.2
STOP_WITHIN_S: Final = 1.0


def end_memberships(settings: KafkaSettings, lines: Iterable[str]) -> None:
    """End the membership named by each JSON line (`group`, `member`) until the input ends."""
    for line in lines:
        named = json.loads(line)
        asyncio.run(end_membership(settings, named["group"], named["member"]))


async def end_membership(
    settings: KafkaSettings, group: str, membership: str, within_s: float = WITHIN_S
) -> bool:
    """Remove member `membership` from `group`; return whether the coordinator confirmed in time.

    Idempotent: a member that has left already or has expired counts as confirmed. Never raises.
    A failure costs only the wait for the session timeout.
    """
    began = time.monotonic()
    error: BaseException | None = None
    try:
        async with asyncio.timeout(within_s):
            while (error := await _attempt(settings, group, membership)) is not None:
                if forbidden(error):
                    break
                await asyncio.sleep(RETRY_S)
    except TimeoutError as timeout:
        error = error or timeout
    log = logger().bind(
        group=group, membership=membership, seconds=round(time.monotonic() - began, 2)
    )
    if error is None:
        log.info("membership_ended")
    else:
        log.warning("membership_not_ended", error=loggable(error))
    return error is None


async def _attempt(settings: KafkaSettings, group: str, membership: str) -> BaseException | None:
    try:
        client: Any = AIOKafkaClient(**client_options(settings))
    except SettingsError as error:  # certificates that are being replaced
        return error
    try:
        await client.bootstrap()
        node = await client.coordinator_lookup(CoordinationType.GROUP, group)
        request = LeaveGroupRequest(group, membership)
        reply = await client.send(node, request, group=ConnectionGroup.COORDINATION)
    except (KafkaError, OSError) as error:
        return error
    finally:
        await quietly(client.close, STOP_WITHIN_S)
    kind = for_code(reply.error_code)
    return None if reply.error_code == 0 or kind is UnknownMemberIdError else kind()
