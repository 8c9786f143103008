"""The poller of docs/reference/results.md counts what the workers of both versions marked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import redis

from dragoman_schemas import names, scripts
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

PAGE = Path(__file__).parents[2] / "docs/reference/results.md"
KEYS = names.Keys()


def mark(client: redis.Redis, key: str, *indexes: int) -> None:
    for index in indexes:
        client.eval(scripts.MARK.text, 1, key, *scripts.mark_args(index=index, ttl_ms=60_000))


# Remove the bitmaps, and with them this test's second half, with the loop that the page names.
def test_the_documented_poller_counts_the_bits_of_both_versions_once(
    redis_server: RedisServer, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    with redis.Redis.from_url(redis_server.url) as client:

        def printed() -> str:
            exec(found[1], {"client": client})  # noqa: S102  the page's own program
            return capsys.readouterr().out.strip()

        assert printed() == "0 0"
        mark(client, KEYS.document_ended("book"), 0, 8_191, 8_192, 999_999)
        mark(client, KEYS.document_completed("book"), 8_192)
        assert printed() == "4 1"
        for index in (0, 1, 16_384, 999_999):  # as a worker of the version before writes them
            client.setbit("dragoman:document:book:ended", index, 1)
        client.setbit("dragoman:document:book:completed", 3, 1)
        assert printed() == "6 2"
        client.delete("dragoman:document:book:ended", "dragoman:document:book:completed")
        client.delete(KEYS.document_ended("book"), KEYS.document_completed("book"))
