"""Reports of the consumer's group memberships, so that another process can end them.

A process that is killed before it has reported its member id blocks the group until the session
times out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from dragoman_worker.kafka.membership import Membership
from dragoman_worker.process.parent_link import GroupMember

JOINING_CHECK_S: Final = 0.02
"""Seconds between checks for a member id while there is none.

aiokafka announces no member id, and may have one long before the first assignment.
"""
JOINED_CHECK_S: Final = 0.25
"""Seconds between checks for a new member id: a member gets one only after it was expelled."""


class MembershipReporter:
    """Calls `joined` once with each new member id of the current membership."""

    def __init__(
        self,
        group_id: str,
        membership: Callable[[], Membership | None],
        joined: Callable[[GroupMember], None] | None,
    ) -> None:
        self._group_id = group_id
        self._membership = membership
        self._joined = joined
        self._reported = ""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to check for member ids."""
        self._task = asyncio.create_task(self._report_forever(), name="membership")

    def stop(self) -> None:
        """Stop checking. Idempotent."""
        if self._task is not None:
            self._task.cancel()

    def report(self) -> None:
        """Report a new member id; while there is none, the last reported one remains valid."""
        member_id = self._member_id()
        if self._joined is not None and member_id not in ("", self._reported):
            self._joined(GroupMember(self._group_id, member_id))
            self._reported = member_id

    def _member_id(self) -> str:
        membership = self._membership()
        return membership.member_id if membership is not None else ""

    async def _report_forever(self) -> None:
        while True:
            self.report()
            await asyncio.sleep(JOINED_CHECK_S if self._member_id() else JOINING_CHECK_S)
