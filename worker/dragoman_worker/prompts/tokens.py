"""Conversion of prompts to token ids in which no user text can form a control token.

A control token is one that the tokenizer marks as special, or whose spelling shows that it steers
the model (``<|...|>``, think and tool tags). In most prompts no user text spells one, and the
tokenizer is used as it is. Where one does, a private-use character replaces the spelling while
the prompt is rendered and tokenised. Its tokens are then replaced by those of the spelling, split
into two parts. So the model reads what the user wrote, its output needs no restoring, and all
other tokens are those of the template.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, Protocol

from dragoman_worker.ports import Message, Prompt

_STEERING_SPELLING: Final = re.compile(
    r"<[|｜].*[|｜]>|</?(?:think|tool_call|tool_response|unused\d+)>|\[/?[A-Z_]{3,}\]"
)
_STAND_INS: Final = range(0xF0000, 0xFFFFD)
"""Private-use characters, enough for every occurrence in a job of 128 KiB to have its own."""

_ANCHORS: Final = (".", "\n", "x", " ")


class AddedToken(Protocol):
    """A token added to the learned vocabulary."""

    @property
    def content(self) -> str:
        """Spelling of the token."""
        ...

    @property
    def special(self) -> bool:
        """Whether the token is left out of decoded text."""
        ...


class Tokenizer(Protocol):
    """The part of a fast tokenizer of Hugging Face transformers 5 that is used here."""

    def __hash__(self) -> int:
        """Return the hash by identity: caches are kept per tokenizer."""
        ...

    @property
    def added_tokens_decoder(self) -> Mapping[int, AddedToken]:
        """Added tokens by id."""
        ...

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        """Render a chat as ids, or as text with `tokenize=False`."""
        ...

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Return the ids of a text."""
        ...

    def __call__(self, text: str, **options: Any) -> Mapping[str, Any]:
        """Return `input_ids` of a text and, if requested, `offset_mapping`."""
        ...


def encode(prompt: Prompt, tokenizer: Tokenizer) -> list[int]:
    """Return the ids of a prompt, with at most one BOS token at the beginning."""
    if prompt.messages:
        ids = _encode_chat(prompt, tokenizer)
        if prompt.answer_start:
            ids += tokenizer.encode(prompt.answer_start, add_special_tokens=False)
    else:
        ids = _encode_completion(prompt, tokenizer)
    bos = getattr(tokenizer, "bos_token_id", None)
    while bos is not None and ids[:2] == [bos, bos]:
        del ids[0]
    return ids


def count(text: str, tokenizer: Tokenizer) -> int:
    """Return the number of tokens of a text alone; a spelled control token counts as one."""
    return len(tokenizer.encode(text, add_special_tokens=False))


# --- prompts without spelled control tokens -------------------------------------------------------


def _encode_chat(prompt: Prompt, tokenizer: Tokenizer) -> list[int]:
    control = _control_spellings(tokenizer)
    if any(control.search(text) for text in _contents(prompt.messages)):
        return _encode_chat_neutralised(prompt, tokenizer, control)
    options = {**prompt.template_options, "add_generation_prompt": True}
    if hasattr(tokenizer, "backend_tokenizer"):
        # The same ids as with `tokenize=True` for two thirds of its time (benchmarks/planning.py).
        # A tokenizer of another kind, such as Mistral's, forms its control tokens from no text.
        text = tokenizer.apply_chat_template(
            _conversation(prompt.messages), **options, tokenize=False
        )
        return tokenizer.encode(text, add_special_tokens=False)
    ids = tokenizer.apply_chat_template(
        _conversation(prompt.messages), **options, tokenize=True, return_dict=False
    )
    return list(ids)


def _encode_completion(prompt: Prompt, tokenizer: Tokenizer) -> list[int]:
    control = _control_spellings(tokenizer)
    begin = prompt.add_special_tokens
    if any(control.search(text) for text in prompt.user_texts):
        stand_ins = _StandIns([prompt.completion], control)
        text = _with_stand_ins(prompt, stand_ins)
        return _encode_neutralised(text, stand_ins, tokenizer, add_special_tokens=begin)
    return tokenizer.encode(prompt.completion, add_special_tokens=begin)


def _conversation(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [{"role": message.role, "content": _plain_content(message)} for message in messages]


def _plain_content(message: Message) -> str | list[dict[str, str]]:
    if isinstance(message.content, str):
        return message.content
    return [dict(part) for part in message.content]


def _contents(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message.content, str):
            yield message.content
        else:
            yield from (value for part in message.content for value in part.values())


# --- control tokens of a tokenizer ----------------------------------------------------------------


@lru_cache(maxsize=8)
def _control_spellings(tokenizer: Tokenizer) -> re.Pattern[str]:
    """Return a pattern that finds control tokens, the longest first; cached per tokenizer.

    Mistral's tokenizer has no added tokens, and never forms a control token of a text.
    """
    added: Mapping[int, AddedToken] = getattr(tokenizer, "added_tokens_decoder", {})
    spellings = {
        token.content
        for token in added.values()
        if token.content and (token.special or _STEERING_SPELLING.fullmatch(token.content))
    }
    longest_first = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


# --- control tokens spelled in user texts ---------------------------------------------------------


class _StandIns:
    """Characters that replace spelled control tokens; none of them occurs in the prompt."""

    def __init__(self, texts: Iterable[str], control: re.Pattern[str]) -> None:
        used = {character for text in texts for character in text}
        self._free = (chr(code) for code in _STAND_INS if chr(code) not in used)
        self._control = control
        self.spellings: dict[str, str] = {}

    def put(self, text: str) -> str:
        """Replace each control token spelled in `text` by its own character."""
        return self._control.sub(self._one, text)

    def _one(self, found: re.Match[str]) -> str:
        character = next(self._free)
        self.spellings[character] = found[0]
        return character


def _encode_chat_neutralised(
    prompt: Prompt, tokenizer: Tokenizer, control: re.Pattern[str]
) -> list[int]:
    """Encode a chat; all of its text may be replaced, as the profiles spell no control token."""
    stand_ins = _StandIns(_contents(prompt.messages), control)
    text = tokenizer.apply_chat_template(
        _conversation([_substituted(message, stand_ins) for message in prompt.messages]),
        **prompt.template_options,
        tokenize=False,
        add_generation_prompt=True,
    )
    return _encode_neutralised(text, stand_ins, tokenizer, add_special_tokens=False)


def _substituted(message: Message, stand_ins: _StandIns) -> Message:
    if isinstance(message.content, str):
        return replace(message, content=stand_ins.put(message.content))
    parts = tuple(
        {key: stand_ins.put(value) for key, value in part.items()} for part in message.content
    )
    return replace(message, content=parts)


def _with_stand_ins(prompt: Prompt, stand_ins: _StandIns) -> str:
    """Return the completion with stand-ins in the user texts only.

    A completion's own control tokens are at its edges, where there is never user text. So they are
    not confused with a user text that consists of the same token.
    """
    completion = prompt.completion
    if prompt.user_spans:
        return _with_stand_ins_in(completion, prompt.user_spans, stand_ins)
    for text in prompt.user_texts:
        start = completion.find(text, 1)
        if start < 0:
            start = completion.find(text)
        if start >= 0:
            end = start + len(text)
            completion = completion[:start] + stand_ins.put(text) + completion[end:]
    return completion


def _with_stand_ins_in(
    completion: str, spans: Iterable[tuple[int, int]], stand_ins: _StandIns
) -> str:
    parts: list[str] = []
    done = 0
    for start, end in spans:
        parts += (completion[done:start], stand_ins.put(completion[start:end]))
        done = end
    return "".join((*parts, completion[done:]))


def _encode_neutralised(
    text: str, stand_ins: _StandIns, tokenizer: Tokenizer, *, add_special_tokens: bool
) -> list[int]:
    """Return the ids of `text`, each stand-in replaced by the plain ids of its spelling."""
    encoded = tokenizer(text, add_special_tokens=add_special_tokens, return_offsets_mapping=True)
    spellings = stand_ins.spellings
    plain = {each: _plain_ids(each, tokenizer) for each in set(spellings.values())}
    ids: list[int] = []
    replaced: set[int] = set()
    for index, (start, end) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
        covered = text[start:end]
        if covered in spellings:
            # One character of several bytes may give several tokens; only the first is replaced.
            if start not in replaced:
                ids += plain[spellings[covered]]
                replaced.add(start)
        elif not spellings.keys().isdisjoint(covered):
            break
        else:
            ids.append(index)
    if len(replaced) == len(spellings):
        return ids
    # A token merged a stand-in with its neighbour, or a normalizer removed it.
    return _encode_in_pieces(text, stand_ins, tokenizer, add_special_tokens=add_special_tokens)


def _encode_in_pieces(
    text: str, stand_ins: _StandIns, tokenizer: Tokenizer, *, add_special_tokens: bool
) -> list[int]:
    """Encode each piece between stand-ins separately: correct, but less like the usual tokens."""
    first, *rest = re.split(f"([{''.join(stand_ins.spellings)}])", text)
    ids = list(tokenizer.encode(first, add_special_tokens=add_special_tokens))
    for piece in filter(None, rest):
        spelling = stand_ins.spellings.get(piece)
        if spelling is None:
            ids += tokenizer.encode(piece, add_special_tokens=False)
        else:
            ids += _plain_ids(spelling, tokenizer)
    return ids


def _plain_ids(spelling: str, tokenizer: Tokenizer) -> list[int]:
    """Return the ids of a control token's spelling as ordinary characters."""
    control = _control_spellings(tokenizer)
    half = next((at for at in range(1, len(spelling)) if not _spells(control, spelling, at)), None)
    parts = list(spelling) if half is None else [spelling[:half], spelling[half:]]
    return [index for part in parts for index in _ids_within_text(part, tokenizer)]


def _spells(control: re.Pattern[str], spelling: str, at: int) -> bool:
    return bool(control.search(spelling[:at]) or control.search(spelling[at:]))


def _ids_within_text(part: str, tokenizer: Tokenizer) -> list[int]:
    """Return the ids of `part` inside a text: without a begin token or a space before it."""
    for anchor in _ANCHORS:
        encoded = tokenizer(anchor + part, add_special_tokens=False, return_offsets_mapping=True)
        offsets = encoded["offset_mapping"]
        if not any(start < len(anchor) < end for start, end in offsets):
            pairs = zip(encoded["input_ids"], offsets, strict=True)
            return [index for index, (start, _end) in pairs if start >= len(anchor)]
    return tokenizer.encode(part, add_special_tokens=False)
