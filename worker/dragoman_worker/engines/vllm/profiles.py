"""A worker's profiles with its model: their prompts are checked at the start, adapters loaded."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.one_line import one_line
from dragoman_worker.engines.sample import sample_of
from dragoman_worker.errors import PermanentEngineError
from dragoman_worker.prompts import names, tokens
from dragoman_worker.prompts.base import Profile
from dragoman_worker.prompts.table import PROFILES, profiles_of
from dragoman_worker.settings import EngineSettings

_TEXT: Final = "Good morning!"
_LETTERS: Final = "Goodmorning"
_NO_TEMPLATE: Final = "chat_template"


def check_profiles(settings: EngineSettings, tokenizer: Any) -> None:
    """Render and encode a sample with the worker's profile and that of its file.

    A built-in profile that a job names is not checked: if it does not work with the model, the job
    fails with the reason. Raises SettingsError, one sentence with the remedy.
    """
    names.load()
    if _LETTERS not in _decoded(tokenizer, tokenizer.encode(_TEXT, add_special_tokens=False)):
        raise SettingsError(
            f"engine.model: the tokenizer of {settings.model} loses the letters of a text; are its "
            "files (tokenizer.json or tokenizer.model, tokenizer_config.json) in the folder, whole?"
        )
    for profile in _own(settings, profiles_of(settings)):
        if (fault := _fault(profile, tokenizer)) is not None:
            raise SettingsError(f"engine.profile: {profile.name} does not work with {fault}")


def check_adapters(settings: EngineSettings) -> None:
    """Raise SettingsError if a profile names a LoRA adapter and vLLM is not to load any."""
    for profile in _own(settings, profiles_of(settings)):
        if profile.sampling.adapter and not settings.options.get("enable_lora"):
            raise SettingsError(
                f"engine.options.enable_lora: profile {profile.name} has an adapter; set it to "
                "true (and max_lora_rank to the adapter's rank if that exceeds 16)"
            )


def adapters_of(settings: EngineSettings) -> tuple[str, ...]:
    """Return the folders of the adapters of all profiles that jobs may name."""
    folders = (profile.sampling.adapter for profile in profiles_of(settings).values())
    return tuple(dict.fromkeys(folder for folder in folders if folder))


async def loaded_adapters(client: Any, settings: EngineSettings) -> Mapping[str, Any]:
    """Return vLLM's LoRARequest by folder, each loaded once. Raises SettingsError."""
    requests: dict[str, Any] = {}
    for number, folder in enumerate(adapters_of(settings), start=1):
        request_class = importlib.import_module("vllm.lora.request").LoRARequest
        request = request_class(Path(folder).name, number, folder)
        try:
            await client.add_lora(request)
        except Exception as error:
            raise SettingsError(
                f"engine.profile_file: adapter: vLLM cannot load {folder}: {one_line(str(error))}; "
                "see engine.options.max_lora_rank, and whether it is an adapter of this model"
            ) from error
        requests[folder] = request
    return requests


def adapter_keyword(adapters: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return the argument that selects the adapter, none without one."""
    if not folder:
        return {}
    request = adapters.get(folder)
    if request is None:
        raise PermanentEngineError(f"the LoRA adapter {Path(folder).name} was not loaded at start")
    return {"lora_request": request}


def _own(settings: EngineSettings, profiles: Mapping[str, Profile]) -> Iterator[Profile]:
    yield profiles[settings.profile]
    for name, profile in profiles.items():
        if profile is not PROFILES.get(name) and name != settings.profile:
            yield profile


def _completions() -> str:
    """Return the names of the built-in profiles that need no chat template."""
    *others, last = sorted(
        name
        for name, profile in PROFILES.items()
        if not profile.render(sample_of(profile)).prompt.messages
    )
    return f"{', '.join(others)} and {last}"


def _decoded(tokenizer: Any, ids: Sequence[int]) -> str:
    """Return the letters of the text that the ids stand for."""
    return "".join(filter(str.isalpha, str(tokenizer.decode(ids))))


def _fault(profile: Profile, tokenizer: Any) -> str | None:
    """Return what of the model refuses the profile's prompt, and what to do, or None."""
    prompt = profile.render(sample_of(profile)).prompt
    try:
        ids = tokens.encode(prompt, tokenizer)
        shown = _decoded(tokenizer, ids)
    except Exception as error:  # noqa: BLE001 - a chat template may raise anything
        reason = one_line(f"{type(error).__name__}: {error}", max_chars=200)
        if prompt.messages and _NO_TEMPLATE in str(error):
            return (
                "this model, which has no chat template; add chat_template.jinja to its folder, or "
                f"choose a profile for completions ({_completions()}, or an own one)"
            )
        part = "chat template" if prompt.messages else "tokenizer"
        return f"the model's {part}: {reason}; choose the profile of this model, or another model"
    if _LETTERS in shown:
        return None
    return (
        "the model's chat template, which leaves the text out of the prompt; choose the profile of "
        "this model, or `chat`"
    )
