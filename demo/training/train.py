"""Training of the demo model: one run on one GPU, for a number of minutes or steps.

    python -m demo.training.train --data DIR --tokenizer DIR --out DIR --minutes 8

This writes ``model/`` (averaged weights as vLLM reads them), ``resume.pt`` and ``log.jsonl``
under --out. An interrupted run continues from ``resume.pt``.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from .checkpoint import read_model, write_model
from .corpus import Split, both_directions, load_split
from .model import Shape, Translator, document_mask, packed_loss, rotary
from .optimizer import optimizers_for
from .samples import Pool, Synthetic
from .stream import Tensors, dev_batches, training_loader
from .synthetic import read_synthetic

NOTE_EVERY_S = 10.0
LossOf = Callable[..., Tensor]
MaskOf = Callable[[Tensor], BlockMask | Tensor]


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings of one run; the published model was trained with the defaults."""

    minutes: float = 8.0
    steps: int = 0
    rows: int = 128
    optimizer: str = "muon"
    lr: float = 2e-3
    weight_decay: float = 0.05
    warmup: float = 0.03
    dropout: float = 0.12
    smoothing: float = 0.1
    average: float = 0.9985
    workers: int = 12
    seed: str = "1"
    save_every_s: float = 60.0


def rate(progress: float, warmup: float) -> float:
    """Return the learning rate's factor at `progress` in 0..1: warm-up, then half a cosine."""
    if progress < warmup:
        return progress / warmup
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - warmup) / (1 - warmup))))


class Run:
    """State of one training run."""

    def __init__(self, plan: Plan, model: Translator, out: Path, tokenizer: Path) -> None:
        self.plan, self.model, self.out, self.tokenizer = plan, model, out, tokenizer
        self.device = next(model.parameters()).device
        self.optimizers = optimizers_for(model, plan.optimizer, plan.lr, plan.weight_decay)
        self.weights = list(model.parameters())
        self.averaged = [weight.detach().clone() for weight in self.weights]
        self.tables = rotary(model.shape, self.device)
        self.step, self.elapsed_s = 0, 0.0
        on_gpu = self.device.type == "cuda"
        self._loss = torch.compile(packed_loss) if on_gpu else packed_loss
        self._mask = torch.compile(document_mask) if on_gpu else document_mask

    def progress(self) -> float:
        """Return the finished share of the run, 0..1, by steps if given, else by time."""
        if self.plan.steps:
            return self.step / self.plan.steps
        return self.elapsed_s / (60 * self.plan.minutes)

    def learn(self, batch: Tensors) -> Tensor:
        """Take one training step; return the loss, which stays on the device."""
        factor = rate(self.progress(), self.plan.warmup)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self.plan.lr * factor
        loss = self._loss_of(batch, self._mask, self._loss, self.plan)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        decay = min(self.plan.average, 1 - 1 / (self.step + 1))
        for average, weight in zip(self.averaged, self.weights, strict=True):
            average.lerp_(weight.detach(), 1 - decay)
        return loss.detach()

    def _loss_of(self, batch: Tensors, mask_of: MaskOf, loss_of: LossOf, plan: Plan) -> Tensor:
        """Return the mean loss of one batch in mixed precision."""
        tokens, documents, places, labels = (
            part.to(self.device, non_blocking=True) for part in batch
        )
        mask = mask_of(documents)
        with torch.autocast(self.device.type, torch.bfloat16):
            return loss_of(
                self.model,
                tokens,
                mask,
                places,
                labels,
                tables=self.tables,
                smoothing=plan.smoothing,
                dropout=plan.dropout,
            )

    def dev_loss(self, batches: list[Tensors]) -> float:
        """Return the loss per target token over the dev batches, with the averaged weights.

        This is not compiled, because a second graph costs more than it saves.
        """
        plain = replace(self.plan, smoothing=0.0, dropout=0.0)
        self._swap()
        self.model.eval()
        total, count = 0.0, 0
        for batch in batches:
            targets = int((batch[3] >= 0).sum())
            with torch.no_grad():
                loss = self._loss_of(batch, document_mask, packed_loss, plain)
            total += float(loss) * targets
            count += targets
        self.model.train()
        self._swap()
        return total / count

    def _swap(self) -> None:
        """Exchange the weights with their averages, in place."""
        for weight, average in zip(self.weights, self.averaged, strict=True):
            kept = weight.data.clone()
            weight.data.copy_(average)
            average.copy_(kept)

    def save(self) -> None:
        """Write the state to resume from, and the averaged weights as a model."""
        names = [name for name, _ in self.model.named_parameters()]
        averaged = dict(zip(names, self.averaged, strict=True))
        write_model(averaged, self.model.shape, self.tokenizer, self.out / "model")
        state = {
            "step": self.step,
            "elapsed_s": self.elapsed_s,
            "model": self.model.state_dict(),
            "averaged": self.averaged,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }
        torch.save(state, self.out / "resume.part")
        (self.out / "resume.part").replace(self.out / "resume.pt")

    def resume(self) -> None:
        """Load the state that `save` wrote, if there is any."""
        path = self.out / "resume.pt"
        if not path.exists():
            return
        state = torch.load(path, map_location=self.device)
        self.step, self.elapsed_s = state["step"], state["elapsed_s"]
        self.model.load_state_dict(state["model"])
        for average, kept in zip(self.averaged, state["averaged"], strict=True):
            average.copy_(kept)
        for optimizer, kept in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(kept)


def train(run: Run, stream: Iterator[Tensors], dev: list[Tensors]) -> None:
    """Train until the plan's end; the first two steps compile and are not timed."""
    untimed, noted, saved = 2, 0.0, 0.0
    before = time.monotonic()
    while run.progress() < 1:
        loss = run.learn(next(stream))
        if untimed or run.step % 20 == 0:
            loss.item()
        now = time.monotonic()
        if untimed:
            untimed -= 1
        else:
            run.elapsed_s += now - before
        before = now
        if run.elapsed_s - noted > NOTE_EVERY_S:
            noted = run.elapsed_s
            _note(run, {"loss": round(loss.item(), 4)})
        if run.elapsed_s - saved > run.plan.save_every_s:
            saved = run.elapsed_s
            _note(run, {"dev": round(run.dev_loss(dev), 4)})
            run.save()
            before = time.monotonic()
    _note(run, {"dev": round(run.dev_loss(dev), 4), "done": True})
    run.save()


def _note(run: Run, facts: dict[str, Any]) -> None:
    line = json.dumps({"step": run.step, "elapsed_s": round(run.elapsed_s, 1), **facts})
    print(line, flush=True)
    with (run.out / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write(line + "\n")


def _pool(split: Split, synthetic: Path | None, share: float) -> Pool:
    made: list[Synthetic] = read_synthetic(synthetic) if synthetic else []
    print(f"{len(split.train)} pairs, {len(made)} synthetic", flush=True)
    return Pool(split.train, made, share if made else 0.0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the four archives")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start-from", type=Path, help="a model folder to start from")
    parser.add_argument("--synthetic", type=Path, help="pairs written by demo.training.synthetic")
    parser.add_argument("--synthetic-share", type=float, default=0.35)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a small network, to test the run")
    for field in fields(Plan):
        name = "--" + field.name.replace("_", "-")
        parser.add_argument(name, type=type(field.default), default=field.default)
    return parser.parse_args()


def main() -> None:
    """Train once by the command-line arguments."""
    given = _arguments()
    plan = Plan(**{field.name: getattr(given, field.name) for field in fields(Plan)})
    torch.manual_seed(int(plan.seed))
    torch.set_float32_matmul_precision("high")
    device = torch.device(given.device)
    given.out.mkdir(parents=True, exist_ok=True)
    split = load_split(given.data)
    pool = _pool(split, given.synthetic, given.synthetic_share)
    dev = dev_batches(both_directions(split.dev), given.tokenizer, plan.rows)
    shape = Shape(hidden=64, layers=2, heads=2, kv_heads=1, head=32, mlp=128)
    model = Translator(shape if given.tiny else Shape())
    if given.start_from:
        model.load_state_dict(read_model(given.start_from, torch.device("cpu")).state_dict())
    run = Run(plan, model.float().to(device).train(), given.out, given.tokenizer)
    run.resume()
    seed = f"{plan.seed}:{run.step}"
    loader = training_loader(pool, given.tokenizer, plan.rows, seed, plan.workers)
    train(run, iter(loader), dev)


if __name__ == "__main__":
    main()
