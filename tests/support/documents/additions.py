"""What codecs of formats with a place for the target add to a source, removed again.

Apart from string catalogs no parser of the codecs is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dragoman_documents.catalogs.apple.places import place_of
from dragoman_documents.catalogs.json.tree import tree
from dragoman_documents.splicing import Replacement, replaced

_MSGSTR: Final = re.compile(
    rb'(?:^[ \t]*msgstr(?:[ \t]*\[[ \t]*\d+[ \t]*\])?[ \t]*"[^\r\n]*(?:\r\n|\r|\n|\Z)'
    rb'(?:[ \t]*"[^\r\n]*(?:\r\n|\r|\n|\Z))*)+',
    re.MULTILINE,
)
_HEADER: Final = re.compile(rb'(?m)^msgid ""[ \t]*\r?\n(?!")')
_LINE: Final = re.compile(rb"[^\n]*\n|[^\n]+")
_FUZZY: Final = re.compile(rb"#,[^\n]*\bfuzzy\b")
_UNIT: Final = re.compile(rb"(?=<(?:\w+:)?(?:trans-unit|segment)\b)")
_UNIT_TAG: Final = re.compile(rb"<(?:\w+:)?(?:trans-unit|segment)\b[^>]*>")
_TARGET: Final = re.compile(
    rb"(?s)(?:\s(?!\S))*\s*<(?:\w+:)?target\b[^>]*?(?:/>|>.*?</(?:\w+:)?target>)"
)
_HOLDER: Final = re.compile(rb"<(?:\w+:)?(?:file|xliff|TS)\b[^>]*>")
_TRANSLATION: Final = re.compile(rb"(?s)<translation\b[^>]*?(?:/>|>.*?</translation>)")


def without_additions(
    format_name: str, source: bytes, output: bytes, language: str = "de"
) -> bytes:
    """Return an output with what was added removed; of other formats as it is.

    PO: `msgstr` (the header's among them, with its fields), the flag `fuzzy`, a header where there
    was none. XLIFF and Qt: targets, their states and their language. String catalogs:
    the localization of the language. CSV and TSV: columns behind those of the source.
    """
    match format_name:
        case "po":
            return _without_msgstr(source, output)
        case "xliff":
            return _without_targets(source, output)
        case "qt":
            return _in_turn(_TRANSLATION, source, _in_turn(_HOLDER, source, output))
        case "xcstrings":
            return _without_localizations(source.decode(), output.decode(), language).encode()
        case "csv" | "tsv":
            return _without_columns(source, output, b"," if format_name == "csv" else b"\t")
        case _:
            return output


def _in_turn(pattern: re.Pattern[bytes], source: bytes, output: bytes) -> bytes:
    """Return an output with each match as the source has it; as it is if there are others."""
    held = [match[0] for match in pattern.finditer(source)]
    if len(held) != len(pattern.findall(output)):
        return output
    given = iter(held)
    return pattern.sub(lambda _: next(given), output)


def _without_msgstr(source: bytes, output: bytes) -> bytes:
    if _HEADER.search(output) and not _HEADER.search(source):
        output = re.sub(rb"(?s)\A.*?\n\r?\n", b"", output, count=1)
    return b"".join(_with_flags(source, _in_turn(_MSGSTR, source, output)))


def _with_flags(source: bytes, output: bytes) -> Iterator[bytes]:
    """Yield the lines of an output, with the flags of the source."""
    held = _LINE.findall(source)
    place = 0
    for line in _LINE.findall(output):
        if _FUZZY.match(line) and line != held[place : place + 1]:
            continue
        while place < len(held) and _FUZZY.match(held[place]) and line != held[place]:
            place += 1
            yield held[place - 1]
            if line == _without_fuzzy(held[place - 1]):
                break
        else:
            place += 1
            yield line


def _without_fuzzy(line: bytes) -> bytes:
    flags = [each for flag in line[2:].split(b",") if (each := flag.strip()) != b"fuzzy"]
    return b"#, " + b", ".join(flags) + line[len(line.rstrip(b"\r\n")) :]


def _without_targets(source: bytes, output: bytes) -> bytes:
    held, found = _UNIT.split(source), _UNIT.split(_in_turn(_HOLDER, source, output))
    if len(held) != len(found):
        return output
    return b"".join(_without_target(*pair) for pair in zip(held, found, strict=True))


def _without_target(source: bytes, output: bytes) -> bytes:
    there = _TARGET.search(source)
    restored = _TARGET.sub(lambda _: there[0] if there else b"", output, count=1)
    return _in_turn(_UNIT_TAG, source, restored)


def _without_localizations(source: str, output: str, language: str) -> str:
    held, found = tree(source).at("strings"), tree(output).at("strings")
    assert held is not None
    assert found is not None
    changes: list[Replacement[str]] = []
    for key, member in found.members.items():
        was, now = (place_of(each, language) for each in (held.members[key].value, member.value))
        changes.append(Replacement(now.start, now.end, source[was.start : was.end]))
    return replaced(output, changes)


def _without_columns(source: bytes, output: bytes, delimiter: bytes) -> bytes:
    widths = [len(row) - 1 for row in _rows(source, delimiter)]
    rows = list(_rows(output, delimiter))
    assert len(rows) == len(widths)
    return b"".join(
        b"".join([*row[:width], row[-1]]) for row, width in zip(rows, widths, strict=True)
    )


def _rows(data: bytes, delimiter: bytes) -> Iterator[list[bytes]]:
    """Yield the cells of each row, with the delimiter before each but the first, and its end."""
    cell = re.compile(rb'(?:"(?:[^"]|"")*"(?=[%b\r\n]|\Z)|[^%b\r\n]*)' % (delimiter, delimiter))
    place = 0
    while place < len(data):
        row: list[bytes] = []
        start = place
        while True:
            match = cell.match(data, place)
            assert match is not None
            row.append(data[start : match.end()])
            start, place = match.end(), match.end() + 1
            if data[start:place] != delimiter:
                break
        end = b"\r\n" if data.startswith(b"\r\n", start) else data[start : start + 1]
        yield [*row, end]
        place = start + len(end)
