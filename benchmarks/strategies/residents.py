"""Engine processes that stay loaded while strategies take turns."""

from __future__ import annotations

import importlib.metadata
import json
import multiprocessing
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import children
import psutil
from limits import VARIABLE
from measure import tree
from pipeline import DEAD, exact_lengths, worker_command
from worker_process import engine_processes, free_port

_LOOK_S: Final = 0.1
_STOP_S: Final = 5.0
SPAWN: Final = multiprocessing.get_context("spawn")


class StartFailed(RuntimeError):
    """Raised when a resident exited before it was ready, or refused a command."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings that every resident is started with."""

    model: str
    profile: str
    exact: bool | float
    folder: Path
    kafka: str
    redis: str
    tasks: Any
    answers: Any


class Resident(ABC):
    """Engine that stays loaded. `options` are vLLM's."""

    gpus: str | None = None
    """Indices of the GPUs that it sees, such as "0,1"; None are those of the whole run."""

    def __init__(self, name: str, setting: Setting, options: dict[str, Any]) -> None:
        self.name = name
        self.setting = setting
        self.options = options
        self.started = time.time()

    @abstractmethod
    def start(self) -> None:
        """Start to load, without waiting."""

    @abstractmethod
    def ready(self) -> bool:
        """Return whether it is ready. Raises StartFailed."""

    @property
    @abstractmethod
    def pids(self) -> list[int]:
        """Return its root processes."""

    def stop(self) -> None:
        """Terminate it and its descendants, without waiting for requests in flight."""
        processes = [process for pid in self.pids for process in tree(pid)]
        for process in processes:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(processes, _STOP_S)


class Child(Resident):
    """Process of children.py: `LLM`, or AsyncLLM."""

    target: Any = None

    def start(self) -> None:
        os.environ.setdefault(VARIABLE, str(_limit_file(self.setting.folder)))
        self.pipe, theirs = SPAWN.Pipe()
        given = (self.gpus, self.target, theirs, *self._arguments())
        self.process = SPAWN.Process(target=children.on_gpus, args=given, daemon=False)
        self.process.start()
        theirs.close()

    def _arguments(self) -> tuple[Any, ...]:
        setting = self.setting
        return (setting.tasks, setting.answers, setting.model, self.options)

    def ready(self) -> bool:
        if not self.pipe.poll():
            if not self.process.is_alive():
                raise StartFailed(f"{self.name}: exited with {self.process.exitcode}")
            return False
        self.answer()
        return True

    def send(self, *command: Any) -> None:
        self.pipe.send(command)

    def answer(self) -> dict[str, Any]:
        """Return the child's answer. Raises StartFailed with its traceback."""
        try:
            verdict, reply = self.pipe.recv()
        except EOFError:
            raise StartFailed(f"{self.name}: gone") from None
        if verdict != "ok":
            raise StartFailed(f"{self.name}: {reply}")
        answer: dict[str, Any] = reply
        return answer

    @property
    def pids(self) -> list[int]:
        return [self.process.pid] if self.process.pid else []


class Llm(Child):
    target = staticmethod(children.llm_child)


class Async(Child):
    target = staticmethod(children.async_child)


class _HttpClient(Child):
    target = staticmethod(children.http_child)

    def _arguments(self) -> tuple[Any, ...]:
        return (self.options["url"], self.setting.model)


class Serve(Resident):
    """`vllm serve`, with its consumer in a process of its own."""

    def start(self) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        flags = ("--host", "127.0.0.1", "--port", self.url.rpartition(":")[2])
        argv = [*serve_command(self.setting.model), *flags, *as_flags(self.options)]
        argv.append("--disable-uvicorn-access-log")
        self._log = (self.setting.folder / f"{self.name}.log").open("wb")
        self.process = subprocess.Popen(
            argv, stdout=self._log, stderr=self._log, env=_environment(self.gpus)
        )
        self.client = _HttpClient(f"{self.name}-client", self.setting, {"url": self.url})
        self.client.start()

    def ready(self) -> bool:
        if self.process.poll() is not None:
            raise StartFailed(f"{self.name}: exited with {self.process.returncode}; see its log")
        try:
            with urllib.request.urlopen(self.url + "/health", timeout=1) as answer:  # noqa: S310
                if answer.status != 200:
                    return False
        except (urllib.error.URLError, OSError):
            return False
        self.client.answer()
        return True

    @property
    def pids(self) -> list[int]:
        return [self.process.pid]

    def stop(self) -> None:
        self.client.stop()
        super().stop()
        self._log.close()


class Dragoman(Resident):
    """Workers: N under a supervisor, in one group, or N single ones with a topic each.

    Single ones load together and never wait for a rebalance; jobs are published to their topics in
    turn, as a group's partitions would be shared. `active` is how many of them get jobs: an idle
    engine costs nothing, so 4 replicas become 3, then 2, without starting anything.
    """

    replicas: int = 1
    supervised: bool = True
    settings: Mapping[str, Any] = MappingProxyType({})
    """The worker's own, beside those that say where it is and what it loads."""
    tree: Path | None = None
    """Checkout of another commit whose worker runs instead of this one's."""
    servers: Sequence[Serve] = ()
    """Servers that the worker sends its texts to, in place of an engine of its own."""

    def start(self) -> None:
        count = 1 if self.supervised else self.replicas
        self.active = count
        self.topics = topics_of(self.name, count)
        self.logs = [self.setting.folder / f"{topic}.log" for topic in self.topics]
        pairs = zip(self.topics, self.logs, strict=True)
        self.processes = [self._started(topic, log) for topic, log in pairs]

    def _started(self, topic: str, log: Path) -> subprocess.Popen[bytes]:
        setting = self.setting
        settings = {
            "kafka.bootstrap_servers": setting.kafka,
            "kafka.topics": json.dumps([topic]),
            "kafka.dead_letter_topic": DEAD,
            "kafka.group_id": topic,
            "connect_timeout_s": 300,
            "redis.url": setting.redis,
            "engine.model": setting.model,
            "engine.profile": setting.profile,
            **exact_lengths(setting.exact),
            "http.port": 0,
            **({"engine.replicas": self.replicas} if self.supervised else {}),
            **self._engine(),
            **self.settings,
        }
        with log.open("wb") as file:
            return subprocess.Popen(
                worker_command(settings),
                stdout=file,
                stderr=file,
                start_new_session=True,
                env=_environment(self.gpus, self.tree),
            )

    def _engine(self) -> dict[str, Any]:
        if self.servers:
            urls = ",".join(server.url for server in self.servers)
            own = {"engine.kind": "openai", "engine.url": urls, "engine.replicas": 1}
            return {**own, "engine.tokenizer": self.setting.model}
        options = {f"engine.options.{name}": value for name, value in self.options.items()}
        return {"engine.kind": "vllm", **options}

    def ready(self) -> bool:
        for process, log in zip(self.processes, self.logs, strict=True):
            if process.poll() is not None:
                output = log.read_text(encoding="utf-8", errors="replace")[-2000:]
                raise StartFailed(f"{self.name}: exited with {process.returncode}\n{output}")
        return self.working >= self.replicas

    @property
    def working(self) -> int:
        """How often a replica has begun to work, by the logs."""
        return sum(log.read_bytes().count(b'"working"') for log in self.logs)

    def kill_engine(self) -> None:
        """Send SIGKILL to one engine process."""
        engine_of(self).kill()

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]


def engines_of(resident: Resident) -> list[psutil.Process]:
    """Return the engine processes of a resident. Raises StartFailed if there is none."""
    found = [process for pid in resident.pids for process in engine_processes(pid)]
    if not found:
        raise StartFailed(f"{resident.name}: no engine process found")
    return found


def engine_of(resident: Resident) -> psutil.Process:
    """Return the first engine process of a resident. Raises StartFailed if there is none."""
    return engines_of(resident)[0]


def replica_pid(resident: Resident) -> int:
    """Return the process that has the first engine: of a worker, its replica."""
    parent = engine_of(resident).parent()
    if parent is None:
        raise StartFailed(f"{resident.name}: the engine process has no parent")
    return parent.pid


def _environment(gpus: str | None, tree: Path | None = None) -> dict[str, str]:
    own = dict(os.environ)
    if gpus is not None:
        own["CUDA_VISIBLE_DEVICES"] = gpus
    if tree is not None:
        parts = ("worker", "producer", "connections", "documents", "schemas", "text")
        found = [str((tree / part).resolve(strict=True)) for part in parts]
        own["PYTHONPATH"] = ":".join([*found, own.get("PYTHONPATH", "")])
    return own


KINDS: Final[dict[str, type[Resident]]] = {
    "llm": Llm,
    "async": Async,
    "serve": Serve,
    "dragoman": Dragoman,
}


def topics_of(name: str, count: int) -> list[str]:
    """Return the topics of a resident's jobs, one per process."""
    return [f"dragoman.jobs.{name}.{number}" for number in range(count)]


def serve_command(model: str) -> list[str]:
    """Return `vllm serve MODEL` of this Python, installed as a command or not."""
    if _has_command():
        return [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", model]
    return [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model]


def run_batch_command(model: str) -> list[str]:
    """Return `vllm run-batch --model MODEL` of this Python."""
    if _has_command():
        return [sys.executable, "-m", "vllm.entrypoints.cli.main", "run-batch", "--model", model]
    return [sys.executable, "-m", "vllm.entrypoints.openai.run_batch", "--model", model]


def _has_command() -> bool:
    """Return whether the command `vllm` works: it fails on the package for CPUs."""
    try:
        importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def as_flags(options: dict[str, Any]) -> list[str]:
    """Return options such as `{"max_num_seqs": 16}` as `--max-num-seqs 16`."""
    flags: list[str] = []
    for name, value in options.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            flags += [f"--{flag}", value if isinstance(value, str) else json.dumps(value)]
    return flags


def _limit_file(folder: Path) -> Path:
    place = folder / "limit"
    place.write_bytes(bytes(4))
    return place
