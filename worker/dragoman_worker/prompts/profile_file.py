"""Profiles from a TOML file: `engine.profile_file` (docs/how-to/write-a-profile.md)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from langcodes import tag_is_valid
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman_connections.invalid_settings import explained
from dragoman_connections.settings import SettingsError
from dragoman_schemas.nearest import did_you_mean
from dragoman_worker.prompts import names
from dragoman_worker.prompts.base import Profile, ProfileSampling, Steering
from dragoman_worker.prompts.custom import VARIABLES, CleanRules, CustomProfile, rendered_sample
from dragoman_worker.prompts.table import PROFILES
from dragoman_worker.prompts.templates import PromptTemplate, TemplateFault

_MOST_BYTES: Final = 1_000_000
_OF_A_TEMPLATE: Final = ("mode", "add_bos", "system", "languages", "names", "takes", "needs_source")
_TAKEN_BY: Final[Mapping[str, Steering]] = {
    "context": "context",
    "terms": "glossary",
    "do_not_translate": "do_not_translate",
    "formality": "formality",
    "instructions": "instructions",
}

_Penalty = Annotated[float, Field(ge=-2, le=2)]
_Text = Annotated[str, Field(min_length=1, max_length=200)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Sampling(_Part):
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] | None = None
    frequency_penalty: _Penalty | None = None
    presence_penalty: _Penalty | None = None
    stop: Annotated[list[_Text], Field(max_length=8)] | None = None
    stop_token_ids: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=64)] | None = None


class _Limits(_Part):
    max_source_tokens: Annotated[int, Field(ge=16)] | None = None
    max_source_sentences: Annotated[int, Field(ge=1)] | None = None


class _Clean(_Part):
    general: bool = True
    after: _Text | None = None
    before: _Text | None = None
    special_tokens: bool = False


class _File(_Part):
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
    models: str = ""
    licence: str = ""
    mode: Literal["chat", "completion"] = "chat"
    add_bos: bool = False
    system: str | None = None
    user: str | None = None
    languages: list[str] | None = None
    names: dict[str, _Text] = {}
    takes: list[Steering] | None = None
    needs_source: bool | None = None
    template_options: dict[str, bool | int | float | str] = {"enable_thinking": False}
    adapter: _Text | None = None
    sampling: _Sampling = _Sampling()
    limits: _Limits = _Limits()
    clean: _Clean = _Clean()


def read_profile(file: str | Path) -> Profile:
    """Return the profile of the file. Raises SettingsError: which file and key, and what to do."""
    path = Path(file).expanduser()
    try:
        return _profile(path, *_parsed(path))
    except _Fault as fault:
        raise SettingsError(f"engine.profile_file: {file}: {fault}") from None


class _Fault(ValueError):
    """``key: what is wrong; what to do``."""


def _parsed(path: Path) -> tuple[_File, bytes]:
    try:
        with path.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _Fault(f"cannot be read: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise _Fault(f"is larger than {_MOST_BYTES:,} bytes; give a profile in TOML")
    try:
        return _File.model_validate(tomllib.loads(data.decode("utf-8-sig"))), data
    except UnicodeDecodeError:
        raise _Fault("is not UTF-8; save it as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _Fault(f"is not valid TOML: {error}") from None
    except ValidationError as error:
        raise _Fault(_first(error)) from None


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    place = [str(part) for part in problem["loc"]]
    key = ".".join(place)
    if problem["type"] == "extra_forbidden":
        part = _File.model_fields.get(place[0])
        kind = part.annotation if part is not None and len(place) > 1 else _File
        known = getattr(kind, "model_fields", {})
        hint = did_you_mean(place[-1], known)
        return f"{key}: there is no such key{hint}; known are {', '.join(known)}"
    return f"{key}: {explained(problem)}"


def _profile(path: Path, given: _File, data: bytes) -> Profile:
    adapter = _adapter(path, given)
    if given.user is None:
        return _adjusted(given, adapter)
    if given.name in PROFILES:
        raise _Fault(
            f"name: {given.name} is a built-in profile; choose another name, or leave `user` out "
            "to change its sampling and limits"
        )
    profile = _custom(given, adapter, f"{given.name}@{sha256(data).hexdigest()}")
    _try(profile)
    return profile


def _adjusted(given: _File, adapter: str) -> Profile:
    """Return the built-in profile with the file's sampling, limits and adapter."""
    profile = PROFILES.get(given.name)
    if profile is None:
        raise _Fault("user: is missing; give the template of the user message or completion")
    for key in (*_OF_A_TEMPLATE, "template_options", "clean", "models", "licence"):
        if key in given.model_fields_set:
            raise _Fault(f"{key}: needs a `user` template; {given.name} is a built-in profile")
    changes = {key: value for key, value in given.limits if value is not None}
    sampling = _sampling(profile.sampling, given, adapter)
    adjusted: Profile = replace(profile, sampling=sampling, **changes)  # type: ignore[type-var]
    return adjusted


def _custom(given: _File, adapter: str, identity: str) -> CustomProfile:
    system = _template("system", given.system) if given.system is not None else None
    user = _template("user", given.user or "")
    if given.mode == "completion" and system is not None:
        raise _Fault("system: a completion has no system message; put it into `user`")
    if given.mode == "chat" and given.add_bos:
        raise _Fault("add_bos: a chat template adds its own begin token; leave it out")
    used = user.variables | (system.variables if system else frozenset())
    base = ProfileSampling(special_tokens=given.clean.special_tokens)
    return CustomProfile(
        name=given.name,
        models=given.models or "as the profile's file says",
        licence=given.licence or "the model's own",
        takes=_takes(given, used),
        needs_source=_needs_source(given, used),
        languages=_languages(given),
        sampling=_sampling(base, given, adapter),
        max_source_tokens=given.limits.max_source_tokens,
        max_source_sentences=given.limits.max_source_sentences,
        system=system,
        user=user,
        completion=given.mode == "completion",
        add_bos=given.add_bos,
        language_names=_names(given),
        template_options=dict(given.template_options) if given.mode == "chat" else {},
        rules=CleanRules(given.clean.general, given.clean.after, given.clean.before),
        identity=identity,
    )


def _template(key: str, source: str) -> PromptTemplate:
    try:
        return PromptTemplate(source, VARIABLES)
    except TemplateFault as fault:
        raise _Fault(f"{key}: {fault}") from None


def _takes(given: _File, used: frozenset[str]) -> frozenset[Steering]:
    found: frozenset[Steering] = frozenset(
        field for variable, field in _TAKEN_BY.items() if variable in used
    )
    if given.takes is not None and (missing := sorted(set(given.takes) - found)):
        raise _Fault(f"takes: no template uses what the job gives as {missing[0]}; add it there")
    return found if given.takes is None else frozenset(given.takes)


def _needs_source(given: _File, used: frozenset[str]) -> bool:
    if given.needs_source is not None:
        return given.needs_source
    return bool(used & {"source", "source_lang"})


def _languages(given: _File) -> frozenset[str] | None:
    if given.languages is None:
        return None
    if not given.languages:
        raise _Fault("languages: is empty; list the languages, or leave it out for any language")
    return frozenset(names.base_of(_valid("languages", tag)) for tag in given.languages)


def _names(given: _File) -> dict[str, str]:
    return {_valid("names", tag): name for tag, name in given.names.items()}


def _valid(key: str, tag: str) -> str:
    if not tag_is_valid(tag):
        raise _Fault(f"{key}: {tag[:40]!r} is not a language; give a tag such as de or zh-Hant")
    return tag


def _sampling(base: ProfileSampling, given: _File, adapter: str) -> ProfileSampling:
    known = {field.name for field in fields(ProfileSampling)}
    changes: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in given.sampling
        if value is not None and key in known
    }
    return replace(base, **changes, adapter=adapter)


def _adapter(path: Path, given: _File) -> str:
    if given.adapter is None:
        return ""
    folder = (path.parent / Path(given.adapter).expanduser()).resolve()
    if not (folder / "adapter_config.json").is_file():
        raise _Fault(
            f"adapter: {given.adapter} is not a LoRA adapter; give a folder with "
            "adapter_config.json, relative to this file"
        )
    return str(folder)


def _try(profile: CustomProfile) -> None:
    try:
        rendered_sample(profile)
    except TemplateFault as fault:
        raise _Fault(str(fault)) from None
