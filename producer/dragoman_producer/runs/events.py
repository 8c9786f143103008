"""Events of a run over documents, for progress and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Status = Literal["done", "partial", "failed", "skipped", "unchanged"]


@dataclass(frozen=True, slots=True)
class Extracted:
    """One more file was read; `reason` is why it is not translated, None if it is."""

    path: str
    files: int
    """Files read so far."""
    segments: int
    """Segments found so far."""
    reason: str | None = None
    detail: str | None = None
    skipped: bool = False
    """Whether that is no failure: no format is known for its name, or it is a link."""


@dataclass(frozen=True, slots=True)
class SiteFound:
    """The site of some files, and how their translations keep links to headings."""

    site: str | None
    """None: nothing shows one."""
    config: str | None
    """The file or folder that shows it; None: the user named it."""
    anchors: str
    files: int = 0


@dataclass(frozen=True, slots=True)
class Planned:
    """All files are read. Numbers are sums over the target languages."""

    documents: int
    segments: int
    """Segments of the documents, repeats included."""
    unique: int
    missing: int
    """Unique segments without a translation: these are submitted."""
    characters: int
    """Characters of the missing segments."""
    seconds: float | None = None
    """Of a dry run: time that the missing segments take at the rate of earlier runs, if any."""
    sites: Sequence[SiteFound] = ()
    """What was found of the sites of files with headings, the most files first."""
    rows: int = 0
    """Of a dry run: rows of tables with a text."""
    budget: Mapping[str, Any] | None = None
    """Of a dry run: `budget.costs`."""


@dataclass(frozen=True, slots=True)
class Progressed:
    """Segments got their results."""

    segments: int
    """Unique segments with a result so far, of `Planned.missing`."""
    tokens: int
    """Tokens that the engine wrote so far."""


@dataclass(frozen=True, slots=True)
class Working:
    """A document has been read or written for a second or more, and is not done."""

    path: str
    target_lang: str
    """Empty while it is read."""
    done: str
    """What was done with `bytes` of it: `scanned`, `read` or `written`. A large table is scanned
    first, for what its columns hold."""
    bytes: int
    of: int
    """0: a document that is read or written at once, of which nothing more is known."""


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that a person should know of the run, in one line."""

    what: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The run waits: for Kafka or Redis until its patience ends, or for a first or next result.

    `why` is the reason in one line.
    """

    why: str


@dataclass(frozen=True, slots=True)
class DocumentEnded:
    """One document in one language has its final status of this run."""

    path: str
    target_lang: str
    status: Status
    reason: str | None = None
    detail: str | None = None
    output: Path | None = None
    is_new: bool = True
    """Whether this run wrote the output."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The run is over, and its report is written."""

    exit_status: int
    """0 all done, 1 nothing done, 3 some segment or document not done."""
    report: Path | None
    totals: Mapping[str, Any] = field(default_factory=dict)


Event = Noted | Extracted | Planned | Progressed | Working | Waiting | DocumentEnded | Finished
