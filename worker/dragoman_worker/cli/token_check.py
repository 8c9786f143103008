"""The table of `check --tokens`: which style of numbered tokens the user's model keeps."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from dragoman_connections.consoles import SafeConsole
from dragoman_connections.settings import SettingsError
from dragoman_connections.terminal import print_to
from dragoman_worker import log
from dragoman_worker.engines.starting import open_engine
from dragoman_worker.errors import Halt, JobError
from dragoman_worker.prompts.table import profiles_of
from dragoman_worker.quality.token_survival import Survival, best, measure, target_languages
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.output.columns import Line, TableColumn, fitted

_COLUMNS = (
    TableColumn("style", left=True),
    TableColumn("example", drop=1, left=True),
    TableColumn("answers", drop=2),
    TableColumn("survived"),
    TableColumn("in place"),
)


async def check_tokens(settings: WorkerSettings, *, as_json: bool) -> int:
    """Start the engine, measure and print; return the exit status."""
    log.configure(settings.log, worker_id=settings.worker_id)
    try:
        profile = profiles_of(settings.engine)[settings.engine.profile]
        engine = open_engine(settings.engine)
        try:
            await engine.start()
            survivals = await measure(engine, profile)
        finally:
            await engine.close()
    except (SettingsError, Halt, JobError) as error:
        print_to(sys.stderr, f"check --tokens: {error}")
        return 1
    if as_json:
        chosen = best(survivals, settings.quality.token_style)
        for survival in survivals:
            print_to(sys.stdout, json.dumps(_fields(survival, recommended=survival is chosen)))
    else:
        _print_table(survivals, settings, target_languages(profile))
    return 0


def _fields(survival: Survival, *, recommended: bool) -> dict[str, Any]:
    return {
        "style": survival.name,
        "answers": survival.answers,
        "survived": round(survival.survived / survival.answers, 4),
        "in_place": round(survival.in_place / survival.answers, 4),
        "recommended": recommended,
    }


def _print_table(
    survivals: Sequence[Survival], settings: WorkerSettings, languages: Sequence[str]
) -> None:
    console = SafeConsole(highlight=False)
    title = f"English to {', '.join(languages)}, profile {settings.engine.profile}"
    console.print(title, markup=False)
    console.print(fitted(console, _COLUMNS, [_line(each) for each in survivals]))
    chosen = best(survivals, settings.quality.token_style)
    if chosen.name == settings.quality.token_style:
        advice = f'quality.token_style = "{chosen.name}", as it is set, is the best of them.'
    else:
        advice = f'Set quality.token_style = "{chosen.name}".'
    console.print(advice, markup=False)


def _line(survival: Survival) -> Line:
    example = "{name}" if survival.style is None else survival.style.token(0)
    shares = (f"{100 * count / survival.answers:.1f} %" for count in _counts(survival))
    return Line([survival.name, example, str(survival.answers), *shares])


def _counts(survival: Survival) -> tuple[int, int]:
    return survival.survived, survival.in_place
