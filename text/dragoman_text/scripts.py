"""The scripts of letters and of languages, by the blocks of Unicode that hold them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_BLOCKS: Final = {
    "Latn": "A-Za-zªºÀ-ÖØ-öø-\u02af\u1d00-\u1d25\u1d6b-\u1d77\u1d79-\u1dbe\u1e00-\u1eff"
    "\u2c60-\u2c7f\ua722-\ua787\ua78b-\ua7ff\uab30-\uab64\ufb00-\ufb06Ａ-Ｚａ-ｚ",
    "Grek": "\u0370-\u0373\u0376-\u0377\u037b-\u037d\u0386\u0388-\u03ff\u1f00-\u1fff",
    "Cyrl": "\u0400-\u0481\u048a-\u052f\u1c80-\u1c88\ua640-\ua69b",
    "Armn": "\u0531-\u0556\u0560-\u0588\ufb13-\ufb17",
    "Hebr": "\u05d0-\u05f2\ufb1d-\ufb4f",
    "Arab": "\u0620-\u063f\u0641-\u064a\u066e-\u06d3\u06d5\u06e5-\u06ef\u06fa-\u06ff\u0750-\u077f"
    "\u08a0-\u08c9\ufb50-\ufdcf\ufe70-\ufefc",
    "Syrc": "\u0710-\u074f",
    "Thaa": "\u0780-\u07b1",
    "Nkoo": "\u07c0-\u07ff",
    "Deva": "\u0900-\u0963\u0971-\u097f\ua8e0-\ua8ff",
    "Beng": "\u0980-\u09ff",
    "Guru": "\u0a00-\u0a7f",
    "Gujr": "\u0a80-\u0aff",
    "Orya": "\u0b00-\u0b7f",
    "Taml": "\u0b80-\u0bff",
    "Telu": "\u0c00-\u0c7f",
    "Knda": "\u0c80-\u0cff",
    "Mlym": "\u0d00-\u0d7f",
    "Sinh": "\u0d80-\u0dff",
    "Thai": "\u0e01-\u0e3a\u0e40-\u0e5b",
    "Laoo": "\u0e80-\u0eff",
    "Tibt": "\u0f00-\u0fff",
    "Mymr": "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f",
    "Geor": "\u10a0-\u10fa\u10fc-\u10ff\u1c90-\u1cbf\u2d00-\u2d2f",
    "Hang": "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7fb\uffa0-\uffdc",
    "Ethi": "\u1200-\u1360\u1369-\u139f\u2d80-\u2ddf\uab00-\uab2f",
    "Cher": "\u13a0-\u13ff\uab70-\uabbf",
    "Cans": "\u1401-\u167f\u18b0-\u18ff",
    "Khmr": "\u1780-\u17ff",
    "Mong": "\u1800-\u18af",
    "Olck": "\u1c50-\u1c7f",
    "Tfng": "\u2d30-\u2d7f",
    "Hira": "\u3041-\u3096\u309d-\u309f",
    "Kana": "\u30a1-\u30fa\u30fd-\u30ff\u31f0-\u31ff\uff66-\uff6f\uff71-\uff9d",
    "Bopo": "\u3105-\u312f\u31a0-\u31bf",
    "Hani": "\u3005\u3007\u3400-\u4dbf\u4e00-\u4e27\u4e29-\u9fff\uf900-\ufaff\U00020000-\U000323af",
    "Yiii": "\ua000-\ua48f",
}
"""The letters and marks of each script. The vowel length mark of kana, the Arabic tatweel and
other characters that several scripts share are in none, nor is U+4E28, which serves as a bar."""

_OF_WRITING: Final = {
    "Hans": ("Hani", "Bopo"),
    "Hant": ("Hani", "Bopo"),
    "Hani": ("Hani", "Bopo"),
    "Jpan": ("Hani", "Hira", "Kana"),
    "Kore": ("Hang",),
}
"""The scripts of letters that a writing system uses, where its code names another."""

UNSPACED: Final = frozenset(
    {"Hani", "Bopo", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"}
)
"""The scripts that are written without blanks between words."""


@lru_cache(maxsize=256)
def of_writing(code: str | None) -> frozenset[str]:
    """Return the scripts of letters of a writing system: three for `Jpan`, none if unknown."""
    return frozenset(_OF_WRITING.get(code or "", (code or "",))).intersection(_BLOCKS)


@lru_cache(maxsize=1024)
def runs(scripts: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of one or more letters of any of the scripts, in a row."""
    return re.compile(f"{one(scripts)}+" if scripts else "(?!)")


def one(scripts: frozenset[str]) -> str:
    """Return the regular expression of one letter of the scripts."""
    return f"[{''.join(_BLOCKS[each] for each in sorted(scripts))}]"


def others(scripts: frozenset[str]) -> frozenset[str]:
    """Return all scripts but these."""
    return frozenset(_BLOCKS) - scripts
