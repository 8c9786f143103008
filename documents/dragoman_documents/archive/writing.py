"""Writing of zip archives in which every untouched member stays byte for byte."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final

LOCAL: Final = Struct("<4sHHHHHIIIHH")
"""Local header: signature, version, flags, method, time, date, CRC, packed, size, name, extra."""
CENTRAL: Final = Struct("<4sHHHHHHIIIHHHHHII")
"""Entry of the directory: signature, 2 versions, flags, method, time, date, CRC, packed, size,
lengths of name, extra and comment, disk, 2 attributes, place of the local header."""
_END: Final = Struct("<4sHHHHIIH")
_END_64: Final = Struct("<4sQHHIIQQQQ")
_LOCATOR: Final = Struct("<4sIQI")
_FIELD: Final = Struct("<HH")
_LONG: Final = Struct("<Q")
_DESCRIPTOR_FLAG: Final = 0x8
_IN_ZIP64: Final = 0xFFFFFFFF
_ZIP64: Final = 1
"""Id of the extra field with 64-bit sizes."""


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A file of an archive. Positions are bytes of the archive's data."""

    name: str
    size: int
    crc: int
    method: int
    header: int
    """Start of the local header."""
    start: int
    """Start of the compressed bytes."""
    end: int
    """End of the compressed bytes."""
    entry: int
    """Start of the entry in the central directory."""


def rewritten(
    data: bytes, members: Sequence[ArchiveMember], directory: int, changed: Mapping[str, bytes]
) -> bytes:
    """Return an archive with new contents for some members.

    `members` are those of the directory in its order, which starts at `directory`. Changed members
    keep their place, name, date, flags and extra fields, but sizes stand in their headers (no data
    descriptor, no 64-bit fields).
    """
    packed = {each.name: _packed(each, changed) for each in members if each.name in changed}
    parts: list[bytes] = []
    shifts: dict[int, int] = {}
    position = shift = 0
    for each in sorted(members, key=lambda each: each.header):
        shifts[each.entry] = shift
        if each.name not in changed:
            continue
        header = _local(data, each, changed[each.name], packed[each.name])
        parts += (data[position : each.header], header, packed[each.name])
        position = each.end + _descriptor_length(data, each)
        shift += len(header) + len(packed[each.name]) - (position - each.header)
    parts.append(data[position:directory])
    end = directory
    grown = 0
    for each in members:
        entry = _raw_entry(data, each)
        end = each.entry + len(entry)
        new = _moved(entry, shifts[each.entry])
        if each.name in changed:
            new = _resized(new, each, shifts[each.entry], changed[each.name], packed[each.name])
        grown += len(new) - len(entry)
        parts.append(new)
    parts.append(_ending(data, end, shift, grown))
    return b"".join(parts)


def _packed(member: ArchiveMember, changed: Mapping[str, bytes]) -> bytes:
    if member.method == zipfile.ZIP_STORED:
        return changed[member.name]
    deflating = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflating.compress(changed[member.name]) + deflating.flush()


def _local(data: bytes, member: ArchiveMember, new: bytes, packed: bytes) -> bytes:
    fields = list(LOCAL.unpack_from(data, member.header))
    name = member.header + LOCAL.size
    extra = _without_zip64(data[name + fields[9] : member.start])
    fields[2] &= ~_DESCRIPTOR_FLAG
    fields[6:9] = zlib.crc32(new), len(packed), len(new)
    fields[10] = len(extra)
    return LOCAL.pack(*fields) + data[name : name + fields[9]] + extra


def _descriptor_length(data: bytes, member: ArchiveMember) -> int:
    """Return the bytes of the data descriptor after a member; 0 if it has none."""
    if not LOCAL.unpack_from(data, member.header)[2] & _DESCRIPTOR_FLAG:
        return 0
    crc = member.crc.to_bytes(4, "little")
    size = member.end - member.start
    for signature in (b"PK\7\x08", b""):
        for width in (4, 8):
            wanted = (
                signature + crc + size.to_bytes(width, "little")
                + member.size.to_bytes(width, "little")
            )  # fmt: skip
            if data.startswith(wanted, member.end):
                return len(wanted)
    return 0


def _raw_entry(data: bytes, member: ArchiveMember) -> bytes:
    lengths = CENTRAL.unpack_from(data, member.entry)[10:13]
    return data[member.entry : member.entry + CENTRAL.size + sum(lengths)]


def _moved(entry: bytes, shift: int) -> bytes:
    """Return a directory's entry with the place of its local header moved by some bytes."""
    fields = list(CENTRAL.unpack_from(entry))
    if fields[16] != _IN_ZIP64:
        fields[16] += shift
        return CENTRAL.pack(*fields) + entry[CENTRAL.size :]
    start = CENTRAL.size + fields[10]
    for field, identity, content in _fields(entry[start : start + fields[11]]):
        if identity == _ZIP64:
            place = start + field + _FIELD.size + 8 * fields[8:10].count(_IN_ZIP64)
            if len(content) < 8 * (fields[8:10].count(_IN_ZIP64) + 1):
                break
            moved = _LONG.pack(_LONG.unpack_from(entry, place)[0] + shift)
            return entry[:place] + moved + entry[place + 8 :]
    return entry


def _resized(entry: bytes, member: ArchiveMember, shift: int, new: bytes, packed: bytes) -> bytes:
    """Return the entry of a changed member, without 64-bit fields."""
    fields = list(CENTRAL.unpack_from(entry))
    rest = CENTRAL.size + fields[10]
    name, extra = entry[CENTRAL.size : rest], entry[rest : rest + fields[11]]
    comment = entry[rest + fields[11] :]
    if fields[16] == _IN_ZIP64:
        fields[16] = member.header + shift
    extra = _without_zip64(extra)
    fields[3] &= ~_DESCRIPTOR_FLAG
    fields[7:10] = zlib.crc32(new), len(packed), len(new)
    fields[11] = len(extra)
    return CENTRAL.pack(*fields) + name + extra + comment


def _fields(extra: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield start, id and content of extra fields; what is no field is passed over."""
    start = 0
    while start + _FIELD.size <= len(extra):
        identity, length = _FIELD.unpack_from(extra, start)
        end = start + _FIELD.size + length
        if end > len(extra):
            return
        yield start, identity, extra[start + _FIELD.size : end]
        start = end


def _without_zip64(extra: bytes) -> bytes:
    for start, identity, content in _fields(extra):
        if identity == _ZIP64:
            return extra[:start] + extra[start + _FIELD.size + len(content) :]
    return extra


def _ending(data: bytes, start: int, shift: int, grown: int) -> bytes:
    """Return the end records, with the new place (moved by `shift`) and size of the directory."""
    tail = bytearray(data[start:])
    end = end_record(tail)
    fields = list(_END.unpack_from(tail, end))
    if fields[5] != _IN_ZIP64:
        fields[5] += grown
    if fields[6] != _IN_ZIP64:
        fields[6] += shift
    _END.pack_into(tail, end, *fields)
    locator = end - _LOCATOR.size
    record = locator - _END_64.size
    if record >= 0 and tail[locator : locator + 4] == b"PK\6\7":
        wide = list(_END_64.unpack_from(tail, record))
        wide[8] += grown
        wide[9] += shift
        _END_64.pack_into(tail, record, *wide)
        place = list(_LOCATOR.unpack_from(tail, locator))
        place[2] += shift + grown
        _LOCATOR.pack_into(tail, locator, *place)
    return bytes(tail)


def end_record(tail: bytes | bytearray) -> int:
    """Return where the end record is, as the reader has found it; -1 if there is none."""
    last = len(tail) - _END.size
    if last >= 0 and tail[last : last + 4] == b"PK\5\6" and tail[-2:] == b"\0\0":
        return last
    return tail.rfind(b"PK\5\6")
