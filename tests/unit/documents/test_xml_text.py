"""Tests of XML with the bytes of its elements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.codec import DocumentError
from dragoman_documents.xml.tree import (
    DEEPEST,
    attribute_range,
    escaped,
    escaped_value,
    parsed,
    source,
    text_of,
)

XML = st.characters(
    exclude_categories=["Cs"], exclude_characters=[chr(n) for n in range(32) if n not in {9, 10}]
).filter(lambda each: each not in "\ufffe\uffff")


def test_elements_know_their_bytes() -> None:
    data = '\ufeff<a x="ü>"><b>ä</b><c/><d></d>/></a>'.encode()
    root = parsed(data, {})
    b, c, d = root.children
    assert data[b.content : b.stop].decode() == "ä"
    assert data[c.start : c.end] == b"<c/>"
    assert (data[d.start : d.end], d.content) == (b"<d></d>", d.stop)
    assert data[root.stop : root.end] == b"</a>"


def test_names_have_the_prefixes_given_and_not_those_of_the_file() -> None:
    root = parsed(
        b'<z:a xmlns:z="urn:a" xmlns="urn:b"><b z:c="1" d="2"/></z:a>', {"urn:a": "n", "urn:b": ""}
    )
    assert (root.name, root.children[0].name) == ("n:a", "b")
    assert root.children[0].attributes == {"n:c": "1", "d": "2"}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "iso-8859-1", "windows-1252"])
def test_other_encodings_are_read_and_written_as_they_were(encoding: str) -> None:
    declared = encoding.removesuffix("-sig")
    data = f'<?xml version="1.0" encoding="{declared}"?><a>ü</a>'.encode(encoding)
    read = source(data)
    root = parsed(read.data, {})
    assert text_of(read.data[root.content : root.stop]) == "ü"
    assert read.encoded(read.data) == data


def test_what_an_encoding_lacks_becomes_a_reference() -> None:
    read = source(b'<?xml version="1.0" encoding="iso-8859-1"?><a>\xfc</a>')
    assert read.encoded("ü€".encode()) == b"\xfc&#8364;"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "corrupt"),
        (b"<a><b></a>", "corrupt"),
        (b"<a>\xff</a>", "corrupt"),
        (b"<a>&nbsp;</a>", "corrupt"),
        (b"<a>\0</a>", "corrupt"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "wrong_type"),
        (b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "wrong_type"),
        (b'<!DOCTYPE a [<!ENTITY % b "c">%b;]><a/>', "wrong_type"),
        (b"<a>" * (DEEPEST + 1), "bomb"),
    ],
)
def test_what_is_no_xml_or_harmful_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parsed(data, {})
    assert caught.value.reason == reason


def test_entities_of_the_file_are_kept_where_they_are_allowed() -> None:
    data = b'<!DOCTYPE a [<!ENTITY b "<c/>">]><a>1&b;<d/></a>'
    root = parsed(data, {}, entities=True)
    assert [each.name for each in root.children] == ["d"]
    assert text_of(data[root.content : root.children[0].start]) == "1&b;"


def test_text_is_decoded() -> None:
    raw = b"a &lt;&#x41;&#66;&amp;amp;<!-- no --><![CDATA[<&amp;>]]><?no no?>\r\nz\rz"
    assert text_of(raw) == "a <AB&amp;<&amp;>\nz\nz"


@given(st.text(XML))
def test_escaped_text_reads_as_itself(text: str) -> None:
    data = f'<a b="{escaped_value(text)}">{escaped(text)}</a>'.encode()
    root = parsed(data, {})
    assert text_of(data[root.content : root.stop]) == text
    assert root.attributes["b"] == text


@given(st.text())
def test_any_text_can_be_written(text: str) -> None:
    parsed(f'<a b="{escaped_value(text)}">{escaped(text)}</a>'.encode(), {})


def test_the_range_of_an_attribute_is_found() -> None:
    data = b"""<a xb="1" b = 'two "' c="b='3'"/>"""
    found = attribute_range(data, parsed(data, {}), "b")
    assert found is not None
    assert data[slice(*found)] == b'two "'
    assert attribute_range(data, parsed(data, {}), "d") is None


def test_declared_defaults_of_attributes_are_not_read() -> None:
    xml = b'<!DOCTYPE a [<!ATTLIST b c CDATA "d">]><a><b e="f"/></a>'
    assert parsed(xml, {"": ""}).children[0].attributes == {"e": "f"}
