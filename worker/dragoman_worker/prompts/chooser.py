"""Choice of the prompt profile for each job, by the settings and the job's own wish."""

from __future__ import annotations

from collections.abc import Callable

from dragoman_connections.settings import SettingsError
from dragoman_worker.errors import UnknownProfile
from dragoman_worker.prompts import get_profile
from dragoman_worker.prompts.base import Profile
from dragoman_worker.prompts.plain import PLAIN
from dragoman_worker.settings import EngineSettings

ProfileChooser = Callable[[str | None], Profile]
"""Returns the profile for the name in a job, None if the job names none; raises UnknownProfile."""


def profile_chooser(engine: EngineSettings) -> ProfileChooser:
    """Return the chooser for an engine; its default is `engine.profile`.

    The echo engine gets the plain text whatever the profile, but unknown names are errors there
    too. Raises SettingsError if `engine.profile` is unknown.
    """
    try:
        get_profile(engine.profile)
    except UnknownProfile as error:
        raise SettingsError(f"engine.{error}") from None

    def choose(wanted: str | None) -> Profile:
        profile = get_profile(wanted or engine.profile)
        return PLAIN if engine.kind == "echo" else profile

    return choose
