"""Which files a run reads, and where their outputs go."""

from __future__ import annotations

import glob
import os
import stat
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final

from dragoman_documents.markup.anchors.settings import AnchorSettings
from dragoman_documents.recognition import SITED, format_of
from dragoman_documents.site_recognition import Recognized, Sites
from dragoman_producer.manifest.outputs import written_paths
from dragoman_producer.runs.configuration import CONFIGURATION, is_configuration
from dragoman_producer.runs.events import SiteFound
from dragoman_producer.runs.paths import loaded, shown
from dragoman_producer.runs.request import RunRequest

STATE_FOLDER: Final = ".dragoman"
MANIFEST: Final = "manifest.db"
REPORT: Final = "report.json"
_MAGIC: Final = frozenset("*?[")
_CONVERT: Final = {
    ".pdf": "PDF is not read: convert it to DOCX or Markdown first",
    ".doc": "Word 97-2003 is not read: save it as DOCX first",
    ".xls": "Excel 97-2003 is not read: save it as XLSX first",
    ".ppt": "PowerPoint 97-2003 is not read: save it as PPTX first",
    ".rtf": "RTF is not read: save it as DOCX first",
    ".rst": "reStructuredText is translated through PO files: see the how-to for documents",
    ".adoc": "AsciiDoc is translated through PO files: see the how-to for documents",
}
"""What to do with files of formats that are not read, by suffix."""


Outputs = Mapping[Path, frozenset[str]]
"""Per folder of outputs of other runs the paths that they wrote, relative to it."""


class NothingThere(Exception):
    """A path that was given does not exist; the message names it."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that was given or found in a folder that was given."""

    source: Path
    path: str
    """Relative to the folder that was given, with `/`; the name of a file that was given."""
    format: str | None = None
    site: str | None = None
    """The site whose Markdown it is; None: of a format that is the same in all, or of no site."""
    named: bool = False
    """Whether the user named this very file."""
    reason: str | None = None
    """Why it is not translated; None if it is."""
    detail: str | None = None


class Selection:
    """Walks the paths of a request; keeps what no two files may share."""

    def __init__(
        self,
        request: RunRequest,
        langs: Iterable[str] = (),
        wrote: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Prepare.

        `langs` are the target languages of earlier runs into DIR; `wrote` returns whether one of
        them, or a review, wrote a path in it.
        """
        self._request = request
        self._langs = {*langs, *request.to}
        self._wrote = wrote
        self._out = _real(request.out)
        self._outputs: dict[str, str] = {}
        self._sites = Sites(request.reading.site)
        self._anchors = AnchorSettings(request.anchors)
        self._found: Counter[SiteFound] = Counter()
        self.hidden = 0
        """Files and folders whose name begins with a dot: these are not read."""
        self.other_outputs = 0
        """Files that runs into another folder wrote: these are not read."""

    def files(self) -> Iterator[FoundFile]:
        """Yield every file once, in the order of the paths, then of names. Raises NothingThere."""
        seen: set[str] = set()
        for path in self._request.paths:
            for found in self._below(path):
                if found.path.startswith("../") or (key := str(_real(found.source))) in seen:
                    continue
                seen.add(key)
                if self._wanted(found.path):
                    yield self._judged(found)

    def sites(self) -> tuple[SiteFound, ...]:
        """Return what was found of the sites of files with headings, the most files first."""
        return tuple(replace(site, files=count) for site, count in self._found.most_common())

    def _below(self, path: Path) -> Iterator[FoundFile]:
        if path.is_dir():
            yield from self._folder(path, path, {})
        elif path.exists() or path.is_symlink():
            yield FoundFile(path, path.name, named=True)
        elif _MAGIC & set(str(path)):
            yield from self._globbed(path)
        else:
            raise NothingThere(f"{path}: no such file or folder")

    def _globbed(self, pattern: Path) -> Iterator[FoundFile]:
        names = sorted(glob.glob(str(pattern), recursive=True))  # noqa: PTH207  absolute ones too
        if not names:
            raise NothingThere(f"{pattern}: no file has such a name")
        fixed = list(_until_magic(pattern.parts))
        root = Path(*fixed) if fixed else Path()
        for name in names:
            path = Path(name)
            if path.is_file() and not self._is_ours(root, path):
                yield FoundFile(path, path.relative_to(root).as_posix())

    def _folder(self, root: Path, folder: Path, others: Outputs) -> Iterator[FoundFile]:
        others = self._with_outputs(folder, others)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield FoundFile(
                folder, _relative(root, folder), reason="corrupt", detail=error.strerror
            )
            return
        for entry in entries:
            path = Path(entry.path)
            if self._is_ours(root, path):
                continue
            if entry.name.startswith("."):
                self.hidden += 1
            elif entry.is_dir(follow_symlinks=False):
                yield from self._folder(root, path, others)
            elif _is_in(path, others):
                self.other_outputs += 1
            else:
                detail = _not_followed(root, path) if entry.is_symlink() else None
                reason = "outside" if detail else None
                yield FoundFile(path, _relative(root, path), reason=reason, detail=detail)

    def _with_outputs(self, folder: Path, others: Outputs) -> Outputs:
        """Return the outputs of other runs in a folder and in those above it."""
        if _real(folder) == self._out:  # judged by `_is_ours`
            return others
        wrote = frozenset(map(loaded, written_paths(folder / STATE_FOLDER / MANIFEST)))
        return {**others, folder: wrote | {REPORT}} if wrote else others

    def _is_ours(self, root: Path, path: Path) -> bool:
        """Return whether a path is no source: it is DIR, or in DIR what a run writes there.

        A folder that is named like a target language may be a user's own, so each file is judged.
        """
        real = _real(path)
        if real == self._out:
            return True
        if not real.is_relative_to(self._out):
            return False
        inside = real.relative_to(self._out)
        if inside.as_posix() in {STATE_FOLDER, REPORT}:
            return True
        return not real.is_dir() and (
            self._wrote(str(inside)) or self._is_output_of_another(_real(root), inside)
        )

    def _is_output_of_another(self, root: Path, inside: Path) -> bool:
        """Return whether a source has its output there: `de/a.md` or `a.de.md` beside `a.md`."""
        if self._request.layout == "suffix":
            stem, dot, lang = inside.stem.rpartition(".")
            source = inside.with_name(stem + inside.suffix) if dot and stem else inside
        else:
            lang, *rest = inside.parts
            source = Path(*rest)
        return lang in self._langs and source != Path() and (root / source).is_file()

    def _wanted(self, path: str) -> bool:
        reading = self._request.reading
        if reading.include and not _matches(path, reading.include):
            return False
        return not _matches(path, reading.exclude)

    def _judged(self, found: FoundFile) -> FoundFile:
        if found.reason is not None:
            return found
        if (why := _unreadable(found.source)) is not None:
            reason, detail = why
            return FoundFile(found.source, found.path, reason=reason, detail=detail)
        folded = _folded(found.path) if self._ignores_case() else found.path
        if (other := self._outputs.get(folded)) is not None:
            detail = f"its output would have the name of another one: {shown(other)}"
            path = str(found.source.absolute()) if other == found.path else found.path
            return FoundFile(found.source, path, reason="collision", detail=detail)
        self._outputs[folded] = found.path
        site = self._sites.of(found.source)
        name = self._format(found, site)
        if name is None:
            suffix = PurePosixPath(found.path).suffix.lower()
            detail = _CONVERT.get(suffix, "no format is known for its name; give --format")
            return FoundFile(found.source, found.path, reason="unsupported_format", detail=detail)
        if is_configuration(found.source.as_posix()) and not (
            found.named or self._is_named(found.path)
        ):
            detail = "it looks like configuration; give it as PATH to translate it"
            return FoundFile(found.source, found.path, reason=CONFIGURATION, detail=detail)
        known = site.name if site is not None and name in SITED else None
        if (anchors := self._anchors.of(name, site)) is not None:
            config = _near(site.config) if known and site and site.config else None
            self._found[SiteFound(known, config, anchors.ids)] += 1
        return FoundFile(found.source, found.path, name, known)

    def _is_named(self, path: str) -> bool:
        """Return whether `--include` or `--format` names a file without wildcards."""
        reading = self._request.reading
        given = (*reading.include, *(each.rpartition("=")[0] for each in reading.formats))
        return any(each in {path, path.rpartition("/")[2]} for each in given)

    def _ignores_case(self) -> bool:
        """Return whether names that differ in case alone are one file in the folder of outputs."""
        return (self._out / STATE_FOLDER / MANIFEST.upper()).exists()

    def _format(self, found: FoundFile, site: Recognized | None) -> str | None:
        reading = self._request.reading
        for each in reading.formats:
            pattern, _, name = each.rpartition("=")
            if _matches(found.path, (pattern,)):
                return name
        return reading.format or format_of(found.source, site)


def _near(config: Path) -> str:
    """Return the path of a configuration as a person would write it."""
    near = os.path.relpath(config)
    return shown(str(config) if near.startswith("..") else near)


def _not_followed(root: Path, link: Path) -> str | None:
    """Return why a link is not read; None if it is."""
    if not _real(link).is_relative_to(_real(root)):
        return "it is a link that leaves the folder"
    if not os.path.exists(link):  # noqa: PTH110  raises nothing
        return "it is a link that leads to no file"
    if os.path.isdir(link):  # noqa: PTH112
        return "it is a link to a folder, which is read at its own place"
    return None


def _is_in(path: Path, outputs: Outputs) -> bool:
    return any(path.relative_to(each).as_posix() in wrote for each, wrote in outputs.items())


def output_of(request: RunRequest, path: str, lang: str) -> Path:
    """Return where the document at a relative path goes."""
    if request.layout == "folders":
        return request.out / lang / path
    pure = PurePosixPath(path)
    return request.out / pure.with_name(f"{pure.stem}.{lang}{pure.suffix}")


def escapes(request: RunRequest, output: Path) -> bool:
    """Return whether an output would be written outside DIR, by its name or by links."""
    return not _real(output.parent).is_relative_to(_real(request.out))


def is_source(output: Path, source: Path) -> bool:
    """Return whether writing an output would replace its source."""
    try:
        return output.exists() and output.samefile(source)
    except OSError:
        return False


def _unreadable(path: Path) -> tuple[str, str] | None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if path.is_symlink():
            return "corrupt", "it is a link that leads to no file"
        return "corrupt", error.strerror or "it cannot be read"
    if not stat.S_ISREG(mode):
        return "wrong_type", "it is not a regular file"
    if not os.access(path, os.R_OK):
        return "corrupt", "this user may not read it"
    return None


def _until_magic(parts: tuple[str, ...]) -> Iterator[str]:
    for part in parts[:-1]:
        if _MAGIC & set(part):
            return
        yield part


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    name = path.rpartition("/")[2]
    return any(fnmatchcase(path, each) or fnmatchcase(name, each) for each in patterns)


def _folded(path: str) -> str:
    """Return what two paths share that are the same on file systems that ignore case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _relative(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
