"""The worker of a box: a real `dragoman-worker run`, with the engine that was chosen."""

from __future__ import annotations

import os
from typing import Any, Final

from dragoman_producer.box.engine_choice import OWNED, EngineChoice, demo_model
from dragoman_producer.box.part_child import Part, environment_without, free_port

GRACE_S: Final = 25.0
_VLLM_EXITS_S: Final = 20.0
"""Seconds that vLLM takes to exit on a busy machine."""


def worker_part(
    choice: EngineChoice, *, bootstrap: str, redis_url: str, grace_s: float = GRACE_S
) -> Part:
    """Return how the worker of a box runs.

    `grace_s` is how long its jobs may take after SIGTERM. With less than the usual time nothing is
    to outlive the box, so vLLM is killed instead of waited for.
    """
    port = free_port()
    return Part(
        name="worker",
        program="dragoman-worker",
        arguments=("dragoman_worker", "run"),
        settings={
            "kafka": {"bootstrap_servers": bootstrap},
            "redis": {"url": redis_url},
            "http": {"port": port},
            "shutdown": {"grace_s": grace_s},
            **_engine_settings(choice),
        },
        pairs=choice.settings_of(gateway=False),
        environment=worker_environment(choice),
        page_port=port,
        exit_s=grace_s + (_VLLM_EXITS_S if grace_s >= GRACE_S else 0.5),
    )


def _engine_settings(choice: EngineChoice) -> dict[str, Any]:
    """Return the groups of a worker's settings that depend on the engine."""
    engine: dict[str, Any] = {"kind": "vllm"}
    settings: dict[str, Any] = {"engine": engine}
    if choice.engine == "echo":
        engine["kind"] = "echo"
    elif choice.engine == "demo":
        options = {"max_model_len": 512, "max_num_seqs": 64, "enforce_eager": True}
        engine |= {"model": str(demo_model()), "profile": "demo", "options": options}
        # A small model keeps braces best (`check --tokens`), and a first look shows every text.
        settings["quality"] = {"token_style": "braces", "on_fail": "best_effort"}
    elif choice.server is not None:
        engine |= {"kind": "openai", "url": choice.server}
    else:
        engine["model"] = choice.model
    if choice.profile is not None:
        engine["profile"] = choice.profile
    if choice.gpus is not None:
        engine["gpus"] = choice.gpus
    return settings


def worker_environment(choice: EngineChoice) -> dict[str, str]:
    """Return the worker's environment, without settings that the box or its options give.

    Addresses of a real deployment, and its model, must not reach a box.
    """
    given = [f"engine.{name}" for name in _engine_settings(choice)["engine"]]
    environment = environment_without([*OWNED, *given])
    if choice.engine == "demo":
        # GiB: on two cores with a small model, 1 holds the KV cache of all items in flight.
        environment.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    if choice.model is not None and os.path.isabs(choice.model):  # noqa: PTH117 - a text
        environment["HF_HUB_OFFLINE"] = "1"
    return environment
