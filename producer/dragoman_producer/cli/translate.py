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
        list[str], typer.Argument(metavar="PATH", help="Files, folders or globs; - reads stdin.")
    ],
    *,
    to: Annotated[
        str, typer.Option("--to", metavar="LANG,...", help="Target languages, such as de,fr.")
    ],
    out: Annotated[
        str | None, typer.Option("--out", metavar="DIR", help="Folder for the translations.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="LANG", help="Source language; default: detect it."),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            "--layout",
            metavar="folders|suffix",
            help="Where a translation goes: DIR/de/name.md, or DIR/name.de.md.",
        ),
    ] = "folders",
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Translate only files that match GLOB; repeatable."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Skip files that match GLOB; repeatable."),
    ] = None,
    others: Annotated[
        str,
        typer.Option(
            "--others", metavar="skip|copy", help="What to do with files of unsupported formats."
        ),
    ] = "skip",
    format_name: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="[GLOB=]NAME",
            help="Format of all files, or of those that match GLOB.",
            rich_help_panel=_FORMATS,
        ),
    ] = None,
    site: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Site generator, such as hugo; default: recognized by its configuration.",
            rich_help_panel=_FORMATS,
        ),
    ] = None,
    anchors: Annotated[
        str,
        typer.Option(
            metavar="auto|attributes|comment|html|none",
            help="How links to Markdown headings keep working.",
            rich_help_panel=_FORMATS,
        ),
    ] = "auto",
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Fallback encoding, such as cp1252; default: detect it.",
            rich_help_panel=_FORMATS,
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="CSV, TSV, Parquet: column to translate, by name or number; repeatable.",
            rich_help_panel=_FORMATS,
        ),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEMBER",
            help="JSONL: member to translate, a.b for a nested one; repeatable.",
            rich_help_panel=_FORMATS,
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="JSON, YAML, front matter of Markdown: path to translate, such as "
            "'pages.*.title' or '**.label'; repeatable.",
            rich_help_panel=_FORMATS,
        ),
    ] = None,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place",
            help="CSV, TSV, Parquet: replace the columns instead of adding some.",
            rich_help_panel=_FORMATS,
        ),
    ] = False,
    add: Annotated[
        bool,
        typer.Option(
            "--add",
            help="JSONL: add members such as description.de instead of replacing them.",
            rich_help_panel=_FORMATS,
        ),
    ] = False,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Tables, JSONL: column or member that identifies a row in report and review.",
            rich_help_panel=_FORMATS,
        ),
    ] = None,
    bilingual: Annotated[
        bool,
        typer.Option(
            "--bilingual",
            help="Keep the source text and add the translation.",
            rich_help_panel=_FORMATS,
        ),
    ] = False,
    refresh: Annotated[
        bool,
        typer.Option(
            "--refresh",
            help="PO, XLIFF, Qt TS, string catalogs: also translate entries that are translated.",
            rich_help_panel=_FORMATS,
        ),
    ] = False,
    glossary: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="A stored glossary, or a TSV, CSV or TMX file.",
            rich_help_panel=_TRANSLATION,
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of terms that must stay as they are, one per line.",
            rich_help_panel=_TRANSLATION,
        ),
    ] = None,
    formality: Annotated[
        str | None,
        typer.Option(
            metavar="default|more|less|prefer_more|prefer_less",
            help="How formal the translation is; prefer_ lets languages without the choice pass.",
            rich_help_panel=_TRANSLATION,
        ),
    ] = None,
    instructions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Instruction for the model, such as 'Use short sentences.'; repeatable.",
            rich_help_panel=_TRANSLATION,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Prompt profile; default: the worker's.",
            rich_help_panel=_TRANSLATION,
        ),
    ] = None,
    quality: Annotated[
        str | None,
        typer.Option(
            metavar="off|basic|strict",
            help="How strictly translations are checked; default: the worker's.",
            rich_help_panel=_TRANSLATION,
        ),
    ] = None,
    on_fail: Annotated[
        str,
        typer.Option(
            "--on-fail",
            metavar="source|best_effort|fail",
            help="A segment that fails the checks: keep the source text, use the best attempt, or "
            "don't write the document.",
            rich_help_panel=_TRANSLATION,
        ),
    ] = "source",
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="use|refresh|off",
            help="Translation memory: reuse translations, replace them, or leave them out.",
            rich_help_panel=_TRANSLATION,
        ),
    ] = None,
    context: Annotated[
        str,
        typer.Option(
            metavar="none|headings",
            help="Context for the model: none, or the headings above a text.",
            rich_help_panel=_TRANSLATION,
        ),
    ] = "none",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace outputs that someone has edited.")
    ] = False,
    replace_poorer: Annotated[
        bool,
        typer.Option("--replace-poorer", help="Replace outputs even if that loses translations."),
    ] = False,
    links_fail: Annotated[
        bool,
        typer.Option("--links-fail", help="Exit with status 3 if a link to a heading broke."),
    ] = False,
    in_flight: Annotated[
        int,
        typer.Option("--in-flight", metavar="N", min=1, help="Most segments in the queue at once."),
    ] = 20_000,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="On Ctrl-C or SIGTERM, cancel submitted jobs too.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Translate nothing; estimate texts, tokens, time and GPU-hours."
        ),
    ] = False,
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="TEXTS_PER_S",
            help="With --dry-run: texts per second of all workers; default: as in earlier runs.",
        ),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(metavar="PER_HOUR", min=0, help="With --dry-run: price of a GPU per hour."),
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

    Stop it any time with Ctrl-C and rerun the same command to resume; a later run translates only
    what changed. With - and --format it translates one document from stdin to stdout. With --model,
    --server or --engine it starts what it needs on this host and stops it at the end.
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
