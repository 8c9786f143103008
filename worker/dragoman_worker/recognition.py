"""Names of models: which prompt profile a model's folder or name on a hub asks for."""

from __future__ import annotations

import re
from typing import Final

_FAMILIES: Final = tuple(
    (profile, re.compile(pattern))
    for profile, pattern in (
        ("hy-mt2-30b", "hy-?mt-?2-.*30b"),
        ("hy-mt2", r"hy-?mt-?2(?![\d.])"),
        ("hy-mt1.5", "hy-?mt-?1[.-]5"),
        ("hunyuan-mt", "hunyuan-?mt"),
        ("translategemma-vllm", "vllm-?translate-?gemma"),
        ("translategemma", "translate-?gemma"),
        ("tower-plus", r"tower-?plus|tower\+"),
        ("seed-x", "seed-?x(?![a-z])"),
        ("gemmax2", "gemmax-?2"),
        ("milmmt", "milmmt"),
        ("lmt-60", r"(?<![a-z])lmt-?60(?!\d)"),
        ("salamandra-ta", "salamandra-?ta.*instruct"),
        ("rosetta", "yanolja.*rosetta"),
        ("eurollm-1.7b", "eurollm-1[.-]7b"),
        ("eurollm", "eurollm"),
        ("gpt-oss", "gpt-?oss"),
        ("gemma4", r"gemma-?4(?![\d.b])"),
        ("qwen3.5", r"qwen-?3\.\d"),
        ("qwen3", r"qwen-?3(?![\d.])"),
    )
)
"""Profiles and what the names of their models contain; the first that is found wins."""


def recognized_profile(model: str) -> str | None:
    """Return the profile that the name of a model asks for, None if it says nothing.

    The last part of a path that says something counts: of ``NiuTrans/LMT-60-4B``, of
    ``/models/LMT-60/4B`` and of a hub's cache, ``models--NiuTrans--LMT-60-4B/snapshots/0a1b``.
    """
    parts = re.split(r"[/\\]", model.lower().replace("_", "-").replace(" ", "-"))
    for part in reversed(parts):
        for profile, pattern in _FAMILIES:
            if pattern.search(part):
                return profile
    return None
