"""Zip archives read within limits, and written with every untouched member byte for byte."""

from __future__ import annotations

import hashlib
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Final, NoReturn

from dragoman_documents.archive.writing import (
    CENTRAL,
    LOCAL,
    ArchiveMember,
    end_record,
    rewritten,
)
from dragoman_documents.codec import DocumentError

MOST_MEMBERS: Final = 20_000
MOST_BYTES: Final = 1024**3
"""Bytes of all members together, uncompressed."""
HIGHEST_RATIO: Final = 200
"""Uncompressed to compressed bytes. Deflate reaches 1,032; office files were seen up to 60."""
SMALL: Final = 1024 * 1024
"""Members up to this many bytes may have any ratio: they do no harm."""

_ENCRYPTED_FLAGS: Final = 0x1 | 0x40 | 0x2000
_LARGEST: Final = 2**32 - 1
"""Bytes of an archive, so that no size or place in it needs 64 bits."""
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_STREAM: Final = "EncryptedPackage".encode("utf-16-le")
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Archive:
    """A zip archive in memory.

    Raises DocumentError: `wrong_type` if the bytes are no archive, `encrypted`, `corrupt` (broken,
    overlapping or duplicate members, names that leave the archive) or `bomb` (see the limits).
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        infos, self._directory = _listed(data)
        self.members: Final = tuple(_members(data, infos, self._directory))
        self._by_name = {each.name: each for each in self.members}
        _check_names(self.members)
        _check_extents(self.members, self._directory)

    def __contains__(self, name: str) -> bool:
        """Return whether the archive has a member of this name."""
        return name in self._by_name

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members in the order of the directory, with `/` for `\\`."""
        return tuple(each.name for each in self.members)

    def read(self, name: str) -> bytes:
        """Return a member's content. Raises KeyError, and DocumentError if it is broken."""
        member = self._by_name[name]
        raw = memoryview(self._data)[member.start : member.end]
        content = bytes(raw) if member.method == zipfile.ZIP_STORED else _inflated(raw, member)
        if len(content) != member.size or zlib.crc32(content) != member.crc:
            _corrupt(f"the checksum of the member {_shown(name)} does not match")
        return content

    def fingerprint(self, without: Collection[str] = ()) -> str:
        """Return a digest of the members' names and order, and of the content of most of them.

        Members named in `without` count only by name. Content counts by its checksum.
        """
        digest = hashlib.sha256()
        for each in self.members:
            content = "" if each.name in without else f"{each.crc} {each.size}"
            digest.update(f"{each.name}\0{content}\0".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def rewritten(self, contents: Mapping[str, bytes]) -> bytes:
        """Return the archive with new contents for some members. Raises KeyError.

        All other bytes stay: the order, headers, dates and compressed bytes of other members.
        A member whose content is given as it was counts as untouched.
        """
        changed = {name: new for name, new in contents.items() if self.read(name) != new}
        if not changed:
            return self._data
        return rewritten(self._data, self.members, self._directory, changed)


def _listed(data: bytes) -> tuple[list[zipfile.ZipInfo], int]:
    """Return the entries of the central directory and its start."""
    if data.startswith(_OLE):
        _refuse_ole(data)
    if len(data) > _LARGEST:
        raise DocumentError("too_large", f"the archive has more than {_LARGEST} bytes")
    try:
        with zipfile.ZipFile(BytesIO(data)) as file:
            return file.infolist(), file.start_dir
    except (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, OverflowError):
        if data and not data.startswith(b"PK"):
            raise DocumentError(
                "wrong_type", "the file is not what its name says: it is not a zip archive"
            ) from None
        raise DocumentError(
            "corrupt", "the zip archive is broken or cut off; save the document again"
        ) from None


def _refuse_ole(data: bytes) -> NoReturn:
    if _ENCRYPTED_STREAM in data:
        raise DocumentError(
            "encrypted", "the document is protected by a password; save it without one"
        )
    raise DocumentError(
        "wrong_type", "this is a document of Office 97-2003; save it in the format of its name"
    )


def _members(
    data: bytes, infos: Sequence[zipfile.ZipInfo], directory: int
) -> Iterator[ArchiveMember]:
    if len(infos) > MOST_MEMBERS:
        raise DocumentError("bomb", f"the archive has more than {MOST_MEMBERS} members")
    if sum(each.file_size for each in infos) > MOST_BYTES:
        raise DocumentError("bomb", f"the archive holds more than {MOST_BYTES} bytes")
    entry = directory
    for info in infos:
        _check(info)
        start = _data_start(data, info, entry)
        yield ArchiveMember(
            info.orig_filename.replace("\\", "/"),
            info.file_size,
            info.CRC,
            info.compress_type,
            info.header_offset,
            start,
            start + info.compress_size,
            entry,
        )
        entry += CENTRAL.size + sum(CENTRAL.unpack_from(data, entry)[10:13])
    if entry > end_record(data):
        _corrupt("the directory of the archive is broken")


def _check(info: zipfile.ZipInfo) -> None:
    if info.flag_bits & _ENCRYPTED_FLAGS:
        raise DocumentError(
            "encrypted", "the archive is protected by a password; save it without one"
        )
    if info.file_size > SMALL and info.file_size > HIGHEST_RATIO * info.compress_size:
        raise DocumentError(
            "bomb",
            f"the member {_shown(info.orig_filename)} unpacks to more than {HIGHEST_RATIO} times "
            "its size",
        )


def _data_start(data: bytes, info: zipfile.ZipInfo, entry: int) -> int:
    """Return where a member's bytes start, by its local header; this must name the same member."""
    if data[entry : entry + 4] != b"PK\1\2":
        _corrupt("the directory of the archive is broken")
    if not 0 <= info.header_offset <= len(data) - LOCAL.size:
        _corrupt(f"the member {_shown(info.orig_filename)} lies outside of the archive")
    local = LOCAL.unpack_from(data, info.header_offset)
    name = info.header_offset + LOCAL.size
    listed = entry + CENTRAL.size
    length = int(CENTRAL.unpack_from(data, entry)[10])
    if local[0] != b"PK\3\4" or data[name : name + local[9]] != data[listed : listed + length]:
        _corrupt(f"the member {_shown(info.orig_filename)} lacks its own header")
    return name + int(local[9]) + int(local[10])


def _check_names(members: Sequence[ArchiveMember]) -> None:
    seen: set[str] = set()
    for each in members:
        if each.name in seen:
            _corrupt(f"the archive holds the member {_shown(each.name)} more than once")
        if _leaves(each.name):
            _corrupt(f"the name of the member {_shown(each.name)} leaves the archive")
        seen.add(each.name)


def _leaves(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    return not name or "\0" in name or ".." in parts or not parts[0] or parts[0].endswith(":")


def _check_extents(members: Sequence[ArchiveMember], directory: int) -> None:
    """Refuse members that share bytes: such archives unpack to far more than their size."""
    end = 0
    for each in sorted(members, key=lambda each: each.header):
        if each.header < end:
            raise DocumentError("bomb", f"the member {_shown(each.name)} overlaps another one")
        end = each.end
    if end > directory:
        _corrupt("a member reaches into the directory of the archive")


def _inflated(raw: memoryview, member: ArchiveMember) -> bytes:
    if member.method not in _METHODS:
        _corrupt(f"the member {_shown(member.name)} is compressed in a way no office file may be")
    inflating = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = inflating.decompress(raw, member.size + 1)
    except zlib.error:
        _corrupt(f"the member {_shown(member.name)} cannot be unpacked")
    if len(content) > member.size:
        raise DocumentError(
            "bomb", f"the member {_shown(member.name)} unpacks to more than it declares"
        )
    return content


def _corrupt(detail: str) -> NoReturn:
    raise DocumentError("corrupt", f"{detail}; save the document again")


def _shown(name: str) -> str:
    return ascii(name[:80])
