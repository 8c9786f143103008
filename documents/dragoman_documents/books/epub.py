"""EPUB 2 and 3: pages, tables of contents, title and language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dragoman_documents.archive.reading import Archive
from dragoman_documents.books.package import Package, read_package, values
from dragoman_documents.codec import (
    Codec,
    DocumentError,
    Extraction,
    Options,
    Remark,
    layout_of,
)
from dragoman_documents.encodings import Decoded
from dragoman_documents.markup.html.codec import (
    XHTML,
    changed_page,
    decoded_page,
    replacements_of,
    skeleton_of,
)
from dragoman_documents.markup.html.tokens import tokens
from dragoman_documents.references import reference
from dragoman_documents.splicing import Replacement, replaced, skeleton

_CONTAINER: Final = "META-INF/container.xml"
_ENCRYPTION: Final = "META-INF/encryption.xml"
_TYPE: Final = b"application/epub+zip"
_OF_FONTS: Final = frozenset({
    "http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#rc",
})  # fmt: skip
"""Algorithms that only obfuscate fonts."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a book was read."""

    archive: Archive
    name: str
    """Of the package document."""
    decoded: Decoded
    package: Package
    pages: tuple[tuple[str, Extraction], ...]


@dataclass(frozen=True, slots=True)
class EpubCodec:
    """EPUB. Every member but the translated ones stays byte for byte."""

    name: str = "epub"
    suffixes: frozenset[str] = frozenset({".epub"})
    by_language: bool = False
    has_targets: bool = False
    can_double: bool = True

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return title and pages as segments. Raises DocumentError (`encrypted`, `corrupt` ...)."""
        return self._extracted(data, options, {})

    def extract_like(self, data: bytes, options: Options, before: Extraction) -> Extraction:
        """Return the segments of an output: its pages name another language than their sources."""
        return self._extracted(data, options, dict(layout_of(before, _Layout).pages))

    def _extracted(
        self, data: bytes, options: Options, before: Mapping[str, Extraction]
    ) -> Extraction:
        archive = Archive(data)
        _check(archive)
        name = _package_name(archive)
        decoded = decoded_page(archive.read(name), xml=True)
        package = read_package(decoded.text, name)
        present = [each for each in package.files if each in archive]
        if not present:
            raise DocumentError("corrupt", f"{name[:80]!a} names no page that is in the book")
        pages = tuple((each, _page(archive, each, options, before.get(each))) for each in present)
        segments = [
            segment._replace(place=f"{file}, {segment.place}")
            for file, found in ((name, package.page.segments), *((f, e.segments) for f, e in pages))
            for segment in found
        ]
        missing = (each for each in package.files if each not in archive)
        lacking = (
            Remark(name, f"the book lacks its file {each[:80]!a}", "missing") for each in missing
        )
        others = (
            replace(remark, place=f"{file}, {remark.place}")
            for file, found in pages
            for remark in found.remarks
        )
        return Extraction(
            tuple(segments),
            _skeleton(archive, name, package, pages),
            "utf-8",
            (*lacking, *others),
            _Layout(archive, name, decoded, package, pages),
        )

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the book with translations, and its language where one was put in."""
        layout = layout_of(extraction, _Layout)
        count = len(layout.package.page.segments)
        contents: dict[str, bytes] = {}
        for name, found in layout.pages:
            wanted = texts[count : count + len(found.segments)]
            count += len(found.segments)
            if (content := changed_page(found, wanted, options)) is not None:
                contents[name] = content
        changes = replacements_of(
            layout.package.page, texts[: len(layout.package.page.segments)], options
        )
        if layout.package.language and not options.bilingual and (contents or changes):
            changes.append(Replacement(*layout.package.language, options.target_lang))
        if changes:
            text = replaced(layout.decoded.text, changes)
            contents[layout.name] = layout.decoded.encoded(text, reference)
        return layout.archive.rewritten(contents) if contents else data


def _check(archive: Archive) -> None:
    """Refuse what is no book, and books whose text is encrypted."""
    kind = archive.read("mimetype") if "mimetype" in archive else b""
    if kind.strip() != _TYPE:
        raise DocumentError("wrong_type", "the archive is not an EPUB: it has another mimetype")
    if _ENCRYPTION in archive:
        text = decoded_page(archive.read(_ENCRYPTION), xml=True).text
        methods = (
            values(text, start, end).get("algorithm", "")
            for start, end, tag in tokens(text, xml=True)
            if tag.kind == "start" and tag.name == "encryptionmethod"
        )
        if any(each.lower() not in _OF_FONTS for each in methods):
            raise DocumentError(
                "encrypted", "the book is protected (DRM); only one without protection can be read"
            )


def _package_name(archive: Archive) -> str:
    text = decoded_page(archive.read(_CONTAINER), xml=True).text if _CONTAINER in archive else ""
    for start, end, tag in tokens(text, xml=True):
        if tag.kind == "start" and tag.name == "rootfile":
            name = values(text, start, end).get("full-path", "")
            if name in archive:
                return name
    raise DocumentError(
        "corrupt", f"{_CONTAINER} names no package document that is in the book; export it again"
    )


def _page(archive: Archive, name: str, options: Options, before: Extraction | None) -> Extraction:
    try:
        if before is not None:
            return XHTML.extract_like(archive.read(name), options, before)
        return XHTML.extract(archive.read(name), options)
    except DocumentError as error:
        raise DocumentError(error.reason, f"{name[:80]!a}: {error.detail}") from error


def _skeleton(
    archive: Archive,
    name: str,
    package: Package,
    pages: Sequence[tuple[str, Extraction]],
) -> str:
    """Return the digest of what stays: other members, the package, the markup of the pages."""
    names = {name, *(each for each, _ in pages)}
    return skeleton(
        "",
        (),
        archive.fingerprint(names),
        skeleton_of(package.page, *([package.language] if package.language else [])),
        *(each.skeleton for _, each in pages),
    )


CODECS: Final[Mapping[str, Codec]] = {"epub": EpubCodec()}
