"""How answers begin that are more than the translation, and the marks of reasoning and wrappers."""

from __future__ import annotations

import re
from typing import Final

# gpt-oss: reasoning, then the answer, with its control tokens or without them.
FINAL: Final = ("assistantfinal", "<|channel|>final<|message|>")
_TRANSLATION: Final = (
    r"(?:übersetzung|traduction|traducción|tradução|traduzione|vertaling|перевод"
    r"|翻訳|翻译|翻譯|译文|譯文|번역|translated[ ]text|translation)"
)
OPENING: Final = re.compile(
    rf"""\A\s*+(?:
        (?:sure|certainly|of[ ]course|okay|ok)\s*+[,!.]?\s*+
        (?:here(?:'s|[ ]is|’s)\b[^\n:：]{{0,80}}[:：]\s*)
      | here(?:'s|[ ]is|’s)[ ](?:the|your|my|a)\b[^\n:：]{{0,30}}\btranslat\w*
        [^\n:：]{{0,60}}[:：]\s*
      | (?:the\s+)?(?:translation|translated\s+text)(?:\s+is)?\s*[:：]\s*
      | (?:[*_]{{1,3}}|\#{{1,6}}\s)\s?{_TRANSLATION}\s?
        (?:[:：]?[*_]{{1,3}}[:：]?|[:：]?\s*\n|[:：])\s*
      | {_TRANSLATION}\s*[:：]\s*
    )""",
    re.IGNORECASE | re.VERBOSE,
)
THOUGHTS: Final = (
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<analysis>", "</analysis>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
)
"""How Magistral, Seed-OSS, Kimi and others mark their reasoning; most write `<think>`."""
WRAPPER: Final = re.compile(
    r"</?(?:target|translation|translated(?:[_-]text)?|translated_content|target_text|answer"
    r"|final_answer|output|result|response|target_language|assistant)>",
    re.IGNORECASE,
)
"""Tags around an answer that no original has."""
MARKS: Final = (
    "<think>",
    "</think>",
    *FINAL,
    "<|channel",
    "<channel|>",
    *(mark for pair in THOUGHTS for mark in pair),
)
"""Marks of reasoning: what has one after cleaning is no translation."""
