"""Compare the answers of vLLM in the process and of vLLM's server to the same texts.

usage: server_parity.py [--model demo/model] [--texts 500]

CPU, greedy, one model. The texts are sentences of the demonstration's languages, made by a seed.
Each gets them all at once, as a worker sends them: vLLM in the process, once more, and the server
with token ids. The second time says how many answers differ by vLLM itself: sums in bf16 depend on
which requests share a step.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from dragoman_worker.engines.starting import open_engine
from dragoman_worker.engines.vllm import arguments
from dragoman_worker.ports import Decoding, Engine, GenerationRequest
from dragoman_worker.prompts.base import PromptInput
from dragoman_worker.prompts.table import profiles_of
from dragoman_worker.settings import EngineSettings
from support.services.vllm_server import VllmServer

OPTIONS = {"max_num_seqs": 32, "max_num_batched_tokens": 2_048}
_SUBJECTS = ("The teacher", "My brother", "A young woman", "The old man", "Our neighbor")
_VERBS = ("opens", "sees", "buys", "forgets", "brings")
_OBJECTS = ("the book", "a red car", "the window", "some bread", "two tickets", "a letter")
_ENDS = ("today", "in the morning", "before dinner", "at the station", "without a word")


def texts(count: int) -> list[tuple[str, str]]:
    """Return different English sentences, each with a language to translate it into."""
    draws = random.Random(34)
    made = {
        (
            f"{_sentence(draws)}, number {number}.",
            draws.choice(("de", "fr", "es")),
        )
        for number in range(count)
    }
    return sorted(made)


def _sentence(draws: random.Random) -> str:
    return " ".join(map(draws.choice, (_SUBJECTS, _VERBS, _OBJECTS, _ENDS)))


async def answers(settings: EngineSettings, items: Sequence[tuple[str, str]]) -> list[str]:
    """Return the engine's answers, all asked at once."""
    engine = open_engine(settings, wait_s=60)
    await engine.start()
    try:
        profile = profiles_of(settings)[settings.profile]

        async def one(number: int, text: str, target: str) -> str:
            return await _answer(engine, profile, number, text, target)

        return await asyncio.gather(*(one(at, *item) for at, item in enumerate(items)))
    finally:
        await engine.close()


async def _answer(engine: Engine, profile: Any, number: int, text: str, target: str) -> str:
    ids = engine.encode(profile.render(PromptInput(text, target, "en")).prompt)
    given = {**asdict(profile.sampling), "temperature": 0.0}
    decoding = Decoding(max_tokens=96, **given)
    request = GenerationRequest(f"job-{number}", ids, decoding, text, target, 1)
    generation = await engine.generate(request)
    return f"{generation.finish_reason}: {generation.text}"


async def compared(model: Path, count: int) -> dict[str, Any]:
    """Return how many answers differ, with examples."""
    items = texts(count)
    local = EngineSettings(kind="vllm", model=str(model), profile="demo", options=OPTIONS)
    first, again = await answers(local, items), await answers(local, items)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in OPTIONS.items()]
    with (
        tempfile.TemporaryDirectory() as folder,
        VllmServer(model, Path(folder), *options, name="served") as server,
    ):
        served = EngineSettings(
            kind="openai",
            url=(server.url,),
            model="served",
            tokenizer=str(model),
            profile="demo",
            options={"max_num_seqs": OPTIONS["max_num_seqs"]},
        )
        theirs = await answers(served, items)
    differ = [at for at, answer in enumerate(first) if answer != theirs[at]]
    by_itself = sum(ours != other for ours, other in zip(first, again, strict=True))
    return {
        "texts": len(items),
        "differ": len(differ),
        "in_process_differs_from_itself": by_itself,
        "examples": [{"ours": first[at], "theirs": theirs[at]} for at in differ[:3]],
    }


def main() -> None:
    """Print the comparison as one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, default=Path(__file__).parents[1] / "demo/model")
    parser.add_argument("--texts", type=int, default=500)
    given = parser.parse_args()
    arguments.prepare_environment(
        EngineSettings(kind="vllm", model=str(given.model), profile="demo"), verbose=False
    )
    row = asyncio.run(compared(given.model, given.texts))
    sys.stdout.write(json.dumps(row, ensure_ascii=False, indent=2) + "\n")


if __name__ == "__main__":
    main()
