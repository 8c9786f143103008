"""Fixtures shared by tests of the worker."""

from __future__ import annotations

import asyncio

import pytest


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace `asyncio.sleep` by one that returns at once; return the list of its seconds."""
    seconds: list[float] = []
    really = asyncio.sleep

    async def sleep(delay: float, result: object = None) -> object:
        seconds.append(delay)
        await really(0)
        return result

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return seconds
