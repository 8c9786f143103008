"""How does a prompt become token ids, so that no user's text can spell a control token?

A control token is one the tokenizer marks as special, or whose spelling says that it steers
the model (``<|...|>``, think and tool tags). In most prompts no user text spells one, and the
tokenizer's own way is taken. Where one does, the whole prompt is tokenised just the same, and
each control token that stands inside a user's text is then replaced by the tokens of its
spelling in two parts. So no character is inserted, nothing has to be restored in the output,
and all other tokens are those the template would have given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, Protocol

from dragoman_worker.ports import Message, Prompt

_STEERING_SPELLING: Final = re.compile(
    r"<[|｜].*[|｜]>|</?(?:think|tool_call|tool_response|unused\d+)>|\[/?[A-Z_]{3,}\]"
)
_STAND_INS: Final = range(0xF0000, 0xFFFFD)
"""Private-use characters: they stand for control tokens while a template is filled in."""

_ANCHORS: Final = (".", "\n", "x", " ")


class AddedToken(Protocol):
    """A token beside the learned vocabulary."""

    @property
    def content(self) -> str:
        """Its spelling."""
        ...

    @property
    def special(self) -> bool:
        """Whether it is kept out of decoded text."""
        ...


class Tokenizer(Protocol):
    """What is used of a fast tokenizer of Hugging Face transformers 5."""

    def __hash__(self) -> int:
        """By identity: what is known about a tokenizer is kept with it."""
        ...

    @property
    def added_tokens_decoder(self) -> Mapping[int, AddedToken]:
        """The added tokens by id."""
        ...

    @property
    def bos_token_id(self) -> int | None:
        """The id of the token that begins a text, if there is one."""
        ...

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        """A chat as ids, or as text with `tokenize=False`."""
        ...

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """A text as ids."""
        ...

    def __call__(self, text: str, **options: Any) -> Mapping[str, Any]:
        """A text as `input_ids` and, if asked for, `offset_mapping`."""
        ...


def encode(prompt: Prompt, tokenizer: Tokenizer) -> list[int]:
    """The ids of a prompt: what the template or the completion says, with one BOS at most."""
    if prompt.messages:
        ids = _encode_chat(prompt, tokenizer)
    else:
        ids = _encode_completion(prompt, tokenizer)
    bos = tokenizer.bos_token_id
    while bos is not None and ids[:2] == [bos, bos]:
        del ids[0]
    return ids


def count(text: str, tokenizer: Tokenizer) -> int:
    """How many tokens a text has by itself; a control token spelled in it counts as one."""
    return len(tokenizer.encode(text, add_special_tokens=False))


# --- the usual way --------------------------------------------------------------------------------


def _encode_chat(prompt: Prompt, tokenizer: Tokenizer) -> list[int]:
    control = _control_spellings(tokenizer)
    if any(control.search(text) for text in _contents(prompt.messages)):
        return _encode_chat_neutralised(prompt, tokenizer, control)
    return list(
        tokenizer.apply_chat_template(
            _conversation(prompt.messages),
            **prompt.template_options,
            tokenize=True,
            add_generation_prompt=True,
            return_dict=False,
        )
    )


def _encode_completion(prompt: Prompt, tokenizer: Tokenizer) -> list[int]:
    control = _control_spellings(tokenizer)
    if any(control.search(text) for text in prompt.user_texts):
        spans = _spelled_by_users(prompt, control)
        return _encode_with_spans(
            prompt.completion, spans, tokenizer, add_special_tokens=prompt.add_special_tokens
        )
    return tokenizer.encode(prompt.completion, add_special_tokens=prompt.add_special_tokens)


def _conversation(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [
        {
            "role": message.role,
            "content": message.content
            if isinstance(message.content, str)
            else [dict(part) for part in message.content],
        }
        for message in messages
    ]


def _contents(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message.content, str):
            yield message.content
        else:
            yield from (value for part in message.content for value in part.values())


# --- where a user's text spells a control token ---------------------------------------------------


@lru_cache(maxsize=8)
def _control_spellings(tokenizer: Tokenizer) -> re.Pattern[str]:
    """Finds control tokens in a text, the longest first. Kept for as long as the tokenizer is."""
    spellings = {tokenizer.added_tokens_decoder[index].content for index in _control_ids(tokenizer)}
    longest_first = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


@lru_cache(maxsize=8)
def _control_ids(tokenizer: Tokenizer) -> frozenset[int]:
    return frozenset(
        index
        for index, token in tokenizer.added_tokens_decoder.items()
        if token.content and (token.special or _STEERING_SPELLING.fullmatch(token.content))
    )


def _encode_chat_neutralised(
    prompt: Prompt, tokenizer: Tokenizer, control: re.Pattern[str]
) -> list[int]:
    """Messages hold our prose and users' text; our prose spells no control token."""
    stood_for: dict[str, str] = {}
    used = {character for text in _contents(prompt.messages) for character in text}
    free = (chr(code) for code in _STAND_INS if chr(code) not in used)

    def stand_in(found: re.Match[str]) -> str:
        character = next(free)
        stood_for[character] = found[0]
        return character

    messages = [_substituted(message, control, stand_in) for message in prompt.messages]
    text = tokenizer.apply_chat_template(
        _conversation(messages),
        **prompt.template_options,
        tokenize=False,
        add_generation_prompt=True,
    )
    restored, spans = _restored(text, stood_for)
    return _encode_with_spans(restored, spans, tokenizer, add_special_tokens=False)


def _substituted(message: Message, control: re.Pattern[str], stand_in: Any) -> Message:
    if isinstance(message.content, str):
        return replace(message, content=control.sub(stand_in, message.content))
    parts = tuple(
        {key: control.sub(stand_in, value) for key, value in part.items()}
        for part in message.content
    )
    return replace(message, content=parts)


def _restored(text: str, stood_for: Mapping[str, str]) -> tuple[str, list[tuple[int, int]]]:
    """The text with its control tokens spelled out again, and where they stand in it."""
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    length = 0
    for piece in re.split(f"([{''.join(stood_for)}])", text):
        spelled = stood_for.get(piece)
        pieces.append(piece if spelled is None else spelled)
        if spelled is not None:
            spans.append((length, length + len(spelled)))
        length += len(pieces[-1])
    return "".join(pieces), spans


def _spelled_by_users(prompt: Prompt, control: re.Pattern[str]) -> list[tuple[int, int]]:
    """Where users' texts spell control tokens in a completion.

    A user's text never stands at the very edge of a completion that has control tokens of its
    own: so a text that spells just the token before or after it is still told from that token.
    """
    spans: list[tuple[int, int]] = []
    for text in prompt.user_texts:
        start = prompt.completion.find(text, 1) if control.search(text) else -1
        if start < 0:
            start = prompt.completion.find(text)
        if start >= 0:
            spans += [(start + m.start(), start + m.end()) for m in control.finditer(text)]
    return spans


def _encode_with_spans(
    text: str, spans: Sequence[tuple[int, int]], tokenizer: Tokenizer, *, add_special_tokens: bool
) -> list[int]:
    """The ids of `text`, with plain ids for the control tokens that begin inside `spans`."""
    encoded = tokenizer(text, add_special_tokens=add_special_tokens, return_offsets_mapping=True)
    control_ids = _control_ids(tokenizer)
    inside = {place for start, end in spans for place in range(start, end)}
    ids: list[int] = []
    for index, (start, end) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
        if index in control_ids and start < end and not inside.isdisjoint(range(start, end)):
            ids += _plain_ids(text[start:end], tokenizer)
        else:
            ids.append(index)
    return ids


def _plain_ids(spelling: str, tokenizer: Tokenizer) -> list[int]:
    """The tokens of a control token's spelling, read as ordinary characters."""
    control = _control_spellings(tokenizer)
    half = next((at for at in range(1, len(spelling)) if not _spells(control, spelling, at)), None)
    parts = list(spelling) if half is None else [spelling[:half], spelling[half:]]
    return [index for part in parts for index in _ids_within_text(part, tokenizer)]


def _spells(control: re.Pattern[str], spelling: str, at: int) -> bool:
    return bool(control.search(spelling[:at]) or control.search(spelling[at:]))


def _ids_within_text(part: str, tokenizer: Tokenizer) -> list[int]:
    """The tokens of `part` as it stands inside a text: no begin token, no space before it."""
    for anchor in _ANCHORS:
        encoded = tokenizer(anchor + part, add_special_tokens=False, return_offsets_mapping=True)
        places = encoded["offset_mapping"]
        if not any(start < len(anchor) < end for start, end in places):
            pairs = zip(encoded["input_ids"], places, strict=True)
            return [index for index, (start, _end) in pairs if start >= len(anchor)]
    return tokenizer.encode(part, add_special_tokens=False)
