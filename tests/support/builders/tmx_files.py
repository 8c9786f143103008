"""TMX files for tests, from pairs of tag and segment."""

from __future__ import annotations

HEADER = '<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>'


def unit(*variants: tuple[str, str]) -> str:
    """Return a unit with a segment, which is XML, for each tag."""
    inside = "".join(f'<tuv xml:lang="{tag}"><seg>{seg}</seg></tuv>' for tag, seg in variants)
    return f"<tu>{inside}</tu>"


def units(*all_of: str) -> str:
    """Return a file of units whose source language is English."""
    return f"{HEADER}{''.join(all_of)}</body></tmx>"
