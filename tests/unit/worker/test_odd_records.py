"""How does every odd record end in a whole worker, without one restart?"""

from __future__ import annotations

from typing import Any, Final

import pytest

from dragoman_schemas.results import TranslationResult
from dragoman_worker.engines.echo import EchoEngine
from dragoman_worker.errors import UnknownProfile
from dragoman_worker.prompts.base import Profile
from dragoman_worker.prompts.plain import PLAIN
from dragoman_worker.quality.language import LanguageDetector
from dragoman_worker.settings import EngineSettings
from support.core import Core, record
from support.odd_records import ODD_RECORDS, OddRecord

_DETECTOR: Final = LanguageDetector()


@pytest.mark.parametrize("name", ODD_RECORDS)
async def test_an_odd_record_ends_as_it_must_and_so_does_the_next_one(name: str) -> None:
    odd = ODD_RECORDS[name]()
    core = _core()
    core.source.append(odd.value)
    core.source.append(record("bystander"))
    await core.run_all()
    assert _end(core, odd) == odd.expect
    assert core.state("bystander").status == "completed"


def _core() -> Core:
    engine: Any = EchoEngine(EngineSettings(kind="echo"))
    return Core(engine=engine, choose_profile=_profile, detector=_DETECTOR)


def _profile(name: str | None) -> Profile:
    if name is not None:
        raise UnknownProfile("profile: there is none of this name")
    return PLAIN


def _end(core: Core, odd: OddRecord) -> str:
    if odd.job_id is None:
        (letter,) = core.dead_letters.letters
        return f"dead-letter:{letter.code}"
    result = core.state(odd.job_id).result
    assert result is not None
    return _told(result)


def _told(result: TranslationResult) -> str:
    if result.status == "failed" and result.error is not None:
        return f"failed:{result.error.code}"
    return str(result.status)
