"""Rich's console for tables and progress, apart from `terminal` because Rich takes time to load."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from dragoman_connections.terminal import escaped


class SafeConsole(Console):
    """A console that sends the control sequences of Rich to a terminal, and none of its content.

    Rich itself lets ESC and most other control characters of a text through.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments, those of texts without control characters."""
        segments = super().render(renderable, options)
        return map(_safe, segments) if self.is_terminal else segments


def _safe(segment: Segment) -> Segment:
    if segment.control:
        return segment
    return Segment(escaped(segment.text), segment.style)
