"""The `dragoman check-links` command: links to headings that a translation broke."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_connections.terminal import counted
from dragoman_producer.cli import options
from dragoman_producer.cli.terminal import (
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
    from dragoman_producer.runs.links import Links
    from dragoman_producer.runs.request import RunRequest


def check_links(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Source file or folder.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder of the translations.")],
    *,
    lang: Annotated[
        str, typer.Option("--lang", metavar="LANG", help="Language of the translations to check.")
    ],
    site: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Site generator, such as hugo; default: recognized by its configuration.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Check that links to headings work in translations as they do in their sources.

    Looks for translations at OUT/LANG/path, OUT/name.LANG.md and OUT/path. Exit status 3: a link
    that works in the source is dead in the translation.
    """
    tag = options.language("dragoman check-links", "--lang", lang)
    request = _request(source, out, tag or lang, site)
    run(_checked(request, as_json=as_json))


def _request(source: Path, out: Path, lang: str, site: str | None) -> RunRequest:
    from dragoman_producer.runs.options import Unusable, site_of  # keeps --help fast
    from dragoman_producer.runs.request import Reading, RunRequest

    try:
        reading = Reading(site=site_of(site))
    except Unusable as error:
        raise _usage_error(str(error)) from None
    for each in (source, out):
        if not each.exists():
            raise _usage_error(f"{plain(each)}: no such file or folder")
    return RunRequest((source,), (lang,), out, reading=reading)


def _usage_error(why: str) -> typer.Exit:
    print_note(f"dragoman check-links: {why}")
    return typer.Exit(USAGE_ERROR)


async def _checked(request: RunRequest, *, as_json: bool) -> int:
    from dragoman_producer.runs.links import checked  # keeps --help fast

    pages, links = await checked(request)
    if not pages:
        raise _usage_error(f"{plain(request.out)}: no translations of these sources found")
    if as_json:
        print_json(links.reported())
    else:
        _print(pages, links)
    return PARTIAL if links.new else SUCCESS


def _print(pages: int, links: Links) -> None:
    for each in links.new:
        print_line(f"{each.path}:{each.line}: {plain(each.target)}: no such {each.reason}")
    print_note(
        f"{counted(pages, 'page')}, {counted(links.fragments, 'link')} to headings,"
        f" {links.dead:,} dead, "
        f"{links.dead_in_source:,} of them also in the source"
    )
