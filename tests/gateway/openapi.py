"""Answers of the gateway against the schemas of DeepL's openapi.json, which the caller provides."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import jsonschema

_TEXT: Final = {"text": ["proton beam"], "source_lang": "EN", "target_lang": "DE"}


class _Asked(NamedTuple):
    method: str
    path: str
    body: Any = None
    status: int = 200


_REQUESTS: Final = (
    _Asked("POST", "/v2/translate", _TEXT),
    _Asked("POST", "/v2/translate", {**_TEXT, "text": ["proton beam", "", "a"]}),
    _Asked("POST", "/v2/translate", {"text": ["proton beam"], "target_lang": "FR"}),
    _Asked("POST", "/v2/translate", {**_TEXT, "model_type": "quality_optimized"}),
    _Asked("POST", "/v2/translate", {**_TEXT, "show_billed_characters": True}),
    _Asked("POST", "/v2/translate", {**_TEXT, "text": ["<p>a</p>"], "tag_handling": "html"}),
    _Asked("POST", "/v2/translate", {**_TEXT, "target_lang": "XX"}, 400),
    _Asked("POST", "/v2/translate", {}, 400),
    _Asked("GET", "/v2/languages"),
    _Asked("GET", "/v2/languages?type=source"),
    _Asked("GET", "/v2/languages?type=target"),
    _Asked("GET", "/v2/languages?type=other", None, 400),
    _Asked("GET", "/v2/usage"),
    _Asked("GET", "/v2/glossary-language-pairs"),
)


def problems(file: Path, url: str, key: str) -> Iterator[str]:
    """Yield what differs from the schemas."""
    document = json.loads(file.read_text(encoding="utf-8"))
    for asked in _REQUESTS:
        status, said = _answer(url, key, asked)
        name = f"{asked.method} {asked.path} {json.dumps(asked.body)}"
        if status != asked.status:
            yield f"{name}: {status}, not {asked.status}: {said}"
            continue
        path = asked.path.partition("?")[0]
        answer = document["paths"][path][asked.method.lower()]["responses"].get(str(status), {})
        schema = answer.get("content", {}).get("application/json", {}).get("schema")
        if schema is None:
            continue  # errors have no schema there
        for problem in jsonschema.Draft202012Validator({**document, **schema}).iter_errors(said):
            yield f"{name}: {problem.json_path}: {problem.message}"


def count() -> int:
    """Return how many answers are judged."""
    return len(_REQUESTS)


def _answer(url: str, key: str, asked: _Asked) -> tuple[int, Any]:
    headers = {"Authorization": f"DeepL-Auth-Key {key}", "Content-Type": "application/json"}
    body = None if asked.body is None else json.dumps(asked.body).encode()
    request = urllib.request.Request(f"{url}{asked.path}", body, headers, method=asked.method)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - of this machine
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
