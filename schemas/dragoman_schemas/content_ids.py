"""Content ids: job ids that follow from what a job asks for, so that equal jobs are one job."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import rfc8785

LINE_PREFIX: Final = "line."
"""Of lines of a file of jobs that have no id."""
_DIGITS: Final = 40


def content_id(
    prefix: str, fingerprint: str, *, scope: str = "", glossary: str | None = None
) -> str:
    """Return the id of a job with this fingerprint.

    `scope` keeps the jobs of several users apart; `glossary` is the digest of the stored glossary
    that the job names, so that a changed glossary makes another job.
    """
    content = rfc8785.dumps([scope, fingerprint, glossary])
    return prefix + sha256(content).hexdigest()[:_DIGITS]
