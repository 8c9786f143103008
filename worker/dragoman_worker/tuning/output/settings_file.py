"""What does the settings file say that `tune` writes? All that was given, and what was chosen."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import tomlkit
from pydantic_core import to_jsonable_python
from tomlkit.items import Table

from dragoman_connections.secrets import without_secrets
from dragoman_connections.settings import ENV_PREFIX
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.tuner import Findings

_Into = TypeVar("_Into", tomlkit.TOMLDocument, Table)

NAME: Final = "settings.toml"


def write(place: Path, settings: WorkerSettings, found: Findings) -> None:
    """Replace the file at once; it holds no secret."""
    made = place.with_suffix(".part")
    made.write_text(text(settings, found), encoding="utf-8")
    made.replace(place)


def text(settings: WorkerSettings, found: Findings) -> str:
    """TOML that `--config` takes: the settings given, with the chosen ones in their place."""
    given = settings.model_dump(exclude_unset=True)
    given.pop("worker_id", None)  # of this machine, perhaps of this process
    kept_back: list[str] = []
    tree = to_jsonable_python(without_secrets(given, kept_back.append))
    engine = tree.setdefault("engine", {})
    options = {**engine.get("options", {}), **found.options}
    engine |= {
        "kind": settings.engine.kind,
        "replicas": _replicas(settings, found),
        "options": options,
    }
    head = [f"# Written by `dragoman-worker tune`; {_sample(found)}"]
    head += [f"# Left out, a secret: {name}; {_where_from(name)}" for name in kept_back]
    return "\n".join(head) + "\n\n" + document(tree, _reasons(found))


def document(tree: Mapping[str, Any], reasons: Mapping[str, str] | None = None) -> str:
    """TOML of settings, without those that are None; reasons are by dotted name."""
    return tomlkit.dumps(_filled(tomlkit.document(), tree, reasons or {}, ""))


def _filled(into: _Into, tree: Mapping[str, Any], reasons: Mapping[str, str], prefix: str) -> _Into:
    # What is no table first: behind a table's head it would belong to that.
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
    """One engine is only what was measured with: without a choice the given number stays."""
    return found.replicas if found.chose_replicas else settings.engine.replicas


def _where_from(name: str) -> str:
    """Where a secret came from, and by which environment variable to give it."""
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
        return {
            "engine.options": "As given: the chosen settings did no better in their own engine."
        }
    if found.choice is not None:
        reasons["engine.options.max_num_seqs"] = f"Chosen: {found.choice.why}."
    for decision in found.decisions:
        told = f"{decision.stage}: {decision.why}."
        if decision.replicas is not None:
            reasons["engine.replicas"] = told
        for name in decision.options:
            reasons[f"engine.options.{name}"] = (
                "Of each of the engines." if decision.replicas else told
            )
    return reasons
