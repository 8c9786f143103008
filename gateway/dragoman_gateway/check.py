"""What would fail later, found now: `dragoman serve --check`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from dragoman_gateway.keys import KeyRing
from dragoman_gateway.settings import GatewaySettings
from dragoman_producer.errors import DragomanError
from dragoman_producer.operations.topics import missing_topics, show_topics
from dragoman_producer.operations.workers import live_workers
from dragoman_producer.redis_link import RedisLink

_NO_LANGUAGES: Final = (
    "no worker announces its languages now, so the usual 33 are offered until one does; "
    "serve.languages sets others"
)
_SHARED_MEMORY: Final = (
    "several keys share the translation memory, and a fast answer tells that another key had the "
    'same text; give the keys of strangers memory = "off"'
)


async def problems(settings: GatewaySettings, keys: KeyRing) -> AsyncIterator[tuple[bool, str]]:
    """Yield what is wrong, and whether it stops the gateway from working."""
    try:
        link = RedisLink(settings.redis, connect_timeout_s=settings.connect_timeout_s)
        try:
            await link.ask("PING")
        finally:
            await link.close()
        found = await show_topics(settings)
        jobs = set(settings.kafka.topic_names)
        if missing := ", ".join(sorted(jobs & set(missing_topics(settings, found)))):
            yield True, f"topic {missing} is missing: `dragoman topics create` makes it"
    except DragomanError as error:
        yield True, str(error)
        return
    if settings.serve.languages is None and not await live_workers(settings):
        yield False, _NO_LANGUAGES
    if len([key for key in keys.all if key.memory in {None, "use"}]) > 1:
        yield False, _SHARED_MEMORY
