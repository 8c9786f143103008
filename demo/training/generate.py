"""Batched translation, fast enough to write training text.

Sentences of equal token length share a batch, so no prompt needs padding. This is for training
only; vLLM serves the model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from .checkpoint import read_model
from .model import Attend, Shape, rotary
from .tokenizer import END, PAD, TRANSLATION, id_of, language_tag, load_tokenizer


@dataclass(frozen=True, slots=True)
class Request:
    """Text to translate, and its target language."""

    source: str
    target_lang: str


@dataclass(frozen=True, slots=True)
class Decoding:
    """Choice of the next token: greedy at temperature 0, else sampled from the top 20."""

    temperature: float = 0.0
    max_new_factor: float = 1.8
    """Limit of new tokens: this factor times the source's tokens, plus 16."""
    batch: int = 8192
    abandon_share: float = 0.0
    """Share of running rows at which a batch is abandoned: the rest are mostly loops."""


class Cache:
    """Keys and values of all layers for one batch, at most `length` tokens."""

    def __init__(self, shape: Shape, rows: int, length: int, device: torch.device) -> None:
        sizes = (shape.layers, 2, rows, shape.kv_heads, length, shape.head)
        self._store = torch.zeros(sizes, dtype=torch.bfloat16, device=device)
        self.used = 0

    def attend(self, layer: int, prompt: bool) -> Attend:
        """Return the attention function of one layer, which reads and extends the cache."""

        def run(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            end = self.used + key.shape[2]
            keys, values = self._store[layer]
            keys[:, :, self.used : end] = key
            values[:, :, self.used : end] = value
            return functional.scaled_dot_product_attention(
                query, keys[:, :, :end], values[:, :, :end], is_causal=prompt, enable_gqa=True
            )

        return run


class Generator:
    """Translates with the weights of one model folder."""

    def __init__(self, folder: Path, device: torch.device) -> None:
        self._model = read_model(folder, device)
        self._tokenizer = load_tokenizer(folder)
        self._tables = rotary(self._model.shape, device)
        self._device = device
        ids = [id_of(self._tokenizer, token) for token in (TRANSLATION, END, PAD)]
        self._translation, self._end, self._pad = ids

    def translate(self, requests: Sequence[Request], decoding: Decoding) -> list[str | None]:
        """Return one translation per request, in order; None if no end was reached."""
        results: list[str | None] = [None] * len(requests)
        for places, prompts in self._groups(requests, decoding.batch):
            with torch.no_grad():
                rows = self._decode(torch.tensor(prompts, device=self._device), decoding)
            whole = [number for number, row in enumerate(rows) if self._end in row]
            ids = [rows[number][: rows[number].index(self._end)] for number in whole]
            for number, text in zip(whole, self._tokenizer.decode_batch(ids), strict=True):
                results[places[number]] = text
        return results

    def _groups(
        self, requests: Sequence[Request], batch: int
    ) -> Iterator[tuple[list[int], list[list[int]]]]:
        encoded = self._tokenizer.encode_batch_fast([request.source for request in requests])
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        for place, encoding in enumerate(encoded):
            by_length[len(encoding)].append(place)
        for length in sorted(by_length):
            for start in range(0, len(by_length[length]), batch):
                places = by_length[length][start : start + batch]
                prompts = [
                    [
                        id_of(self._tokenizer, language_tag(requests[place].target_lang)),
                        *encoded[place].ids,
                        self._translation,
                    ]
                    for place in places
                ]
                yield places, prompts

    def _decode(self, prompts: Tensor, decoding: Decoding) -> list[list[int]]:
        rows, length = prompts.shape
        shape = self._model.shape
        most = min(int(length * decoding.max_new_factor) + 16, shape.context - length)
        cache = Cache(shape, rows, length + most, self._device)
        tokens, written = prompts, []
        ended = torch.zeros(rows, dtype=torch.bool, device=self._device)
        for step in range(most):
            tokens = self._next(tokens, cache, decoding.temperature)
            tokens = tokens.masked_fill(ended[:, None], self._pad)
            written.append(tokens)
            ended |= tokens[:, 0] == self._end
            if step % 4 == 3 and int((~ended).sum()) <= decoding.abandon_share * rows:
                break
        ids: list[list[int]] = torch.cat(written, dim=1).tolist()
        return ids

    def _next(self, tokens: Tensor, cache: Cache, temperature: float) -> Tensor:
        start, count = cache.used, tokens.shape[1]
        cos, sin = (table[start : start + count] for table in self._tables)
        attends = [cache.attend(layer, count > 1) for layer in range(self._model.shape.layers)]
        hidden = self._model.hidden(tokens, cos, sin, attends)
        cache.used += count
        logits = self._model.logits(hidden[:, -1])
        if not temperature:
            return logits.argmax(-1, keepdim=True)
        best, ids = logits.float().topk(20, dim=-1)
        chosen = torch.multinomial((best / temperature).softmax(-1), 1)
        return ids.gather(1, chosen)
