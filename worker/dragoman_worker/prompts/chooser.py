"""Choice of the prompt profile for each job, by the settings and the job's own wish."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dragoman_connections.settings import SettingsError
from dragoman_worker.errors import UnknownProfile
from dragoman_worker.prompts.base import Profile
from dragoman_worker.prompts.plain import PLAIN
from dragoman_worker.prompts.table import PROFILES, get_profile
from dragoman_worker.settings import EngineSettings

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
