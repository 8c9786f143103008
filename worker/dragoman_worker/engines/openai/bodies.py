"""Bodies of requests: one generation as a server of OpenAI's API wants it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from dragoman_worker.engines.openai.llama_cpp import renamed
from dragoman_worker.engines.openai.prompt_tokens import TextPrompt, without_control_tokens
from dragoman_worker.ports import Decoding, GenerationRequest, Prompt

COMPLETIONS: Final = "/v1/completions"
CHAT: Final = "/v1/chat/completions"
EXTENSIONS: Final[Mapping[str, Any]] = {
    "top_k": 1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "stop_token_ids": [],
    "skip_special_tokens": True,
    "seed": 1,
}
"""Fields beyond OpenAI's, as vLLM and SGLang name them, each with a harmless value."""


class ServerCall(NamedTuple):
    """A path and the body to post to it."""

    path: str
    body: dict[str, Any]


def call(
    request: GenerationRequest,
    *,
    model: str,
    max_tokens: int,
    without: Sequence[str] = (),
    llama_cpp: bool = False,
    exact: bool = False,
) -> ServerCall:
    """Return what to post for a request. Fields in `without` are those the server refuses.

    With `llama_cpp` they have the names that it knows. With `exact` the answer has `max_tokens`.
    """
    decoding = request.decoding
    body: dict[str, Any] = {"model": decoding.adapter or model, "stream": False, "n": 1}
    given = {name: value for name, value in sampling(decoding).items() if name not in without}
    body |= renamed(given) if llama_cpp else given
    ids = request.prompt_ids
    body["max_tokens"] = max_tokens
    if exact:
        body |= {"ignore_eos": True, "min_tokens": max_tokens}
    if not isinstance(ids, TextPrompt):
        return ServerCall(COMPLETIONS, {**body, "prompt": list(ids)})
    prompt = ids.prompt
    if prompt.messages:
        return ServerCall(CHAT, {**body, **_chat(prompt)})
    text = _plain(prompt.completion, prompt.user_spans)
    return ServerCall(COMPLETIONS, {**body, "prompt": text})


def sampling(decoding: Decoding) -> dict[str, Any]:
    """Return the parameters that make the answer, also those that change nothing.

    Without them vLLM takes those of the model's generation_config.json, perhaps a penalty, and
    llama.cpp a top_p of 0.95 and a min_p of 0.05. Left out is what no server has by default.
    """
    given: dict[str, Any] = {
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "top_k": decoding.top_k if decoding.top_k > 0 else -1,
        "min_p": 0.0,
        "repetition_penalty": decoding.repetition_penalty,
    }
    for name, neutral in (("frequency_penalty", 0.0), ("presence_penalty", 0.0), ("seed", None)):
        if (value := getattr(decoding, name)) != neutral:
            given[name] = value
    if decoding.stop:
        given["stop"] = list(decoding.stop)
    if decoding.stop_token_ids:
        given["stop_token_ids"] = list(decoding.stop_token_ids)
    if decoding.special_tokens:
        given["skip_special_tokens"] = False
    return given


def _chat(prompt: Prompt) -> dict[str, Any]:
    messages = []
    for message in prompt.messages:
        content: Any = message.content
        if isinstance(content, str):
            content = without_control_tokens(content)
        else:
            content = [
                {
                    name: without_control_tokens(value) if name == "text" else value
                    for name, value in part.items()
                }
                for part in content
            ]
        messages.append({"role": message.role, "content": content})
    chat: dict[str, Any] = {"messages": messages}
    if prompt.template_options:
        chat["chat_template_kwargs"] = dict(prompt.template_options)
    return chat


def _plain(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return a completion's text in which the users' texts spell no control token."""
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], without_control_tokens(text[start:end])]
        at = end
    return "".join([*parts, text[at:]])
