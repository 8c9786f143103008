"""Which page of a site a link leads to, whatever its generator makes of paths."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

_SUFFIXES: Final = (".md", ".mdx", ".markdown", ".ipynb")
_INDICES: Final = ("index", "README", "_index", "readme", "SUMMARY")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:|//")
_HTML: Final = re.compile(r"\.html?\Z")
_NO_ID: Final = re.compile(r"top\Z|:~:|fn(?:ref)?[:\-_]?[0-9]|!?/")
"""Fragments that are no ids of headings: the browser's, of footnotes, and routes of programs."""


_FEW: Final = 2
"""Parts of an absolute path whose last one says enough: `/en/install`."""


class Pages:
    """The pages of a site by the paths under which links know them."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._by_end: dict[str, str | None] = {}
        for path in self._paths:
            for name in _names(path):
                parts = name.split("/")
                for index in range(1, len(parts)):
                    end = "/".join(parts[index:])
                    self._by_end[end] = None if end in self._by_end else path

    def of(self, page: str, target: str) -> tuple[str, str] | None:
        """Return the page and the fragment that a link leads to; None if it is of no page here."""
        if _SCHEME.match(target):
            return None
        path, _, fragment = target.partition("#")
        fragment = unquote(fragment)
        if not fragment or _NO_ID.match(fragment) or any(each in target for each in "{}<>$"):
            return None
        found = self._page(page, unquote(path.partition("?")[0]))
        return None if found is None else (found, fragment)

    def _page(self, page: str, path: str) -> str | None:
        if not path:
            return page
        if path.startswith("/"):
            return self._absolute(path.strip("/"))
        folder = posixpath.dirname(page)
        for base in (folder, posixpath.splitext(page)[0]):  # of the file, then of its address
            found = self._at(posixpath.normpath(posixpath.join(base, path)))
            if found is not None:
                return found
        return None

    def _at(self, path: str) -> str | None:
        if path in self._paths:
            return path
        bare = _HTML.sub("", path)
        names = [bare + suffix for suffix in _SUFFIXES]
        names += [
            posixpath.normpath(posixpath.join(bare, index + suffix))
            for index in _INDICES
            for suffix in _SUFFIXES
        ]
        return next((name for name in names if name in self._paths), None)

    def _absolute(self, path: str) -> str | None:
        """Return the only page whose path ends so; a language or a base may stand before it."""
        found = self._at(path)
        if found is not None:
            return found
        bare = _HTML.sub("", path)
        for suffix in _SUFFIXES:
            bare = bare.removesuffix(suffix)
        parts = bare.split("/")
        for index in range(min(3, len(parts))):
            if index and len(parts) - index == 1 and len(parts) > _FEW:
                break
            end = "/".join(parts[index:])
            found = self._by_end.get(end) or self._at(end)
            if found is not None:
                return found
        return None


def _names(path: str) -> Iterable[str]:
    """Return the paths of a page as addresses have them, with a folder before them."""
    bare = posixpath.splitext(path)[0]
    yield f"/{bare}"
    folder, _, name = bare.rpartition("/")
    if name in _INDICES and folder:
        yield f"/{folder}"
