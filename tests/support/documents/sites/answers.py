"""Sites whose Markdown is translated by an answer that needs no model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal

from dragoman_documents.codec import DocumentError, Options
from dragoman_documents.markup.anchors.insertions import with_ids
from dragoman_documents.markup.anchors.settings import AnchorSettings
from dragoman_documents.putting_back import Unwritable, put_back
from dragoman_documents.recognition import format_of
from dragoman_documents.registry import codec
from dragoman_documents.site_recognition import Sites

Answer = Literal["identity", "mark"]
MARK: Final = "Zz "
"""Put before each text: headings really change, and `without_mark` finds the source again."""
NOT_SOURCES: Final = frozenset({"node_modules", ".vitepress", ".docusaurus"})


@dataclass(slots=True)
class Translated:
    """What became of the texts of a site."""

    texts: int = 0
    left: list[str] = field(default_factory=list[str])
    """Places of the texts that keep their source, and files that could not be written."""


def translate(site: Path, answer: Answer, name: str | None, mdx: bool = False) -> Translated:
    """Translate the Markdown files of a site where they are; return what became of them.

    `name` is the product's name of the kind of site; with `mdx` its `.md` files are MDX.
    """
    options = _options("en" if answer == "identity" else "de", name)
    done = Translated()
    for path in sources(site):
        _translate_file(path, site, "mdx" if mdx else format_of(path) or "", options, answer, done)
    return done


def sources(site: Path) -> Iterator[Path]:
    """Yield the Markdown files of a site in order."""
    for path in sorted(site.rglob("*")):
        inside = path.relative_to(site).parts
        if (
            path.is_file()
            and not NOT_SOURCES.intersection(inside)
            and path.suffix in {".md", ".mdx"}
        ):
            yield path


def _options(target: str, site: str | None) -> Options:
    more: dict[str, Any] = {}
    if any(each.name == "site" for each in fields(Options)):
        more["site"] = site
    return Options(target, "en", **more)


def _translate_file(
    path: Path, site: Path, format_name: str, options: Options, answer: Answer, done: Translated
) -> None:
    each, data, name = codec(format_name), path.read_bytes(), path.relative_to(site).as_posix()
    try:
        extraction = each.extract(data, options)
        texts = [segment.text for segment in extraction.segments]
        answers = texts if answer == "identity" else [MARK + text for text in texts]
        spliced = put_back(each, data, extraction, answers, options)
    except (DocumentError, Unwritable) as error:
        done.left.append(f"{name}: {error}")
        return
    done.texts += len(texts)
    left = sorted({*spliced.tags, *spliced.lost, *spliced.changed})
    done.left += [f"{name}, {extraction.segments[index].place}" for index in left]
    anchors = AnchorSettings().of(format_name, Sites(options.site).of(path))
    if anchors is not None and anchors.ids == "attributes":  # the others add elements
        spliced.data = with_ids(each, spliced, extraction, options, anchors)
    path.write_bytes(spliced.data)
