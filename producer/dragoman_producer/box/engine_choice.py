"""The engine of a box: what the options of a command name."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

import dragoman_producer
from dragoman_producer.box.failures import BoxUnusable
from dragoman_producer.box.linked_child import own_environment
from dragoman_producer.box.served_model import served_model

EngineName = Literal["echo", "demo"]
OWNED: Final = (
    *("kafka", "redis", "http", "engine.kind", "engine.url", "log.format"),
    *("serve.keys_file", "serve.admin_host", "serve.admin_port"),
)
"""Settings, and groups of them, that the box itself sets."""

_WEIGHTS: Final = frozenset({".safetensors", ".bin", ".pt", ".pth", ".gguf"})


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine by the options of a command: exactly one of the first three is set."""

    model: str | None = None
    """Absolute path of a folder, or a name on a hub."""
    server: str | None = None
    engine: str | None = None
    profile: str | None = None
    gpus: str | None = None
    settings: tuple[str, ...] = ()
    """NAME=VALUE of further settings, of the worker and of the gateway."""

    @property
    def shown(self) -> str:
        """The engine as the user named it."""
        options = {"--model": self.model, "--server": self.server, "--engine": self.engine}
        return next(f"{name} {value}" for name, value in options.items() if value is not None)

    def settings_of(self, *, gateway: bool) -> tuple[str, ...]:
        """Return the further settings of the gateway, or those of the worker."""
        return tuple(text for text in self.settings if text.startswith("serve.") == gateway)

    @property
    def identity(self) -> str | None:
        """What tells this engine from others; None of a server that was not asked yet."""
        return self.engine or _model_name(self)

    def as_json(self) -> dict[str, Any]:
        """Return the members, for the file that a later command reads."""
        return {**asdict(self), "settings": list(self.settings)}

    def same_engine(self, running: Mapping[str, Any], profile: str | None) -> bool:
        """Whether a box with these members, and this profile in use, serves this choice."""
        same = all(running.get(name) == getattr(self, name) for name in _NAMES)
        return same and self.profile in {None, profile}


_NAMES: Final = ("model", "server", "engine")


def choice_of(
    *,
    model: str | None,
    server: str | None,
    engine: str | None,
    profile: str | None = None,
    gpus: str | None = None,
    settings: Sequence[str] = (),
) -> EngineChoice:
    """Return the engine that the options name. Raises BoxUnusable."""
    if [model, server, engine].count(None) != 2:
        raise BoxUnusable("give one of --model DIR or NAME, --server URL and --engine echo or demo")
    if engine is not None and engine not in get_args(EngineName):
        raise BoxUnusable(f"--engine: {engine!r} is not valid; choose echo or demo")
    if server is not None and not server.startswith(("http://", "https://")):
        raise BoxUnusable(f"--server: {server!r} is not a URL; give it as http://HOST:8000")
    for text in settings:
        _check_setting(text)
    named = None if model is None else _model(model, settings)
    return EngineChoice(named, server, engine, profile, gpus, tuple(settings))


def _check_setting(text: str) -> None:
    name, equals, _ = text.partition("=")
    if not equals or not all(name.split(".")):
        raise BoxUnusable(f"--set {text}: give NAME=VALUE")
    if name in OWNED or name.split(".")[0] in OWNED:
        raise BoxUnusable(f"--set {text}: the box sets {name} itself; leave this option out")


def _model(given: str, settings: Sequence[str]) -> str:
    """Return the absolute path of a model's folder, or the name on a hub. Raises BoxUnusable."""
    path = Path(given).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise BoxUnusable(
                f"--model {given}: the folder has no config.json; name a model's folder"
            )
        if not _has_weights(path, settings):
            raise BoxUnusable(f"--model {given}: the folder has no weights, such as *.safetensors")
        return str(path.resolve())
    is_name = given.count("/") == 1 and not given.startswith((".", "/", "~", "-"))
    if not is_name or path.is_file():
        raise BoxUnusable(
            f"--model {given}: there is no such folder; give a model's folder, or a name on a hub, "
            "such as tencent/Hy-MT2-7B"
        )
    return given


def _has_weights(folder: Path, settings: Sequence[str]) -> bool:
    """Whether vLLM may find weights there; it looks for half a minute, five times over."""
    given = (*settings, os.environ.get("DRAGOMAN_ENGINE__OPTIONS", ""))
    if any("load_format" in text for text in given):  # such as `dummy`
        return True
    return any(file.suffix in _WEIGHTS for file in folder.iterdir())


def demo_model() -> Path:
    """Return the folder of the demonstration's model in a clone. Raises BoxUnusable."""
    folder = Path(dragoman_producer.__file__).parents[2] / "demo" / "model"
    if not (folder / "config.json").is_file():
        raise BoxUnusable(
            f"--engine demo: the demonstration's model is not in {folder}, because only a clone of "
            "the repository contains it; run the command of a clone, or use --engine echo"
        )
    return folder


async def recognized(choice: EngineChoice) -> EngineChoice:
    """Return the choice with the model that a server serves, and with a profile.

    The worker's table knows the profiles of models by their names. Raises BoxUnusable.
    """
    if choice.engine == "demo":
        demo_model()
    if choice.engine is not None:
        return choice
    if choice.server is not None and choice.model is None and not _sets(choice, "engine.model"):
        found = await asyncio.to_thread(served_model, choice.server)
        choice = replace(choice, settings=(*choice.settings, f"engine.model={json.dumps(found)}"))
    if choice.profile is not None or _sets(choice, "engine.profile", "engine.profile_file"):
        return choice
    return replace(choice, profile=await _profile_for(_model_name(choice) or ""))


def _sets(choice: EngineChoice, *names: str) -> bool:
    return any(text.partition("=")[0] in names for text in choice.settings)


def _model_name(choice: EngineChoice) -> str | None:
    """Return the path or the name of the model; None of a server that was not asked."""
    if choice.model is not None:
        return choice.model
    given = (text.partition("=") for text in choice.settings)
    value = next((value for name, _, value in given if name == "engine.model"), None)
    if value is None:
        return None
    try:
        return str(json.loads(value))
    except ValueError:
        return value


async def _profile_for(model: str) -> str:
    """Ask the worker which profile a model's name stands for. Raises BoxUnusable."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "dragoman_worker", "profiles", f"--for={model}"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=own_environment(),
    )
    out, err = await process.communicate()
    if process.returncode:
        lines = err.decode(errors="replace").strip().splitlines() or ["the worker did not answer"]
        raise BoxUnusable(lines[-1].removeprefix("dragoman-worker: "))
    return out.decode().strip()
