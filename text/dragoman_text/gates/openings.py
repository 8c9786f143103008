"""How answers begin that are more than the translation, and the marks of reasoning and wrappers."""

from __future__ import annotations

import re
from typing import Final

# gpt-oss: reasoning, then the answer, with its control tokens or without them.
FINAL: Final = ("assistantfinal", "<|channel|>final<|message|>")
OPENING: Final = re.compile(
    r"""\A\s*+(?:
        (?:sure|certainly|of[ ]course|okay|ok)\s*+[,!.]?\s*+
        (?:here(?:'s|[ ]is|’s)\b[^\n:：]{0,80}[:：]\s*)
      | here(?:'s|[ ]is|’s)[ ](?:the|your|my|a)\b[^\n:：]{0,30}\btranslat\w*[^\n:：]{0,60}[:：]\s*
      | (?:the\s+)?(?:translation|translated\s+text)(?:\s+is)?\s*[:：]\s*
      | (?:übersetzung|traduction|traducción|tradução|traduzione|vertaling|перевод
          |翻訳|翻译|翻譯|译文|譯文|번역)\s*[:：]\s*
    )""",
    re.IGNORECASE | re.VERBOSE,
)
MARKS: Final = ("<think>", "</think>", "<target>", "</target>", *FINAL, "<|channel", "<channel|>")
"""Marks of reasoning and wrappers: what has one after cleaning is no translation."""
