"""Profiles as text for people: rows of a table, and a rendered prompt."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, Final

from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts.base import Profile, ProfileSampling, PromptInput
from dragoman_worker.prompts.table import PROFILES

_DEFAULTS = ProfileSampling()
_LIMITS: Final = ("max_source_tokens", "max_source_sentences")


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One profile as `dragoman-worker profiles` lists it; `takes` has names of job fields."""

    name: str
    models: str
    licence: str
    languages: tuple[str, ...]
    """Sorted base tags; empty means any language."""
    takes: tuple[str, ...]
    needs_source: bool
    sampling: str


def profile_rows() -> list[ProfileRow]:
    """Return all profiles in the order of the table."""
    return [_row(profile) for profile in PROFILES.values()]


def rendered(profile: Profile, segment: PromptInput) -> str:
    """Return the prompt before the model's own chat template, and the warnings, as text.

    Raises UnsupportedLanguage.
    """
    rendering = profile.render(segment)
    blocks = [_prompt(rendering.prompt)]
    blocks += [f"warning: {warning}" for warning in rendering.warnings]
    return "\n\n".join(blocks)


def settings_of(profile: Profile) -> dict[str, Any]:
    """Return what a profile sets beside its prompt: the values that are not neutral."""
    limits = {name: getattr(profile, name) for name in _LIMITS}
    sampling = {
        each.name: getattr(profile.sampling, each.name)
        for each in fields(ProfileSampling)
        if each.name == "temperature"
        or getattr(profile.sampling, each.name) != getattr(_DEFAULTS, each.name)
    }
    return {
        "sampling": sampling,
        "limits": {name: limit for name, limit in limits.items() if limit is not None},
        "takes": sorted(profile.takes),
        "needs_source": profile.needs_source,
        "languages": sorted(profile.languages or ()),
    }


def settings_lines(profile: Profile) -> str:
    """Return `settings_of` as a line of TOML per value, below the prompt's own `---` marks."""
    lines = ["--- settings"]
    for name, value in settings_of(profile).items():
        pairs = value.items() if isinstance(value, dict) else [("", value)]
        for member, one in pairs:
            key = f"{name}.{member}" if member else name
            lines.append(f"{key} = {json.dumps(one, ensure_ascii=False)}")
    return "\n".join(lines)


def sampling_text(sampling: ProfileSampling) -> str:
    """Return ``greedy`` or the values that are not neutral: ``temperature 0.7, top_k 20``."""
    changed = [
        f"{each.name} {getattr(sampling, each.name):g}"
        for each in fields(sampling)
        if type(getattr(sampling, each.name)) in (int, float)
        and getattr(sampling, each.name) != getattr(_DEFAULTS, each.name)
    ]
    if sampling.temperature == 0.0:
        changed = ["greedy", *(text for text in changed if not text.startswith("top_"))]
    return ", ".join(changed)


def _row(profile: Profile) -> ProfileRow:
    return ProfileRow(
        name=profile.name,
        models=profile.models,
        licence=profile.licence,
        languages=tuple(sorted(profile.languages or ())),
        takes=tuple(sorted(profile.takes)),
        needs_source=profile.needs_source,
        sampling=sampling_text(profile.sampling),
    )


def _prompt(prompt: Prompt) -> str:
    if not prompt.messages:
        begin = "with" if prompt.add_special_tokens else "without"
        return f"--- completion, {begin} the tokenizer's begin token\n{prompt.completion}"
    options = "".join(f", {key}={value}" for key, value in prompt.template_options.items())
    blocks = [f"--- {message.role}{options}\n{_content(message)}" for message in prompt.messages]
    if prompt.answer_start:
        blocks.append(f"--- start of the answer\n{prompt.answer_start}")
    return "\n".join(blocks)


def _content(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    lines = (f"{key}: {value}" for part in message.content for key, value in part.items())
    return "\n".join(lines)
