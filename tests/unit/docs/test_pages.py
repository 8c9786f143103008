"""Tests that the pages name what the code has: settings, metrics, events, codes and files."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dragoman_producer.operations.glossary_files import Languages, read_glossary

_ROOT = Path(__file__).parents[3]
_DOCS = _ROOT / "docs"
_PAGES = [
    _ROOT / "README.md",
    _ROOT / "CONTRIBUTING.md",
    _ROOT / "CHANGELOG.md",
    _ROOT / "SECURITY.md",
    _ROOT / "deploy" / "README.md",
    *sorted(_DOCS.rglob("*.md")),
]
_LINK = re.compile(r'\]\((?!https?://)([^)#\s]*)(#[^)]+)?\)|(?:src|srcset)="([^"]+)"')
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def _script(name: str) -> ModuleType:
    """Import a script of .ci, which is no package."""
    spec = importlib.util.spec_from_file_location(f"ci_{name}", _ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- tables that follow from the code -------------------------------------------------------------

_reference: Any = _script("reference")


@pytest.mark.parametrize("page", _reference.PAGES)
def test_a_reference_table_is_current(page: str) -> None:
    text = (_DOCS / "reference" / page).read_text(encoding="utf-8")
    assert text == _reference.current(page), "run: python .ci/reference.py"


@pytest.mark.parametrize("page", _reference.PAGES)
def test_every_row_of_a_reference_table_says_what_its_name_means(page: str) -> None:
    text = (_DOCS / "reference" / page).read_text(encoding="utf-8")
    column = 1 if "| setting | meaning |" in text else -1
    cells = [_reference._cells(line) for line in text.splitlines() if line.startswith("| `")]
    rows = {row[0].strip("`"): row[column] for row in reversed(cells)}
    assert [name for name in _reference.PAGES[page]() if not rows[name]] == []


def test_a_row_of_a_name_that_is_gone_is_removed_and_a_new_one_waits_for_its_meaning() -> None:
    lines = [
        "| code | replay | meaning |",
        "|---|---|---|",
        "| `old` | no | x |",
        "| `a` | no | y |",
    ]
    rows = {"a": ("yes",), "new": ("no",)}
    assert _reference._merged(lines, rows).splitlines()[2:] == [
        "| `a` | yes | y |",
        "| `new` | no |  |",
    ]


def test_a_meaning_that_comes_first_is_kept_by_name_too() -> None:
    lines = ["| setting | meaning | values |", "|---|---|---|", "| `a.b` | y | old |"]
    rows = {"a.b": ("> 0",), "a.new": ("",)}
    assert _reference._merged(lines, rows).splitlines()[2:] == [
        "| `a.b` | y | > 0 |",
        "| `a.new` |  |  |",
    ]


# --- links and figures ----------------------------------------------------------------------------


def _anchor(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for path, anchor, figure in _LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / (path or figure) if path or figure else page
        assert target.exists(), path or figure
        if anchor and target.suffix == ".md":
            headings = _HEADING.findall(target.read_text(encoding="utf-8"))
            assert anchor[1:] in {_anchor(heading) for heading in headings}, path + anchor


def test_the_list_of_decisions_has_the_title_of_each_and_what_no_longer_holds() -> None:
    records = sorted((_DOCS / "adr").glob("0*.md"))
    lines = [
        re.sub(r"^# (\d+\.) (.*)$", rf"\1 [\2]({record.name})", _first_line(record))
        + _outdated(record.read_text(encoding="utf-8"))
        for record in records
    ]
    index = (_DOCS / "adr" / "index.md").read_text(encoding="utf-8")
    assert index.split("\n\n")[-1].splitlines() == lines


def _outdated(record: str) -> str:
    if "**Status**: withdrawn" in record:
        return ", *withdrawn*"
    return ", *changed since*" if "**Since then**" in record else ""


def _first_line(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0]


def test_the_dark_figure_is_the_light_one_in_other_colours() -> None:
    light, dark = (
        re.sub(r"#[0-9a-f]{6}", "#", (_DOCS / "img" / name).read_text(encoding="utf-8"))
        for name in ("flow-light.svg", "flow-dark.svg")
    )
    assert light == dark


def test_the_readme_is_short() -> None:
    text = (_ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 130
    assert len(text.split()) <= 1_100


def test_the_glossary_of_the_how_to_is_one_that_can_be_stored(tmp_path: Path) -> None:
    page = (_DOCS / "how-to" / "glossaries.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"\$ cat ui\.tsv\n(.*?)\$ ", page, re.DOTALL)
    file = tmp_path / "ui.tsv"
    file.write_text(table, encoding="utf-8")
    terms = read_glossary([file], Languages(None, None)).entries()
    assert {len(each) for each in terms.values()} == {2}
