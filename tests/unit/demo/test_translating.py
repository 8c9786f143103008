"""Unit tests of the demo's translations where its servers are unavailable."""

from __future__ import annotations

import pytest

from dragoman_demo.samples import samples
from dragoman_demo.translating import translate
from dragoman_producer import Unreachable
from support.services.ports import free_ports


async def test_unavailable_servers_raise_unreachable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRAGOMAN_CONNECT_TIMEOUT_S", "0.3")
    broker, redis = free_ports(2)
    with pytest.raises(Unreachable, match=str(redis)):
        await translate(
            samples(),
            bootstrap=f"127.0.0.1:{broker}",
            redis_url=f"redis://127.0.0.1:{redis}/0",
            on_done=lambda _: None,
        )
