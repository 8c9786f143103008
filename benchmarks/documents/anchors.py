"""Links to headings over checkouts: those that die without ids, and with them.

    anchors.py DIR [--only NAME] [--out DIR]

Each folder in DIR is a project. Every text of its Markdown gets a mark, so that every heading
changes, and is put back by the code that a run uses, without the ids of the sources and with them.
Prints a line per project: pages, links with fragments that lead to a page of the project, those
dead in the source, those that worked and are dead without ids and with them, pages whose ids were
refused, and the CPU seconds of reading and writing, of ids, and of following links. `--out` writes
each project with its translated pages, for other checkers. Exits with 1 if a link died with ids.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import NamedTuple

from dragoman_documents import registry
from dragoman_documents.codec import Codec, DocumentError, Options
from dragoman_documents.markup.anchors.insertions import with_ids
from dragoman_documents.markup.anchors.links import Link, linked_page
from dragoman_documents.markup.anchors.resolving import Pages
from dragoman_documents.markup.anchors.settings import AnchorSettings
from dragoman_documents.markup.anchors.verifying import Unverified
from dragoman_documents.markup.sites import Anchors
from dragoman_documents.putting_back import Unwritable, put_back
from dragoman_documents.recognition import format_of
from dragoman_documents.site_recognition import Sites

_LEFT = {".git", "node_modules"}
STATES = ("source", "without", "with")


class Page(NamedTuple):
    """A page and its translations."""

    codec: Codec
    options: Options
    anchors: Anchors
    data: dict[str, bytes]


def pages_of(folder: Path, counts: Counter[str]) -> Iterator[tuple[str, Page]]:
    """Yield the pages of a project by path."""
    sites, settings = Sites(), AnchorSettings()
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_symlink() or _LEFT & {*path.parts}:
            continue
        site = sites.of(path)
        name = format_of(path, site)
        anchors = settings.of(name or "", site)
        if name is None or anchors is None:
            continue
        options = Options("de", "en", site=site.name if site else None)
        page = _page(registry.codec(name), path.read_bytes(), options, anchors, counts)
        if page is not None:
            yield path.relative_to(folder).as_posix(), page


def _page(
    codec: Codec, data: bytes, options: Options, anchors: Anchors, counts: Counter[str]
) -> Page | None:
    began = process_time()
    try:
        found = codec.extract(data, options)
        texts = [f"Zz {each.text}" for each in found.segments]
        spliced = put_back(codec, data, found, texts, options)
    except (DocumentError, Unwritable):
        counts["refused"] += 1
        return None
    counts["pages"] += 1
    middle = process_time()
    try:
        made = with_ids(codec, spliced, found, options, anchors)
    except Unverified as error:
        counts["unverified"] += 1
        counts[f"unverified: {error}"] += 1
        made = spliced.data
    counts["µs"] += int(1e6 * (middle - began))
    counts["µs of ids"] += int(1e6 * (process_time() - middle))
    counts[f"anchors: {anchors.ids}"] += 1
    return Page(codec, options, anchors, {"source": data, "without": spliced.data, "with": made})


Dead = list[tuple[tuple[str, str], Link]]


def dead(pages: dict[str, Page], state: str) -> tuple[int, Dead]:
    """Return the number of links with fragments in one state, and those that are dead."""
    known = Pages(pages)
    ids: dict[str, frozenset[str] | None] = {}
    found: Dead = []
    count = 0
    for path, page in pages.items():
        read = linked_page(
            page.codec, page.data[state], page.options, page.anchors, wants_ids=False
        )
        if read.ids is not None:
            ids[path] = read.ids
        for link in read.links:
            place = known.of(path, link.target)
            if place is None:
                continue
            count += 1
            if place[0] not in ids:
                other = pages[place[0]]
                ids[place[0]] = linked_page(
                    other.codec, other.data[state], other.options, other.anchors, wants_ids=True
                ).ids
            if place[1] not in (ids[place[0]] or ()):
                found.append(((path, link.target), link))
    return count, found


def check(folder: Path, out: Path | None) -> bool:
    """Print the line of a project; return whether no link died with ids."""
    counts: Counter[str] = Counter()
    pages = dict(pages_of(folder, counts))
    results = {}
    for state in STATES:
        began = process_time()
        results[state] = dead(pages, state)
        counts[f"µs of {state}"] = int(1e6 * (process_time() - began))
    source = results["source"][1]
    known = {key for key, _ in source}
    died = {
        state: [each for each in results[state][1] if each[0] not in known] for state in STATES[1:]
    }
    ways = ", ".join(f"{k[9:]} {v}" for k, v in counts.items() if k.startswith("anchors: "))
    print(
        f"| {folder.name} | {ways} | {counts['pages']} | {results['source'][0]} | {len(source)} |"
        f" {len(died['without'])} | {len(died['with'])} | {counts['unverified']} |"
        f" {counts['µs'] / 1e6:.1f} | {counts['µs of ids'] / 1e6:.1f} |"
        f" {counts['µs of with'] / 1e6:.1f} |",
        flush=True,
    )
    for (path, target), link in died["with"][:10]:
        print(f"  {path}:{link.line}: {target}", file=sys.stderr)
    for name, count in counts.items():
        if name.startswith("unverified: "):
            print(f"  {count} {name}", file=sys.stderr)
    if out is not None:
        _write(folder, out, pages)
    return not died["with"]


def _write(folder: Path, out: Path, pages: dict[str, Page]) -> None:
    for state in STATES:
        root = out / state / folder.name
        leave = shutil.ignore_patterns(*_LEFT)
        shutil.copytree(folder, root, symlinks=True, ignore=leave, dirs_exist_ok=True)
        for path, page in pages.items():
            (root / path).write_bytes(page.data[state])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", metavar="NAME", action="append")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    print("| project | anchors | pages | fragments | dead in source | new without | new with |"
          " refused | CPU s | of ids | of links |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    folders = sorted(each for each in given.folder.iterdir() if each.is_dir())
    held = [
        check(each, given.out)
        for each in folders
        if not given.only or any(name in each.name for name in given.only)
    ]
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
