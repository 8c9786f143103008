"""Requests that every strategy gets: the same token ids and decoding parameters."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baseline import planner_for
from job_mix import mix

from dragoman_schemas.jobs import TranslationJob
from dragoman_worker.engines.exact_lengths import exact_length
from dragoman_worker.job.plan import Unit
from dragoman_worker.job.planner import Planner
from dragoman_worker.ports import Decoding, GenerationRequest
from dragoman_worker.prompts.base import PromptInput
from dragoman_worker.prompts.table import get_profile


@dataclass(frozen=True, slots=True)
class Request:
    """One job as the worker would ask an engine for it."""

    job_id: str
    prompt_ids: list[int]
    decoding: Decoding
    exact: int | None = None
    """Tokens that the answer has whatever they are; None if it ends by itself."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The jobs of one round, and a file with their requests for the processes that run them."""

    jobs: list[TranslationJob]
    requests: list[Request]
    path: Path

    def prompt_tokens(self, count: int) -> int:
        return sum(len(request.prompt_ids) for request in self.requests[:count])


class Work:
    """Maker of each round's jobs: other words in every round, so that no prefix cache helps."""

    def __init__(
        self, model: str, profile: str, *, exact: bool | float, jobs: Path | None, folder: Path
    ) -> None:
        self._model, self._profile, self._exact = model, profile, exact
        self._lines = jobs.read_text(encoding="utf-8").splitlines() if jobs else None
        self._folder = folder
        self._planner: Planner | None = None
        self._made: dict[tuple[str, int], Batch] = {}

    def batch(self, lengths: str, number: int, count: int) -> Batch:
        """Return at least `count` jobs of round `number`."""
        made = self._made.get((lengths, number))
        if made is None or len(made.requests) < count:
            made = self._make(lengths, number, count)
            self._made[lengths, number] = made
        return made

    def messages(self, job: TranslationJob) -> list[dict[str, Any]]:
        """Return the job's prompt as chat messages, for interfaces that accept nothing else."""
        segment = PromptInput(
            text=job.items[0].text, target_lang=job.target_lang, source_lang=job.source_lang
        )
        prompt = get_profile(self._profile).render(segment).prompt
        return [{"role": part.role, "content": part.content} for part in prompt.messages]

    def _make(self, lengths: str, number: int, count: int) -> Batch:
        jobs, requests = list[TranslationJob](), list[Request]()
        for line in self._raw(lengths, number, count):
            job = TranslationJob.model_validate(line)
            units = self.planner().plan(job).units
            if len(units) != 1 or len(jobs) == count:  # a job here is one request
                continue
            jobs.append(job)
            requests.append(self.request(job.job_id, units[0]))
        path = self._folder / f"requests-{lengths}-{number}-{count}.pickle"
        path.write_bytes(pickle.dumps(requests))
        return Batch(jobs, requests, path)

    def request(self, name: str, unit: Unit) -> Request:
        """Return a unit of the planner as a request of this name."""
        ids, decoding = list(unit.prompt_ids), unit.decoding
        asked = GenerationRequest(name, ids, decoding, unit.source, "", 1)
        return Request(name, ids, decoding, exact_length(self._exact, asked))

    def _raw(self, lengths: str, number: int, count: int) -> list[dict[str, Any]]:
        if self._lines is None:
            return mix(count, uniform=lengths == "uniform", words_seed=1000 + number)
        start = number * count % len(self._lines)
        turned = self._lines[start:] + self._lines[:start]
        return [json.loads(line) for line in turned]

    def planner(self) -> Planner:
        """Return the worker's planner for the model."""
        if self._planner is None:
            from transformers import AutoTokenizer  # noqa: PLC0415

            tokenizer = AutoTokenizer.from_pretrained(self._model)
            config = json.loads((Path(self._model) / "config.json").read_text(encoding="utf-8"))
            length = min(2048, config["max_position_embeddings"])
            self._planner = planner_for(tokenizer, length, self._profile)
        return self._planner


def load(path: str) -> list[Request]:
    """Return the requests in a file that `Work` wrote."""
    requests: list[Request] = pickle.loads(Path(path).read_bytes())  # noqa: S301  our own file
    return requests
