"""Key of the machine tier: equal keys mean that the engine would be asked for the same answer."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from operator import attrgetter
from typing import Final

from dragoman_schemas.jobs import QualityLevel
from dragoman_text.terms import Term
from dragoman_worker.ports import Decoding

KEY_VERSION: Final = 2
"""Raise it when cleaning, remedies or gates change so that stored answers must not be used.

Version 1 remembered refusals and untranslated sentences that the gates of its time found to be ok.
"""

_OTHERWISE: Final = frozenset({"max_tokens", "adapter"})
"""An answer that reached its end does not depend on how long it might have been. The adapter is a
path, which differs between machines: what its files hold is part of the engine's identity, and a
worker has one adapter at most."""
# All other fields, whatever fields are added.
_decoding: Final = attrgetter(
    *sorted(field.name for field in fields(Decoding) if field.name not in _OTHERWISE)
)


@dataclass(frozen=True, slots=True)
class Question:
    """All of one request that changes the answer, or the verdict that is stored with it."""

    engine: str
    """`Engine.identity`."""
    profile: str
    """Name of the profile, and a hash of its definition if a file gives it."""
    prompt_ids: Sequence[int]
    """Of the first attempt; each 0 to 2**63 - 1."""
    decoding: Decoding
    """Of the first attempt."""
    source: str
    """The text inside the prompt: echo's token ids do not depend on it, and cleaning does."""
    target_lang: str
    source_lang: str | None
    """Given or detected with confidence."""
    level: QualityLevel
    token_style: str
    """Of remedies: an answer that was asked for with tokens depends on how they are spelled."""
    protected: tuple[str, ...] = ()
    """Literals of `protect` and `do_not_translate` that occur in the source."""
    words: tuple[str, ...] = ()
    """Those of `do_not_translate`: the gates count them as whole words."""
    terms: tuple[Term, ...] = ()
    """Glossary entries that occur in the source, also if the profile's prompt takes none."""
    max_chars: int | None = None
    """Of the item; None for a piece of one."""


def memory_key(question: Question) -> bytes:
    """Return the SHA-256 (32 bytes) of the question.

    The members form a JSON list, which no two questions share; its length comes first, then the
    token ids follow as 8 bytes each.
    """
    members = json.dumps(_members(question)).encode()
    digest = sha256(len(members).to_bytes(8, "big"))
    digest.update(members)
    digest.update(array("q", question.prompt_ids).tobytes())
    return digest.digest()


def _members(question: Question) -> list[object]:
    return [
        KEY_VERSION,
        question.engine,
        question.profile,
        (False, *_decoding(question.decoding)),  # of a field that is gone: keys stay as they were
        bool(question.decoding.adapter),
        question.source,
        question.target_lang,
        question.source_lang,
        question.level,
        question.token_style,
        question.protected,
        question.words,
        [(term.source, term.targets, term.case_sensitive) for term in question.terms],
        question.max_chars,
    ]
