"""Front matter: which values are sent, and where and how their translations are written."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dragoman_documents import registry
from dragoman_documents.codec import Options
from dragoman_documents.putting_back import put_back

CODEC = registry.codec("markdown")
GERMAN = Options("de")

HOME = """\
---
layout: home
title: Welcome page
hero:
  name: Product
  text: A framework for things
  image: {src: /a.png, alt: The logo}
  actions:
    - {theme: brand, text: Get started, link: /guide}
features:
  - title: Fast
    details: It is very fast.
---
"""
TOML = """\
+++
title = "A TOML \\u2026 title"  # shown
"description" = 'It is \\ literal'
slug = "the-slug"
summary = \"\"\"
Two lines \\
   of text\"\"\"
date = 2024-01-02T03:04:05Z
[cover]
alt = "The cover"
[[menus.main]]
name = "First entry"
+++

Text.
"""


def texts(document: str, options: Options = GERMAN) -> list[str]:
    extraction = CODEC.extract(document.encode(), options)
    return [segment.text for segment in extraction.segments]


def translated(document: str, options: Options, change: str = "") -> str:
    """Return a document in which `change` follows each text."""
    data = document.encode()
    found = CODEC.extract(data, options)
    given = [segment.text + change for segment in found.segments]
    spliced = put_back(CODEC, data, found, given, options)
    assert not spliced.changed
    return spliced.data.decode()


def test_a_home_page_has_the_texts_of_its_site() -> None:
    options = replace(GERMAN, site="vitepress")
    assert texts(HOME, options) == [
        "Welcome page", "Product", "A framework for things", "The logo", "Get started", "Fast",
        "It is very fast.",
    ]  # fmt: skip
    assert texts(HOME) == ["Welcome page"]
    assert translated(HOME, options) == HOME


def test_keys_add_to_those_of_the_site() -> None:
    options = replace(GERMAN, keys=("hero.actions.**",))
    assert texts(HOME, options) == ["Welcome page", "brand", "Get started"]


def test_items_of_a_list_are_texts_but_not_members_of_a_mapping() -> None:
    document = "---\ntitle: {kept: Here}\nkeywords:\n- one word\n- [not this]\n- two\n---\n"
    assert texts(document, replace(GERMAN, site="docusaurus")) == ["one word", "two"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_toml_is_translated_in_place_and_keeps_its_spelling(newline: str) -> None:
    document, options = TOML.replace("\n", newline), replace(GERMAN, site="hugo")
    assert texts(document, options) == [
        "A TOML … title", "It is \\ literal", "Two lines of text", "The cover", "First entry",
        "Text.",
    ]  # fmt: skip
    assert translated(document, options) == document
    output = translated(document, options, ' isn\'t "x"')
    assert 'title = "A TOML \\u2026 title isn\'t \\"x\\""  # shown' in output
    assert '"description" = "It is \\\\ literal isn\'t \\"x\\""' in output
    assert f" \\{newline}   " in output


@pytest.mark.parametrize(
    "document",
    [
        '+++\ntitle = "Not closed\n+++\n',
        '+++\ntitle = "Twice"\ntitle = "There"\n+++\n',
        "+++\na = " + "[" * 2_000 + "\n+++\n",
        "---\ntitle: a: b: {{ x }}\n---\n",
    ],
)
def test_front_matter_that_cannot_be_read_is_left_alone_with_a_remark(document: str) -> None:
    extraction = CODEC.extract(f"{document}\nText\n".encode(), GERMAN)
    assert [segment.text for segment in extraction.segments] == ["Text"]
    assert [remark.kind for remark in extraction.remarks] == ["front_matter"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("---\n\ntitle: Some words\n---\nText", ["Some words", "Text"]),
        ("---\r# c\rtitle: Some words\r...\rText", ["Some words", "Text"]),
        ("---\ntitel: Some words\n---\n", []),
        ("---\nSome words\n---\nText", ["Some words", "Text"]),
        ("---\n\nSome words\n\n---\n", ["Some words"]),
        ("Text\n\n---\nSome words\n---\n", ["Text", "Some words"]),
        ("Text\n\n+++\nSome words\n+++\n", ["Text", "Some words"]),
        ("Text\n\n---\nlayout: two columns\n---\n\nSlide", ["Text", "Slide"]),
        (
            "---\ntitle: Some words\n---\n---\nlayout: two columns\n---\nText",
            ["Some words", "Text"],
        ),
    ],
)
def test_front_matter_begins_a_document_with_a_key(document: str, expected: list[str]) -> None:
    assert texts(document) == expected


@pytest.mark.parametrize("change", ["", ' "quoted" \\ \u2028 and \x07'])
def test_an_object_at_the_start_is_front_matter_and_stays_json(change: str) -> None:
    document = '{\n\t"title": "A \\u2026 title",\n  "slug": "the-slug"\n}\n\nText.\n'
    output = translated(document, replace(GERMAN, site="hugo"), change)
    read, end = json.JSONDecoder().raw_decode(output)
    assert read == {"title": f"A \u2026 title{change}", "slug": "the-slug"}
    assert output[end:].startswith("\n\nText.")
    assert change or output == document


def test_a_sentence_that_begins_with_an_object_is_text() -> None:
    assert texts('{"title": "A title"} is the answer.\n') == ['{"title": "A title"} is the answer.']


def test_a_scalar_between_rules_harms_nothing() -> None:
    assert texts('---\n"a: b and some more"\n---\n\nText\n') == ["Text"]


def test_a_rule_between_paragraphs_begins_no_front_matter() -> None:
    assert texts("  ---\n\ntitle: A text\n\n---\n") == ["title: A text"]
