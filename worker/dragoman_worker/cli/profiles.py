"""The `profiles` command: lists the prompt profiles, or shows the prompt of one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_worker.cli.options import AsJson, fail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman_worker.prompts.base import Profile
    from dragoman_worker.prompts.show import ProfileRow


def profiles(  # noqa: PLR0917 - one parameter per option
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show the prompt of this profile.")
    ] = None,
    text: Annotated[
        str, typer.Option("--text", metavar="TEXT", help="Text to translate in the prompt.")
    ] = "Good morning!",
    to: Annotated[str, typer.Option("--to", metavar="LANG", help="Target language.")] = "de",
    from_: Annotated[str, typer.Option("--from", metavar="LANG", help="Source language.")] = "en",
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="Show the profile in this TOML file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the prompt profiles, or show the prompt of one of them."""
    from dragoman_worker.prompts import PROFILES, get_profile
    from dragoman_worker.prompts.show import profile_rows

    own = _read(file) if file is not None else None
    profiles = PROFILES if own is None else {**PROFILES, own.name: own}
    if own is not None:
        name = name or own.name
    if name is not None:
        prompt = _prompt(lambda: get_profile(name, profiles), text, to, from_)
        print(json.dumps({"profile": name, "prompt": prompt}) if as_json else prompt)
    elif as_json:
        from dataclasses import asdict

        for row in profile_rows():
            print(json.dumps(asdict(row)))
    else:
        _print_table(profile_rows())


def _read(file: str) -> Profile:
    from dragoman_connections.settings import SettingsError
    from dragoman_worker.prompts.profile_file import read_profile

    try:
        return read_profile(file)
    except SettingsError as error:
        fail(2, str(error).removeprefix("engine.profile_file: "))


def _prompt(get: Callable[[], Profile], text: str, to: str, from_: str) -> str:
    from dragoman_schemas.languages import UnknownLanguage, normalise
    from dragoman_worker.errors import JobError
    from dragoman_worker.prompts.base import Segment
    from dragoman_worker.prompts.show import rendered

    try:
        profile = get()
        segment = Segment(text=text, target_lang=normalise(to), source_lang=normalise(from_))
        return rendered(profile, segment)
    except (JobError, UnknownLanguage) as error:
        fail(2, str(error))


def _print_table(rows: Sequence[ProfileRow]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 1, 0))
    for heading in ("profile", "models", "languages", "takes", "sampling"):
        table.add_column(heading, overflow="fold")  # a cut cell would hide its text
    for row in rows:
        languages = " ".join(row.languages) if len(row.languages) <= 8 else str(len(row.languages))
        table.add_row(row.name, row.models, languages or "any", "\n".join(row.takes), row.sampling)
    Console().print(table)
