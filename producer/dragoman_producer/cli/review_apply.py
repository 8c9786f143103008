"""Edits of a review applied: `dragoman review DIR --apply FILE`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from dragoman_connections.terminal import counted
from dragoman_producer.cli.terminal import (
    FAILURE,
    PARTIAL,
    SUCCESS,
    USAGE_ERROR,
    plain,
    print_json,
    print_line,
    print_note,
)

if TYPE_CHECKING:
    from dragoman_connections.settings import DragomanSettings
    from dragoman_producer.manifest.database import Manifest
    from dragoman_producer.review.applying import Applied, Applying
    from dragoman_producer.review.edits import Edits
    from dragoman_schemas.approved import ApprovedTranslation

_MOST_LISTED: Final = 20


def refused(why: str) -> typer.Exit:
    """Print why the command cannot be run; return the exception that ends it."""
    print_note(f"dragoman review: {why}")
    return typer.Exit(USAGE_ERROR)


def apply_files(
    manifest: Manifest, folder: Path, files: list[Path], *, as_json: bool
) -> tuple[int, list[ApprovedTranslation]]:
    """Apply the edits in files; return the exit status and the entries for the memory.

    Raises NoRun and typer.Exit.
    """
    from dragoman_producer.review.applying import Applying, missing

    applying = Applying(manifest, folder)
    read = [_read(path) for path in files]
    asyncio.run(_apply_all(applying, files, read))
    edits = [edit for each in read for edit in each.edits]
    lost = missing(edits, applying.applied)
    _print(applying.applied, lost, applying.report(), as_json=as_json)
    return _status(applying.applied, lost, len(edits)), applying.applied.entries


async def _apply_all(applying: Applying, files: list[Path], read: list[Edits]) -> None:
    from dragoman_producer.review.edits import BadEdits
    from dragoman_producer.runs.extracting import Children, MissingParser

    children = Children()
    try:
        langs = [applying.language(edits) for edits in read]
        for lang, edits in zip(langs, read, strict=True):
            await applying.apply(lang, edits.edits, children)
    except BadEdits as error:
        raise refused(f"{', '.join(map(str, files))}: {error}") from None
    except MissingParser as error:
        raise refused(str(error)) from None
    finally:
        await children.close()


def _read(path: Path) -> Edits:
    from dragoman_producer.review import edits, xliff

    try:
        content = path.read_bytes()
        parse = edits.parse if content.lstrip()[:1] in b"{[" else xliff.parse
        return parse(content)
    except edits.BadEdits as error:
        raise refused(f"{path}: {error}") from None
    except OSError as error:
        raise refused(f"{path}: {error.strerror}; give a readable file") from None


def _print(applied: Applied, lost: int, report: Path, *, as_json: bool) -> None:
    for each in applied.refused[:_MOST_LISTED]:
        place = f"{plain(each.document)}, segment {each.segment + 1}"
        print_note(f"dragoman review: {place}: {each.why}")
    if len(applied.refused) > _MOST_LISTED:
        print_note(f"dragoman review: {len(applied.refused) - _MOST_LISTED:,} more refused")
    if lost:
        print_note(f"dragoman review: {counted(lost, 'edit')} for segments that no longer exist")
    for ended in applied.unwritten:
        where = f"{plain(ended.path)} [{ended.target_lang}]"
        print_note(f"dragoman review: {where}: not written: {ended.reason} ({ended.detail})")
    counts = {
        "changed": applied.changed,
        "approved": applied.approved,
        "unchanged": applied.unchanged,
        "refused": len(applied.refused) + lost,
    }
    if as_json:
        print_json({**counts, "report": str(report)})
    else:
        print_line("\t".join(f"{count:,} {name}" for name, count in counts.items()))


def _status(applied: Applied, lost: int, total: int) -> int:
    bad = lost + len(applied.refused)
    if not bad:
        return PARTIAL if applied.unwritten else SUCCESS
    return FAILURE if bad == total else PARTIAL


async def stored(
    entries: Sequence[ApprovedTranslation], settings: DragomanSettings, status: int
) -> int:
    """Store entries in the approved memory; return the exit status, at least `status`.

    Raises StoreUnreachable and StoreRefused; repeating the command is safe.
    """
    from dragoman_producer.operations.memory import BATCH, MemoryStore, Outcome

    store = MemoryStore(settings)
    bad = 0
    try:
        for first in range(0, len(entries), BATCH):
            added = await store.add(entries[first : first + BATCH])
            if added.error is not None:
                raise added.error
            bad += sum(outcome is Outcome.BROKEN_KEY for outcome in added.outcomes)
    finally:
        await store.close()
    if bad:
        print_note(
            f"dragoman review: {counted(bad, 'text')} not stored: Redis keys of another program"
        )
    return max(status, PARTIAL) if bad else status
