"""Check of an approved translation against what its item demands."""

from __future__ import annotations

from collections.abc import Iterable


def fits(
    translation: str, source: str, *, protect: Iterable[str] = (), max_chars: int | None = None
) -> bool:
    """Whether it keeps each literal of `protect` as often as the source, within `max_chars`.

    `max_chars` counts code points. A translation that does not fit is ignored: the item goes to
    the engine.
    """
    if max_chars is not None and len(translation) > max_chars:
        return False
    return all(translation.count(literal) == source.count(literal) for literal in set(protect))
