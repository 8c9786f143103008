"""The `profiles` command: lists the prompt profiles, or shows the prompt of one."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_connections.terminal import print_to
from dragoman_worker.cli.options import AsJson, fail, notify

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman_worker.prompts.base import Profile, PromptInput
    from dragoman_worker.prompts.show import ProfileRow


@dataclass(frozen=True, slots=True)
class _Sample:
    """The text of a prompt, as the options give it."""

    text: str
    to: str
    source: str
    terms: Mapping[str, str]

    def segment(self) -> PromptInput:
        """Return the text as a profile takes it. Raises UnknownLanguage."""
        from dragoman_schemas.languages import normalise
        from dragoman_worker.prompts.base import PromptInput

        to, source = normalise(self.to), normalise(self.source)
        return PromptInput(self.text, to, source, glossary=self._occurring(source))

    def _occurring(self, source: str) -> dict[str, str]:
        """Return the terms that a job's prompt would have for this text."""
        from dragoman_worker.job.terms import job_terms

        terms = job_terms(self.terms, None)
        found, _ = terms.find(self.text, source) if terms else ((), ())
        return {term.source: term.targets[0] for term in found}


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
    terms: Annotated[
        list[str] | None,
        typer.Option(
            "--term", metavar="TERM=TRANSLATION", help="Glossary term in the prompt; repeatable."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="MODEL", help="Print the profile of a model by its name or folder."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the prompt profiles, or show the prompt and the settings of one of them."""
    if model is not None:
        print_to(sys.stdout, _profile_of(model))
        return
    from dragoman_worker.prompts.show import profile_rows
    from dragoman_worker.prompts.table import PROFILES

    own = _read(file) if file is not None else None
    profiles = PROFILES if own is None else {**PROFILES, own.name: own}
    if own is not None:
        name = name or own.name
    if name is not None:
        _show(name, profiles, _Sample(text, to, from_, _terms(terms)), as_json=as_json)
    elif as_json:
        from dataclasses import asdict

        for row in profile_rows():
            print_to(sys.stdout, json.dumps(asdict(row)))
    else:
        _print_table(profile_rows())


def _profile_of(model: str) -> str:
    """Return the profile that a model's name asks for. Exits with 2 where it says nothing."""
    from dragoman_worker.prompts.table import PROFILES
    from dragoman_worker.recognition import recognized_profile

    if (name := recognized_profile(model)) is None:
        fail(
            2,
            f"no prompt profile is known for the model {model} by its name; choose one with "
            f"--profile: {', '.join(PROFILES)}",
        )
    return name


def _read(file: str) -> Profile:
    from dragoman_connections.settings import SettingsError
    from dragoman_worker.prompts.profile_file import read_profile

    try:
        return read_profile(file)
    except SettingsError as error:
        fail(2, str(error).removeprefix("engine.profile_file: "))


def _show(name: str, profiles: Mapping[str, Profile], sample: _Sample, *, as_json: bool) -> None:
    from dragoman_schemas.languages import UnknownLanguage
    from dragoman_worker.errors import JobError
    from dragoman_worker.prompts.show import rendered, settings_lines, settings_of
    from dragoman_worker.prompts.table import get_profile

    try:
        profile = get_profile(name, profiles)
        segment = sample.segment()
        prompt = rendered(profile, segment)
    except (JobError, UnknownLanguage) as error:
        fail(2, str(error))
    for term in sample.terms.keys() - (segment.glossary or {}).keys():
        notify(f"--term {term}: is not in --text")
    if as_json:
        fields = {"profile": name, **settings_of(profile), "prompt": prompt}
        print_to(sys.stdout, json.dumps(fields))
    else:
        print_to(sys.stdout, f"{settings_lines(profile)}\n{prompt}")


def _terms(pairs: list[str] | None) -> dict[str, str]:
    """Return the terms of --term. Exits with 2 for one without a term and a translation."""
    terms: dict[str, str] = {}
    for pair in pairs or ():
        term, _, translation = pair.partition("=")
        if not term.strip() or not translation.strip():
            fail(2, f"--term {pair}: give TERM=TRANSLATION")
        terms[term] = translation
    return terms


def _print_table(rows: Sequence[ProfileRow]) -> None:
    from rich.table import Table

    from dragoman_connections.consoles import SafeConsole

    table = Table(box=None, padding=(0, 1, 1, 0))
    for heading in ("profile", "models", "languages", "takes", "sampling"):
        table.add_column(heading, overflow="fold")  # a cut cell would hide its text
    for row in rows:
        languages = " ".join(row.languages) if len(row.languages) <= 8 else str(len(row.languages))
        table.add_row(row.name, row.models, languages or "any", "\n".join(row.takes), row.sampling)
    SafeConsole().print(table)
