"""Fixtures that several tests of the worker share."""

from __future__ import annotations

import asyncio

import pytest


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of every `asyncio.sleep`; none of them is waited for."""
    seconds: list[float] = []
    really = asyncio.sleep

    async def sleep(delay: float, result: object = None) -> object:
        seconds.append(delay)
        await really(0)
        return result

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return seconds
