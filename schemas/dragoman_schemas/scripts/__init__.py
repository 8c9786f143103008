"""Scripts that change keys in Redis, with arguments and replies: docs/reference/scripts.md.

Call them as ``evalsha(script.sha1, 1, key, *args)``, and with ``eval(script.text, ...)`` when the
server replies NOSCRIPT. Every call may be repeated: a repetition changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from hashlib import sha1
from pathlib import Path
from typing import Final, NamedTuple


@dataclass(frozen=True, slots=True)
class Script:
    """Lua script on one key, with the digest under which Redis caches it."""

    name: str
    text: str
    sha1: str


def _load(name: str) -> Script:
    # importlib.resources would take 25 ms of CPU at every start of a process.
    text = Path(__file__).with_name(f"{name}.lua").read_text(encoding="utf-8")
    return Script(name, text, sha1(text.encode(), usedforsecurity=False).hexdigest())


STUB: Final = _load("stub")
CLAIM: Final = _load("claim")
RELEASE: Final = _load("release")
FINISH: Final = _load("finish")
CONFIRM: Final = _load("confirm")
CANCEL: Final = _load("cancel")
GLOSSARY: Final = _load("glossary")
REMEMBER: Final = _load("remember")
MARK: Final = _load("mark")
RESET: Final = _load("reset")
FORGET: Final = _load("forget")
LEASE: Final = _load("lease")
SCRIPTS: Final = (
    STUB, CLAIM, RELEASE, FINISH, CONFIRM, CANCEL, GLOSSARY, REMEMBER, MARK, RESET, FORGET, LEASE,
)  # fmt: skip

SUSPECT_AFTER: Final = 2
"""Number of other outstanding claims that make a record a suspect."""


class Verdict(StrEnum):
    """Verdict of a claim; only ``run`` changes the key."""

    RUN = "run"
    DONE = "done"
    CONFLICT = "conflict"
    CANCEL = "cancel"
    SUSPECT = "suspect"
    POISONED = "poisoned"


class Quarantine(IntEnum):
    """Which other jobs are in the engine with a claimed job.

    ``COHORT``: only other suspects, up to the square root of their number. ``BY_ITSELF``: none.
    """

    NONE = 0
    COHORT = 1
    BY_ITSELF = 2

    @classmethod
    def wanted(cls, suspicions: int) -> Quarantine:
        """Return the quarantine that a record with this many suspicions needs."""
        if suspicions < SUSPECT_AFTER:
            return cls.NONE
        return cls.COHORT if suspicions == SUSPECT_AFTER else cls.BY_ITSELF


class CancelEffect(StrEnum):
    """Effect of a cancel: the job is cancelled, its abort is requested, or it was terminal."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class StubAnswer:
    """Reply of STUB. ``written``: there was no key. ``status``: the present status."""

    written: bool
    status: str


class ClaimAnswer(NamedTuple):
    """Reply of CLAIM: the verdict and the key's fields after it; FINISH must be given ``replays``.

    Times are None if the key holds none. ``result`` is set with ``done``, if it was wanted.
    ``suspicions``, with ``suspect`` and ``poisoned``: the other outstanding claims of the record.
    ``document_cancelled`` is not part of the script's reply: a second command reads it.
    """

    verdict: Verdict
    deliveries: int
    replays: int
    queued_at: str | None
    started_at: str | None
    status: str | None
    result: bytes | None
    suspicions: int = 0
    document_cancelled: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseAnswer:
    """Reply of RELEASE. ``removed``: the claim was outstanding. ``status``: None without a key."""

    removed: bool
    status: str | None


class FinishAnswer(NamedTuple):
    """Reply of FINISH. ``written``: this state was stored; otherwise ``status`` is the stored one.

    ``owned`` is false if the key belongs to another payload. Not written, owned and not terminal:
    a replay took over. ``result`` is the stored result of an owned terminal key.
    """

    written: bool
    status: str | None
    replays: int
    owned: bool = True
    result: bytes | None = None


@dataclass(frozen=True, slots=True)
class ConfirmAnswer:
    """Reply of CONFIRM. ``written``: the key has a status, which was written again."""

    written: bool
    status: str | None


@dataclass(frozen=True, slots=True)
class CancelAnswer:
    """Reply of CANCEL: its effect, and the present status."""

    effect: CancelEffect
    status: str


@dataclass(frozen=True, slots=True)
class GlossaryAnswer:
    """Reply of GLOSSARY. ``written``: the terms were replaced. ``meta``: what the key now holds."""

    written: bool
    meta: bytes | None


@dataclass(frozen=True, slots=True)
class RemovalAnswer:
    """Reply of RESET and FORGET. ``removed``: the key was deleted. ``status``: as before."""

    removed: bool
    status: str | None


def stub_args(*, queued_at: str, live_ttl_ms: int) -> list[str | bytes]:
    """Return the arguments of STUB; times in RFC 3339."""
    return [queued_at, str(live_ttl_ms)]


def claim_args(
    *,
    nonce: str,
    fingerprint: str,
    place: str,
    now: str,
    live_ttl_ms: int,
    queued_at: str,
    replay: int = 0,
    poison_after: int = 4,
    quarantine: Quarantine = Quarantine.NONE,
    want_result: bool = False,
) -> list[str | bytes]:
    """Return the arguments of CLAIM; ``place`` is ``topic/partition/offset``, times in RFC 3339."""
    return [
        nonce,
        fingerprint,
        place,
        now,
        str(live_ttl_ms),
        str(replay),
        str(poison_after),
        str(int(quarantine)),
        queued_at,
        "1" if want_result else "0",
    ]


def release_args(*, nonce: str) -> list[str | bytes]:
    """Return the arguments of RELEASE."""
    return [nonce]


def finish_args(
    *,
    status: str,
    replays: int,
    result: bytes,
    finished_at: str,
    ttl_ms: int,
    fingerprint: str,
    deliveries: int,
    queued_at: str | None = None,
    started_at: str | None = None,
) -> list[str | bytes]:
    """Return the arguments of FINISH; ``replays`` and ``deliveries`` as CLAIM returned them."""
    return [
        status,
        str(replays),
        result,
        finished_at,
        str(ttl_ms),
        fingerprint,
        str(deliveries),
        queued_at or "",
        started_at or "",
    ]


def confirm_args() -> list[str | bytes]:
    """Return the arguments of CONFIRM: none."""
    return []


def cancel_args(*, now: str, live_ttl_ms: int, result: bytes) -> list[str | bytes]:
    """Return the arguments of CANCEL; ``result`` is the minimal result of a job that never ran."""
    return [now, str(live_ttl_ms), result]


def glossary_args(
    *, read: bytes | None, meta: bytes, fields: Sequence[str | bytes]
) -> list[str | bytes]:
    """Return the arguments of GLOSSARY; ``read`` is the ``meta`` that was read, None without one.

    ``fields`` holds each hash field of terms followed by its bytes.
    """
    return [read or b"", meta, *fields]


def mark_args(*, index: int, ttl_ms: int) -> list[str | bytes]:
    """Return the arguments of MARK; ``ttl_ms`` is the job's own TTL."""
    return [str(index), str(ttl_ms)]


def reset_args() -> list[str | bytes]:
    """Return the arguments of RESET: none."""
    return []


def lease_args(
    *, owner: str, now_ms: int, until_ms: int, ttl_ms: int, fields: Mapping[str, str | int]
) -> list[str | bytes]:
    """Return the arguments of LEASE; times are in ms since 1970."""
    pairs = (str(part) for pair in fields.items() for part in pair)
    return [owner, str(now_ms), str(until_ms), str(ttl_ms), *pairs]


Reply = Sequence[bytes | str | int]
"""A reply of Redis, whether the connection decodes responses or not."""


def parse_stub(reply: Reply) -> StubAnswer:
    """Return the parsed reply of STUB."""
    return StubAnswer(reply[0] == 1, _text(reply[1]))


def parse_claim(reply: Reply, *, document_cancelled: bool = False) -> ClaimAnswer:
    """Return the parsed reply of CLAIM."""
    verdict, deliveries, replays, queued_at, started_at, status, result, suspicions = reply
    return ClaimAnswer(
        verdict=Verdict(_text(verdict)),
        deliveries=int(deliveries),
        replays=int(replays),
        queued_at=_text(queued_at) or None,
        started_at=_text(started_at) or None,
        status=_text(status) or None,
        result=_bytes(result) or None,
        suspicions=int(suspicions),
        document_cancelled=document_cancelled,
    )


def parse_release(reply: Reply) -> ReleaseAnswer:
    """Return the parsed reply of RELEASE."""
    return ReleaseAnswer(reply[0] == 1, _text(reply[1]) or None)


def parse_finish(reply: Reply) -> FinishAnswer:
    """Return the parsed reply of FINISH."""
    written, status, replays, owned, result = reply
    return FinishAnswer(
        written == 1, _text(status) or None, int(replays), owned == 1, _bytes(result) or None
    )


def parse_confirm(reply: Reply) -> ConfirmAnswer:
    """Return the parsed reply of CONFIRM."""
    return ConfirmAnswer(reply[0] == 1, _text(reply[1]) or None)


def parse_cancel(reply: Reply) -> CancelAnswer:
    """Return the parsed reply of CANCEL."""
    return CancelAnswer(CancelEffect(_text(reply[0])), _text(reply[1]))


def parse_glossary(reply: Reply) -> GlossaryAnswer:
    """Return the parsed reply of GLOSSARY."""
    return GlossaryAnswer(reply[0] == 1, _bytes(reply[1]) or None)


def parse_removal(reply: Reply) -> RemovalAnswer:
    """Return the parsed reply of RESET or FORGET."""
    return RemovalAnswer(reply[0] == 1, _text(reply[1]) or None)


def _text(value: bytes | str | int) -> str:
    """Decode a field tolerantly: another program may have written bytes that are not UTF-8."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _bytes(value: bytes | str | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
