"""Ids of a text in which no control token is formed, whatever the text spells.

A text is encoded as usual. Where the tokenizer formed a control token, the characters that it
covers pass through the normalizer, the pre-tokenizer and the model alone, which know no added
tokens. So it does not matter how a text spells the token, only that the tokenizer found it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from dragoman_worker.errors import PermanentEngineError
from dragoman_worker.prompts.tokenizer import Tokenizer

_ANCHORS: Final = (".", "\n", "x", " ")


class _Token(NamedTuple):
    id: int
    start: int
    end: int


class PlainText:
    """Encodes texts of one prompt; what recurs in them is encoded once."""

    def __init__(self, tokenizer: Tokenizer, control: frozenset[int]) -> None:
        self._backend = tokenizer.backend_tokenizer
        self._control = control
        self._unknown: int | None = getattr(tokenizer, "unk_token_id", None)
        self._unknown_spelling = str(getattr(tokenizer, "unk_token", ""))
        self._known: dict[tuple[str, str], list[int]] = {}
        self._spelled: dict[str, list[int]] = {}

    def ids(self, text: str, before: str = ".") -> list[int]:
        """Return the ids of `text` as it is encoded behind `before`, without control ids.

        Raises PermanentEngineError if the tokenizer has no other ids for a part of the text.
        """
        known = self._known.get((before, text))
        if known is None:
            known = self._known[before, text] = self._ids(text, before) if text else []
        return known

    def _ids(self, text: str, before: str) -> list[int]:
        tokens = self._behind(text, before)
        formed = [token for token in tokens if self._is_formed(token, text)]
        if not formed:
            return [token.id for token in tokens]
        ids: list[int] = []
        done = 0
        for token in formed:
            ids += self.ids(text[done : token.start], before)
            ids += self._as_characters(text[token.start : token.end])
            done, before = token.end, "."
        return ids + self.ids(text[done:], before)

    def _behind(self, text: str, before: str) -> list[_Token]:
        """Return the tokens of `text` behind `before`, or behind what no token joins it with."""
        for anchor in (before, *_ANCHORS):
            size = len(anchor)
            encoding = self._backend.encode(anchor + text, add_special_tokens=False)
            pairs = list(zip(encoding.ids, encoding.offsets, strict=True))
            if not any(start < size < end for _, (start, end) in pairs):
                return [
                    _Token(index, start - size, end - size)
                    for index, (start, end) in pairs
                    if start >= size
                ]
        encoding = self._backend.encode(text, add_special_tokens=False)
        return [_Token(i, *span) for i, span in zip(encoding.ids, encoding.offsets, strict=True)]

    def _is_formed(self, token: _Token, text: str) -> bool:
        """Return whether it is a control token, not only the sign of an unknown character."""
        if token.id not in self._control:
            return False
        if token.id != self._unknown:
            return True
        covered = text[token.start : token.end].strip()
        return self._normalized(covered) == self._normalized(self._unknown_spelling)

    def _as_characters(self, spelling: str) -> list[int]:
        known = self._spelled.get(spelling)
        if known is None:
            words = self._words(spelling)
            known = [index for word in words for index in self._word_ids(word)]
            if not known:
                raise _inexpressible()
            self._spelled[spelling] = known
        return known

    def _words(self, spelling: str) -> Iterator[str]:
        """Split as the pre-tokenizer does, without what it puts before the first word of a text."""
        anchor = _ANCHORS[0]
        alone, words = self._pretokenized(anchor), self._pretokenized(anchor + spelling)
        left = len("".join(alone))
        if not "".join(words).startswith("".join(alone)):
            left, words = 0, self._pretokenized(spelling)
        for word in words:
            if rest := word[left:]:
                yield rest
            left = max(0, left - len(word))

    def _pretokenized(self, text: str) -> list[str]:
        normalized, splitter = self._normalized(text), self._backend.pre_tokenizer
        if splitter is None:
            return [normalized]
        return [word for word, _ in splitter.pre_tokenize_str(normalized)]

    def _normalized(self, text: str) -> str:
        normalizer: Any = self._backend.normalizer
        return text if normalizer is None else str(normalizer.normalize_str(text))

    def _word_ids(self, word: str) -> list[int]:
        """Return the model's ids of a word, of its halves where it knows it as a control token."""
        ids = [token.id for token in self._backend.model.tokenize(word)]
        if self._control.isdisjoint(ids):
            return ids
        if len(word) == 1:
            if ids == [self._unknown]:
                return ids
            raise _inexpressible()
        half = len(word) // 2
        return self._word_ids(word[:half]) + self._word_ids(word[half:])


def _inexpressible() -> PermanentEngineError:
    return PermanentEngineError(
        "text: a part of it is a control token for the model's tokenizer, which has no other "
        "tokens for these characters; change or remove them"
    )
