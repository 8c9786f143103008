"""The `dragoman memory show`, `import`, `export` and `clear` commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dragoman_producer.cli import options
from dragoman_producer.cli.meter import meter
from dragoman_producer.cli.options import Connection
from dragoman_producer.cli.terminal import (
    FAILURE,
    PARTIAL,
    SUCCESS,
    USAGE_ERROR,
    plain,
    print_json,
    print_line,
    print_note,
    run,
)

if TYPE_CHECKING:
    from dragoman_producer.operations.memory import Added, MemoryStore, Seen
    from dragoman_producer.operations.memory_files import Row
    from dragoman_schemas.approved import ApprovedTranslation

_MOST_LISTED: Final = 20
"""Lines of one kind that are printed; all are counted."""

Source = Annotated[str | None, typer.Option("--from", metavar="LANG", help="Source language.")]
To = Annotated[str | None, typer.Option("--to", metavar="LANG", help="Target language.")]


class Format(StrEnum):
    """Formats of an export."""

    JSONL = "jsonl"
    TMX = "tmx"
    TSV = "tsv"


@dataclass(slots=True)
class _Import:
    """What an import has done so far."""

    added: Added
    as_json: bool
    counts: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    complete: bool = True

    def problem(self, row: Row, kind: str, earlier: int | None = None) -> None:
        """Count a row that was not imported, and print the first ones of its kind."""
        from dragoman_producer.operations.memory_files import KINDS  # keeps --help fast

        self.counts[kind] += 1
        if self.counts[kind] <= _MOST_LISTED:
            before = "" if earlier is None else f" (line {earlier:,})"
            print_note(f"{plain(row.path)}, line {row.line:,}{before}: {KINDS[kind]}")

    def report(self) -> int:
        """Print what was done; return the exit status."""
        from dragoman_producer.operations.memory_files import DUPLICATE, EMPTY, KINDS

        for kind, count in self.counts.items():
            if count > _MOST_LISTED:
                print_note(f"{count - _MOST_LISTED:,} more lines: {KINDS[kind]}")
        counts = asdict(self.added)
        if self.as_json:
            print_json({**counts, "problems": dict(self.counts), "complete": self.complete})
        else:
            print_line("\t".join(f"{count:,} {name}" for name, count in counts.items()))
        refused = sum(self.counts.values()) - self.counts[EMPTY] - self.counts[DUPLICATE]
        if not any(counts.values()):
            return FAILURE
        return PARTIAL if refused or not self.complete else SUCCESS


def import_files(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help=".tmx, .tsv, .csv or .jsonl.")
    ],
    *,
    source: Source = None,
    to: To = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Store the translations of files as approved: items with these texts are not generated.

    Repeating an import is safe. Lines that cannot be imported are named. Exit status 3: some were,
    1: nothing was imported.
    """
    languages = _language("--from", source), _language("--to", to)
    done: list[_Import] = []

    async def work(store: MemoryStore) -> int:
        from dragoman_producer.operations.glossary_files import Languages  # keeps --help fast
        from dragoman_producer.operations.memory import Added, Seen
        from dragoman_producer.operations.text_files import InvalidFile

        state = _Import(Added(), as_json)
        done.append(state)
        with closing(Seen()) as seen:
            for path in files:
                try:
                    await _import_file(store, path, Languages(*languages), seen, state)
                except InvalidFile as error:
                    print_note(f"dragoman memory import: {error}")
                    state.complete = False
        return state.report()

    def interrupted() -> str:
        stored = sum(asdict(done[0].added).values()) if done else 0
        return f"; imported so far: {stored:,} (repeating the command is safe)"

    _with_store(work, Connection(config, kafka, redis), interrupted)


def show(
    *,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Print TEXT's translations.")
    ] = None,
    source: Source = None,
    to: To = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print entries and bytes of both tiers, or the approved translations of one text."""
    wanted = _language("--from", source), _language("--to", to)

    async def work(store: MemoryStore) -> int:
        if text is not None:
            entries = [entry for entry in await store.find(text) if _selected(entry, *wanted)]
            for entry in entries:
                _print_entry(entry, as_json=as_json)
            if not entries:
                print_note("dragoman memory show: no approved translation of this text")
            return SUCCESS if entries else FAILURE
        for name, tier in (
            ("machine", await store.machine()),
            ("approved", await store.approved()),
        ):
            if as_json:
                print_json({"tier": name, "entries": tier.entries, "bytes": tier.size})
            else:
                size = "" if tier.size is None else f"\t{tier.size:,} bytes"
                print_line(f"{name}\t{tier.entries:,} translations{size}")
        return SUCCESS

    _with_store(work, Connection(config, kafka, redis))


def export(
    *,
    form: Annotated[Format, typer.Option("--format", help="Format.")] = Format.JSONL,
    source: Source = None,
    to: To = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print the approved translations, which `import` reads again.

    Exit status 3: entries that the format cannot hold, or that are unreadable, were left out.
    """
    wanted = _language("--from", source), _language("--to", to)

    async def work(store: MemoryStore) -> int:
        from dragoman_producer.operations.memory_export import writer_of  # keeps --help fast

        writer = writer_of(Format.JSONL if as_json else form, print_line)
        unreadable = 0
        async for entry in store.entries():
            if entry is None:
                unreadable += 1
            elif _selected(entry, *wanted):
                writer.write(entry)
        writer.finish()
        if writer.left_out:
            print_note(
                f"dragoman memory export: {writer.left_out:,} entries left out: TMX holds neither "
                "contexts, missing source languages nor control characters; use --format jsonl"
            )
        if unreadable:
            print_note(f"dragoman memory export: {unreadable:,} entries are unreadable")
        return PARTIAL if writer.left_out or unreadable else SUCCESS

    _with_store(work, Connection(config, kafka, redis))


def clear(
    *,
    approved: Annotated[
        bool, typer.Option("--approved", help="Delete the approved ones instead; needs --yes.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm --approved.")] = False,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Delete the machine's translations; they are generated again when they are needed."""
    if approved and not yes:
        print_note(
            "dragoman memory clear: --approved deletes what people have approved, for good; "
            "save it with `dragoman memory export`, then add --yes"
        )
        raise typer.Exit(USAGE_ERROR)

    async def work(store: MemoryStore) -> int:
        count = await store.clear(approved=approved)
        tier = "approved" if approved else "machine"
        if as_json:
            print_json({"tier": tier, "deleted": count})
        else:
            print_line(f"{tier}\t{count:,} deleted")
        return SUCCESS

    _with_store(work, Connection(config, kafka, redis))


# --- work -----------------------------------------------------------------------------------------


async def _import_file(
    store: MemoryStore, path: Path, languages: Any, seen: Seen, state: _Import
) -> None:
    """Import a file in batches, as it is read. Raises InvalidFile after what came before."""
    from dragoman_producer.operations.memory import BATCH  # keeps --help fast
    from dragoman_producer.operations.memory_files import read_memory
    from dragoman_producer.operations.text_files import InvalidFile
    from dragoman_schemas.approved import ApprovedTranslation

    rows, invalid, reads = read_memory(path, languages), None, True
    with meter() as progress:
        while reads:
            before, batch = state.rows, list[ApprovedTranslation]()
            try:
                for row in islice(rows, BATCH):
                    state.rows += 1
                    _judge(row, seen, state, batch)
            except InvalidFile as error:
                invalid = error
            if batch:
                state.added += await store.add(batch)
            progress(path.name, state.rows, state.rows + 1)
            reads = invalid is None and state.rows == before + BATCH
    if invalid is not None:
        raise invalid


def _judge(row: Row, seen: Seen, state: _Import, batch: list[ApprovedTranslation]) -> None:
    """Add the row to the batch, or report why it is not imported."""
    if row.translation is None:
        state.problem(row, row.problem or "invalid")
    elif (problem := seen.judge(row)) is not None:
        state.problem(row, *problem)
    else:
        batch.append(row.translation)


def _with_store(
    work: Callable[[MemoryStore], Awaitable[int]],
    connection: Connection,
    interrupted: Callable[[], str] = lambda: "",
) -> None:
    async def session() -> int:
        from dragoman_producer.operations.memory import MemoryStore  # keeps --help fast

        store = MemoryStore(connection.settings())
        try:
            return await work(store)
        finally:
            await store.close()

    run(session(), interrupted)


def _language(option: str, tag: str | None) -> str | None:
    from dragoman_schemas.languages import UnknownLanguage, normalise  # keeps --help fast

    try:
        return None if tag is None else normalise(tag)
    except UnknownLanguage as error:
        print_note(f"dragoman memory: {option}: {error}")
        raise typer.Exit(USAGE_ERROR) from None


def _selected(entry: ApprovedTranslation, source: str | None, target: str | None) -> bool:
    return source in {None, entry.source_lang} and target in {None, entry.target_lang}


def _print_entry(entry: ApprovedTranslation, *, as_json: bool) -> None:
    from dragoman_producer.operations.memory import fields_of  # keeps --help fast

    if as_json:
        print_json(fields_of(entry))
        return
    languages = f"{entry.source_lang or 'any'} -> {entry.target_lang}"
    cells = (languages, entry.source, entry.target, entry.context or "")
    print_line("\t".join(map(plain, cells)).rstrip("\t"))
