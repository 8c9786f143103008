"""The language detector as the gates use it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from dragoman_text.detection import Detection


class Detect(Protocol):
    """The language detector of this process."""

    def __call__(self, text: str, candidates: Collection[str] | None = None, /) -> Detection | None:
        """Return the most likely language of the text, None without letters.

        With candidates, the most likely of them, unless the text is certainly in none.
        """
        ...
