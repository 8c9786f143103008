"""W3C trace context of jobs: the header `traceparent`, the only form of a trace on the wire."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from dragoman_schemas.names import HEADER_TRACEPARENT

_VERSION_0: Final = re.compile(rb"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_LATER: Final = re.compile(rb"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_LONGEST: Final = 512
"""Bytes of a header that are looked at; version 00 has 55."""


class TraceParent(NamedTuple):
    """A valid `traceparent`."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits: the span to which the receiver's span is a child."""
    sampled: bool
    """Whether the sender records the trace, so that the receiver should."""

    @property
    def text(self) -> str:
        """The header's value, in version 00."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


def traceparent_of(headers: Iterable[tuple[str, bytes | None]]) -> TraceParent | None:
    """Return the one `traceparent` header; None if it is absent, repeated or invalid."""
    values = [value for name, value in headers if name == HEADER_TRACEPARENT]
    return parse_traceparent(values[0]) if len(values) == 1 else None


def parse_traceparent(value: bytes | None) -> TraceParent | None:
    """Return the parsed value; None if it is invalid by W3C Trace Context, section 3.2."""
    if not value or len(value) > _LONGEST:
        return None
    found = _VERSION_0.fullmatch(value)
    if found is None and not value.startswith(b"00"):
        found = _LATER.fullmatch(value)
    if found is None:
        return None
    trace_id, span_id = found[1].decode(), found[2].decode()
    if not trace_id.strip("0") or not span_id.strip("0"):
        return None
    return TraceParent(trace_id, span_id, bool(int(found[3], 16) & 1))
