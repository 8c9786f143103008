"""Output budgets: tokens that a translation needs, by languages and the engine's own tokenizer.

Tokenizers differ most on the scripts that they know least: the same sentence has 12 times as many
tokens in Burmese as in English with Qwen 3, and 15 times as many in Khmer with Mistral's Tekken.
The counts of one text in 127 languages give the factor of any two of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from dragoman_worker.prompts import parallel_text
from dragoman_worker.prompts.names import base_of, listed, script_of

MARGIN: Final = 1.25
"""Estimated tokens per expected one. Factors of this text and of 16,000 Tatoeba pairs in four
languages, with three tokenizers, differ by a fifth at most."""
BLOCK_TOKENS: Final = 16
"""Added to each estimate: vLLM allocates the KV cache in blocks of 16 tokens."""
CAP_PER_EXPECTED: Final = 2.0
"""Most tokens per expected one: Mozilla's `max_tok_alpha` for translation by language models. Over
a pair of texts no human translation needs as much; what does is a loop."""
CAP_SLACK_TOKENS: Final = 64
"""Tokens added to every cap, so that very short sources have room."""
NEED_PER_EXPECTED: Final = 1.4
"""A text is split if less room than this is left for its translation."""
NEED_SLACK_TOKENS: Final = 8
"""Tokens added to every need."""
UNLISTED: Final = 0.7
"""Share of a script's languages that need no more than what one that is not listed gets. The most
of all was twice what such a language needs: it was Yoruba's, with three marks per word."""
LONE: Final = 1.5
"""Likewise per token of the only language that is listed for a script: it is the one that the
tokenizer knows best. Assamese needs 1.6 times, Manipuri 1.6 times the tokens of Bengali."""
_LIKE: Final[Mapping[str, str]] = {
    **dict.fromkeys(["acm", "acq", "aeb", "ajp", "apc", "apd", "arq", "ars", "ary", "arz"], "ar"),
    "ckb": "ug",  # writes each vowel, too, with letters that Arabic does not have
}
"""Listed languages that stand in for others."""
LEAST_PER_SOURCE_TOKEN: Final = 0.3
"""Smallest estimate per source token: the text may be in a cheaper script than its language's."""


class OutputBudget:
    """Factors for one tokenizer. The constructor tokenises 110 KB of text."""

    def __init__(self, count_tokens: Callable[[str], int]) -> None:
        self._tokens = {
            tag: max(1, count_tokens(text)) for tag, text in parallel_text.by_tag().items()
        }
        self.factor = lru_cache(maxsize=4_096)(self._factor)

    def expected(self, tokens: int, text: str, source_lang: str | None, target_lang: str) -> float:
        """Return the tokens that the translation of a text of `tokens` tokens usually has.

        Without a source language, the script of `text` counts.
        """
        script = "" if source_lang else parallel_text.script_name(text)
        return tokens * self.factor(source_lang, target_lang, script)

    def _factor(self, source: str | None, target: str, script: str = "") -> float:
        """Return output tokens per source token, from a tag or else from the name of a script."""
        out_of = self._out_of(source) if source else min(self._in_script(script))
        return self._into(target) / out_of

    def _into(self, tag: str) -> float:
        """Return the tokens of the text in the language, or rather many of them."""
        script = script_of(tag)
        others = self._in_script(script)
        if (own := self._own(tag)) is not None:
            return own
        if script not in parallel_text.tags_by_script():
            return max(others)
        return others[0] * LONE if len(others) == 1 else _at(others, UNLISTED)

    def _out_of(self, tag: str) -> float:
        """Return the tokens of the text in the language, or of half of its script's languages."""
        own = self._own(tag)
        return _at(self._in_script(script_of(tag)), 0.5) if own is None else own

    def _own(self, tag: str) -> int | None:
        """Return the count of the language, or of the one that stands in for it."""
        script, base = script_of(tag), base_of(tag)
        wanted_tags = (f"{base}-{script}", listed(tag, frozenset(self._tokens)), _LIKE.get(base))
        for wanted in wanted_tags:
            if wanted in self._tokens and script_of(wanted) == script:
                return self._tokens[wanted]
        return None

    def _in_script(self, script: str) -> list[int]:
        """Return the counts of a script's languages, of all if it has none."""
        tags = parallel_text.tags_by_script().get(script, self._tokens)
        return [self._tokens[each] for each in tags]


def _at(counts: list[int], share: float) -> int:
    """Return the smallest count that this share of the counts does not exceed."""
    return sorted(counts)[max(0, math.ceil(share * len(counts)) - 1)]


def estimate(tokens: int, expected: float) -> int:
    """Return the tokens to reserve for the output to a source of `tokens` tokens."""
    likely = max(LEAST_PER_SOURCE_TOKEN * tokens, expected)
    return math.ceil(MARGIN * likely) + BLOCK_TOKENS


def cap(tokens: int, expected: float) -> int:
    """Return the largest output to allow at first; it only stops what runs on for ever.

    `tokens` are those of the source: a text that stays as it is needs as many.
    """
    return math.ceil(CAP_PER_EXPECTED * max(tokens, expected)) + CAP_SLACK_TOKENS


def needed(expected: float) -> int:
    """Return the room in tokens without which a text is split."""
    return math.ceil(NEED_PER_EXPECTED * expected) + NEED_SLACK_TOKENS
