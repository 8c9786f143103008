"""Fingerprint of a record: equal fingerprints mean the same job (docs/reference/jobs.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from json import JSONEncoder, encoder
from math import isfinite
from typing import Final

import rfc8785

MAX_SAFE_INTEGER: Final = 2**53 - 1
MAX_DEPTH: Final = 100
"""Deepest nesting that is read; a valid job nests four levels."""

OUTSIDE_THE_FINGERPRINT: Final = frozenset(
    {"schema", "job_id", "deadline", "ttl_s", "document", "metadata"}
)

# Byte for byte RFC 8785, as long as the value holds no floats and only ASCII names: Python's and
# ECMAScript's spelling of floats differ, and so do code point and UTF-16 order of names.
_ENCODER: Final = JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def _canonical_encoder() -> Callable[[object], str]:
    """Return the encoder's `encode`, which builds its encoder in C anew at every call.

    Built once, it saves 3 % of the CPU of a job without a model (benchmarks/echo/core_cost.py).
    """
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:  # not CPython
        return _ENCODER.encode
    spelled = encoder.encode_basestring
    encode = make(None, _ENCODER.default, spelled, None, ":", ",", True, False, False)
    return lambda value: "".join(encode(value, 0))


_canonical: Final = _canonical_encoder()


def fingerprint(fields: Mapping[str, object]) -> str:
    """Return the SHA-256, in hex, of the canonical JSON (RFC 8785) of a job's content.

    Null members are omitted at every depth, OUTSIDE_THE_FINGERPRINT at the top only. Raises
    ValueError for values that are not JSON: NaN, infinities, lone surrogates, integers beyond
    2^53-1, other types, more than MAX_DEPTH levels.
    """
    return fingerprint_of_normal(normal(dict(fields)))


def normal(fields: dict[str, object]) -> NormalFields:
    """Return ``fields`` without null members at any depth, and with whole floats as integers.

    ``1.0`` and ``1`` are the same JSON value to the fingerprint. Raises ValueError like
    ``fingerprint``.
    """
    spelling = _Spelling()
    members = {name: spelling.normal(value, 1) for name, value in spelling.members(fields)}
    return NormalFields(members, spelling.plain)


class NormalFields:
    """Members without nulls; ``plain`` if the fast encoder's output is canonical for them."""

    __slots__ = ("members", "plain")

    def __init__(self, members: dict[str, object], plain: bool) -> None:
        self.members = members
        self.plain = plain


def fingerprint_of_normal(fields: NormalFields) -> str:
    """Return the fingerprint of the result of ``normal``; see ``fingerprint``."""
    kept = {
        name: value for name, value in fields.members.items() if name not in OUTSIDE_THE_FINGERPRINT
    }
    if fields.plain:
        return sha256(_canonical(kept).encode()).hexdigest()
    return sha256(rfc8785.dumps(kept)).hexdigest()  # type: ignore[arg-type]


class _Spelling:
    """One pass over a value: drops nulls, checks the domain, detects need for the slow encoder."""

    __slots__ = ("plain",)

    def __init__(self) -> None:
        self.plain = True

    def members(self, value: Mapping[str, object]) -> list[tuple[str, object]]:
        kept: list[tuple[str, object]] = []
        for name, member in value.items():
            if member is not None:
                self.plain = self.plain and name.isascii()
                kept.append((name, member))
        return kept

    def normal(self, value: object, depth: int) -> object:
        kind = type(value)
        if kind is str or kind is bool or value is None:
            return value
        if kind is int or kind is float:
            return self._number(value)  # type: ignore[arg-type]
        return self._nested(value, depth)

    def _number(self, value: float) -> int | float:
        if isinstance(value, float):
            if not isfinite(value):
                raise ValueError("NaN and infinities are not JSON")
            if not (value.is_integer() and abs(value) <= MAX_SAFE_INTEGER):
                self.plain = False
                return value
            value = int(value)
        if abs(value) > MAX_SAFE_INTEGER:
            raise ValueError(f"an integer is beyond 2^53-1: {str(value)[:20]}")
        return value

    def _nested(self, value: object, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise ValueError(f"nests more than {MAX_DEPTH} levels deep")
        if isinstance(value, Mapping):
            return {name: self.normal(member, depth + 1) for name, member in self.members(value)}
        if isinstance(value, list | tuple):
            return [self.normal(member, depth + 1) for member in value]
        if isinstance(value, str):
            return str.__str__(value)  # an Enum may have another string form
        raise ValueError(f"{type(value).__name__} is not JSON")
