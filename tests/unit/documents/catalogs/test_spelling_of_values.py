"""Values keep the spelling of their source, under identity and in a translation."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents import registry
from dragoman_documents.codec import Options
from support.documents.additions import without_additions

SAME = Options("en", "en")


def answered(format_name: str, source: str, old: str = "", new: str = "") -> str:
    """Return a file whose texts are answered by themselves, with `old` replaced."""
    codec = registry.codec(format_name)
    data = source.encode()
    extraction = codec.extract(data, SAME)
    assert extraction.segments
    texts = [each.text.replace(old, new) if old else each.text for each in extraction.segments]
    return codec.splice(data, extraction, texts, SAME).decode()


SOURCES = [
    ("json", r'{"a": "Caf\u00e9 and café \/ \u0022so\" \ud83d\ude00 now\u2026"}'),
    ("json", r'{"file_one": "{{count}} file\u2026", "file_other": "{{count}} files\u2026"}'),
    ("arb", r'{"a": "Wait\u2026 for it"}'),
    ("jsonl", '{"text": "Wait\\u2026 for\\/it"}\n'),
    ("properties", "a = one \\\n    two \\: three\\u2026 \\\n  four\n"),
    ("properties", "a=\\ two blanks \\u0041 word\r\n! none\r\n"),
    ("properties", "a=first words\rb=other\\\rwords\r"),
    ("strings", '"a" = "Wait\\U2026 for \\"it\\" and \\\'that\\\'";\n'),
    ("yaml", 'a: "Caf\\xe9 \\u2026 \\\n  and \\"more\\"\n  lines"\n'),
    ("yaml", "a: 'it''s folded\n  here\n\n  and there'\n"),
    ("yaml", "a: Plain, with [brackets] that\n  goes on\n  here # a comment\n"),
    (
        "yaml",
        "a: >-\n  folded text\n  on lines\n\n  and more\nb: |+\n  literal text\n   \n  x y\n\n",
    ),
    ("yaml", "- {a: 'two words', b: \"\\ttab words\"}\n"),
    ("yaml", 'a: "  two blanks  "\n'),
    ("yaml", "a:\n  one: '%{count} file'\n  other: \"%{count} files\\u2026\"\n"),
]


@pytest.mark.parametrize(("format_name", "source"), SOURCES)
def test_values_answered_by_themselves_give_the_bytes_of_the_source(
    format_name: str, source: str
) -> None:
    assert answered(format_name, source) == source


def test_a_translation_keeps_the_escapes_that_still_stand() -> None:
    source = r'{"a": "Wait for it\u2026"}'
    assert answered("json", source, "Wait for it", "Warte") == r'{"a": "Warte\u2026"}'
    source = "a=Wait\\u2026 for it\n"
    assert answered("properties", source, "Wait", "Warte doch") == "a=Warte doch\\u2026 for it\n"


def test_a_translation_of_folded_lines_has_as_many_lines() -> None:
    output = answered("yaml", "a: >-\n  some words\n  of text\n", "words", "longer words")
    assert output == "a: >-\n  some longer\n  words of text\n"


def test_a_plain_value_stays_plain_only_where_it_means_the_same() -> None:
    output = answered("yaml", "a: some, words\n", "words", "w: x")
    assert yaml.safe_load(output) == {"a": "some, w: x"}
    output = answered("yaml", "a: some, words\n", "some", "- some")
    assert yaml.safe_load(output) == {"a": "- some, words"}


WORDS = st.text(alphabet="ab é…\\\"'#:-{}\t\U0001f600", max_size=20).map("word ".__add__)


@given(WORDS, WORDS, st.booleans())
def test_any_translation_of_json_means_what_it_says(text: str, new: str, ascii_only: bool) -> None:
    source = json.dumps({"key": f"{text} end"}, ensure_ascii=ascii_only)
    assert answered("json", source) == source
    output = answered("json", source, f"{text} end", f"{new} end")
    assert json.loads(output) == {"key": f"{new} end"}


@given(WORDS, WORDS, st.sampled_from(["", "'", '"', ">", "|"]))
def test_any_translation_of_yaml_means_what_it_says(text: str, new: str, style: str) -> None:
    source = yaml.dump({"key": f"{text} end"}, default_style=style, width=10, allow_unicode=True)
    assert answered("yaml", source) == source
    output = answered("yaml", source, f"{text} end", f"{new} end")
    assert yaml.safe_load(output)["key"].strip() == f"{new} end"


def test_a_message_of_gettext_answered_by_itself_adds_its_target_alone() -> None:
    source = '#, c-format\nmsgid ""\n"One %d "\n"line"\nmsgstr ""\n\n#~ msgid "a"\n#~ msgstr "b"\n'
    header = 'msgid ""\nmsgstr "Language: en\\n"\n\n'
    output = answered("po", header + source)
    assert "One %d line" in output
    removed = without_additions("po", (header + source).encode(), output.encode())
    assert removed.decode() == header + source
