"""Translations of Markdown that are written after one look."""

from __future__ import annotations

from typing import Final

import pytest

from dragoman_documents import registry
from dragoman_documents.markup.markdown import writing
from support.documents.laws import GERMAN

PAGE: Final = b"""# A *heading* of `code`

Text with a [link](/a "Title"), **bold words** and ![an image](b.png): more
on a second line (and [label], [label][]).

- `a]`: text, [x][label]: text and [**bold**](/c)

**Term:** text, **"quoted"** and **`x`**: more (*y.*), **(z)**. *|M|* **[a](/b)**

| one `x` | two |
|---|---|
| *a* b | https://e.org c |

[label]: /d
"""
TEXTS: Final = [
    "Zz {}",
    "{}!",
    "{} (Zz)",
    "1. {}",
    "{} - #2",
    "{}: a_b, C# & %",
    "Zz. {}, =",
    "Ü{}",
    "[Zz] {}",
    "{} [Zz], zz",
    "[label] {}",
    "{} [Label] zz",
    "[Zz]{}",
    "Zz [x] {} [ab][cd] [ef](gh)",
    "{} {{zz}} zz",
    "{{zz}} {}",
    "{}{{zz}} zz",
    "{} {{zz}}",
]


@pytest.mark.parametrize("pattern", TEXTS)
@pytest.mark.parametrize("name", ["markdown", "mdx"])
def test_one_look_writes_what_the_trial_of_each_character_writes(
    name: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec = registry.codec(name)
    found = codec.extract(PAGE, GERMAN)
    texts = [pattern.format(each.text) for each in found.segments]
    output = codec.splice(PAGE, found, texts, GERMAN)
    monkeypatch.setattr(writing, "written", lambda *_, **__: None)
    assert codec.splice(PAGE, found, texts, GERMAN) == output
