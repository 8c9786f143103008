"""The `dragoman glossary add`, `list`, `show` and `remove` commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman_connections.terminal import counted
from dragoman_producer.cli import options
from dragoman_producer.cli.options import ConnectionOptions
from dragoman_producer.cli.terminal import (
    FAILURE,
    SUCCESS,
    USAGE_ERROR,
    place,
    plain,
    print_json,
    print_line,
    print_note,
    reported_interrupt,
    run,
)

if TYPE_CHECKING:
    from dragoman_producer.operations.glossaries import GlossaryStore, ReadGlossary, Written
    from dragoman_producer.operations.glossary_draft import Draft
    from dragoman_schemas.glossaries import GlossaryEntry, GlossaryMeta

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the glossary: what jobs give as glossary_id.")
]
To = Annotated[str | None, typer.Option("--to", metavar="LANG", help="Target language.")]


@dataclass(slots=True)
class _Merged:
    """The terms to store, and how many stored ones an added one replaced."""

    terms: dict[str, list[GlossaryEntry]]
    source_lang: str | None
    replaced: int = 0


def add(
    name: Name,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files in TSV, CSV or TMX.")
    ],
    *,
    source: Annotated[
        str | None, typer.Option("--from", metavar="LANG", help="Source language.")
    ] = None,
    to: To = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="Keep stored terms that are not in the files.")
    ] = False,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Store the terms in files as a glossary, replacing its contents.

    A table has a header of language tags, or two columns and --to. Nothing is stored if any line
    is invalid. Exit status 1: a file is invalid, or the glossary changed meanwhile.
    """
    from dragoman_producer.operations.glossary_files import (  # keeps --help fast
        Languages,
        read_glossary,
    )
    from dragoman_producer.operations.text_files import InvalidFile

    _check_name(name)
    languages = Languages(
        options.language("dragoman glossary", "--from", source),
        options.language("dragoman glossary", "--to", to),
    )
    try:
        with reported_interrupt():
            draft = read_glossary(files, languages)
    except InvalidFile as error:
        print_note(f"dragoman glossary add: {plain(error)}")
        raise typer.Exit(FAILURE) from None

    async def work(store: GlossaryStore) -> int:
        stored = await store.read(name)
        terms = await _merge(store, stored, draft) if merge else None
        terms = terms or _Merged(draft.entries(), draft.source_lang)
        written = await store.replace(name, stored, terms.source_lang, terms.terms)
        _report(name, draft, terms, written, as_json=as_json)
        return SUCCESS

    _with_store(work, ConnectionOptions(config, kafka, redis))


def list_glossaries(
    *,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print name, version, languages and number of terms of every glossary."""

    async def work(store: GlossaryStore) -> int:
        from dragoman_producer.operations.glossaries import GlossaryError  # keeps --help fast

        status = SUCCESS
        for name in await store.names():
            try:
                stored = await store.read(name)
            except GlossaryError as error:
                print_note(f"dragoman glossary list: {error}")
                status = FAILURE
                continue
            if stored is not None:
                _print_meta(name, stored.meta, as_json=as_json)
        return status

    _with_store(work, ConnectionOptions(config, kafka, redis))


def show(
    name: Name,
    *,
    to: To = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print the terms of a glossary: target language, term, translations and options."""
    _check_name(name)
    wanted = options.language("dragoman glossary", "--to", to)

    async def work(store: GlossaryStore) -> int:
        stored = await store.read(name)
        if stored is None:
            return _unknown("show", name)
        tags = list(stored.meta.counts)
        if wanted is not None:
            tags = _looked_up(wanted, tags)
        if not tags:
            known = ", ".join(stored.meta.counts) or "none"
            print_note(f"dragoman glossary show: {name} has no terms for {wanted}; it has {known}")
            return FAILURE
        for tag in tags:
            for entry in await store.terms(stored, tag):
                _print_entry(tag, entry, as_json=as_json)
        return SUCCESS

    _with_store(work, ConnectionOptions(config, kafka, redis))


def remove(
    name: Name,
    *,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Remove a glossary. Jobs that name it fail from then on as unknown_glossary."""
    _check_name(name)

    async def work(store: GlossaryStore) -> int:
        if not await store.remove(name):
            return _unknown("remove", name)
        if as_json:
            print_json({"glossary": name, "action": "removed"})
        else:
            print_line(f"{name}\tremoved")
        return SUCCESS

    _with_store(work, ConnectionOptions(config, kafka, redis))


def _with_store(
    work: Callable[[GlossaryStore], Awaitable[int]], connection: ConnectionOptions
) -> None:
    async def session() -> int:
        from dragoman_producer.operations.glossaries import GlossaryStore  # keeps --help fast

        store = GlossaryStore(connection.settings())
        try:
            return await work(store)
        finally:
            await store.close()

    run(session())


async def _merge(store: GlossaryStore, stored: ReadGlossary | None, draft: Draft) -> _Merged | None:
    """Return the stored terms with those of the draft; None if nothing is stored."""
    from dragoman_producer.operations.glossaries import GlossaryError, merged

    if stored is None:
        return None
    before, now = stored.meta.source_lang, draft.source_lang
    if before is not None and now is not None and before != now:
        raise GlossaryError(f"glossary {stored.name} is from {before}, the files are from {now}")
    result = _Merged({}, before or now)
    added = draft.entries()
    for tag in stored.meta.counts.keys() | added.keys():
        held = await store.terms(stored, tag) if tag in stored.meta.counts else []
        result.terms[tag], replaced = merged(held, added.get(tag, []))
        result.replaced += replaced
    return result


def _check_name(name: str) -> None:
    from dragoman_schemas.glossaries import GLOSSARY_NAME  # keeps --help fast

    if not GLOSSARY_NAME.fullmatch(name):
        print_note(
            f"dragoman glossary: {name[:60]!r} is not a name; give 1 to 128 of A-Z a-z 0-9 . _ : -"
        )
        raise typer.Exit(USAGE_ERROR)


def _looked_up(wanted: str, tags: list[str]) -> list[str]:
    from dragoman_schemas.languages import lookup_tags  # keeps --help fast

    return [tag for tag in lookup_tags(wanted) if tag in tags][:1]


def _unknown(command: str, name: str) -> int:
    print_note(
        f"dragoman glossary {command}: there is no glossary {name}; "
        "`dragoman glossary list` shows those that exist"
    )
    return FAILURE


# --- output ---------------------------------------------------------------------------------------


def _report(name: str, draft: Draft, terms: _Merged, written: Written, *, as_json: bool) -> None:
    from dragoman_producer.operations.glossary_draft import KINDS, MOST_LISTED

    action = "stored" if written.changed else "unchanged"
    if as_json:
        remarks = [asdict(one) for one in draft.remarks]
        found = {"action": action, "replaced": terms.replaced, "removed": list(written.removed)}
        more = {"remarks": dict(draft.counts), "lines": remarks}
        print_json(_meta_fields(name, written.meta) | found | more)
        return
    for one in draft.remarks:
        before = None if one.earlier_file is None else (one.earlier_file, one.earlier or 0)
        print_note(f"{place(one.file, one.line, before)}: {KINDS[one.kind]}")
    for kind, count in draft.counts.items():
        if count > MOST_LISTED:
            print_note(f"{counted(count - MOST_LISTED, 'more line')}: {KINDS[kind]}")
    if written.removed:
        print_note(f"{', '.join(written.removed)}: no longer in the glossary; --merge keeps them")
    if terms.replaced:
        print_note(f"{counted(terms.replaced, 'stored term')} now translated differently")
    print_line(f"{name}\t{action}\t{_summary(written.meta)}")


def _print_meta(name: str, meta: GlossaryMeta, *, as_json: bool) -> None:
    if as_json:
        print_json(_meta_fields(name, meta))
    else:
        print_line(f"{name}\t{_summary(meta)}\t{plain(meta.updated_at)}")


def _summary(meta: GlossaryMeta) -> str:
    counts = ", ".join(f"{plain(tag)} {count:,}" for tag, count in meta.counts.items())
    return f"version {meta.version}\t{plain(meta.source_lang or 'any')} -> {counts or 'none'}"


def _meta_fields(name: str, meta: GlossaryMeta) -> dict[str, Any]:
    return {"glossary": name} | meta.model_dump(mode="json")


def _print_entry(tag: str, entry: GlossaryEntry, *, as_json: bool) -> None:
    if as_json:
        print_json({"target_lang": tag, **entry._asdict()})
        return
    case = "case-sensitive" if entry.case_sensitive else ""
    cells = (tag, entry.source, " | ".join(entry.targets), case, entry.note or "")
    print_line("\t".join(map(plain, cells)).rstrip("\t"))
