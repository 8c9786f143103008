"""A source file as one document, or, if it is large, in parts that are documents of their own.

Parts of line formats end where no text goes on: behind a blank line, a record or a cue. So a file
of any size takes the memory of one part. What stands at the beginning for the whole file (a byte
order mark, `WEBVTT`) is put in front of each further part, and taken off its output; so are, of all
parts of a table, the rows by which its columns are known.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable, Iterator, Sequence
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
from dragoman_documents.parts.cutting import (
    PARTED,
    behind_units,
    boundary,
    lines_in,
    place_after,
    units,
)
from dragoman_documents.parts.heads import TABLES, Head, Heads

PART_BYTES: Final = 16 * 1024 * 1024
PART_UNITS: Final = 50_000
"""Segments of a part at most, about: read and written, each takes up to 4 kB of memory."""
READ_BYTES: Final = 1024 * 1024
LARGEST_PART: Final = 4 * PART_BYTES
LARGEST_WHOLE: Final = 200_000_000
"""Bytes of a file that is read at once."""


class Changed(Exception):
    """The file changed while it was read."""


@dataclass(frozen=True, slots=True)
class SourcePart:
    """A document: the file, or a part of it behind the head of the file."""

    data: bytes
    head: Head | None = None
    lines: int = 0
    """Lines of the file, or cues, before `data` without its head."""
    is_first: bool = False

    def own(self, segments: Sequence[Segment]) -> Sequence[Segment]:
        """Return the segments without those of the head. Raises DocumentError (`wrong_type`)."""
        return segments if self.head is None else self.head.without(segments)

    def check(self, found: Extraction) -> None:
        """Refuse a part of a table that gets other columns than its head, before it is paid for.

        Raises DocumentError (`wrong_type`).
        """
        if self.head is not None:
            self.head.check(found)

    def place(self, segment: Segment) -> str:
        """Return where a segment is in the file."""
        lines = self.lines - (self.head.lines if self.head else 0)
        return place_after(segment.place, lines) if lines else segment.place

    def texts(self, texts: list[str | None]) -> list[str | None]:
        """Return the translations of all segments; those of the head stay as they are.

        So all parts of a table get its new columns, also one without any translation.
        """
        return texts if self.head is None else [*self.head.texts, *texts]

    def stripped(self, output: bytes) -> bytes:
        """Return the output without the head. Raises DocumentError (`wrong_type`)."""
        if self.head is None:
            return output
        return (self.head.opening if self.is_first else b"") + self.head.stripped(output)

    @property
    def first(self) -> int:
        """Number of segments of the head."""
        return len(self.head.texts) if self.head else 0


class SourceFile:
    """A file to translate."""

    def __init__(
        self,
        path: Path,
        codec: Codec,
        options: Options,
        progress: Callable[[int, int, bool], object] = lambda _done, _of, _scans: None,
    ) -> None:
        """Look at the file; `progress` is called for each MiB of a file in parts that is read.

        It is given the bytes of that pass so far, those of the file, and whether the pass only
        looks for what its parts begin with. Raises DocumentError (`too_large`) and OSError.
        """
        self._progress = progress
        self._path = path
        self._codec = codec
        self._options = options
        self._size = size = path.stat().st_size
        self._mark, self._encoding = _encoding_of(path)
        self.is_parted = codec.name in PARTED and self._is_large(size)
        """Whether it is UTF-8 or has a byte order mark, and so large that it has several parts."""
        if size > LARGEST_WHOLE and not self.is_parted:
            raise DocumentError("too_large", _too_large(size, codec))
        self._data = b"" if self.is_parted else path.read_bytes()
        self.sha256 = self._digest()

    def parts(self) -> Iterator[SourcePart]:
        """Yield the documents of the file, in their order. Raises DocumentError and Changed."""
        if not self.is_parted:
            yield SourcePart(self._data)
            return
        heads = Heads(self._codec, self._options, self._mark, self._encoding)
        head = heads.of_table(self._texts(scans=True)) if self._codec.name in TABLES else None
        lines = lines_in(head.own, self._codec.name) if head else 0
        for number, whole in enumerate(self._texts(scans=False)):
            text = whole if number or head is None else whole.removeprefix(head.own)
            data = self._mark + ((head.text if head else "") + text).encode(self._encoding)
            yield SourcePart(data, head, lines, is_first=not number)
            head = head or heads.of_others()
            lines += lines_in(text, self._codec.name)
        if self._digest() != self.sha256:
            raise Changed

    def _digest(self) -> str:
        if not self.is_parted:
            return hashlib.sha256(self._data).hexdigest()
        with self._path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _is_large(self, size: int) -> bool:
        """Return whether the file can be read in parts, and has more than one."""
        if size <= min(PART_BYTES, PART_UNITS):
            return False
        count = 0
        try:
            for text in self._decoded(scans=True):
                count += units(text, self._codec.name)
        except UnicodeDecodeError:
            return False
        return size > PART_BYTES or count > PART_UNITS

    def _decoded(self, *, scans: bool) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder(self._encoding)()
        with self._path.open("rb") as file:
            file.seek(len(self._mark))
            while chunk := file.read(min(READ_BYTES, PART_BYTES)):
                self._progress(file.tell(), self._size, scans)
                yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)

    def _texts(self, *, scans: bool) -> Iterator[str]:
        """Yield the texts of the parts. Raises DocumentError (`too_large`)."""
        text, line, again = "", 1, 0
        for more in self._decoded(scans=scans):
            text += more
            while len(text) >= again and (cut := self._cut(text)) is not None:
                # Looked at anew for each MiB, a quote that stays open takes minutes.
                again = 0 if cut else len(text) * 5 // 4
                if cut:
                    yield text[:cut]
                    line += text.count("\n", 0, cut)
                    text = text[cut:]
            if len(text) > LARGEST_PART:
                what = f"from line {line:,} on, {LARGEST_PART:,} characters are one value; "
                what += "close the quote that is open there, or shorten the value"
                raise DocumentError("too_large", what)
        if text:
            yield text

    def _cut(self, text: str) -> int | None:
        """Return where the first part of a text ends.

        0 if there is no such place, None if the part may be longer than the text.
        """
        name, most = self._codec.name, PART_UNITS
        while (place := behind_units(text, name, most)) is not None:
            if cut := boundary(text[:place], name):
                return cut
            most *= 2
        if len(text) >= PART_BYTES:
            return boundary(text, name)
        return None if most == PART_UNITS else 0


def _encoding_of(path: Path) -> tuple[bytes, str]:
    with path.open("rb") as file:
        return marked_encoding(file.read(4))


def _too_large(size: int, codec: Codec) -> str:
    why = "; convert it to UTF-8" if codec.name in PARTED else "; split the file"
    return f"it has {size:,} bytes, at most {LARGEST_WHOLE:,} are read{why}"
