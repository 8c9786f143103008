"""Optimizers: Muon for the matrices inside the layers, AdamW for the rest.

Muon (K. Jordan and others, 2024) orthogonalises the momentum of each matrix with five
Newton-Schulz steps; the scale 0.2 * sqrt(longer side) makes its steps as large as AdamW's,
so both share one learning rate (J. Liu and others, 2025, "Muon is scalable for LLM
training"). Matrices of one shape are stacked, which needs only a few kernels per step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

_A, _B, _C = 3.4445, -4.7750, 2.0315


def orthogonalised(stack: Tensor, steps: int = 5) -> Tensor:
    """Return nearly orthogonal matrices [N,R,C] (singular values near 1), in bfloat16."""
    x = stack.bfloat16()
    flip = x.shape[-2] > x.shape[-1]
    if flip:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.mT
        x = _A * x + (_B * square + _C * square @ square) @ x
    return x.mT if flip else x


class Muon(torch.optim.Optimizer):  # type: ignore[misc]  # torch is not followed
    """Nesterov momentum, orthogonalised, with decoupled weight decay, for matrices only."""

    def __init__(
        self, weights: Iterable[Tensor], lr: float, weight_decay: float, momentum: float = 0.95
    ) -> None:
        super().__init__(weights, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})
        on_gpu = self.param_groups[0]["params"][0].is_cuda
        self._orthogonalised = torch.compile(orthogonalised) if on_gpu else orthogonalised

    def step(self, closure: Any = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Update every weight that has a gradient."""
        del closure
        for group in self.param_groups:
            by_shape: defaultdict[torch.Size, list[Tensor]] = defaultdict(list)
            for weight in group["params"]:
                by_shape[weight.shape].append(weight)
            for weights in by_shape.values():
                with torch.no_grad():
                    self._step_stack(weights, group)

    def _step_stack(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        grads = torch.stack([weight.grad for weight in weights if weight.grad is not None])
        state = self.state[weights[0]]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(grads)
        momentum: Tensor = state["momentum"]
        momentum.lerp_(grads, 1 - group["momentum"])
        update = self._orthogonalised(grads.lerp(momentum, group["momentum"])).float()
        scale = 0.2 * max(weights[0].shape) ** 0.5
        for weight, change in zip(weights, update.unbind(), strict=True):
            weight.mul_(1 - group["lr"] * group["weight_decay"])
            weight.add_(change, alpha=-group["lr"] * scale)


def optimizers_for(
    model: nn.Module, kind: str, lr: float, weight_decay: float
) -> list[torch.optim.Optimizer]:
    """Return the optimizers of `kind`, "muon" or "adamw"; norms have no weight decay."""
    matrices, table, norms = [], [], []
    for name, weight in model.named_parameters():
        if weight.ndim < 2:
            norms.append(weight)
        elif "embed" in name or kind == "adamw":
            table.append(weight)
        else:
            matrices.append(weight)
    groups: list[dict[str, Any]] = [
        {"params": table, "weight_decay": weight_decay},
        {"params": norms, "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.98), fused=table[0].is_cuda)
    return [adamw, Muon(matrices, lr, weight_decay)] if matrices else [adamw]
