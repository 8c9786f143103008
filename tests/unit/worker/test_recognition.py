"""Recognition of a model's profile by its name: on a hub, in a folder, in a hub's cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman_worker.prompts.table import PROFILES, profile_chooser
from dragoman_worker.recognition import _FAMILIES, recognized_profile
from dragoman_worker.settings import EngineSettings


@pytest.mark.parametrize(
    ("model", "profile"),
    [
        ("tencent/Hy-MT2-1.8B", "hy-mt2"),
        ("/models/hy-mt2-7b", "hy-mt2"),
        ("/models/Hy_MT2_7B/", "hy-mt2"),
        ("tencent/Hy-MT2-30B-A3B", "hy-mt2-30b"),
        ("/models/Hy-MT2-30B-A3B-FP8", "hy-mt2-30b"),
        ("tencent/HY-MT1.5-7B", "hy-mt1.5"),
        ("tencent/Hunyuan-MT-7B", "hunyuan-mt"),
        ("google/translategemma-12b-it", "translategemma"),
        ("Infomaniak-AI/vllm-translategemma-4b-it", "translategemma-vllm"),
        ("Unbabel/Tower-Plus-9B", "tower-plus"),
        ("ByteDance-Seed/Seed-X-PPO-7B", "seed-x"),
        ("xiaomi-research/MiLMMT-46-12B-v1.0", "milmmt"),
        ("ModelSpace/GemmaX2-28-9B-v0.1", "gemmax2"),
        ("NiuTrans/LMT-60-0.6B", "lmt-60"),
        ("/models/LMT-60-4B", "lmt-60"),
        ("/models/LMT-60/4B", "lmt-60"),
        (r"D:\models\LMT-60-8B", "lmt-60"),
        ("/hub/models--NiuTrans--LMT-60-8B/snapshots/0a1b2c", "lmt-60"),
        ("BSC-LT/salamandraTA-7b-instruct", "salamandra-ta"),
        ("BSC-LT/salamandraTA-2b-instruct", "salamandra-ta"),
        ("yanolja/YanoljaNEXT-Rosetta-4B-2511", "rosetta"),
        ("utter-project/EuroLLM-9B-Instruct-2512", "eurollm"),
        ("utter-project/EuroLLM-1.7B-Instruct", "eurollm-1.7b"),
        ("openai/gpt-oss-20b", "gpt-oss"),
        ("google/gemma-4-E4B-it", "gemma4"),
        ("Qwen/Qwen3-8B", "qwen3"),
        ("Qwen/Qwen3-0.6B", "qwen3"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3"),
        ("Qwen/Qwen3.5-4B", "qwen3.5"),
        ("Qwen/Qwen3.6-27B-FP8", "qwen3.5"),
        ("/models/qwen3.6-35b-a3b", "qwen3.5"),
        ("Qwen/Qwen3.8-27B", "qwen3.5"),
    ],
)
def test_a_model_gets_the_profile_of_its_family(model: str, profile: str) -> None:
    assert recognized_profile(model) == profile
    engine = EngineSettings(model=model)
    assert engine.profile == profile
    assert profile_chooser(engine)(None).name == profile


@pytest.mark.parametrize(
    "model",
    [
        *("", "/models/translator", "m", "/", "google/gemma-3-4b-it", "gemma-4b", "Hy-MT3-7B"),
        *("BSC-LT/salamandraTA-2B", "BSC-LT/salamandra-7b-instruct", "Qwen/Qwen2.5-7B"),
        *("almt-60", "LMT-600", "rosetta-stone"),
    ],
)
def test_a_name_that_says_nothing_leaves_the_default(model: str) -> None:
    assert recognized_profile(model) is None
    assert EngineSettings(kind="echo", model=model).profile == "hy-mt2"


def test_the_nearest_part_of_a_path_decides() -> None:
    assert recognized_profile("/models/qwen3/Tower-Plus-2B") == "tower-plus"


def test_a_profile_that_is_given_wins_over_the_models_name(tmp_path: Path) -> None:
    assert EngineSettings(model="Qwen/Qwen3-8B", profile="chat").profile == "chat"
    file = tmp_path / "my.toml"
    file.write_text("name = 'mine'\nuser = '{{ text }}'", encoding="utf-8")
    assert EngineSettings(model="Qwen/Qwen3-8B", profile_file=file).profile == "mine"
    again = EngineSettings.model_validate(EngineSettings(model="Qwen/Qwen3-8B").model_dump())
    assert again.profile == "qwen3"


def test_every_profile_that_is_recognized_exists() -> None:
    named = [profile for profile, _ in _FAMILIES]
    assert len(set(named)) == len(named)
    assert set(named) == set(PROFILES) - {"chat", "demo"}
