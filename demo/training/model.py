"""Network of the demo model: Qwen3's architecture, written for packed training.

Parameter names and arithmetic are those of `Qwen3ForCausalLM`, so the state dict is the
checkpoint that transformers and vLLM read. Training differs in two ways: attention stays
inside a document (flex_attention with a block mask), and dropout acts on the embedding and
on the output of each block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(query [B,Hq,T,D], key [B,Hkv,T,D], value) -> [B,Hq,T,D]."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the network; the defaults are those of the published model (18.9 M parameters)."""

    vocabulary: int = 16_384
    hidden: int = 384
    layers: int = 8
    heads: int = 6
    kv_heads: int = 2
    head: int = 64
    mlp: int = 1024
    context: int = 512
    theta: float = 10_000.0
    epsilon: float = 1e-6


def rotary(shape: Shape, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return cosines and sines, each [context, head], in float32."""
    steps = torch.arange(0, shape.head, 2, device=device).float() / shape.head
    angles = torch.outer(torch.arange(shape.context, device=device).float(), shape.theta**-steps)
    both = torch.cat((angles, angles), dim=-1)
    return both.cos(), both.sin()


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return (x * cos + turned * sin).to(x.dtype)


class Attention(nn.Module):  # type: ignore[misc]  # torch is not followed
    """Grouped-query attention with normalised queries and keys."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head
        self.q_proj = nn.Linear(shape.hidden, queries, bias=False)
        self.k_proj = nn.Linear(shape.hidden, keys, bias=False)
        self.v_proj = nn.Linear(shape.hidden, keys, bias=False)
        self.o_proj = nn.Linear(queries, shape.hidden, bias=False)
        self.q_norm = nn.RMSNorm(shape.head, eps=shape.epsilon)
        self.k_norm = nn.RMSNorm(shape.head, eps=shape.epsilon)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor:
        """Return [B,T,hidden] for x [B,T,hidden]; cos and sin are [T,head]."""
        shape = self.shape
        weights = torch.cat((self.q_proj.weight, self.k_proj.weight, self.v_proj.weight))
        heads = functional.linear(x, weights).unflatten(-1, (-1, shape.head)).transpose(1, 2)
        query, key, value = heads.split((shape.heads, shape.kv_heads, shape.kv_heads), dim=1)
        query = _rotate(self.q_norm(query), cos, sin)
        key = _rotate(self.k_norm(key), cos, sin)
        mixed = attend(query.to(value.dtype), key.to(value.dtype), value)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


class Mlp(nn.Module):  # type: ignore[misc]  # torch is not followed
    """SwiGLU block."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.mlp, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.mlp, bias=False)
        self.down_proj = nn.Linear(shape.mlp, shape.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return [..., hidden] for x [..., hidden]."""
        weights = torch.cat((self.gate_proj.weight, self.up_proj.weight))
        gate, up = functional.linear(x, weights).chunk(2, dim=-1)
        return self.down_proj(functional.silu(gate) * up)


class Layer(nn.Module):  # type: ignore[misc]  # torch is not followed
    """Attention, then MLP, each added to the residual stream."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.self_attn = Attention(shape)
        self.mlp = Mlp(shape)
        self.input_layernorm = nn.RMSNorm(shape.hidden, eps=shape.epsilon)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, eps=shape.epsilon)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend, dropout: float
    ) -> Tensor:
        """Return [B,T,hidden] for x [B,T,hidden]."""
        added = self.self_attn(self.input_layernorm(x), cos, sin, attend)
        x = x + functional.dropout(added, dropout, self.training)
        added = self.mlp(self.post_attention_layernorm(x))
        return x + functional.dropout(added, dropout, self.training)


class Body(nn.Module):  # type: ignore[misc]  # torch is not followed
    """Embedding, layers, final norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, eps=shape.epsilon)


class Translator(nn.Module):  # type: ignore[misc]  # torch is not followed
    """Language model, whose output matrix is its embedding."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.model = Body(shape)
        self.apply(_initialise)
        for name, weight in self.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                nn.init.normal_(weight, std=0.02 / (2 * shape.layers) ** 0.5)

    def hidden(
        self, tokens: Tensor, cos: Tensor, sin: Tensor, attends: list[Attend], dropout: float = 0.0
    ) -> Tensor:
        """Return [B,T,hidden] for tokens [B,T], bfloat16 in training; one `attends` per layer."""
        x = self.model.embed_tokens(tokens)
        x = x.bfloat16() if self.training else x
        x = functional.dropout(x, dropout, self.training)
        for layer, attend in zip(self.model.layers, attends, strict=True):
            x = layer(x, cos, sin, attend, dropout)
        return self.model.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return [..., vocabulary] for [..., hidden]."""
        return functional.linear(hidden, self.model.embed_tokens.weight)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)


def document_mask(documents: Tensor) -> BlockMask | Tensor:
    """Return the mask of causal attention inside each document of `documents` [B,T].

    It is a block mask on a GPU; elsewhere booleans [B,1,T,T], as flex_attention cannot train there.
    """
    if not documents.is_cuda:
        same = documents[:, None, :, None] == documents[:, None, None, :]
        return same.tril()

    def allowed(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        del head
        return (query >= key) & (documents[batch, query] == documents[batch, key])

    rows, length = documents.shape
    device = str(documents.device)
    return create_block_mask(allowed, rows, None, length, length, device=device)


def packed_loss(
    model: Translator,
    tokens: Tensor,
    mask: BlockMask | Tensor,
    places: Tensor,
    labels: Tensor,
    *,
    tables: tuple[Tensor, Tensor],
    smoothing: float = 0.0,
    dropout: float = 0.0,
) -> Tensor:
    """Return the mean cross entropy over the targets of a packed batch (see packing.Batch)."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if isinstance(mask, Tensor):
            return functional.scaled_dot_product_attention(query, key, value, mask, enable_gqa=True)
        mixed: Any = flex_attention(query, key, value, block_mask=mask, enable_gqa=True)
        return mixed

    hidden = model.hidden(tokens, *tables, [attend] * model.shape.layers, dropout)
    logits = model.logits(hidden.flatten(0, 1)[places]).float()
    return functional.cross_entropy(logits, labels, label_smoothing=smoothing)
