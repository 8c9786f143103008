"""The table of docs/reference/profiles.md; running this file rewrites it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dragoman_worker.prompts.base import ALL_STEERING
from dragoman_worker.prompts.show import ProfileRow, profile_rows
from dragoman_worker.prompts.table import PROFILES

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "profiles.md"
BEGIN: Final = "<!-- the table: written by tests/support/builders/profiles_page.py -->"
END: Final = "<!-- end of the table -->"


def table() -> str:
    """Return the table in Markdown, from the registry."""
    head = (
        "| profile | models | licence of the models | languages | has a place for "
        "| names the source | decoding | longest source |\n|---|---|---|---|---|---|---|---|"
    )
    return "\n".join([head, *(_line(row) for row in profile_rows())])


def written(page: str) -> str:
    """Return the page with the table of the registry."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def _line(row: ProfileRow) -> str:
    takes = "all" if len(row.takes) == len(ALL_STEERING) else ", ".join(row.takes) or "nothing"
    languages = "any" if not row.languages else str(len(row.languages))
    if 0 < len(row.languages) < 10:
        languages = ", ".join(row.languages)
    cells = (
        f"`{row.name}`",
        row.models,
        row.licence,
        languages,
        takes,
        "yes" if row.needs_source else "no",
        row.sampling,
        _longest(row.name),
    )
    return f"| {' | '.join(cells)} |"


def _longest(name: str) -> str:
    profile = PROFILES[name]
    bounds = []
    if profile.max_source_tokens is not None:
        bounds.append(f"{profile.max_source_tokens:,} tokens")
    if profile.max_source_sentences is not None:
        bounds.append(f"{profile.max_source_sentences} sentences")
    return ", ".join(bounds) or "the context"


def main() -> None:
    """Write the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
