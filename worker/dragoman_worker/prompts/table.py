"""Prompt profiles: the table, one line per model family, and the choice for each job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from dragoman_connections.settings import SettingsError
from dragoman_schemas.nearest import did_you_mean
from dragoman_worker.errors import UnknownProfile
from dragoman_worker.prompts.base import Profile
from dragoman_worker.prompts.chat import CHAT
from dragoman_worker.prompts.demo import DEMO
from dragoman_worker.prompts.eurollm import EUROLLM, EUROLLM_SMALL
from dragoman_worker.prompts.gemma4 import GEMMA4
from dragoman_worker.prompts.gpt_oss import GPT_OSS
from dragoman_worker.prompts.hunyuan_mt import HUNYUAN_MT, HY_MT1_5
from dragoman_worker.prompts.hy_mt2 import HY_MT2, HY_MT2_30B
from dragoman_worker.prompts.language_pair import LMT_60, SALAMANDRA_TA, TOWER_PLUS
from dragoman_worker.prompts.milmmt import GEMMAX2, MILMMT
from dragoman_worker.prompts.plain import PLAIN
from dragoman_worker.prompts.qwen3 import QWEN3, QWEN3_5
from dragoman_worker.prompts.rosetta import ROSETTA
from dragoman_worker.prompts.seed_x import SEED_X
from dragoman_worker.prompts.translategemma import DELIMITED_TRANSLATEGEMMA, TRANSLATEGEMMA
from dragoman_worker.settings import EngineSettings

_ALL: Final[tuple[Profile, ...]] = (
    HY_MT2,
    HY_MT2_30B,
    HY_MT1_5,
    HUNYUAN_MT,
    TRANSLATEGEMMA,
    DELIMITED_TRANSLATEGEMMA,
    TOWER_PLUS,
    SEED_X,
    MILMMT,
    GEMMAX2,
    LMT_60,
    SALAMANDRA_TA,
    ROSETTA,
    EUROLLM,
    EUROLLM_SMALL,
    QWEN3,
    QWEN3_5,
    GEMMA4,
    GPT_OSS,
    CHAT,
    DEMO,
)

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {profile.name: profile for profile in _ALL}
)


def get_profile(name: str, profiles: Mapping[str, Profile] = PROFILES) -> Profile:
    """Return the profile of that name. Raises UnknownProfile, which lists the known names."""
    try:
        return profiles[name]
    except KeyError:
        hint, known = did_you_mean(name, profiles), ", ".join(profiles)
        shown = f"profile: there is no {name[:40]!r}{hint}"
        raise UnknownProfile(f"{shown}; choose one of {known}") from None


ProfileChooser = Callable[[str | None], Profile]
"""Returns the profile for the name in a job, None if the job names none; raises UnknownProfile."""


def profile_chooser(engine: EngineSettings) -> ProfileChooser:
    """Return the chooser for an engine; its default is `engine.profile`.

    The echo engine gets the plain text whatever the profile, but unknown names are errors there
    too. Raises SettingsError if `engine.profile` is unknown or `engine.profile_file` is wrong.
    """
    profiles = profiles_of(engine)

    def choose(wanted: str | None) -> Profile:
        profile = get_profile(wanted or engine.profile, profiles)
        return PLAIN if engine.kind == "echo" else profile

    return choose


def profiles_of(engine: EngineSettings) -> Mapping[str, Profile]:
    """Return all profiles that jobs may name: the built-in ones, and that of the file.

    Raises SettingsError if `engine.profile` is not among them or `engine.profile_file` is wrong.
    """
    profiles = PROFILES
    if engine.profile_file is not None:
        from dragoman_worker.prompts.profile_file import read_profile  # noqa: PLC0415 - Jinja

        own = read_profile(engine.profile_file)
        profiles = {**PROFILES, own.name: own}
    try:
        get_profile(engine.profile, profiles)
    except UnknownProfile as error:
        raise SettingsError(f"engine.{error}") from None
    return profiles
