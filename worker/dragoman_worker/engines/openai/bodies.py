"""Bodies of requests: one generation as a server of OpenAI's API wants it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from dragoman_worker.engines.openai.prompt_tokens import TextPrompt, without_control_tokens
from dragoman_worker.ports import Decoding, GenerationRequest, Prompt

COMPLETIONS: Final = "/v1/completions"
CHAT: Final = "/v1/chat/completions"
EXTENSIONS: Final[Mapping[str, Any]] = {
    "top_k": 1,
    "repetition_penalty": 1.0,
    "stop_token_ids": [],
    "skip_special_tokens": True,
    "seed": 1,
}
"""Fields beyond OpenAI's, as vLLM, SGLang and llama.cpp name them, each with a harmless value."""


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
    exact: bool = False,
) -> ServerCall:
    """Return what to post for a request. Fields in `without` are those the server refuses.

    Only parameters that differ from the API's defaults are sent, but for temperature and the
    number of tokens, whose defaults differ from server to server. With `exact` the answer has
    `max_tokens`.
    """
    decoding = request.decoding
    body: dict[str, Any] = {"model": decoding.adapter or model, "stream": False, "n": 1}
    body |= {name: value for name, value in sampling(decoding).items() if name not in without}
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
    """Return the parameters that differ from the API's defaults, and the temperature."""
    given: dict[str, Any] = {"temperature": decoding.temperature}
    for name, neutral in (
        ("top_p", 1.0),
        ("frequency_penalty", 0.0),
        ("presence_penalty", 0.0),
        ("repetition_penalty", 1.0),
        ("seed", None),
    ):
        if (value := getattr(decoding, name)) != neutral:
            given[name] = value
    if decoding.top_k > 0:
        given["top_k"] = decoding.top_k
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
