"""LoRA adapters that profiles name: loaded at start, and named in each request."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.vllm.launch import Built
from dragoman_worker.engines.vllm.profiles import adapters_of
from dragoman_worker.engines.vllm.start_failures import one_line
from dragoman_worker.errors import PermanentEngineError
from dragoman_worker.settings import EngineSettings


async def loaded(built: Built, settings: EngineSettings) -> Mapping[str, Any]:
    """Return vLLM's LoRARequest by folder, each loaded once. Raises SettingsError."""
    requests: dict[str, Any] = {}
    for number, folder in enumerate(adapters_of(settings), start=1):
        request_class = importlib.import_module("vllm.lora.request").LoRARequest
        request = request_class(Path(folder).name, number, folder)
        try:
            await built.client.add_lora(request)
        except Exception as error:
            raise SettingsError(
                f"engine.profile_file: adapter: vLLM cannot load {folder}: {one_line(str(error))}; "
                "see engine.options.max_lora_rank, and whether it is an adapter of this model"
            ) from error
        requests[folder] = request
    return requests


def keyword(adapters: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return the argument that selects the adapter, none without one."""
    if not folder:
        return {}
    request = adapters.get(folder)
    if request is None:
        raise PermanentEngineError(f"the LoRA adapter {Path(folder).name} was not loaded at start")
    return {"lora_request": request}
