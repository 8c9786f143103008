"""A real `vllm serve` for tests, on the CPU."""

from __future__ import annotations

import os
import sys
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from support.processes.child_process import ChildProcess
from support.processes.waiting import wait_until
from support.services.ports import free_port

_START_S: Final = 240.0


class VllmServer:
    """vLLM's server of OpenAI's API; `kill` and `start` keep the port."""

    def __init__(self, model: Path, folder: Path, *options: str, name: str = "served") -> None:
        self.name = name
        self.port = free_port()
        self._folder = folder
        self._starts = 0
        # Not `vllm serve`: its command asks for metadata that vLLM's wheel for CPUs lacks.
        self._argv = [
            *(sys.executable, "-P", "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", str(model), "--served-model-name", name),
            *("--host", "127.0.0.1", "--port", str(self.port)),
            # Most of the machine's memory by default.
            *("--gpu-memory-utilization", "0.1", "--enforce-eager"),
            *options,
        ]
        self._process: ChildProcess | None = None

    @property
    def url(self) -> str:
        """The address, without /v1."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._starts += 1
        environment = {
            **os.environ,
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
        }
        log = self._folder / f"vllm-server-{self._starts}.log"
        self._process = ChildProcess(self._argv, log=log, env=environment).__enter__()
        wait_until(self._healthy, timeout_s=_START_S, what=f"vLLM's server answers ({log})")

    def kill(self) -> None:
        """Kill it and all that it started, without a word."""
        process, self._process = self._process, None
        if process is not None:
            process.__exit__(None, None, None)

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=2) as reply:  # noqa: S310
                return bool(reply.status == 200)
        except OSError:
            return False
