"""Encoding of results for a store."""

from __future__ import annotations

from pydantic_core import PydanticSerializationError

from dragoman_schemas.results import TranslationResult
from dragoman_schemas.wire import encode_result
from dragoman_worker.errors import Unencodable


def encoded(result: TranslationResult) -> bytes:
    """Return the result as JSON in UTF-8. Raises Unencodable, whose message holds no text."""
    try:
        return encode_result(result)
    except PydanticSerializationError:  # its message quotes the text
        raise Unencodable("the result holds what JSON in UTF-8 cannot encode") from None
