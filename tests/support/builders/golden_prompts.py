"""Segments for the pinned prompts of each profile, and the writer of their golden files.

``python tests/support/builders/golden_prompts.py NAME`` rewrites ``tests/data/prompts/NAME.json``
for one profile. Read the difference before committing it. `source` in a file says where the words
of its prompts come from and when they were read there; it is written by hand, and kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from dragoman_worker.errors import UnsupportedLanguage
from dragoman_worker.ports import Prompt
from dragoman_worker.prompts.base import Profile, PromptInput
from dragoman_worker.prompts.table import get_profile

FOLDER: Final = Path(__file__).parents[2] / "data" / "prompts"

_TEXT: Final = "The cat sleeps on the server.\nIt likes Kafka."
SEGMENTS: Final[dict[str, dict[str, Any]]] = {
    "plain": {"text": "Hello, world!", "target_lang": "de", "source_lang": "en"},
    "source unknown": {"text": "Hello, world!", "target_lang": "fr"},
    "context": {
        "text": _TEXT,
        "target_lang": "de",
        "source_lang": "en",
        "context": "A story for children about computers.",
    },
    "glossary": {
        "text": _TEXT,
        "target_lang": "de",
        "source_lang": "en",
        "glossary": {"server": "Rechner", "Cat": "Kätzchen"},
    },
    "do_not_translate": {
        "text": _TEXT,
        "target_lang": "de",
        "source_lang": "en",
        "do_not_translate": ["Kafka", "Redis"],
    },
    "formality": {
        "text": "How are you?",
        "target_lang": "de",
        "source_lang": "en",
        "formality": "more",
    },
    "formality preferred": {
        "text": "How are you?",
        "target_lang": "fr",
        "source_lang": "en",
        "formality": "prefer_less",
    },
    "instructions": {
        "text": _TEXT,
        "target_lang": "es",
        "source_lang": "en",
        "instructions": ["Use short sentences.", "Keep the humour."],
    },
    "everything": {
        "text": _TEXT,
        "target_lang": "ja",
        "source_lang": "en",
        "context": "A story for children about computers.",
        "glossary": {"cat": "子猫"},
        "do_not_translate": ["Kafka"],
        "formality": "less",
        "instructions": ["Use short sentences."],
    },
    "tokens": {
        "text": "Press <x1/> to <g2>save</g2>.",
        "target_lang": "de",
        "source_lang": "en",
        "tokens": True,
        "protect": ["%s"],
    },
    "tags": {
        "text": "Press <g1>save</g1> now<x2/>.",
        "target_lang": "de",
        "source_lang": "en",
    },
    "tags of HTML": {
        "text": 'Read our <a href="/terms">terms</a>.',
        "target_lang": "zh-CN",
        "source_lang": "en",
    },
    "tags and a term": {
        "text": "Press <g1>save</g1> now.",
        "target_lang": "de",
        "source_lang": "en",
        "glossary": {"save": "sichern"},
    },
    "tags and a context": {
        "text": "Press <g1>save</g1> now.",
        "target_lang": "de",
        "source_lang": "en",
        "context": "A dialog.",
    },
    "two paragraphs": {"text": "Hello!\n\nHow are you?", "target_lang": "fr", "source_lang": "en"},
    "correction": {
        "text": _TEXT,
        "target_lang": "de",
        "source_lang": "en",
        "correction": "The answer must be in German.",
        "tokens": True,
    },
    "zh-CN": {"text": "Hello, world!", "target_lang": "zh-CN", "source_lang": "en"},
    "zh-TW": {"text": "Hello, world!", "target_lang": "zh-TW", "source_lang": "en"},
    "from zh-Hant": {"text": "你好，世界！", "target_lang": "en", "source_lang": "zh-Hant"},
    "pt-PT": {"text": "Hello, world!", "target_lang": "pt-PT", "source_lang": "en"},
    "pt-BR": {"text": "Hello, world!", "target_lang": "pt-BR", "source_lang": "en"},
    "de-AT": {"text": "Hello, world!", "target_lang": "de-AT", "source_lang": "en-GB"},
    "neither is English": {"text": "Guten Tag.", "target_lang": "fr", "source_lang": "de"},
    "same language": {"text": "Hello, world!", "target_lang": "en", "source_lang": "en-US"},
    "sr-Latn": {"text": "Hello, world!", "target_lang": "sr-Latn", "source_lang": "en"},
    "uz-Cyrl": {"text": "Hello, world!", "target_lang": "uz-Cyrl", "source_lang": "en"},
    "pa-Arab": {"text": "Hello, world!", "target_lang": "pa-PK", "source_lang": "en"},
    "mn-Mong": {"text": "Hello, world!", "target_lang": "mn-Mong", "source_lang": "zh"},
    "yue": {"text": "Hello, world!", "target_lang": "yue-HK", "source_lang": "en-US"},
    "mvf": {"text": "Hello, world!", "target_lang": "mvf", "source_lang": "zh"},
    "eu": {"text": "Hello, world!", "target_lang": "eu", "source_lang": "es"},
    "language of few": {"text": "Hello, world!", "target_lang": "gd", "source_lang": "en"},
}


def segment_of(fields: dict[str, Any]) -> PromptInput:
    """Return a segment from its JSON."""
    given: dict[str, Any] = dict(fields)
    for key in ("do_not_translate", "instructions", "protect"):
        given[key] = tuple(fields.get(key, ()))
    return PromptInput(**given)


def outcome(profile: Profile, segment: PromptInput) -> dict[str, Any]:
    """Render a segment; return prompt and warnings, or the error, as JSON."""
    try:
        rendering = profile.render(segment)
    except UnsupportedLanguage as error:
        return {"error": error.message}
    return {**_described(rendering.prompt), "warnings": list(rendering.warnings)}


def golden(profile: Profile, source: str) -> dict[str, Any]:
    """Return the content of the profile's file."""
    cases = [
        {"name": name, "segment": fields, **outcome(profile, segment_of(fields))}
        for name, fields in SEGMENTS.items()
    ]
    return {"profile": profile.name, "source": source, "cases": cases}


def _described(prompt: Prompt) -> dict[str, Any]:
    if not prompt.messages:
        return {
            "completion": prompt.completion,
            "add_special_tokens": prompt.add_special_tokens,
            "user_texts": [prompt.completion[start:end] for start, end in prompt.user_spans],
        }
    messages = [
        {
            "role": message.role,
            "content": message.content
            if isinstance(message.content, str)
            else [dict(part) for part in message.content],
        }
        for message in prompt.messages
    ]
    described = {"messages": messages, "template_options": dict(prompt.template_options)}
    return described | ({"answer_start": prompt.answer_start} if prompt.answer_start else {})


def main() -> None:
    """Write the files of the profiles named."""
    for name in sys.argv[1:]:
        path = FOLDER / f"{name}.json"
        given = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        content = golden(get_profile(name), given.get("source", ""))
        text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
