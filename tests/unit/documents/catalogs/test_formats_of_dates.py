"""Values without a word beside directives of strftime are no texts, in any format."""

from __future__ import annotations

import pytest

from dragoman_documents.registry import codec
from support.documents.laws import GERMAN, assert_identity

FORMATS = (
    "%b %d", "%d/%m/%Y", "%a, %-d %B %Y %H:%M:%S %z", "%Y-%m-%dT%H:%M:%SZ", "%1$s: %2$d",
    "%.2f", "%lld / %-5.1f", "%1$lu %zd",
)  # fmt: skip
DOCUMENTS = {
    "json": '{{"a": "{}"}}',
    "arb": '{{"a": "{}"}}',
    "chrome": '{{"a": {{"message": "{}"}}}}',
    "jsonl": '{{"a": "{}"}}\n',
    "yaml": 'a: "{}"\n',
    "properties": "a={}\n",
    "strings": '"a" = "{}";\n',
    "xcstrings": '{{"sourceLanguage": "en", "strings": {{"{}": {{}}}}, "version": "1.0"}}',
    "po": 'msgid "{}"\nmsgstr ""\n',
    "csv": 'a,b\n1,"{}"\n',
    "tsv": "a\tb\n1\t{}\n",
    "android": '<resources><string name="a">{}</string></resources>',
    "resx": '<root><data name="a"><value>{}</value></data></root>',
    "qt": "<!DOCTYPE TS><TS><context><name>a</name><message><source>{}</source>"
    '<translation type="unfinished"></translation></message></context></TS>',
    "xliff": '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file '
    'source-language="en"><body><trans-unit id="1"><source>{}</source></trans-unit></body></file>'
    "</xliff>",
    "ttml": '<tt xmlns="http://www.w3.org/ns/ttml"><body><div><p>{}</p></div></body></tt>',
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_format_of_a_date_is_no_text_and_a_word_beside_it_is(name: str) -> None:
    for value in FORMATS:
        assert not assert_identity(codec(name), DOCUMENTS[name].format(value).encode()).segments
    for value in ("%d days ago", "%H:%M Uhr", "Save 50%off", "100 %lang"):
        data = DOCUMENTS[name].format(value).encode()
        assert len(codec(name).extract(data, GERMAN).segments) == 1
