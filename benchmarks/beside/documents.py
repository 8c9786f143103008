"""A fixed set of documents in eight formats, whose texts repeat from file to file.

A run sends each different text once, so that translating the set takes the time of the codecs and
of what surrounds them, not that of the worker.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, product
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

TEXTS_PER_FILE: Final = 600
_WHO: Final = ("The pump", "A valve", "Every filter", "The control unit", "Your dealer", "The fan")
_DOES: Final = (
    "stops as soon as the pressure falls below 3 bar",
    "must be cleaned once a week & checked for leaks",
    "shows a <warning> until the door is closed",
    "is replaced free of charge, if the seal is unbroken",
    "starts again after 30 seconds",
    'reports "ready" and waits for the next batch of water to arrive from the main tank',
    "needs no oil",
)
_WHEN: Final = (
    "in winter",
    "after a long pause",
    "when the tank is full",
    "at night",
    "by default",
)
TEXTS: Final = tuple(f"{who} {does}, {when}." for who, does, when in product(_WHO, _DOES, _WHEN))


@dataclass(frozen=True, slots=True)
class Documents:
    """A folder of documents, and their MB; archives count unpacked."""

    folder: Path
    megabytes: float


def written(folder: Path, megabytes: float, formats: Sequence[str] = ()) -> Documents:
    """Write documents of about that size, as much of each format."""
    names = formats or tuple(FORMATS)
    each = 1e6 * megabytes / len(names)
    return Documents(folder, sum(sum(_files(folder / name, name, each)) for name in names) / 1e6)


def _files(folder: Path, name: str, size: float) -> Iterator[int]:
    """Write files of one format until they have this size; yield the bytes of each."""
    folder.mkdir(parents=True)
    number, made = 0, 0
    while made < size:
        content = FORMATS[name](_texts(number))
        if name == "docx":
            _zip(folder / f"{number:05}.docx", content)
        else:
            (folder / f"{number:05}.{name}").write_text(content, encoding="utf-8")
        number, made = number + 1, made + len(content)
        yield len(content)


def _texts(number: int) -> list[str]:
    """Return the texts of a file: a title of its own, then the same ones in another order."""
    others = islice(cycle(TEXTS), number % len(TEXTS), number % len(TEXTS) + TEXTS_PER_FILE - 1)
    return [f"Manual of machine {number}", *others]


def _markdown(texts: Sequence[str]) -> str:
    blocks = ("## {}", "{} **Take care**, and read [the rules](rules.md).", "- {}\n- `code` of {}")
    paragraphs = (
        block.format(text, text) for block, text in zip(cycle(blocks), texts, strict=False)
    )
    return "\n\n".join(paragraphs).replace("<", "\\<") + "\n"


def _html(texts: Sequence[str]) -> str:
    blocks = ("<h2>{}</h2>", "<p class='x'>{} <b>Take care</b>.</p>", "<ul><li>{}</li></ul>")
    body = "\n".join(
        block.format(escape(text)) for block, text in zip(cycle(blocks), texts, strict=False)
    )
    head = "<head><title>Manual</title></head>"
    return f"<!doctype html>\n<html lang='en'>{head}\n<body>{body}</body></html>\n"


_WORD: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def _docx(texts: Sequence[str]) -> str:
    run = '<w:r>{}<w:t xml:space="preserve">{}</w:t></w:r>'
    bold = run.format("<w:rPr><w:b/></w:rPr>", "Take care.")
    body = "".join(f"<w:p>{run.format('', escape(text) + ' ')}{bold}</w:p>" for text in texts)
    return f'<w:document xmlns:w="{_WORD}"><w:body>{body}<w:sectPr/></w:body></w:document>'


def _zip(path: Path, document: str) -> None:
    """Write the package around the XML of a document."""
    types = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Override PartName="/word/document.xml" ContentType="application/'
        'vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", types)
        archive.writestr("word/document.xml", document)


def _po(texts: Sequence[str]) -> str:
    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n'
    entries = (
        f'\n#: machine.c:{line}\nmsgid {json.dumps(text)}\nmsgstr ""\n'
        for line, text in enumerate(dict.fromkeys(texts))
    )
    return head + "".join(entries)


def _json(texts: Sequence[str]) -> str:
    return json.dumps(
        {f"key_{number}": {"text": text} for number, text in enumerate(texts)}, indent=2
    )


def _csv(texts: Sequence[str]) -> str:
    rows = (f'{number},"{text.replace(chr(34), chr(34) * 2)}"' for number, text in enumerate(texts))
    return "id,text\n" + "\n".join(rows) + "\n"


def _xliff(texts: Sequence[str]) -> str:
    source = '<source>{} <g id="1">Take care.</g></source>'
    units = "\n".join(
        f'<trans-unit id="{number}">{source.format(escape(text))}</trans-unit>'
        for number, text in enumerate(texts)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" '
        'xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="x" datatype="plaintext" '
        f'source-language="en" target-language="de"><body>\n{units}\n</body></file></xliff>\n'
    )


def _srt(texts: Sequence[str]) -> str:
    return "\n".join(
        f"{number + 1}\n{_clock(number)},000 --> {_clock(number)},900\n{text}\n"
        for number, text in enumerate(texts)
    )


def _clock(seconds: int) -> str:
    return f"00:{seconds // 60:02}:{seconds % 60:02}"


FORMATS: Final[dict[str, Callable[[Sequence[str]], str]]] = {
    "md": _markdown,
    "html": _html,
    "docx": _docx,
    "po": _po,
    "json": _json,
    "csv": _csv,
    "xliff": _xliff,
    "srt": _srt,
}
