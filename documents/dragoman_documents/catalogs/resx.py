"""RESX: resources of .NET programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dragoman_documents.codec import Codec, Segment
from dragoman_documents.xml.files import XML_NAMESPACE, Read, XmlCodec, add_content
from dragoman_documents.xml.inline import InlineRules
from dragoman_documents.xml.tree import text_of


def _resx(read: Read) -> None:
    for each in read.root.children:
        name = each.attributes.get("name", "")
        value, comment = each.child("value"), each.child("comment")
        if each.name != "data" or value is None or name.startswith(">>"):
            continue
        if "type" in each.attributes or "mimetype" in each.attributes:
            continue
        note = text_of(read.data[comment.content : comment.stop]).strip() if comment else ""
        add_content(read, value, InlineRules(), Segment("", name, "message", context=note or None))


CODECS: Final[Mapping[str, Codec]] = {
    "resx": XmlCodec(
        "resx", frozenset({".resx", ".resw"}), frozenset({"root"}), _resx, XML_NAMESPACE
    ),
}
