"""Shape of a prompt: what of it comes from the template, whatever the texts of the users are.

The prompt is rendered once with marks in place of the texts. What lies outside the marks is the
template's: its control tokens are those that every prompt of this shape must have, in this place.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, pairwise
from typing import Any, Final, NamedTuple

from dragoman_worker.errors import PermanentEngineError
from dragoman_worker.prompts.tokenizer import Tokenizer, control_ids, visible_added_ids

_FIRST_MARK: Final = 0x100000
_END: Final = "\U0010fffd"
_MARKED: Final = re.compile("([\U00100000-\U0010fff0])[^\U0010fffd]*\U0010fffd")
_MOST_SHAPES: Final = 512

Fields = tuple[tuple[str, str | None], ...]


class Outline(NamedTuple):
    """What a shape is made of; equal for prompts that differ only in the texts of users.

    `messages` have a role and either the wording around the texts of users (None if it is unknown,
    blank if there is no text) or the fields of their parts, None for a text. Else `completion` has
    the template's strings around the texts.
    """

    messages: tuple[tuple[str, str | tuple[Fields, ...] | None], ...] = ()
    options: tuple[tuple[str, object], ...] = ()
    answer_start: str = ""
    completion: tuple[str, ...] = ()
    add_special_tokens: bool = False


class Frame(NamedTuple):
    """Ids of the template from one control token to another, and the last one's spelling."""

    ids: list[int]
    last: str


@dataclass(frozen=True, slots=True)
class Shape:
    """The template's part of a prompt. `parts` are its frames, its texts, and numbers of texts."""

    parts: tuple[Frame | str | int, ...]
    control: frozenset[int]
    """Control tokens of the tokenizer, and every added token that the template contains."""
    head: list[int]
    """Ids up to the last control token before the first text."""
    inner: list[int]
    """Control ids between the first text and the last one."""
    tail: list[int]
    """Ids from the first control token behind the last text."""
    repeated_begin: int
    """How many begin tokens too many the template puts at the beginning."""

    def holds(self, ids: list[int]) -> bool:
        """Return whether the prompt has the control tokens of its template and no other."""
        first, last = len(self.head), len(ids) - len(self.tail)
        if first > last or ids[:first] != self.head or ids[last:] != self.tail:
            return False
        if not self.inner:
            return self.control.isdisjoint(ids[first:last])
        return [index for index in ids[first:last] if index in self.control] == self.inner


@lru_cache(maxsize=_MOST_SHAPES)
def shape_of(outline: Outline, tokenizer: Tokenizer) -> Shape:
    """Return the shape of all prompts with this outline."""
    text = _chat(outline, tokenizer) if outline.messages else _completion(outline)
    encoded = tokenizer(
        text, add_special_tokens=outline.add_special_tokens, return_offsets_mapping=True
    )
    answer = tokenizer.encode(outline.answer_start, add_special_tokens=False)
    tokens = list(zip(encoded["input_ids"], encoded["offset_mapping"], strict=True))
    return _Template(text, tokens, tokenizer).shape(answer)


def _conversation(outline: Outline) -> list[dict[str, Any]]:
    """Return the conversation with marks in place of the texts, numbered in order."""
    numbers = count()

    def content_of(content: str | tuple[Fields, ...] | None) -> Any:
        if isinstance(content, tuple):
            return [{key: field(value) for key, value in fields} for fields in content]
        blank = content is not None and not content.strip()
        return content if blank else _mark(next(numbers), content or "")

    def field(value: str | None) -> str:
        return _mark(next(numbers)) if value is None else value

    return [{"role": role, "content": content_of(content)} for role, content in outline.messages]


def _mark(number: int, wording: str = "") -> str:
    return f"{chr(_FIRST_MARK + number)}{wording}{_END}"


def _chat(outline: Outline, tokenizer: Tokenizer) -> str:
    return str(
        tokenizer.apply_chat_template(
            _conversation(outline),
            **dict(outline.options),
            tokenize=False,
            add_generation_prompt=True,
        )
    )


def _completion(outline: Outline) -> str:
    first, *rest = outline.completion
    return first + "".join(_mark(number) + text for number, text in enumerate(rest))


class _Template:
    """A rendering with marks, and its tokens."""

    def __init__(
        self, text: str, tokens: list[tuple[int, tuple[int, int]]], tokenizer: Tokenizer
    ) -> None:
        self._text = text
        self._ids = [index for index, _ in tokens]
        self._places = [span for _, span in tokens]
        self._marks = list(_MARKED.finditer(text))
        self._tokenizer = tokenizer
        edges = [0, *(edge for mark in self._marks for edge in mark.span()), len(text)]
        self._stretches = list(pairwise(edges))[::2]
        """Start and end of each stretch of the template, before and behind the marks."""

    def shape(self, answer: list[int]) -> Shape:
        """Return the shape, with the ids of the answer's beginning behind the template."""
        if not self._marks:
            raise PermanentEngineError(
                "profile: the model's chat template leaves the text out of the prompt, or changes "
                "it; choose the profile of this model"
            )
        added = visible_added_ids(self._tokenizer)
        frames = self._frames(added)
        inside = {i for frame in frames if frame for i in self._ids[frame[0] : frame[1]]}
        control = control_ids(self._tokenizer) | (added & (inside | set(answer)))
        first, last = frames[0], frames[-1]
        inner = [self._ids[slice(*frame)] for frame in frames[1:-1] if frame]
        return Shape(
            (*self._parts(frames), Frame(answer, "")),
            control,
            self._ids[: first[1]] if first else [],
            [index for ids in inner for index in ids if index in control],
            (self._ids[last[0] :] if last else []) + answer,
            self._repeated_begin(),
        )

    def _frames(self, added: frozenset[int]) -> list[tuple[int, int] | None]:
        """Return the first added token of each stretch, and the index behind the last one."""
        frames: list[tuple[int, int] | None] = [None] * len(self._stretches)
        firsts = [first for first, _ in self._stretches]
        for position, index in enumerate(self._ids):
            if index not in added:
                continue
            start, end = self._visible(position)
            number = bisect_right(firsts, start) - 1
            if end <= self._stretches[number][1]:
                frame = frames[number]
                frames[number] = (frame[0] if frame else position, position + 1)
        return frames

    def _visible(self, position: int) -> tuple[int, int]:
        """Return the place of a token in the text, without the blanks that it takes along."""
        start, end = self._places[position]
        if start == end:  # added around the text, such as a begin token
            edge = 0 if not any(last for _, last in self._places[:position]) else len(self._text)
            return edge, edge
        covered = self._text[start:end]
        return end - len(covered.lstrip()), start + len(covered.rstrip())

    def _parts(self, frames: list[tuple[int, int] | None]) -> list[Frame | str | int]:
        parts: list[Frame | str | int] = []
        for number, frame in enumerate(frames):
            first, last = self._stretches[number]
            if frame is None:
                parts.append(self._text[first:last])
            else:
                start, end = self._visible(frame[0])[0], self._visible(frame[1] - 1)
                ids = self._ids[slice(*frame)]
                spelling = Frame(ids, self._text[slice(*end)])
                parts += (self._text[first:start], spelling, self._text[end[1] : last])
            if number < len(self._marks):
                parts.append(ord(self._marks[number][1]) - _FIRST_MARK)
        return parts

    def _repeated_begin(self) -> int:
        begin = getattr(self._tokenizer, "bos_token_id", None)
        repeated = 0
        while begin is not None and self._ids[repeated : repeated + 2] == [begin, begin]:
            repeated += 1
        return repeated
