"""Tests of zip archives: limits, and every untouched member byte for byte."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from typing import IO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.archive import reading as archive
from dragoman_documents.archive.reading import Archive
from dragoman_documents.codec import DocumentError

FILES = {"mimetype": b"text/x", "a/b.xml": b"<a>text</a>" * 50, "ü.bin": bytes(range(256))}


class _Pipe:
    """A file without positions, to which zipfile writes data descriptors."""

    def __init__(self) -> None:
        self._content = BytesIO()

    def write(self, data: bytes) -> int:
        return self._content.write(data)

    def flush(self) -> None:
        """Do nothing."""

    def getvalue(self) -> bytes:
        return self._content.getvalue()


def zipped(
    files: Mapping[str, bytes],
    file: BytesIO | _Pipe | None = None,
    method: int = zipfile.ZIP_DEFLATED,
    *,
    force_zip64: bool = False,
    prefix: bytes = b"",
) -> bytes:
    file = BytesIO() if file is None else file
    file.write(prefix)
    with zipfile.ZipFile(cast(IO[bytes], file), "w", method) as writing:
        writing.comment = b"of the whole"
        for name, content in files.items():
            info = zipfile.ZipInfo(name, (2001, 2, 3, 4, 5, 6))
            info.compress_type = zipfile.ZIP_STORED if name == "mimetype" else method
            info.comment, info.external_attr = b"of one", 0o640 << 16
            with writing.open(info, "w", force_zip64=force_zip64) as member:
                member.write(content)
    return file.getvalue()


def read(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(data)) as file:
        assert file.testzip() is None
        return {each.filename: file.read(each) for each in file.infolist()}


def raw(data: bytes) -> dict[str, tuple[bytes, bytes, bytes]]:
    """Header, compressed bytes and everything of the directory but the place of each member."""
    reading = Archive(data)
    return {
        each.name: (
            data[each.header : each.start],
            data[each.start : each.end],
            data[each.entry : each.entry + 42],
        )
        for each in reading.members
    }


ARCHIVES = {
    "plain": zipped(FILES),
    "stored": zipped(FILES, method=zipfile.ZIP_STORED),
    "descriptors": zipped(FILES, _Pipe()),
    "zip64": zipped(FILES, force_zip64=True),
    "zip64 and descriptors": zipped(FILES, _Pipe(), force_zip64=True),
    "prefix": zipped(FILES, prefix=b"PK a self-extracting program"),
}


def contents(data: bytes) -> dict[str, bytes]:
    reading = Archive(data)
    return {name: reading.read(name) for name in reading.names}


def reason(data: bytes) -> str:
    with pytest.raises(DocumentError) as caught:
        contents(data)
    return caught.value.reason


@pytest.mark.parametrize("data", ARCHIVES.values(), ids=ARCHIVES.keys())
def test_members_are_read(data: bytes) -> None:
    assert contents(data) == FILES


@pytest.mark.parametrize("data", ARCHIVES.values(), ids=ARCHIVES.keys())
def test_an_archive_without_changes_is_the_same_bytes(data: bytes) -> None:
    assert Archive(data).rewritten({"a/b.xml": FILES["a/b.xml"]}) == data


@pytest.mark.parametrize("data", ARCHIVES.values(), ids=ARCHIVES.keys())
@pytest.mark.parametrize("new", [b"", b"short", bytes(100_000)])
@pytest.mark.parametrize("name", FILES)
def test_only_the_changed_member_changes(data: bytes, new: bytes, name: str) -> None:
    written = Archive(data).rewritten({name: new})
    assert read(written) == {**FILES, name: new}
    before, after = raw(data), raw(written)
    assert {each: before[each] for each in FILES if each != name} == {
        each: after[each] for each in FILES if each != name
    }
    with zipfile.ZipFile(BytesIO(written)) as file:
        info = file.getinfo(name)
        assert (info.date_time, info.comment, info.external_attr) == (
            (2001, 2, 3, 4, 5, 6),
            b"of one",
            0o640 << 16,
        )
        assert file.comment == b"of the whole"


def test_a_data_descriptor_goes_with_the_content_it_describes() -> None:
    data, mark = ARCHIVES["descriptors"], b"PK\7\x08"
    written = Archive(data).rewritten({"a/b.xml": b"new"})
    assert (data.count(mark), written.count(mark)) == (len(FILES), len(FILES) - 1)


@given(
    st.dictionaries(st.text("abc/ü", min_size=1, max_size=5), st.binary(), min_size=1), st.data()
)
def test_any_members_can_be_changed(files: dict[str, bytes], data: st.DataObject) -> None:
    files = {f"x{name}": content for name, content in files.items()}
    new = data.draw(st.dictionaries(st.sampled_from(sorted(files)), st.binary()))
    assert read(Archive(zipped(files)).rewritten(new)) == {**files, **new}


def test_a_fingerprint_ignores_only_the_content_of_named_members() -> None:
    one, other = Archive(ARCHIVES["plain"]), Archive(zipped({**FILES, "a/b.xml": b"new"}))
    assert one.fingerprint() != other.fingerprint()
    assert one.fingerprint({"a/b.xml"}) == other.fingerprint({"a/b.xml"})
    assert one.fingerprint({"ü.bin"}) != other.fingerprint({"ü.bin"})


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", "corrupt"),
        (b"<html>not an archive</html>", "wrong_type"),
        (ARCHIVES["plain"][:-30], "corrupt"),
        (ARCHIVES["plain"][len(b"PK") :], "corrupt"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "wrong_type"),
        (zipped({"../a": b"x"}), "corrupt"),
        (zipped({"a/../../b": b"x"}), "corrupt"),
        (zipped({"a\\..\\b": b"x"}), "corrupt"),
        (zipped({"/etc/passwd": b"x"}), "corrupt"),
        (zipped({"C:/a": b"x"}), "corrupt"),
        (zipped({"a": bytes(2 * archive.SMALL)}), "bomb"),
        (zipped({"a": b"text"}, method=zipfile.ZIP_BZIP2), "corrupt"),
    ],
)
def test_a_bad_archive_is_refused_with_its_reason(data: bytes, wanted: str) -> None:
    assert reason(data) == wanted


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_duplicate_name_is_corrupt() -> None:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as writing:
        writing.writestr("a", b"1")
        writing.writestr("a", b"2")
    assert reason(file.getvalue()) == "corrupt"


def test_a_wrong_checksum_is_corrupt() -> None:
    data = bytearray(zipped({"a": b"text"}, method=zipfile.ZIP_STORED))
    data[data.index(b"text")] ^= 1
    assert reason(bytes(data)) == "corrupt"


def test_an_encrypted_member_is_encrypted() -> None:
    data = bytearray(zipped({"a": b"text"}))
    data[data.rindex(b"PK\1\2") + 8] |= 1
    assert reason(bytes(data)) == "encrypted"


def test_more_than_was_declared_is_a_bomb() -> None:
    data = bytearray(zipped({"a": bytes(archive.SMALL)}))
    entry = data.rindex(b"PK\1\2")
    data[entry + 24 : entry + 28] = (100).to_bytes(4, "little")
    assert reason(bytes(data)) == "bomb"


def test_a_total_above_the_limit_is_a_bomb() -> None:
    data = bytearray(zipped({"a": b"1", "b": b"2"}, method=zipfile.ZIP_STORED))
    entry = data.index(b"PK\1\2")
    for _ in range(2):
        data[entry + 24 : entry + 28] = (600 * 1024**2).to_bytes(4, "little")
        entry = data.index(b"PK\1\2", entry + 1) if b"PK\1\2" in data[entry + 1 :] else entry
    assert reason(bytes(data)) == "bomb"


def test_overlapping_members_are_a_bomb() -> None:
    inner = zipped({"b": b"text"}, method=zipfile.ZIP_STORED)
    outer = bytearray(zipped({"a": inner, "b": b"text"}, method=zipfile.ZIP_STORED))
    entry = outer.rindex(b"PK\1\2")
    outer[entry + 42 : entry + 46] = outer.index(b"PK\3\4", 1).to_bytes(4, "little")
    assert reason(bytes(outer)) == "bomb"


def test_a_member_may_not_have_another_name_in_its_header() -> None:
    data = bytearray(zipped({"abc": b"text"}))
    data[data.index(b"abc")] = ord("x")
    assert reason(bytes(data)) == "corrupt"


def test_too_many_members_are_a_bomb() -> None:
    assert reason(zipped({str(n): b"" for n in range(archive.MOST_MEMBERS + 1)})) == "bomb"


def test_a_small_member_may_have_any_ratio() -> None:
    content = bytes(archive.SMALL)
    assert len(zlib.compress(content)) * archive.HIGHEST_RATIO < len(content)
    assert Archive(zipped({"a": content})).read("a") == content


@given(st.binary(max_size=60), st.integers(0, 700))
def test_broken_bytes_are_read_or_refused(noise: bytes, place: int) -> None:
    data = bytearray(ARCHIVES["zip64"])
    data[place : place + len(noise)] = noise
    try:
        reading = Archive(bytes(data))
        reading.rewritten(dict.fromkeys(reading.names, b"new"))
    except DocumentError:
        pass
