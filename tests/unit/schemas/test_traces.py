"""`traceparent` is read as W3C Trace Context prescribes, and nothing in it stops a worker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_schemas.names import HEADER_TRACEPARENT
from dragoman_schemas.traces import TraceParent, parse_traceparent, traceparent_of

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
VALID = f"00-{TRACE}-{SPAN}-01".encode()


def test_a_valid_header_names_trace_sender_and_decision() -> None:
    assert parse_traceparent(VALID) == TraceParent(TRACE, SPAN, True)
    assert parse_traceparent(VALID[:-1] + b"0") == TraceParent(TRACE, SPAN, False)
    assert parse_traceparent(VALID[:-2] + b"fe") == TraceParent(TRACE, SPAN, False)


def test_a_later_version_may_have_further_fields_and_is_passed_on_as_version_0() -> None:
    later = parse_traceparent(b"cc" + VALID[2:] + b"-what-the-future-will-be-like")
    assert later is not None
    assert later.text.encode() == VALID


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"t",
        VALID + b"-x",
        VALID + b"\n",
        VALID.upper(),
        b"ff" + VALID[2:],
        b"cc" + VALID[2:] + b"x",
        f"00-{'0' * 32}-{SPAN}-01".encode(),
        f"00-{TRACE}-{'0' * 16}-01".encode(),
        b"cc" + VALID[2:] + b"-" + b"x" * 131_072,
        " 00-\u0660".encode(),
    ],
)
def test_an_invalid_header_is_no_trace(value: bytes | None) -> None:
    assert parse_traceparent(value) is None


def test_a_repeated_header_is_no_trace() -> None:
    header = (HEADER_TRACEPARENT, VALID)
    assert traceparent_of([header]) is not None
    assert traceparent_of([header, header]) is None
    assert traceparent_of([header, (HEADER_TRACEPARENT, None)]) is None
    assert traceparent_of([("Traceparent", VALID)]) is None


@given(st.binary(max_size=80))
def test_any_bytes_are_read_without_an_error(value: bytes) -> None:
    found = parse_traceparent(value)
    assert found is None or parse_traceparent(found.text.encode()) == found


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.booleans())
def test_what_is_written_is_read(trace: int, span: int, sampled: bool) -> None:
    parent = TraceParent(f"{trace:032x}", f"{span:016x}", sampled)
    assert parse_traceparent(parent.text.encode()) == parent
