"""A stored glossary that a caller may use for a pair of languages, and how soon."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from dragoman_gateway.keys import Key
from dragoman_producer.operations.glossaries import ReadGlossary

OWN: Final = "gw."
"""How the stored glossaries begin that callers keep by the API; no other has their names."""
_MARGIN_S: Final = 1.0
"""For clocks that differ, and for what a worker was reading while it changed."""


class UsableGlossary(NamedTuple):
    """What a job that uses a glossary names, and the digest that its content id takes."""

    name: str
    digest: str
    wait_s: float = 0.0
    """Until every worker has the terms of the digest: publish no job before."""


FindUsable = Callable[[Key, str, str, str], Awaitable[UsableGlossary]]
"""Takes key, `glossary_id`, and the tags of source and target; raises ApiError (404)."""


def usable(stored: ReadGlossary, refresh_s: float) -> UsableGlossary:
    """Return a glossary with the time until no worker answers with what it held before."""
    meta = stored.meta
    if meta.version == 1 and stored.name.startswith(OWN):
        return UsableGlossary(stored.name, meta.digest)  # it held nothing before
    try:
        age_s = (datetime.now(UTC) - datetime.fromisoformat(meta.updated_at)).total_seconds()
    except (TypeError, ValueError):  # another program wrote it
        age_s = 0.0
    wait_s = refresh_s + _MARGIN_S - max(0.0, age_s)
    return UsableGlossary(stored.name, meta.digest, max(0.0, wait_s))
