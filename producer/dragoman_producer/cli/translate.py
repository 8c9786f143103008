"""The `dragoman translate` command: its options, and how they are understood."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman_producer.cli import in_box, options, translate_stdin
from dragoman_producer.cli.options import ConnectionOptions
from dragoman_producer.cli.translate_run import NAME, DocumentsRun, usage_error

_FORMATS = "Formats"
_TRANSLATION = "Translation"


def translate(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Files, folders, globs; - is stdin.")
    ],
    *,
    to: Annotated[str, typer.Option("--to", metavar="LANG,...", help="Target languages.")],
    out: Annotated[
        str | None, typer.Option("--out", metavar="DIR", help="Folder of the outputs.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="LANG", help="Source language; default: detected."),
    ] = None,
    layout: Annotated[
        str, typer.Option("--layout", help="folders: DIR/de/path; suffix: DIR/path, name.de.md.")
    ] = "folders",
    include: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Only files of these names or paths.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="No files of these names or paths.")
    ] = None,
    others: Annotated[
        str, typer.Option("--others", help="Files of no known format: skip or copy.")
    ] = "skip",
    format_name: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="[GLOB=]NAME",
            help="Format of all files, or of those of a name or path.",
            rich_help_panel=_FORMATS,
        ),
    ] = None,
    site: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Site generator whose Markdown it is; default: recognized by its configuration.",
            rich_help_panel=_FORMATS,
        ),
    ] = None,
    anchors: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="How Markdown keeps links to headings: auto, attributes, comment, html or none.",
            rich_help_panel=_FORMATS,
        ),
    ] = "auto",
    encoding: Annotated[
        str | None,
        typer.Option(
            help="Encoding of files that declare none and are not UTF-8; default: recognised.",
            rich_help_panel=_FORMATS,
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="CSV, TSV, Parquet: column to translate, name or number.",
            rich_help_panel=_FORMATS,
        ),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(
            help="JSONL: member to translate; a.b for a nested one.", rich_help_panel=_FORMATS
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="JSON, YAML: path to translate, as 'pages.*.title' or '**.label'. "
            "Front matter of Markdown: path to translate in addition.",
            rich_help_panel=_FORMATS,
        ),
    ] = None,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place", help="CSV, TSV, Parquet: replace columns.", rich_help_panel=_FORMATS
        ),
    ] = False,
    add: Annotated[
        bool,
        typer.Option(
            "--add",
            help="JSONL: add members such as description.de instead of replacing.",
            rich_help_panel=_FORMATS,
        ),
    ] = False,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Tables, JSONL: column or member that names a row in report and review.",
            rich_help_panel=_FORMATS,
        ),
    ] = None,
    bilingual: Annotated[
        bool,
        typer.Option(
            "--bilingual", help="Keep the source, add the target.", rich_help_panel=_FORMATS
        ),
    ] = False,
    refresh: Annotated[
        bool,
        typer.Option(
            "--refresh",
            help="PO, XLIFF, Qt TS, string catalogs: also entries that have a translation.",
            rich_help_panel=_FORMATS,
        ),
    ] = False,
    glossary: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Stored glossary, or a TSV, CSV or TMX file.",
            rich_help_panel=_TRANSLATION,
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Texts to leave alone, one per line.",
            rich_help_panel=_TRANSLATION,
        ),
    ] = None,
    formality: Annotated[
        str | None,
        typer.Option(
            help="Tone: more, less, prefer_more or prefer_less formal.",
            rich_help_panel=_TRANSLATION,
        ),
    ] = None,
    instructions: Annotated[
        list[str] | None,
        typer.Option(
            help="What the model should observe, such as 'Address the reader as du.'",
            rich_help_panel=_TRANSLATION,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(help="Prompt profile; default: the worker's.", rich_help_panel=_TRANSLATION),
    ] = None,
    quality: Annotated[
        str | None, typer.Option(help="Checks: off, basic or strict.", rich_help_panel=_TRANSLATION)
    ] = None,
    on_fail: Annotated[
        str,
        typer.Option(
            "--on-fail",
            help="Failed segments: source, best_effort, or fail the document.",
            rich_help_panel=_TRANSLATION,
        ),
    ] = "source",
    memory: Annotated[
        str | None,
        typer.Option(help="Translation memory: use, refresh or off.", rich_help_panel=_TRANSLATION),
    ] = None,
    context: Annotated[
        str,
        typer.Option(
            help="headings: send the headings above as context.", rich_help_panel=_TRANSLATION
        ),
    ] = "none",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace outputs that were changed by hand.")
    ] = False,
    replace_poorer: Annotated[
        bool,
        typer.Option(
            "--replace-poorer", help="Replace outputs even where translations would be lost."
        ),
    ] = False,
    links_fail: Annotated[
        bool,
        typer.Option("--links-fail", help="Exit with 3 if links to headings broke."),
    ] = False,
    in_flight: Annotated[
        int, typer.Option("--in-flight", min=1, help="Segments submitted at a time.")
    ] = 20_000,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Cancel jobs in flight on Ctrl-C or SIGTERM.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Translate nothing: show rows, texts, tokens, time and GPU-hours."
        ),
    ] = False,
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="TEXTS_PER_S",
            help="With --dry-run: texts per second of all workers; default: of earlier runs.",
        ),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(
            metavar="PER_HOUR", min=0, help="With --dry-run: price of one GPU for an hour."
        ),
    ] = None,
    model: in_box.Model = None,
    server: in_box.Server = None,
    engine: in_box.Engine = None,
    data: in_box.Data = None,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Translate files and folders into a mirrored folder, and write DIR/report.json.

    A second run costs only what has changed. Ctrl-C stops; the same command goes on. With - and
    --format, one document is read from stdin and written to stdout. With --model, --server or
    --engine it needs no service: it starts what it needs on this host, and stops it at the end.
    """
    given: dict[str, Any] = {
        "to": to,
        "source": source,
        "layout": layout,
        "others": others,
        "context": context,
        "glossary": glossary,
        "keep": keep,
        "formality": formality,
        "instructions": instructions,
        "profile": profile,
        "quality": quality,
        "on_fail": on_fail,
        "memory": memory,
        "include": include,
        "exclude": exclude,
        "format": format_name,
        "site": site,
        "anchors": anchors,
        "links_fail": links_fail,
        "encoding": encoding,
        "columns": column,
        "fields": field,
        "keys": key,
        "in_place": in_place,
        "add": add,
        "id": id_column,
        "bilingual": bilingual,
        "refresh": refresh,
        "overwrite": overwrite,
        "replace_poorer": replace_poorer,
        "in_flight": in_flight,
        "cancel": cancel,
        "dry_run": dry_run,
        "rate": rate,
        "price": price,
    }
    if (why := translate_stdin.refusal(paths, out, given, as_json=as_json)) is not None:
        raise usage_error(why)
    local = (model, server, engine)
    choice = in_box.chosen(NAME, local, profile) if any(local) else None
    if data is not None and choice is None:
        raise usage_error("--data is for --model, --server or --engine; give one of them")
    connection = ConnectionOptions(config, kafka, redis)
    documents = DocumentsRun(given, connection, choice, data)
    if out is None:
        documents.of_stdin()
    else:
        documents.of_paths([Path(path) for path in paths], Path(out), as_json=as_json)
