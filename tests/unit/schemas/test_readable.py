"""Unit tests of the parts of an invalid job that its result keeps."""

from __future__ import annotations

import pytest

from dragoman_schemas.readable import readable_items, readable_metadata, readable_ttl_s


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("ab", [(None, "ab")]),
        ({"text": "ab", "id": "i", "txt": 1}, [("i", "ab")]),
        (
            ["a", 7, None, {"id": 5, "text": ["x"]}],
            [(None, "a"), (None, ""), (None, ""), (None, "")],
        ),
        ([{"text": "a", "id": "x" * 129}], [(None, "a")]),
        (["x"] * 512, [(None, "x")] * 512),
        (["x"] * 513, []),
        ([], []),
        (7, []),
        (None, []),
    ],
)
def test_items_keep_their_number_their_order_and_readable_ids(
    text: object, items: list[tuple[str | None, str]]
) -> None:
    assert list(readable_items({"text": text})) == items


@pytest.mark.parametrize(
    ("metadata", "kept"),
    [
        ({"k": "v"}, True),
        ({}, True),
        ({"k": "v" * 8191}, True),
        ({"k": "v" * 8192}, False),
        ({"k": "ü" * 4096}, False),
        ({str(n): "" for n in range(64)}, True),
        ({str(n): "" for n in range(65)}, False),
        ({"k": 1}, False),
        (["k"], False),
        (None, False),
    ],
)
def test_metadata_is_kept_within_the_limits_of_a_job(metadata: object, kept: bool) -> None:
    assert readable_metadata({"metadata": metadata}) == (metadata if kept else None)


@pytest.mark.parametrize(
    ("ttl_s", "kept"),
    [(60, True), (2_592_000, True), (59, False), (2_592_001, False), (True, False), ("60", False)],
)
def test_a_ttl_is_kept_within_the_limits_of_a_job(ttl_s: object, kept: bool) -> None:
    assert readable_ttl_s({"ttl_s": ttl_s}) == (ttl_s if kept else None)
    assert readable_ttl_s({}) is None
