"""The ids of headings of an MkDocs site: what `mkdocs.yml` says, composed and never constructed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dragoman_documents.markup.anchors.sluggers import WITH_EMOJI
from dragoman_documents.markup.sites import Anchors
from dragoman_documents.site_recognition import content

_DEEPEST: Final = 4
"""Files that inherit from each other."""
_SLUGGERS: Final = {
    "markdown.extensions.toc.slugify": "python-markdown",
    "markdown.extensions.toc.slugify_unicode": "python-markdown-unicode",
    "pymdownx.slugs.uslugify": "pymdownx-lower",
    "pymdownx.slugs.uslugify_cased": "pymdownx-none",
    "pymdownx.slugs.gfm": "pymdownx-lower-ascii",
    "pymdownx.slugs.slugify": "pymdownx-none",
}
"""Sluggers by the name of their function."""
_ALWAYS: Final = Anchors("python-markdown", "attributes")
"""Of `zensical.toml`, whose defaults include `attr_list`."""
_CASES: Final = frozenset({"none", "lower", "lower-ascii", "fold"})


def anchors_of(config: Path) -> Anchors | None:
    """Return how the site of a configuration keeps ids; None if it cannot be read."""
    if config.suffix == ".toml":
        return _ALWAYS
    extensions = _extensions(config, _DEEPEST)
    if extensions is None:
        return None
    reads_lists = bool({"attr_list", "markdown.extensions.attr_list", "extra",
                        "markdown.extensions.extra"} & extensions.keys())  # fmt: skip
    toc = extensions.get("toc") or extensions.get("markdown.extensions.toc")
    slugger = _slugger(_member(toc, "slugify"))
    if slugger is None:
        return Anchors("python-markdown", "none")
    if "pymdownx.emoji" in extensions:
        slugger += WITH_EMOJI
    return Anchors(slugger, "attributes" if reads_lists else "html")


def _extensions(config: Path, deepest: int) -> dict[str, Any] | None:
    """Return the nodes of the settings of extensions by name, with those that are inherited."""
    root = _composed(config)
    if root is None:
        return None
    above: dict[str, Any] = {}
    inherited = _scalar(_member(root, "INHERIT"))
    if inherited and deepest:
        above = _extensions(config.parent / inherited, deepest - 1) or {}
    own = _member(root, "markdown_extensions")
    return dict(_named(own)) if own is not None else above


def _composed(config: Path) -> Any:
    try:
        import yaml  # noqa: PLC0415  an optional parser
    except ImportError:
        return None
    try:
        return yaml.compose(content(config).decode("utf-8-sig"), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        return None


def _named(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and settings of a list or a mapping of extensions."""
    if node.id == "mapping":
        for key, value in node.value:
            yield str(key.value), value
    elif node.id == "sequence":
        for each in node.value:
            if each.id == "scalar":
                yield str(each.value), None
            else:
                yield from _named(each)


def _member(node: Any, name: str) -> Any:
    if node is None or node.id != "mapping":
        return None
    return next((value for key, value in node.value if key.value == name), None)


def _scalar(node: Any) -> str:
    return str(node.value) if node is not None and node.id == "scalar" else ""


def _slugger(node: Any) -> str | None:
    """Return the slugger of the setting `slugify`; None if nobody knows its ids."""
    if node is None:
        return "python-markdown"
    named = node.tag.rpartition("/")[2].rpartition(":")[2] if "python/" in node.tag else ""
    known = _SLUGGERS.get(named or _scalar(node))
    if known is None or named != "pymdownx.slugs.slugify":
        return known
    case = _scalar(_member(_member(node, "kwds"), "case")) or "none"
    return f"pymdownx-{case}" if case in _CASES else None
