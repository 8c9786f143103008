"""What a run over documents is asked to do."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from dragoman_schemas.jobs import Formality, MemoryUse, QualityLevel

Layout = Literal["folders", "suffix"]
OnFail = Literal["source", "best_effort", "fail"]

_WHAT_IS_FOUND: Final = (
    "columns", "fields", "keys", "in_place", "bilingual", "headings", "refresh", "encoding",
)  # fmt: skip
"""Members of Reading that change which segments a file has."""
IN_FLIGHT: Final = 20_000
"""Segments that are submitted and have no result yet: 312 jobs of 64.

Four engines of a small model hold 4,900 at once. All jobs in flight end at about the same time,
because workers serve them in rotation: with 5,000 hardly any would wait behind those engines. With
the echo engine both do the same (docs/explanation/benchmarks-host.md). No run on a GPU compared
them.
"""


class MissingGlossary(ValueError):
    """No glossary of this name is stored; the message names it."""


class NothingNamed(ValueError):
    """A name of `columns`, `fields` or `keys` that no document of the run has; the message says so.

    Nothing was submitted.
    """


@dataclass(frozen=True, slots=True)
class Translation:
    """How texts are translated: the fields of a job that are the same for all of them."""

    source_lang: str | None = None
    glossary: Mapping[str, str] = field(default_factory=dict)
    """Source term to target term; a job gets those that occur in it."""
    glossary_id: str | None = None
    """Name of a stored glossary."""
    notes: tuple[str, ...] = ()
    """What a person should know of these settings."""
    keep: tuple[str, ...] = ()
    """Texts that are copied through: `do_not_translate`."""
    formality: Formality | None = None
    instructions: tuple[str, ...] = ()
    profile: str | None = None
    quality: QualityLevel | None = None
    on_fail: OnFail = "source"
    """`source`: a failed segment keeps its source; `best_effort`: it gets the best answer;
    `fail`: a document with a failed segment is not written."""
    memory: MemoryUse | None = None
    engine: str | None = None
    """The engine on this host, where one was chosen: translations of others do not count."""

    def fields(self) -> dict[str, Any]:
        """Return the fields of a job, without its glossary."""
        given: dict[str, Any] = {
            "source_lang": self.source_lang,
            "glossary_id": self.glossary_id,
            "do_not_translate": list(self.keep) or None,
            "formality": self.formality,
            "instructions": list(self.instructions) or None,
            "profile": self.profile,
            "memory": self.memory,
        }
        # `fail` would make a dead letter of every job with a failed item.
        on_fail = "best_effort" if self.on_fail == "best_effort" else "source"
        quality = {"level": self.quality, "on_fail": on_fail}
        given["quality"] = {name: value for name, value in quality.items() if value is not None}
        return {name: value for name, value in given.items() if value is not None}

    def digest(self) -> str:
        """Return the hex digest of all that changes a translation.

        The memory is not part of it, nor are the terms of glossaries: a segment has its own.
        """
        fields = self.fields()
        fields.pop("memory", None)
        if self.engine is not None:
            fields["engine"] = self.engine
        return _digest(fields)


@dataclass(frozen=True, slots=True)
class Reading:
    """Which files are read, and what is translated in them."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    format: str | None = None
    """Name of the format of all files; default: by their names, places and first bytes."""
    formats: tuple[str, ...] = ()
    """`GLOB=NAME`: formats of files by name or path; the first that matches precedes `format`."""
    columns: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    """The column or member by whose value the report and the review name a row."""
    in_place: bool = False
    add: bool = False
    """JSONL: add members beside their sources."""
    bilingual: bool = False
    headings: bool = False
    refresh: bool = False
    """Also translate entries of PO and XLIFF that are translated already."""
    encoding: str | None = None
    """Of files that declare none and are not UTF-8; default: recognised."""
    site: str | None = None
    """The site of all Markdown, one of `sites.NAMES`; default: by the files around it."""

    def digest(self, *more: object) -> str:
        """Return the hex digest of all that changes which segments a file has; `more` is JSON."""
        own = [getattr(self, name) for name in _WHAT_IS_FOUND]
        later = [[list(self.ids), self.add]] if self.ids or self.add else []  # older digests stay
        return _digest([own, *more, *later])


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run: paths, target languages and the folder of the outputs."""

    paths: tuple[Path, ...]
    to: tuple[str, ...]
    """Normalised tags."""
    out: Path
    translation: Translation = Translation()
    reading: Reading = Reading()
    layout: Layout = "folders"
    """`folders`: DIR/de/path; `suffix`: DIR/path with `name.de.md`."""
    copy_others: bool = False
    """Copy files of no known format instead of skipping them."""
    in_flight: int = IN_FLIGHT
    overwrite: bool = False
    """Replace outputs that were changed by hand, or that no run wrote."""
    replace_poorer: bool = False
    """Also replace outputs that have translations which the new ones lack."""
    anchors: str = "auto"
    """How translations keep the ids of headings: one of `settings.CHOICES`."""
    links_fail: bool = False
    """Whether links to headings that a translation broke make the exit status 3."""
    cancel: bool = False
    """Cancel the jobs in flight if the run is stopped."""
    dry_run: bool = False
    rate: float | None = None
    """Of a dry run: texts per second of all workers."""
    price: float | None = None
    """Of a dry run: of a GPU for an hour, in any currency."""

    def reported_options(self) -> dict[str, Any]:
        """Return as JSON values the options that a person repeats a run with, without any text."""
        translation, reading = self.translation, asdict(self.reading)
        terms, keep = dict(translation.glossary), translation.keep
        reading["context"] = "headings" if reading.pop("headings") else "none"
        return {
            "to": list(self.to),
            "from": translation.source_lang,
            "layout": self.layout,
            "settings": translation.digest(),
            "profile": translation.profile,
            "quality": translation.quality,
            "on_fail": translation.on_fail,
            "memory": translation.memory,
            "formality": translation.formality,
            "instructions": len(translation.instructions),
            "glossary": translation.glossary_id,
            "glossary_file": {"terms": len(terms), "digest": _digest(terms)} if terms else None,
            "keep": {"texts": len(keep), "digest": _digest(keep)} if keep else None,
            "overwrite": self.overwrite,
            "replace_poorer": self.replace_poorer,
            "others": "copy" if self.copy_others else "skip",
            "anchors": self.anchors,
            "links_fail": self.links_fail,
            **{name: list(v) if isinstance(v, tuple) else v for name, v in reading.items()},
        }

    def writing_options(self) -> dict[str, Any]:
        """Return as JSON values what writing an output again needs; see `to_write_again`."""
        return {
            "layout": self.layout,
            "settings": self.translation.digest(),
            "source_lang": self.translation.source_lang,
            "on_fail": self.translation.on_fail,
            "anchors": self.anchors,
            "reading": asdict(self.reading),
        }


def to_write_again(out: Path, options: Mapping[str, Any]) -> RunRequest:
    """Return a request that writes the outputs in `out` as the one of these options did."""
    reading: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in options["reading"].items()
    }
    translation = Translation(source_lang=options["source_lang"], on_fail=options["on_fail"])
    return RunRequest(
        (), (), out, translation, Reading(**reading), options["layout"],
        anchors=options.get("anchors", "auto"),
    )  # fmt: skip


def _digest(value: object) -> str:
    spelled = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(spelled).hexdigest()[:32]


class Stop:
    """Ends a run: it submits nothing more, keeps what arrives within 5 s, and reports."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def __call__(self) -> None:
        """Stop the run. Call it in the thread of the event loop."""
        self.asked.set()
