"""Conversion of prompts to token ids in which no user text can form a control token.

A prompt is encoded as the tokenizer does it, and compared with its shape (shapes.py): the template
with marks in place of the users' texts. If a text formed a control token, or took one from the
template, the prompt is encoded in pieces: the ids of the template as they are, and the texts
between its control tokens as plain characters (plain_text.py). So the model reads what the user
wrote, its output needs no restoring, and all other tokens are those of the template.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dragoman_worker.ports import Message, Prompt
from dragoman_worker.prompts.plain_text import PlainText
from dragoman_worker.prompts.shapes import Fields, Frame, Outline, Shape, shape_of
from dragoman_worker.prompts.tokenizer import Tokenizer


def encode(prompt: Prompt, tokenizer: Tokenizer) -> list[int]:
    """Return the ids of a prompt, with at most one BOS token at the beginning.

    Raises PermanentEngineError if the tokenizer has no ids but a control token for a text.
    """
    return _encode_chat(prompt, tokenizer) if prompt.messages else _completion(prompt, tokenizer)


def count(text: str, tokenizer: Tokenizer) -> int:
    """Return the number of tokens of a text alone; a spelled control token counts as one."""
    return len(tokenizer.encode(text, add_special_tokens=False))


def _encode_chat(prompt: Prompt, tokenizer: Tokenizer) -> list[int]:
    conversation = [
        {"role": message.role, "content": _plain_content(message)} for message in prompt.messages
    ]
    options = {**prompt.template_options, "add_generation_prompt": True}
    answer = prompt.answer_start
    ending = tokenizer.encode(answer, add_special_tokens=False) if answer else []
    if not hasattr(tokenizer, "backend_tokenizer"):
        # A tokenizer of another kind, such as Mistral's, forms its control tokens from no text.
        ids = tokenizer.apply_chat_template(
            conversation, **options, tokenize=True, return_dict=False
        )
        return _begun_once([*ids, *ending], tokenizer)
    # The same ids as with `tokenize=True` for two thirds of its time (benchmarks/planning.py).
    text = tokenizer.apply_chat_template(conversation, **options, tokenize=False)
    ids = tokenizer.encode(text, add_special_tokens=False) + ending
    given = [content for content in _contents(prompt.messages) if content.strip()]
    if not given:
        return _begun_once(ids, tokenizer)
    shape = shape_of(_outline_of_chat(prompt), tokenizer)
    if not shape.holds(ids):
        shown = [content if content in text else content.strip() for content in given]
        ids = _in_pieces(shape, shown, tokenizer)
    return ids[shape.repeated_begin :]


def _completion(prompt: Prompt, tokenizer: Tokenizer) -> list[int]:
    text = prompt.completion
    ids = tokenizer.encode(text, add_special_tokens=prompt.add_special_tokens)
    spans = prompt.user_spans
    if not spans or not hasattr(tokenizer, "backend_tokenizer"):
        return _begun_once(ids, tokenizer)
    fixed = _around(text, spans)
    outline = Outline(completion=fixed, add_special_tokens=prompt.add_special_tokens)
    shape = shape_of(outline, tokenizer)
    if not shape.holds(ids):
        ids = _in_pieces(shape, [text[start:end] for start, end in spans], tokenizer)
    return ids[shape.repeated_begin :]


def _in_pieces(shape: Shape, texts: Sequence[str], tokenizer: Tokenizer) -> list[int]:
    """Return the ids of the template, and between its control tokens those of plain text."""
    plain = PlainText(tokenizer, shape.control)
    ids: list[int] = []
    section: list[str] = []
    before = ""
    for part in shape.parts:
        if isinstance(part, Frame):
            ids += plain.ids("".join(section), before)
            ids += part.ids
            section, before = [], part.last
        else:
            section.append(texts[part] if isinstance(part, int) else part)
    return ids


def _begun_once(ids: list[int], tokenizer: Tokenizer) -> list[int]:
    begin = getattr(tokenizer, "bos_token_id", None)
    while begin is not None and ids[:2] == [begin, begin]:
        del ids[0]
    return ids


# --- what comes from users ------------------------------------------------------------------------


def _plain_content(message: Message) -> str | list[dict[str, str]]:
    if isinstance(message.content, str):
        return message.content
    return [dict(part) for part in message.content]


def _contents(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message.content, str):
            yield message.content
        else:
            yield from (part["text"] for part in message.content if "text" in part)


def _outline_of_chat(prompt: Prompt) -> Outline:
    return Outline(
        messages=tuple([(message.role, _outlined(message)) for message in prompt.messages]),
        options=tuple(prompt.template_options.items()),
        answer_start=prompt.answer_start,
    )


def _outlined(message: Message) -> str | tuple[Fields, ...] | None:
    """Return the message without the texts of users; a blank one as it is."""
    content = message.content
    if not isinstance(content, str):
        return tuple(tuple(map(_field, part.items())) for part in content)
    if not content.strip():
        return content
    if message.user_spans is None:
        return None
    return "".join(_around(content, message.user_spans)).strip() or None


def _field(item: tuple[str, str]) -> tuple[str, str | None]:
    key, value = item
    return key, None if key == "text" and value.strip() else value


def _around(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return what is before, between and behind the spans."""
    starts = [0, *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), len(text)]
    return tuple([text[start:end] for start, end in zip(starts, ends, strict=True)])
