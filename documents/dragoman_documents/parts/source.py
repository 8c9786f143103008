"""A source file as one document, or, if it is large, in parts that are documents of their own.

Parts of line formats end where no text goes on: behind a blank line, a record or a cue. So a file
of any size takes the memory of one part. What stands at the beginning for the whole file (a byte
order mark, `WEBVTT`, the rows by which the columns of a table are known) is put in front of each
further part, and taken off its output.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman_documents.codec import (
    Codec,
    DocumentError,
    Extraction,
    Options,
    Segment,
)
from dragoman_documents.encodings import marked_encoding
from dragoman_documents.parts.cutting import PARTED, boundary, lines_in, place_after
from dragoman_documents.parts.heads import TABLES, Head, head_of

PART_BYTES: Final = 16 * 1024 * 1024
"""A part of 300,000 short paragraphs takes a third of a child's memory."""
LARGEST_PART: Final = 4 * PART_BYTES
LARGEST_WHOLE: Final = 200_000_000
"""Bytes of a file that is read at once."""


class Changed(Exception):
    """The file changed while it was read."""


@dataclass(frozen=True, slots=True)
class Part:
    """A document: the file, or a part of it behind the head of the file."""

    data: bytes
    head: Head | None = None
    lines: int = 0
    """Lines of the file, or cues, before `data` without its head."""
    is_first_of_table: bool = False

    def own(self, segments: Sequence[Segment]) -> Sequence[Segment]:
        """Return the segments without those of the head. Raises DocumentError (`wrong_type`)."""
        return segments if self.head is None else self.head.without(segments)

    def check(self, codec: Codec, found: Extraction, options: Options) -> None:
        """Refuse a part of a table that gets other columns than its head, before it is paid for.

        Raises DocumentError (`wrong_type`).
        """
        if self.head is not None and self.head.segments:
            none = [None] * len(self.own(found.segments))
            self.stripped(codec.splice(self.data, found, [*self.head.texts, *none], options))

    def place(self, segment: Segment) -> str:
        """Return where a segment is in the file."""
        lines = self.lines - (self.head.lines if self.head else 0)
        return place_after(segment.place, lines) if lines else segment.place

    def texts(self, texts: list[str | None], segments: Sequence[Segment]) -> list[str | None]:
        """Return the translations of all segments; those of the head stay as they are.

        A table gets no new columns without any translation, and its parts must have the same.
        """
        if self.is_first_of_table and segments and not any(texts):
            return [segments[0].text, *texts[1:]]
        return texts if self.head is None else [*self.head.texts, *texts]

    def stripped(self, output: bytes) -> bytes:
        """Return the output without the head. Raises DocumentError (`wrong_type`)."""
        return output if self.head is None else self.head.stripped(output)

    @property
    def first(self) -> int:
        """Number of segments of the head."""
        return len(self.head.texts) if self.head else 0


class Source:
    """A file to translate."""

    def __init__(self, path: Path, codec: Codec, options: Options) -> None:
        """Look at the file. Raises DocumentError (`too_large`) and OSError."""
        self._path = path
        self._codec = codec
        self._options = options
        size = path.stat().st_size
        self._mark, self._encoding = _encoding_of(path)
        self.is_parted = size > PART_BYTES and codec.name in PARTED and self._is_decodable()
        """Whether it is UTF-8 or has a byte order mark, and so large that it has several parts."""
        if size > LARGEST_WHOLE and not self.is_parted:
            raise DocumentError("too_large", _too_large(size, codec))
        self._data = b"" if self.is_parted else path.read_bytes()
        self.sha256 = self._digest()

    def parts(self) -> Iterator[Part]:
        """Yield the documents of the file, in their order. Raises DocumentError and Changed."""
        if not self.is_parted:
            yield Part(self._data)
            return
        lines, head = 0, None
        for text in self._texts():
            data = self._mark + ((head.text if head else "") + text).encode(self._encoding)
            yield Part(data, head, lines, head is None and self._codec.name in TABLES)
            if head is None:
                head = head_of(self._codec, self._options, text, self._mark, self._encoding)
            lines += lines_in(text, self._codec.name)
        if self._digest() != self.sha256:
            raise Changed

    def _digest(self) -> str:
        if not self.is_parted:
            return hashlib.sha256(self._data).hexdigest()
        with self._path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _is_decodable(self) -> bool:
        try:
            for _ in self._decoded():
                pass
        except UnicodeDecodeError:
            return False
        return True

    def _decoded(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder(self._encoding)()
        with self._path.open("rb") as file:
            file.seek(len(self._mark))
            while chunk := file.read(PART_BYTES):
                yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)

    def _texts(self) -> Iterator[str]:
        """Yield the texts of the parts. Raises DocumentError (`too_large`)."""
        text = ""
        for more in self._decoded():
            text += more
            if more and (cut := boundary(text, self._codec.name)):
                yield text[:cut]
                text = text[cut:]
            elif len(text) > LARGEST_PART:
                what = f"{len(text):,} characters without a place to cut it; split the file"
                raise DocumentError("too_large", what)
        if text:
            yield text


def _encoding_of(path: Path) -> tuple[bytes, str]:
    with path.open("rb") as file:
        return marked_encoding(file.read(4))


def _too_large(size: int, codec: Codec) -> str:
    why = "; convert it to UTF-8" if codec.name in PARTED else "; split the file"
    return f"it has {size:,} bytes, at most {LARGEST_WHOLE:,} are read{why}"
