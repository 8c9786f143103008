"""Prompts for a server: as token ids by a tokenizer of our own, or as text with an estimate.

With a tokenizer, prompts are exactly those of an engine in the worker's process: no text of a user
can form a control token. Without one the server applies its template and tokenizer; then control
tokens that a text spells are broken by a word joiner, which is removed from the answer.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, overload

from dragoman_connections.settings import SettingsError
from dragoman_worker.errors import PermanentEngineError
from dragoman_worker.ports import Prompt
from dragoman_worker.prompts import parallel_text, tokens

_BYTES_PER_TOKEN: Final = 3.0
"""Of UTF-8, without a tokenizer: English has 4.2 with today's vocabularies, Chinese 3 to 4.5."""
_MARGIN: Final = 1.15
_FRAME_TOKENS: Final = 24
"""Of a chat template, around the messages that are counted."""
JOINER: Final = "\u2060"
_CONTROL: Final = re.compile(
    r"<(?=[|｜][^<>\n]{1,60}[|｜]>)"
    r"|<(?=/?(?:s|bos|eos|pad|unk|mask|think|tool_call|tool_response|unused\d+"
    r"|start_of_turn|end_of_turn|start_of_image|image_soft_token)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS|IMG|THINK)\])"
)


class PromptTokens(Protocol):
    """How prompts are counted and what is sent of them."""

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """Return ids, or a `TextPrompt` of the estimated length."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, or an estimate."""
        ...


class TextPrompt(Sequence[int]):
    """A prompt that is sent as text. Its length is an estimate of its tokens; it has no ids."""

    def __init__(self, prompt: Prompt, length: int) -> None:
        self.prompt = prompt
        self._length = length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        raise TypeError("a prompt that is sent as text has no token ids")

    def __iter__(self) -> Iterator[int]:
        raise TypeError("a prompt that is sent as text has no token ids")


class OwnTokens:
    """Token ids by a tokenizer on this machine."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """Return the ids; control tokens that user texts spell are neutralised."""
        return tokens.encode(prompt, self.tokenizer)

    def count(self, text: str) -> int:
        """Return the number of tokens."""
        return tokens.count(text, self.tokenizer)

    def plain_ids(self, text: str) -> list[int]:
        """Return the ids of a text without any template."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def spelled(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        return str(self.tokenizer.decode(ids)).strip()


class EstimatedTokens:
    """Estimates from the length in bytes, by script where the server has counted some texts."""

    def __init__(self, counted: Mapping[str, int] | None = None) -> None:
        """Stand on counts of some texts, as from the server's /tokenize."""
        self._counted = dict(counted or {})
        sums: dict[str, list[float]] = {}
        for text, count in self._counted.items():
            rate = count / max(1, len(text.encode()))
            sums.setdefault(parallel_text.script_name(text), []).append(rate)
        self._rates = {script: _upper(rates) for script, rates in sums.items()}
        self._rate = max(self._rates.values(), default=1 / _BYTES_PER_TOKEN)

    @property
    def counts(self) -> bool:
        """Whether the estimates stand on the tokenizer's own counts."""
        return bool(self._counted)

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """Return the prompt with an estimate of its tokens.

        Raises PermanentEngineError for a profile that begins the answer itself, with tokens.
        """
        if prompt.answer_start:
            raise PermanentEngineError(
                "this profile begins the answer with control tokens, which servers take only as "
                "token ids: give engine.tokenizer"
            )
        text = prompt.completion or "\n".join(_contents(prompt))
        return TextPrompt(prompt, self.count(text) + _FRAME_TOKENS)

    def count(self, text: str) -> int:
        """Return an estimate, a little too high."""
        known = self._counted.get(text)
        if known is not None:
            return known
        rate = self._rate
        if self._rates:
            rate = self._rates.get(parallel_text.script_name(text), self._rate)
        return math.ceil(_MARGIN * rate * len(text.encode("utf-8", "surrogatepass")))


def load_tokenizer(name: str) -> OwnTokens:
    """Load the tokenizer in a folder or of a name at the hub. Raises SettingsError."""
    if Path(name).is_dir():
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")  # "PyTorch was not found"
    try:
        from transformers import AutoTokenizer  # noqa: PLC0415 - only this engine needs it
    except ImportError:
        raise SettingsError(
            "engine.tokenizer: the package transformers is missing; install dragoman[openai]"
        ) from None
    try:
        return OwnTokens(AutoTokenizer.from_pretrained(name, trust_remote_code=False))
    except Exception as error:  # noqa: BLE001 - a dozen kinds, from files and the network
        reason = " ".join(str(error).split())[:200]
        raise SettingsError(
            f"engine.tokenizer: cannot load a tokenizer from {name!r}: {reason}"
        ) from None


def without_control_tokens(text: str) -> str:
    """Return a text in which nothing spells a control token of a known family of models."""
    return _CONTROL.sub(lambda found: found[0] + JOINER, text)


def _contents(prompt: Prompt) -> Iterator[str]:
    for message in prompt.messages:
        if isinstance(message.content, str):
            yield message.content
        else:
            yield from (part.get("text", "") for part in message.content)


def _upper(rates: Sequence[float]) -> float:
    """Return the rate that a quarter of the script's languages exceed."""
    return sorted(rates)[(3 * (len(rates) - 1) + 3) // 4]
