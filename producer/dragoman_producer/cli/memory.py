"""The `dragoman memory show`, `export` and `clear` commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_connections.terminal import counted
from dragoman_producer.cli import options
from dragoman_producer.cli.options import ConnectionOptions
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
    from dragoman_producer.operations.memory import MemoryStore, Tier
    from dragoman_schemas.approved import ApprovedTranslation

Source = Annotated[str | None, typer.Option("--from", metavar="LANG", help="Source language.")]
To = Annotated[str | None, typer.Option("--to", metavar="LANG", help="Target language.")]


class ExportFormat(StrEnum):
    """Formats of an export."""

    JSONL = "jsonl"
    TMX = "tmx"
    TSV = "tsv"


def show(
    *,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="TEXT", help="Print the approved translations of TEXT."),
    ] = None,
    source: Source = None,
    to: To = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print the size of the machine and the approved memory, or a text's approved translations."""
    wanted = _languages(source, to)
    if text is None and wanted != (None, None):
        raise _refused("show", "--from and --to select translations of --text; see memory export")
    if text is not None:
        options.check_utf8("dragoman memory show", "--text", text)

    async def work(store: MemoryStore) -> int:
        if text is not None:
            entries = [entry for entry in await store.find(text) if _selected(entry, *wanted)]
            for entry in entries:
                _print_entry(entry, as_json=as_json)
            if not entries:
                print_note("dragoman memory show: no approved translation of this text")
            return SUCCESS if entries else FAILURE
        _print_tier("machine", await store.machine(), as_json=as_json)
        _print_tier("approved", await store.approved(), as_json=as_json)
        return SUCCESS

    with_store(work, ConnectionOptions(config, kafka, redis))


def export(
    *,
    form: Annotated[
        ExportFormat | None,
        typer.Option("--format", metavar="jsonl|tmx|tsv", help="Format; default: jsonl."),
    ] = None,
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
    wanted = _languages(source, to)
    if as_json and form not in {None, ExportFormat.JSONL}:
        raise _refused("export", "--json prints jsonl; give either --json or --format")

    async def work(store: MemoryStore) -> int:
        from dragoman_producer.operations.memory_export import writer_of  # keeps --help fast

        writer = writer_of(form or ExportFormat.JSONL, print_line)
        unreadable = 0
        async for entry in store.entries():
            if entry is None:
                unreadable += 1
            elif _selected(entry, *wanted):
                writer.write(entry)
        writer.finish()
        if writer.left_out:
            print_note(
                f"dragoman memory export: {counted(writer.left_out, 'entry', 'entries')} left out: "
                f"{writer.cannot_hold}; use --format jsonl"
            )
        if unreadable:
            print_note(
                f"dragoman memory export: {counted(unreadable, 'entry', 'entries')} cannot be read"
            )
        return PARTIAL if writer.left_out or unreadable else SUCCESS

    with_store(work, ConnectionOptions(config, kafka, redis))


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
        raise _refused(
            "clear",
            "--approved deletes what people have approved, for good; save it with `dragoman memory "
            "export`, then add --yes",
        )

    async def work(store: MemoryStore) -> int:
        count = await store.clear(approved=approved)
        tier = "approved" if approved else "machine"
        if as_json:
            print_json({"tier": tier, "deleted": count})
        else:
            print_line(f"{tier}\t{count:,} deleted")
        return SUCCESS

    with_store(work, ConnectionOptions(config, kafka, redis))


# --- work -----------------------------------------------------------------------------------------


def with_store(
    work: Callable[[MemoryStore], Awaitable[int]],
    connection: ConnectionOptions,
    interrupted: Callable[[], str] = lambda: "",
) -> None:
    """Run a command's work and exit with its status; keys that are not hashes are reported."""

    async def session() -> int:
        from dragoman_producer.operations.memory import MemoryStore  # keeps --help fast

        store = MemoryStore(connection.settings())
        try:
            status = await work(store)
        finally:
            await store.close()
        for key in sorted(store.broken_keys):
            print_note(
                f"dragoman memory: the Redis key {plain(key)} is not a hash: another program wrote "
                "it; it was left out. Delete it, or set redis.key_prefix"
            )
        return PARTIAL if store.broken_keys and status == SUCCESS else status

    run(session(), interrupted)


def _languages(source: str | None, to: str | None) -> tuple[str | None, str | None]:
    command = "dragoman memory"
    return options.language(command, "--from", source), options.language(command, "--to", to)


def _refused(command: str, why: str) -> typer.Exit:
    print_note(f"dragoman memory {command}: {why}")
    return typer.Exit(USAGE_ERROR)


def _selected(entry: ApprovedTranslation, source: str | None, target: str | None) -> bool:
    return source in {None, entry.source_lang} and target in {None, entry.target_lang}


def _print_tier(name: str, tier: Tier, *, as_json: bool) -> None:
    if as_json:
        print_json({"tier": name, "entries": tier.entries, "bytes": tier.size})
    else:
        size = "" if tier.size is None else f"\t{tier.size:,} bytes"
        print_line(f"{name}\t{counted(tier.entries, 'translation')}{size}")


def _print_entry(entry: ApprovedTranslation, *, as_json: bool) -> None:
    from dragoman_producer.operations.memory import fields_of  # keeps --help fast

    if as_json:
        print_json(fields_of(entry))
        return
    languages = f"{entry.source_lang or 'any'} -> {entry.target_lang}"
    cells = (languages, entry.source, entry.target, entry.context or "")
    print_line("\t".join(map(plain, cells)).rstrip("\t"))
