"""The `dragoman memory import` command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dragoman_connections.terminal import counted
from dragoman_producer.cli import options
from dragoman_producer.cli.memory import Source, To, with_store
from dragoman_producer.cli.options import ConnectionOptions
from dragoman_producer.cli.terminal import (
    FAILURE,
    PARTIAL,
    SUCCESS,
    interruptible,
    meter,
    place,
    plain,
    print_json,
    print_line,
    print_note,
)

if TYPE_CHECKING:
    from dragoman_producer.operations.glossary_files import Languages
    from dragoman_producer.operations.memory import EarlierRows, MemoryStore, Outcome
    from dragoman_producer.operations.memory_files import MemoryRow, RefusedLine
    from dragoman_schemas.approved import ApprovedTranslation

_MOST_LISTED: Final = 20
"""Lines of one kind that are printed; all are counted."""
_MOST_BATCH_CHARACTERS: Final = 2 * 1024 * 1024
"""Texts of one batch, which is in memory several times, as rows, commands and bytes."""


@dataclass(slots=True)
class _Import:
    """What an import has done so far."""

    as_json: bool
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    complete: bool = True

    def problem(self, refused: RefusedLine, earlier: tuple[Path, int] | None = None) -> None:
        """Count a row that was not imported, and print the first ones of its kind."""
        from dragoman_producer.operations.memory_files import KINDS  # keeps --help fast

        kind = refused.problem
        self.problems[kind] += 1
        if self.problems[kind] <= _MOST_LISTED:
            why = plain(refused.detail or KINDS[kind])
            print_note(f"{place(refused.path, refused.line, earlier)}: {why}")

    def stored(self) -> dict[str, int]:
        """Return the entries that are in Redis by what the import changed."""
        from dragoman_producer.operations.memory import Outcome  # keeps --help fast

        kept = (Outcome.NEW, Outcome.REPLACED, Outcome.UNCHANGED)
        return {outcome.value: self.outcomes[outcome] for outcome in kept}

    def report(self) -> int:
        """Print what was done; return the exit status."""
        from dragoman_producer.operations.memory_files import DUPLICATE, EMPTY, KINDS

        for kind, count in self.problems.items():
            if count > _MOST_LISTED:
                print_note(f"{counted(count - _MOST_LISTED, 'more line')}: {KINDS[kind]}")
        counts = self.stored()
        if self.as_json:
            print_json({**counts, "problems": dict(self.problems), "complete": self.complete})
        else:
            print_line("\t".join(f"{count:,} {name}" for name, count in counts.items()))
        refused = sum(self.problems.values()) - self.problems[EMPTY] - self.problems[DUPLICATE]
        if not any(counts.values()):
            return FAILURE
        return PARTIAL if refused or not self.complete else SUCCESS


def import_files(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files in TMX, TSV, CSV or JSONL.")
    ],
    *,
    source: Source = None,
    to: To = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Store the translations in files as approved; jobs with these texts reuse them.

    Repeating an import is safe. Lines that cannot be imported are named. Exit status 3: some were,
    1: nothing was imported.
    """
    command = "dragoman memory"
    given = options.language(command, "--from", source), options.language(command, "--to", to)
    state = _Import(as_json)
    connection = ConnectionOptions(config, kafka, redis)

    async def work(store: MemoryStore) -> int:
        from dragoman_producer.errors import DragomanError  # keeps --help fast
        from dragoman_producer.operations.glossary_files import Languages

        try:
            await _import_all(store, files, Languages(*given), state)
        except DragomanError as error:
            if not any(state.stored().values()):
                raise
            state.complete = False
            print_note(
                f"dragoman memory import: {error}. Run the command again afterwards: what is "
                "stored counts as unchanged"
            )
        await _note_memory_off(connection)
        return state.report()

    def interrupted() -> str:
        stored = sum(state.stored().values())
        return f"; imported so far: {stored:,} (repeating the command is safe)"

    with_store(work, connection, interrupted)


async def _note_memory_off(connection: ConnectionOptions) -> None:
    """Tell the user if live workers do not read what was imported."""
    from dragoman_producer.operations.workers import live_workers  # keeps --help fast

    off = [
        each.replica for each in await live_workers(connection.settings()) if not each.has_memory
    ]
    if off:
        print_note(
            f"dragoman memory import: {plain(off[0])} has its memory off and will not use these "
            "translations; set memory.enabled = true for it (off by default with the echo engine)"
        )


async def _import_all(
    store: MemoryStore, files: list[Path], languages: Languages, state: _Import
) -> None:
    from dragoman_producer.operations.memory import EarlierRows  # keeps --help fast
    from dragoman_producer.operations.text_files import InvalidFile

    with closing(EarlierRows()) as seen, meter() as progress:
        for path in files:
            try:
                batches = _batches(path, languages, seen, state)
                while (batch := _next(batches)) is not None:
                    await _store(store, batch, state)
                    progress(path.name, state.rows, state.rows + 1)
            except InvalidFile as error:
                print_note(f"dragoman memory import: {plain(error)}")
                state.complete = False


def _next(batches: Iterator[list[MemoryRow]]) -> list[MemoryRow] | None:
    with interruptible():
        return next(batches, None)


def _batches(
    path: Path, languages: Languages, seen: EarlierRows, state: _Import
) -> Iterator[list[MemoryRow]]:
    """Yield the rows to store as the file is read. Raises InvalidFile after those before."""
    from dragoman_producer.operations.memory import BATCH  # keeps --help fast
    from dragoman_producer.operations.memory_files import read_memory
    from dragoman_producer.operations.text_files import InvalidFile

    batch: list[MemoryRow] = []
    before, characters = state.rows, 0
    invalid: InvalidFile | None = None
    try:
        for row in read_memory(path, languages):
            state.rows += 1
            if (new := _new(row, seen, state)) is not None:
                batch.append(new)
                characters += _length(new.translation)
            if state.rows % BATCH == 0 or characters > _MOST_BATCH_CHARACTERS:
                yield batch
                batch, characters = [], 0
    except InvalidFile as error:
        invalid = error
    yield batch
    if invalid is None and state.rows == before:
        invalid = InvalidFile(path, None, "no translation is in the file")
    if invalid is not None:
        raise invalid


def _new(row: MemoryRow | RefusedLine, seen: EarlierRows, state: _Import) -> MemoryRow | None:
    """Return the row if it is to be stored; report why not."""
    from dragoman_producer.operations.memory_files import RefusedLine  # keeps --help fast

    if isinstance(row, RefusedLine):
        state.problem(row)
        return None
    if (found := seen.judge(row)) is None:
        return row
    kind, path, line = found
    state.problem(RefusedLine(row.path, row.line, kind), (path, line))
    return None


async def _store(store: MemoryStore, batch: list[MemoryRow], state: _Import) -> None:
    """Store a batch and count what became of it. Raises StoreRefused and StoreUnreachable."""
    from dragoman_producer.operations.memory import Outcome  # keeps --help fast
    from dragoman_producer.operations.memory_files import KEY, RefusedLine

    if not batch:
        return
    added = await store.add([row.translation for row in batch])
    state.outcomes.update(added.outcomes)
    for row, outcome in zip(batch, added.outcomes, strict=True):
        if outcome is Outcome.BROKEN_KEY:
            state.problem(RefusedLine(row.path, row.line, KEY))
    if added.error is not None:
        raise added.error


def _length(entry: ApprovedTranslation) -> int:
    return len(entry.source) + len(entry.target) + len(entry.context or "")
