"""Tests of the error messages for a failed first connection to a broker."""

from __future__ import annotations

import pytest
from aiokafka.errors import InvalidSessionTimeoutError

from dragoman_connections.settings import KafkaSettings, SettingsError
from dragoman_worker.deadline import Deadline
from dragoman_worker.kafka.connection import connected


class Refused:
    """A consumer whose session timeout the broker refuses."""

    async def start(self) -> None:
        raise InvalidSessionTimeoutError

    async def stop(self) -> None:
        pass


async def test_a_session_timeout_that_the_broker_refuses_is_named_at_once() -> None:
    settings = KafkaSettings(session_timeout_s=12)
    with pytest.raises(SettingsError, match=r"kafka\.session_timeout_s: .* 12 s"):
        await connected(Refused, settings, Deadline.after(60))
