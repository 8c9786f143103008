"""Which scripts change a job's key in Redis? Their text, arguments and replies (contract, 3).

Call them as ``evalsha(script.sha1, 1, key, *args)``, and with ``eval(script.text, ...)`` when the
server answers NOSCRIPT. All may be repeated: a repetition changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from hashlib import sha1
from importlib.resources import files
from typing import Final


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script on one key, and the digest under which Redis knows it."""

    name: str
    text: str
    sha1: str


def _load(name: str) -> Script:
    text = files("dragoman_schemas.scripts").joinpath(f"{name}.lua").read_text(encoding="utf-8")
    return Script(name, text, sha1(text.encode(), usedforsecurity=False).hexdigest())


STUB: Final = _load("stub")
CLAIM: Final = _load("claim")
RELEASE: Final = _load("release")
FINISH: Final = _load("finish")
CONFIRM: Final = _load("confirm")
CANCEL: Final = _load("cancel")
SCRIPTS: Final = (STUB, CLAIM, RELEASE, FINISH, CONFIRM, CANCEL)

SUSPECT_AFTER: Final = 2
"""Other outstanding takes of the same record that make it a suspect."""


class Verdict(StrEnum):
    """What a take answers; only ``run`` changes the key."""

    RUN = "run"
    DONE = "done"
    CONFLICT = "conflict"
    CANCEL = "cancel"
    SUSPECT = "suspect"
    POISONED = "poisoned"


class Quarantine(IntEnum):
    """How few others are in the engine with a job that is claimed.

    ``COHORT``: other suspects only, up to the square root of their number. ``BY_ITSELF``: nobody.
    """

    NONE = 0
    COHORT = 1
    BY_ITSELF = 2

    @classmethod
    def wanted(cls, suspicions: int) -> Quarantine:
        """The quarantine in which a record of so many suspicions may run."""
        if suspicions < SUSPECT_AFTER:
            return cls.NONE
        return cls.COHORT if suspicions == SUSPECT_AFTER else cls.BY_ITSELF


class CancelEffect(StrEnum):
    """What a cancel did: the job is cancelled, its abort is requested, or it had ended before."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class StubAnswer:
    """``written``: there was no key. ``status``: what stands now."""

    written: bool
    status: str


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """The verdict, and what the key holds after it; ``replays`` is what ``finish`` must be given.

    Times are None where the key holds none. ``result`` is there with ``done``, if it was wanted.
    ``suspicions``, with ``suspect`` and ``poisoned``: the other outstanding takes of the record.
    """

    verdict: Verdict
    deliveries: int
    replays: int
    queued_at: str | None
    started_at: str | None
    status: str | None
    result: bytes | None
    suspicions: int = 0


@dataclass(frozen=True, slots=True)
class ReleaseAnswer:
    """``removed``: the take was outstanding. ``status``: what stands now, None without a key."""

    removed: bool
    status: str | None


@dataclass(frozen=True, slots=True)
class FinishAnswer:
    """``written``: this terminal state is the one that stands; else ``status`` names the other.

    ``owned`` is false if the key belongs to another payload. Not written, owned and not terminal:
    a replay took over. ``result`` is the one that stands in an owned terminal key.
    """

    written: bool
    status: str | None
    replays: int
    owned: bool = True
    result: bytes | None = None


@dataclass(frozen=True, slots=True)
class ConfirmAnswer:
    """``written``: the key has a status, which was written once more. ``status``: what stands."""

    written: bool
    status: str | None


@dataclass(frozen=True, slots=True)
class CancelAnswer:
    """What the cancel did, and the status that stands now."""

    effect: CancelEffect
    status: str


def stub_args(*, queued_at: str, live_ttl_ms: int) -> list[str | bytes]:
    """Arguments of STUB; times in RFC 3339."""
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
    """Arguments of TAKE; ``place`` is ``topic/partition/offset``, times in RFC 3339."""
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
    """Arguments of RELEASE."""
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
    """Arguments of FINISH; ``replays`` and ``deliveries`` as the take answered them."""
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
    """Arguments of CONFIRM: none."""
    return []


def cancel_args(*, now: str, live_ttl_ms: int, result: bytes) -> list[str | bytes]:
    """Arguments of CANCEL; ``result`` is the minimal result of a job that never ran."""
    return [now, str(live_ttl_ms), result]


Reply = Sequence[bytes | str | int]
"""What Redis answers, whether the connection decodes responses or not."""


def parse_stub(reply: Reply) -> StubAnswer:
    """The reply of STUB."""
    return StubAnswer(reply[0] == 1, _text(reply[1]))


def parse_claim(reply: Reply) -> ClaimAnswer:
    """The reply of TAKE."""
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
    )


def parse_release(reply: Reply) -> ReleaseAnswer:
    """The reply of RELEASE."""
    return ReleaseAnswer(reply[0] == 1, _text(reply[1]) or None)


def parse_finish(reply: Reply) -> FinishAnswer:
    """The reply of FINISH."""
    written, status, replays, owned, result = reply
    return FinishAnswer(
        written == 1, _text(status) or None, int(replays), owned == 1, _bytes(result) or None
    )


def parse_confirm(reply: Reply) -> ConfirmAnswer:
    """The reply of CONFIRM."""
    return ConfirmAnswer(reply[0] == 1, _text(reply[1]) or None)


def parse_cancel(reply: Reply) -> CancelAnswer:
    """The reply of CANCEL."""
    return CancelAnswer(CancelEffect(_text(reply[0])), _text(reply[1]))


def _text(value: bytes | str | int) -> str:
    """Fields that another program wrote may be no UTF-8: that spoils no reply."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _bytes(value: bytes | str | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
