"""The interface of a table that is read and written some rows at a time: it may be of any size.

Its bytes are never in memory as a whole, so that it is no `Codec`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dragoman_documents.codec import Options, Segment

Texts = Callable[[int], Sequence[str | None]]
"""Returns the translations of that many further segments, None for one without."""


class StreamedTable(Protocol):
    """One file that is open for reading."""

    @property
    def by_language(self) -> bool:
        """Whether the segments depend on the target language."""
        ...

    def missing(self) -> list[tuple[str, str]]:
        """Return the names of `Options` that nothing has, each with its member of `Options`."""
        ...

    def names(self) -> list[str]:
        """Return names of columns, those that can be translated first."""
        ...

    def segments(self) -> Iterator[Sequence[Segment]]:
        """Yield the segments of some rows at a time. Raises DocumentError."""
        ...

    def write(self, path: Path, texts: Texts) -> Iterator[list[int]]:
        """Write the table with translations into a new file that is there and empty.

        Yield, after some rows, the numbers of the segments whose translation does not fit. Raises
        DocumentError.
        """
        ...


@dataclass(frozen=True, slots=True)
class StreamedFormat:
    """A format of such tables."""

    name: str
    open: Callable[[Path, Options], StreamedTable]
    """Raises DocumentError and OSError."""
    can_double: bool = False
