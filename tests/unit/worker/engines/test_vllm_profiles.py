"""Tests that a start ends with one sentence if the worker's profile cannot work with the model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.vllm.profiles import (
    adapter_keyword,
    adapters_of,
    check_adapters,
    check_profiles,
    loaded_adapters,
)
from dragoman_worker.errors import PermanentEngineError
from dragoman_worker.prompts import tokens
from dragoman_worker.prompts.table import PROFILES
from dragoman_worker.settings import EngineSettings
from support.builders.chat_tokenizers import byte_level, sentencepiece_like

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Make = Callable[..., "PreTrainedTokenizerFast"]
SYSTEM_REFUSED = (
    "{% for message in messages %}{% if message.role == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}{{ message.content }}{% endfor %}"
)


def settings(profile: str, **given: Any) -> EngineSettings:
    return EngineSettings(model="m", profile=profile, **given)


@pytest.mark.parametrize("make", [byte_level, sentencepiece_like])
@pytest.mark.parametrize("name", sorted(PROFILES))
def test_each_profile_passes_with_a_model_of_its_kind(name: str, make: Make) -> None:
    check_profiles(settings(name), make(bos=True))


def test_a_tokenizer_without_its_files_ends_the_start_with_their_names() -> None:
    empty: Any = SimpleNamespace(encode=lambda *_, **__: [], decode=lambda _: "")
    with pytest.raises(SettingsError, match=r"engine\.model: the tokenizer of m .*tokenizer\.json"):
        check_profiles(settings("demo"), empty)


def test_a_model_without_a_chat_template_ends_the_start_with_the_remedy() -> None:
    tokenizer = byte_level(bos=False)
    tokenizer.chat_template = None
    with pytest.raises(SettingsError) as refused:
        check_profiles(settings("hy-mt2"), tokenizer)
    assert str(refused.value) == (
        "engine.profile: hy-mt2 does not work with this model, which has no chat template; add "
        "chat_template.jinja to its folder, or choose a profile for completions (demo, gemmax2, "
        "milmmt and seed-x, or an own one)"
    )
    check_profiles(settings("demo"), tokenizer)


@pytest.mark.parametrize(
    ("profile", "template", "expected"),
    [
        ("eurollm", SYSTEM_REFUSED, "System role not supported; choose the profile of this model"),
        ("translategemma", "{{ messages[0].content + '' }}", "; choose the profile of this model"),
        ("chat", "<|user|>Hi", "leaves the text out of the prompt"),
        ("chat", "{% for %}", "choose the profile of this model"),
    ],
)
def test_an_incompatible_chat_template_ends_the_start_with_the_reason(
    profile: str, template: str, expected: str
) -> None:
    tokenizer = byte_level(bos=False)
    tokenizer.chat_template = template
    with pytest.raises(SettingsError) as refused:
        check_profiles(settings(profile), tokenizer)
    message = str(refused.value)
    assert message.startswith(f"engine.profile: {profile} does not work with the model's chat")
    assert expected in message
    assert "\n" not in message


def test_the_profile_of_the_file_is_checked_even_if_another_is_the_default(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text("name='mine'\nuser='{{ text }}'\nsystem='x'", encoding="utf-8")
    tokenizer = byte_level(bos=False)
    tokenizer.chat_template = SYSTEM_REFUSED
    with pytest.raises(SettingsError, match="mine does not work with the model's chat template"):
        check_profiles(settings("chat", profile_file=path), tokenizer)


# --- Mistral's tokenizer (the real one: tests/integration/test_vllm_tokenizers.py) ----------------


class MistralLike:
    """A tokenizer without added tokens, as vLLM wraps that of Mistral."""

    bos_token_id = None

    def __init__(self) -> None:
        self._inner = byte_level(bos=False)

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return list(self._inner.encode(text, add_special_tokens=add_special_tokens))

    def apply_chat_template(self, conversation: Any, **_: Any) -> list[int]:
        return self.encode(conversation[-1]["content"], add_special_tokens=False)

    def decode(self, ids: list[int]) -> str:
        return str(self._inner.decode(ids))


@pytest.mark.parametrize("name", ["chat", "hy-mt2", "seed-x"])
def test_a_tokenizer_without_added_tokens_works(name: str) -> None:
    tokenizer: Any = MistralLike()
    check_profiles(settings(name), tokenizer)
    assert tokens.count("Guten Morgen", tokenizer) > 1


# --- LoRA adapters --------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _lora_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for vLLM's module, whose import takes 20 s."""

    def request(name: str, number: int, path: str) -> Any:
        return SimpleNamespace(lora_name=name, lora_int_id=number, lora_path=path)

    module = SimpleNamespace(LoRARequest=request)
    monkeypatch.setitem(sys.modules, "vllm.lora.request", module)


@pytest.fixture
def with_adapter(tmp_path: Path) -> Path:
    (tmp_path / "lora").mkdir()
    (tmp_path / "lora" / "adapter_config.json").write_text("{}", encoding="utf-8")
    path = tmp_path / "my.toml"
    path.write_text("name='mine'\nuser='{{ text }}'\nadapter='lora'", encoding="utf-8")
    return path


def test_an_adapter_needs_lora_enabled(with_adapter: Path) -> None:
    with pytest.raises(SettingsError, match=r"^engine\.options\.enable_lora: profile mine "):
        check_adapters(settings("chat", profile_file=with_adapter))
    enabled = settings("chat", profile_file=with_adapter, options={"enable_lora": True})
    check_adapters(enabled)
    assert adapters_of(enabled) == (str(with_adapter.parent / "lora"),)
    check_adapters(settings("chat"))


async def test_an_adapter_is_loaded_at_start_and_named_in_requests(with_adapter: Path) -> None:
    added: list[Any] = []

    async def add_lora(request: Any) -> bool:
        added.append(request)
        return True

    client: Any = SimpleNamespace(add_lora=add_lora)
    enabled = settings("mine", profile_file=with_adapter, options={"enable_lora": True})
    loaded = await loaded_adapters(client, enabled)
    folder = str(with_adapter.parent / "lora")
    assert [(each.lora_path, each.lora_int_id) for each in added] == [(folder, 1)]
    assert adapter_keyword(loaded, folder) == {"lora_request": added[0]}
    assert adapter_keyword(loaded, "") == {}
    with pytest.raises(PermanentEngineError, match="was not loaded"):
        adapter_keyword(loaded, "/elsewhere")


async def test_an_adapter_that_vllm_refuses_ends_the_start(with_adapter: Path) -> None:
    async def add_lora(request: Any) -> bool:
        raise ValueError("LoRA rank 64 is greater than max_lora_rank 16.")

    client: Any = SimpleNamespace(add_lora=add_lora)
    enabled = settings("mine", profile_file=with_adapter, options={"enable_lora": True})
    with pytest.raises(SettingsError, match=r"adapter: vLLM cannot load .*rank 64"):
        await loaded_adapters(client, enabled)
