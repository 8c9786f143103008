"""Tests of the findings of `check` that need no service."""

from __future__ import annotations

import pytest

from dragoman_worker.cli import checks
from dragoman_worker.engines.gpu import Gpu
from dragoman_worker.engines.machine import Machine
from dragoman_worker.engines.vllm.patches.table import ChosenPatches
from dragoman_worker.kafka.rights import TopicRights
from dragoman_worker.settings import WorkerSettings
from support.services.openai_server import OpenAIServer

TWO = Machine((Gpu("0", "GPU-0", 2**37), Gpu("1", "GPU-1", 2**37)), cores=32)


def settings(**engine: object) -> WorkerSettings:
    return WorkerSettings.model_validate({"engine": {"model": "some/model", **engine}})


@pytest.mark.parametrize(
    ("engine", "status", "words"),
    [
        ({}, "ok", ["2 on GPU 0; 1; auto: 1, because", "on each of 2 GPUs"]),
        ({"replicas": 3, "gpus": [1]}, "ok", ["3 on GPU 1; engine.replicas = 3"]),
        ({"options": {"tensor_parallel_size": 2}}, "ok", ["1 on GPU 0,1; auto: 1"]),
        ({"gpus": [5]}, "bad", ["engine.gpus: there is no GPU 5; visible are: 0, 1"]),
        ({"kind": "echo"}, "ok", ["1; auto: 1, because the echo engine uses no GPU"]),
    ],
)
def test_the_engines_that_run_would_start_are_reported(
    monkeypatch: pytest.MonkeyPatch, engine: dict[str, object], status: str, words: list[str]
) -> None:
    monkeypatch.setattr(checks, "this_machine", lambda: TWO)
    finding = checks._replicas(settings(**engine))
    assert finding.status == status
    for word in words:
        assert word in finding.detail


@pytest.mark.parametrize(
    ("engine", "status", "word"),
    [
        ({"model": "tencent/Hy-MT2-30B-A3B"}, "ok", "hy-mt2-30b"),
        ({"model": "tencent/Hy-MT2-30B-A3B", "profile": "hy-mt2"}, "warn", "hy-mt2-30b"),
        ({"model": "/models/translator", "profile": "qwen3"}, "ok", "qwen3"),
        ({"model": "Qwen/Qwen3-8B", "profile": "nope"}, "bad", "nope"),
    ],
)
def test_a_profile_of_another_family_than_the_models_is_a_warning(
    engine: dict[str, object], status: str, word: str
) -> None:
    finding = checks._profile(settings(**engine))
    assert finding.status == status
    assert word in finding.detail


@pytest.mark.parametrize(
    ("partitions", "retention_ms", "status", "words"),
    [
        (3, None, "ok", "3 partitions"),
        (3, 604_800_000, "ok", "3 partitions"),
        (3, 604_800_001, "warn", "it keeps records for 604800 s"),
        (3, -1, "warn", "it keeps records forever"),
        (1, 60_000, "warn", "it has 1 partition, so only one worker"),
    ],
)
def test_a_topic_kept_for_longer_than_unfinished_jobs_is_a_warning(
    partitions: int, retention_ms: int | None, status: str, words: str
) -> None:
    rights = TopicRights("jobs", exists=True, hidden=False, partitions=partitions, operations=None)
    found = checks._input(checks._topic(rights, settings()), rights, retention_ms, settings())
    assert (found.name, found.status) == ("topic jobs", status)
    assert words in found.detail


@pytest.mark.parametrize(
    ("found", "status", "words"),
    [
        (ChosenPatches(frozenset({"sockets"})), "ok", ["off: sockets"]),
        (
            ChosenPatches(frozenset(), {"whole-outputs": "vllm.x:Y.z"}),
            "warn",
            ["off: none", "whole-outputs, because this vLLM has no vllm.x:Y.z", "every token"],
        ),
    ],
)
def test_what_is_changed_in_vllm_is_reported_and_a_missing_name_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, found: ChosenPatches, status: str, words: list[str]
) -> None:
    monkeypatch.setattr(checks, "chosen", lambda setting: found)
    finding = checks._patches(settings(patches="off"))
    assert finding.status == status
    for word in words:
        assert word in finding.detail


async def found_at(server: OpenAIServer, **engine: object) -> checks.CheckResult:
    given = {"kind": "openai", "url": server.url, "model": "m", "profile": "chat", **engine}
    return await checks._engine(settings(**given))


async def test_what_a_server_is_and_takes_is_found() -> None:
    async with OpenAIServer() as server:
        finding = await found_at(server)
    assert finding.status == "ok"
    assert f"m at {server.url}; prompts as text, tokens estimated" in finding.detail
    assert "context 512" in finding.detail


async def test_a_server_that_cannot_be_used_is_one_sentence_that_names_the_setting() -> None:
    async with OpenAIServer(key="right") as server:
        key = await found_at(server, api_key="wrong")
        model = await found_at(server, api_key="right", model="other")
        await server.stop()
        nothing = await found_at(server)
    assert {each.status for each in (key, model, nothing)} == {"bad"}
    refused = f"engine.api_key: {server.url} refuses the key (status 401: invalid key)"
    assert key.detail == refused
    assert model.detail == f"engine.model: no model is called 'other' at {server.url}; models: m"
    assert nothing.detail.startswith(f"engine.url: no server answers: {server.url}: cannot connect")
    assert nothing.detail.endswith("Is it running?")
    assert not any("\n" in each.detail for each in (key, model, nothing))
