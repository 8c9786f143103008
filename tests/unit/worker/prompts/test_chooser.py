"""Choice of the prompt profile for each job."""

from __future__ import annotations

import pytest

from dragoman_connections.settings import SettingsError
from dragoman_worker.errors import UnknownProfile
from dragoman_worker.prompts.plain import PLAIN
from dragoman_worker.prompts.table import profile_chooser
from dragoman_worker.settings import EngineSettings


def test_a_job_without_a_wish_gets_the_profile_of_the_settings() -> None:
    choose = profile_chooser(EngineSettings(kind="vllm", model="m", profile="eurollm"))
    assert choose(None).name == "eurollm"
    assert choose("chat").name == "chat"


def test_the_echo_engine_gets_plain_text_and_still_refuses_unknown_names() -> None:
    choose = profile_chooser(EngineSettings(kind="echo"))
    assert choose("chat") is PLAIN
    with pytest.raises(UnknownProfile):
        choose("none")


def test_an_unknown_default_profile_is_a_settings_error_that_names_the_setting() -> None:
    with pytest.raises(SettingsError, match=r"^engine\.profile: "):
        profile_chooser(EngineSettings(kind="echo", profile="none"))
