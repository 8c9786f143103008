"""The content id of the contract, by a frozen example and by what changes it."""

from __future__ import annotations

import hashlib

from dragoman_schemas.content_ids import LINE_PREFIX, content_id

FINGERPRINT = "0f" * 32


def test_an_id_is_the_prefix_and_40_digits_of_the_canonical_json() -> None:
    canonical = f'["","{FINGERPRINT}",null]'
    digits = hashlib.sha256(canonical.encode()).hexdigest()[:40]
    assert digits == "9a274eb76604957e8f0985afda575928ebb125d6"
    assert content_id(LINE_PREFIX, FINGERPRINT) == f"line.{digits}"


def test_scope_fingerprint_and_glossary_each_change_the_id() -> None:
    ids = {
        content_id("gw.", FINGERPRINT),
        content_id("gw.", FINGERPRINT, scope="a"),
        content_id("gw.", "1f" * 32),
        content_id("gw.", FINGERPRINT, glossary="d"),
    }
    assert len(ids) == 4
