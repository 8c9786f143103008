"""The `dragoman review` command: pages to read and edit translations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from dragoman_connections.terminal import counted
from dragoman_producer.cli import options, review_apply, review_export
from dragoman_producer.cli.options import ConnectionOptions
from dragoman_producer.cli.review_apply import refused
from dragoman_producer.cli.terminal import (
    FAILURE,
    SUCCESS,
    print_json,
    print_line,
    print_note,
    run,
)
from dragoman_schemas.nearest import invalid_choice

if TYPE_CHECKING:
    from dragoman_producer.manifest.database import Manifest
    from dragoman_producer.review.page import Verdict
    from dragoman_producer.review.rows import StandingFolder


def review(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder that `dragoman translate --out` wrote.")
    ],
    *,
    to: Annotated[
        str | None, typer.Option("--to", metavar="LANG", help="Only this language; default: all.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="VERDICT,...",
            help="Only texts with these verdicts: ok, warn, fail, unchecked.",
        ),
    ] = None,
    last_run: Annotated[
        bool, typer.Option("--last-run", help="Only documents of the last run.")
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            metavar="FILE",
            help="Write an .xlf (XLIFF 1.2) or .tmx file instead of pages.",
        ),
    ] = None,
    apply: Annotated[
        list[Path] | None,
        typer.Option(
            "--apply",
            metavar="FILE",
            help="Apply edits: the downloaded file, or an edited XLIFF; repeatable.",
        ),
    ] = None,
    remember: Annotated[
        bool,
        typer.Option(
            "--remember", help="With --apply: also store the edits as approved translations."
        ),
    ] = False,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Write HTML pages to review the translations in DIR next to their sources.

    Edit and approve in the browser, download the edits, and apply them with --apply.
    """
    if apply and (export or only or to or last_run):
        raise refused("--apply cannot be combined with --to, --only, --last-run or --export")
    if remember and not apply:
        raise refused("--remember needs --apply")
    if export is not None:
        review_export.check(export)
    with _opened(folder) as manifest:
        if not apply:
            given = (to, only, export)
            raise typer.Exit(_show(manifest, folder, given, last_run=last_run, as_json=as_json))
        status, entries = review_apply.apply_files(manifest, folder, apply, as_json=as_json)
    if entries and remember:
        settings = ConnectionOptions(config, kafka, redis).settings()
        run(review_apply.stored(entries, settings, status))
    elif entries:
        print_note(
            f"dragoman review: {counted(len(entries), 'text')} not stored in the approved memory; "
            "add --remember to reuse them in later runs"
        )
    raise typer.Exit(status)


@contextmanager
def _opened(folder: Path) -> Iterator[Manifest]:
    from dragoman_producer.manifest.database import FolderBusy, Manifest, NoSpace
    from dragoman_producer.review.rows import NoRun
    from dragoman_producer.runs.selecting import MANIFEST, STATE_FOLDER

    path = folder / STATE_FOLDER / MANIFEST
    if not path.is_file():
        raise refused(f"{path} is missing; give the folder that `dragoman translate --out` wrote")
    try:
        manifest = Manifest.open(path)
        try:
            yield manifest
        finally:
            manifest.close()
    except (FolderBusy, NoSpace, NoRun) as error:
        print_note(f"dragoman review: {folder}: {error}")
        raise typer.Exit(FAILURE) from None


def _show(
    manifest: Manifest,
    folder: Path,
    given: tuple[str | None, str | None, Path | None],
    *,
    last_run: bool,
    as_json: bool,
) -> int:
    from dragoman_producer.review.rows import StandingFolder

    to, only, export = given
    standing = StandingFolder(manifest, folder, only_last_run=last_run)
    langs, verdicts = _langs(standing, to), _verdicts(only)
    if export is not None:
        if len(langs) != 1:
            raise refused("--export writes one language: name it with --to")
        return review_export.write(standing, langs[0], verdicts, (folder, export), as_json=as_json)
    if not langs:
        print_note(f"dragoman review: {folder}: there are no translations to show")
    for lang in langs:
        _write_pages(standing, lang, verdicts, folder, as_json=as_json)
    return SUCCESS if langs else FAILURE


def _langs(standing: StandingFolder, to: str | None) -> list[str]:
    wanted = options.language("dragoman review", "--to", to)
    found = [lang for lang in standing.langs if wanted in {None, lang}]
    if not found and wanted is not None:
        known = ", ".join(standing.langs) or "no language"
        raise refused(f"--to {wanted}: there are translations into {known}")
    return found


def _verdicts(only: str | None) -> tuple[Verdict, ...]:
    from dragoman_producer.review.page import Verdict

    known: tuple[Verdict, ...] = get_args(Verdict)
    if only is None:
        return known
    wanted = [each.strip() for each in only.split(",")]
    if unknown := [each for each in wanted if each not in known]:
        raise refused(f"--only: {invalid_choice(unknown[0], known)}")
    return tuple(each for each in known if each in wanted)


def _write_pages(
    standing: StandingFolder,
    lang: str,
    verdicts: tuple[Verdict, ...],
    folder: Path,
    *,
    as_json: bool,
) -> None:
    from dragoman_producer.review.writing import write_pages

    for number, (path, total) in enumerate(write_pages(standing, lang, verdicts, folder), start=1):
        if as_json:
            page = {"path": str(path), "target_lang": lang, "page": number}
            print_json({**page, "segments": total})
        else:
            print_line(str(path))
