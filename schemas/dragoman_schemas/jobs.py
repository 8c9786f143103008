"""Schema of a translation job (docs/reference/jobs.md)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from dragoman_schemas.languages import UnknownLanguage, normalise

SCHEMA_VERSION: Final = 1
MAX_ITEMS: Final = 512
MAX_TEXT_BYTES: Final = 128 * 1024
DEFAULT_TTL_S: Final = 86_400
"""How long a result is kept, unless its job says otherwise."""
MAX_CONTEXT_BYTES: Final = 8 * 1024
MAX_METADATA_BYTES: Final = 8 * 1024
MAX_METADATA_ENTRIES: Final = 64
MAX_ITEM_ID: Final = 128
MAX_DOCUMENT_JOBS: Final = 1_000_000
"""Two hashes of up to 123 KB of bits each in Redis, 1 KB for every 8,192 jobs."""

Formality = Literal["default", "more", "less", "prefer_more", "prefer_less"]
QualityLevel = Literal["off", "basic", "strict"]
OnFail = Literal["fail", "best_effort", "source"]
MemoryUse = Literal["use", "refresh", "off"]
"""`use`: take remembered answers; `refresh`: generate and remember new ones; `off`: neither."""

_HOUR_MINUTE: Final = r"([01]\d|2[0-3]):[0-5]\d"
_RFC3339: Final = re.compile(
    rf"\d{{4}}-\d\d-\d\d[Tt ]{_HOUR_MINUTE}:([0-5]\d|60)(\.\d+)?([Zz]|[+-]{_HOUR_MINUTE})",
    re.ASCII,
)
_SECONDS: Final = slice(17, 19)


def _language(tag: str) -> str:
    try:
        return normalise(tag)
    except UnknownLanguage as error:
        raise PydanticCustomError("unsupported_language", "{why}", {"why": str(error)}) from None


def _rfc3339(value: object) -> object:
    if isinstance(value, datetime):
        return value
    if isinstance(value, str) and _RFC3339.fullmatch(value):
        try:
            return _parse_rfc3339(value)
        except (ValueError, OverflowError):
            pass
    raise PydanticCustomError(
        "rfc3339", "must be an RFC 3339 time with an offset, such as 2030-01-31T12:00:00Z"
    )


def _parse_rfc3339(value: str) -> datetime:
    leap = value[_SECONDS] == "60"  # a leap second, which datetime cannot hold
    text = value.upper().replace(" ", "T")
    if leap:
        text = f"{text[:17]}59{text[19:]}"
    return datetime.fromisoformat(text) + timedelta(seconds=leap)


def _at_most_bytes(limit: int) -> AfterValidator:
    def check(value: str) -> str:
        if (size := len(value.encode())) > limit:
            raise PydanticCustomError(
                "too_many_bytes",
                "is {size} bytes of UTF-8, at most {limit} are allowed",
                {"size": size, "limit": limit},
            )
        return value

    return AfterValidator(check)


def _schema_pattern(longest: int) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": rf"^[A-Za-z0-9._:\-]{{1,{longest}}}$"})


def _id(pattern: str, longest: int) -> AfterValidator:
    matches = re.compile(pattern).match

    def check(value: str) -> str:
        if not matches(value):
            raise PydanticCustomError(
                "id", "must be 1-{longest} of A-Z a-z 0-9 . _ : -", {"longest": longest}
            )
        return value

    return AfterValidator(check)


def _form(value: object) -> str | None:
    if isinstance(value, str):
        return "<string>"
    if isinstance(value, dict | Item):
        return "<item>"
    return "<list>" if isinstance(value, list | tuple) else None


JOB_ID_PATTERN: Final = r"\A[A-Za-z0-9._:\-]{1,128}\Z"
DOCUMENT_ID_PATTERN: Final = r"\A[A-Za-z0-9._:\-]{1,110}\Z"

JobId = Annotated[str, _id(JOB_ID_PATTERN, 128), _schema_pattern(128)]
DocumentId = Annotated[str, _id(DOCUMENT_ID_PATTERN, 110), _schema_pattern(110)]
Language = Annotated[str, AfterValidator(_language)]
Ttl = Annotated[int, Field(ge=60, le=2_592_000)]
Term = Annotated[str, Field(min_length=1, max_length=200)]
Rfc3339 = Annotated[
    AwareDatetime,
    BeforeValidator(_rfc3339),
    PlainSerializer(lambda value: value.isoformat().replace("+00:00", "Z"), return_type=str),
]


class WireModel(BaseModel):
    """Strict, frozen model that refuses unknown fields, so that no misspelt name is ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Item(WireModel):
    """One text of a job; items are independent of each other."""

    text: str
    id: Annotated[str, Field(max_length=MAX_ITEM_ID)] | None = None
    context: Annotated[str, _at_most_bytes(MAX_CONTEXT_BYTES)] | None = None
    max_chars: Annotated[int, Field(ge=1)] | None = None
    protect: (
        Annotated[
            list[Annotated[str, Field(min_length=1)]], Field(max_length=MAX_ITEMS, fail_fast=True)
        ]
        | None
    ) = None


# Tags instead of a plain union: errors then refer to the one form that the text has. The tags
# contain characters that no field name has.
_TEXT_OR_ITEM: Final = Discriminator(
    _form, custom_error_type="form", custom_error_message="must be a string or an item"
)
_TEXT_OR_ITEMS: Final = Discriminator(
    _form, custom_error_type="form", custom_error_message="must be a string, an item or a list"
)
ItemForm = Annotated[
    Annotated[str, Tag("<string>")] | Annotated[Item, Tag("<item>")], _TEXT_OR_ITEM
]
ItemForms = Annotated[list[ItemForm], Field(min_length=1, max_length=MAX_ITEMS, fail_fast=True)]
TextForm = Annotated[
    Annotated[str, Tag("<string>")]
    | Annotated[Item, Tag("<item>")]
    | Annotated[ItemForms, Tag("<list>")],
    _TEXT_OR_ITEMS,
]


class Sampling(WireModel):
    """Decoding parameters that a job may request; the worker's policy bounds them."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    seed: int | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] | None = None


class Quality(WireModel):
    """How strictly the translation is judged, and what happens if it fails."""

    level: QualityLevel | None = None
    max_attempts: Annotated[int, Field(ge=1, le=5)] | None = None
    on_fail: OnFail | None = None


class DocumentRef(WireModel):
    """Position of a job in a document or batch."""

    document_id: DocumentId
    index: Annotated[int, Field(ge=0)]
    total: Annotated[int, Field(ge=1, le=MAX_DOCUMENT_JOBS)]
    path: Annotated[str | None, Field(exclude_if=lambda path: path is None)] = None

    @model_validator(mode="after")
    def _index_below_total(self) -> DocumentRef:
        if self.index >= self.total:
            raise PydanticCustomError(
                "index_range",
                "index {index} must be below total {total}",
                {"index": self.index, "total": self.total},
            )
        return self


class TranslationJob(WireModel):
    """One job: one or more texts into one target language."""

    schema_: Annotated[Literal[1], Field(alias="schema")] = SCHEMA_VERSION
    job_id: JobId
    text: TextForm
    target_lang: Language
    source_lang: Language | None = None
    context: Annotated[str, _at_most_bytes(MAX_CONTEXT_BYTES)] | None = None
    glossary: Annotated[dict[Term, Term], Field(max_length=200)] | None = None
    glossary_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    do_not_translate: Annotated[list[Term], Field(max_length=200, fail_fast=True)] | None = None
    formality: Formality | None = None
    instructions: (
        Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=10, fail_fast=True)]
        | None
    ) = None
    profile: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    sampling: Sampling | None = None
    quality: Quality | None = None
    deadline: Rfc3339 | None = None
    ttl_s: Ttl | None = None
    document: DocumentRef | None = None
    memory: MemoryUse | None = None
    metadata: Annotated[dict[str, str], Field(max_length=MAX_METADATA_ENTRIES)] | None = None

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The texts as items, in order, whichever of the allowed forms ``text`` has."""
        if isinstance(self.text, str):  # the usual job
            return (Item(text=self.text),)
        texts = self.text if isinstance(self.text, list) else [self.text]
        return tuple([Item(text=text) if isinstance(text, str) else text for text in texts])

    @model_validator(mode="after")
    def _within_sizes(self) -> TranslationJob:
        _check_size("text", sum([len(item.text.encode()) for item in self.items]), MAX_TEXT_BYTES)
        if self.metadata is not None:
            pairs = self.metadata.items()
            size = sum(len(key.encode()) + len(value.encode()) for key, value in pairs)
            _check_size("metadata", size, MAX_METADATA_BYTES)
        return self


def _check_size(field: str, size: int, limit: int) -> None:
    if size > limit:
        raise PydanticCustomError(
            "too_many_bytes",
            "{field}: is {size} bytes of UTF-8 in all, at most {limit} are allowed",
            {"field": field, "size": size, "limit": limit},
        )
