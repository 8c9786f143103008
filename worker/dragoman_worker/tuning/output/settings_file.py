"""Settings file that `tune` writes: all given settings with the chosen ones in their place."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import tomlkit
from pydantic_core import to_jsonable_python
from tomlkit.items import Table

from dragoman_connections.secrets import without_secrets
from dragoman_connections.settings import ENV_PREFIX, SettingsError
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.tuner import Findings

_Into = TypeVar("_Into", tomlkit.TOMLDocument, Table)

NAME: Final = "settings.toml"


def write(path: Path, settings: WorkerSettings, found: Findings) -> None:
    """Replace the file atomically; it contains no secret."""
    part = path.with_suffix(".part")
    part.write_text(text(settings, found), encoding="utf-8")
    part.replace(path)


def check(settings: WorkerSettings) -> None:
    """Raise SettingsError for an engine option that a settings file cannot hold."""
    for name, value in settings.engine.options.items():
        if (why := _unwritable(value)) is not None:
            raise SettingsError(
                f"engine.options.{name}: tune cannot write {why} to a settings file"
            )


def _unwritable(value: object, *, listed: bool = False) -> str | None:
    if value is None:
        return "a null in a list" if listed else None
    if isinstance(value, float) and not math.isfinite(value):
        return f"the number {value}"
    if isinstance(value, Mapping):
        return next((why for v in value.values() if (why := _unwritable(v, listed=listed))), None)
    if isinstance(value, list | tuple):
        return next((why for v in value if (why := _unwritable(v, listed=True))), None)
    return None


def text(settings: WorkerSettings, found: Findings) -> str:
    """Return TOML for `--config`: the given settings with the chosen ones in their place."""
    given = settings.model_dump(exclude_unset=True)
    given.pop("worker_id", None)  # it names this machine and process
    left_out: list[str] = []
    tree = to_jsonable_python(without_secrets(given, left_out.append))
    engine = tree.setdefault("engine", {})
    options = {**engine.get("options", {}), **found.options}
    engine |= {
        "kind": settings.engine.kind,
        "replicas": _replicas(settings, found),
        "options": options,
    }
    head = [f"# Written by `dragoman-worker tune`; {_sample(found)}"]
    head += [f"# Left out, a secret: {name}; {_secret_source(name)}" for name in left_out]
    return "\n".join(head) + "\n\n" + document(tree, _reasons(found))


def document(tree: Mapping[str, Any], reasons: Mapping[str, str] | None = None) -> str:
    """Return settings as TOML without None values, with a comment per dotted name in `reasons`."""
    return tomlkit.dumps(_filled(tomlkit.document(), tree, reasons or {}, ""))


def _filled(into: _Into, tree: Mapping[str, Any], reasons: Mapping[str, str], prefix: str) -> _Into:
    # Plain values first: after a table header they would belong to that table.
    for name, value in sorted(tree.items(), key=lambda pair: isinstance(pair[1], Mapping)):
        if value is None:
            continue
        reason = reasons.get(prefix + name)
        if isinstance(value, Mapping):
            table = _filled(tomlkit.table(), value, reasons, f"{prefix}{name}.")
            into.add(name, table if reason is None else table.comment(reason))
            continue
        if reason is not None:
            into.add(tomlkit.comment(reason))
        into.add(name, value)
    return into


def _replicas(settings: WorkerSettings, found: Findings) -> int | str:
    """Return the number to write: unless a stage chose one, the given number stays."""
    return found.replicas if found.chose_replicas else settings.engine.replicas


def _secret_source(name: str) -> str:
    """Return where a secret came from and the environment variable that gives it."""
    variable = ENV_PREFIX + name.replace(".", "__").upper()
    if any(variable == given.upper() for given in os.environ):
        return f"it came from the environment, {variable}, which has to be set there too"
    return f"it came from --config or --set; give it by the environment, {variable}"


def _sample(found: Findings) -> str:
    survey = found.survey
    return f"measured with {survey['jobs']} jobs on {survey['model']}"


def _reasons(found: Findings) -> Mapping[str, str]:
    reasons = {}
    if found.keeps_given:
        return {"engine.options": "As given: the chosen options did no better, or failed."}
    if found.choice is not None:
        reasons["engine.options.max_num_seqs"] = f"Chosen: {found.choice.why}."
    for decision in found.decisions if found.confirmed else ():
        reason = f"{decision.stage}: {decision.why}."
        if decision.replicas is not None:
            reasons["engine.replicas"] = reason
        for name in decision.options:
            reasons[f"engine.options.{name}"] = "Per engine." if decision.replicas else reason
    return reasons
