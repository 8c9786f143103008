"""A real server of llama.cpp for tests, on the CPU: that of the package xllamacpp.

usage: python -m support.services.llama_server MODEL PORT SLOTS CONTEXT [--shared]

MODEL is a folder that `gguf_model` reads, or a GGUF file. CONTEXT is the tokens of one slot; with
`--shared` all slots share as many.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import tempfile
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from support.processes.child_process import ChildProcess
from support.processes.waiting import wait_until
from support.services.ports import free_port

_START_S: Final = 120.0
_TESTS: Final = Path(__file__).parents[2]


class LlamaServer:
    """llama.cpp's server of OpenAI's API, as its command starts it: without counts at /metrics."""

    def __init__(
        self, model: Path, folder: Path, *, slots: int, context: int, shared: bool = False
    ) -> None:
        self.name = "served"
        self.port = free_port()
        self._log = folder / "llama-server.log"
        self._argv = [
            *(sys.executable, "-m", __name__, str(model), str(self.port)),
            *(str(slots), str(context), *(["--shared"] if shared else [])),
        ]
        self._process: ChildProcess | None = None

    @property
    def url(self) -> str:
        """The address, without /v1."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        environment = {
            **os.environ,
            "PYTHONPATH": f"{_TESTS}:{os.environ.get('PYTHONPATH', '')}",
        }
        self._process = ChildProcess(self._argv, log=self._log, env=environment).__enter__()
        wait_until(self._healthy, timeout_s=_START_S, what=f"llama.cpp answers ({self._log})")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.__exit__(kind, error, at)

    def _healthy(self) -> bool:
        assert self._process is not None
        if not self._process.running:
            raise RuntimeError(f"llama.cpp's server ended: {self._log.read_text()[-500:]}")
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=2) as reply:  # noqa: S310
                return bool(reply.status == 200)
        except OSError:
            return False


def serve(model: Path, port: int, slots: int, context: int, *, shared: bool) -> None:
    """Serve on 127.0.0.1 until a signal ends it."""
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = str(model), {"served"}
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_parallel, params.kv_unified = slots, shared
    params.n_ctx = context if shared else slots * context
    # Two would wait for each other at every step, as long as other processes have the cores.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    signal.sigwait({signal.SIGINT, signal.SIGTERM})


def _main() -> None:
    model, port, slots, context, *more = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(model)
        if file.is_dir():
            from support.builders import gguf_model

            file = Path(folder) / "model.gguf"
            gguf_model.write(Path(model), file)
        serve(file, int(port), int(slots), int(context), shared="--shared" in more)


if __name__ == "__main__":
    _main()
