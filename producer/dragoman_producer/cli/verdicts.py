"""The verdicts of a result for a person: items to look at, with gates, reasons and texts."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from dragoman_producer.cli.terminal import PARTIAL, SUCCESS, plain

if TYPE_CHECKING:
    from dragoman_schemas.results import ItemResult, TranslationResult

Kind = Literal["ok", "warn", "fail", "unchecked", "unchanged"]

_ORDER: Final[tuple[Kind, ...]] = ("ok", "warn", "fail", "unchecked", "unchanged")
_LOOK_AT: Final = frozenset({"warn", "fail"})
_MOST_REASONS: Final = 10
"""Reasons of one item that are printed."""
_MOST_NOTED: Final = 10
"""Items of one job that `dragoman result` prints without --check."""
_WIDTH_OF_A_FILE: Final = 120
"""Columns where the output is no terminal and COLUMNS is not set."""
_LEAST_WIDTH: Final = 20


@dataclass(slots=True)
class Totals:
    """Items of all results by verdict, and items by gate."""

    jobs: int = 0
    verdicts: Counter[Kind] = field(default_factory=Counter)
    gates: Counter[str] = field(default_factory=Counter)

    def add(self, result: TranslationResult) -> None:
        """Count a result."""
        self.jobs += 1
        for item in result.translations:
            self.verdicts[kind_of(item)] += 1
            if kind_of(item) in _LOOK_AT:
                self.gates.update({gate for gate, _ in _reasons(item) if gate})

    def lines(self) -> Iterator[str]:
        """Yield the summary: one line for the verdicts, one for each gate."""
        yield _shortened(f"{_number(self.jobs, 'job')}, {_counted(self.verdicts)}")
        for gate, count in sorted(self.gates.items(), key=lambda each: (-each[1], each[0])):
            yield _shortened(f"  {gate}: {_number(count, 'item')}")


def kind_of(item: ItemResult) -> Kind:
    """Return the verdict; `unchanged` for a text that needs no translation, such as a number."""
    untouched = item.attempts == 0 and not item.cached and item.fallback is None
    if item.quality == "unchecked" and untouched and item.error is None:
        return "unchanged"
    return "fail" if item.error is not None else item.quality


def check_status(result: TranslationResult) -> int:
    """Return the exit status of --check for a completed job: 0 if no item needs a look, else 3."""
    kinds = {kind_of(item) for item in result.translations}
    return SUCCESS if kinds and kinds <= {"ok", "unchanged"} else PARTIAL


def verdict_lines(result: TranslationResult) -> Iterator[str]:
    """Yield the counts of a job, then the items to look at, each line as wide as the terminal."""
    verdicts: Counter[Kind] = Counter(kind_of(item) for item in result.translations)
    yield _shortened(f"{result.job_id} {result.status}: {_counted(verdicts)}")
    for warning in result.warnings[:_MOST_REASONS]:
        yield _shortened(f"  {_cut(warning)}")
    for index, item in _to_look_at(result.translations):
        yield from _item_lines(index, item)


def warning_lines(result: TranslationResult) -> Iterator[str]:
    """Yield the same for the first items of a job, and nothing if no item needs a look."""
    found = _to_look_at(result.translations)
    if not found:
        return
    for index, item in found[:_MOST_NOTED]:
        head, *others = _item_lines(index, item)
        yield _shortened(f"job {result.job_id}, {head.strip()}")
        yield from others
    if len(found) > _MOST_NOTED:
        more = _number(len(found) - _MOST_NOTED, "more item")
        yield f"job {result.job_id}: {more}; dragoman result --check {result.job_id}"


def _to_look_at(items: Sequence[ItemResult]) -> list[tuple[int, ItemResult]]:
    return [
        (index, item)
        for index, item in enumerate(items)
        if kind_of(item) in _LOOK_AT or item.warnings
    ]


def _item_lines(index: int, item: ItemResult) -> Iterator[str]:
    name = "" if item.id is None else f" ({_cut(item.id)})"
    fallback = "" if item.fallback is None else f", {item.fallback}"
    yield _shortened(f"  item {index}{name}: {kind_of(item)}{fallback}")
    if item.error is not None:
        yield _shortened(f"    {_cut(item.error.code)}: {_cut(item.error.message)}")
    reasons = _reasons(item)
    for _, reason in reasons[:_MOST_REASONS]:
        yield _shortened(f"    {reason}")
    if len(reasons) > _MOST_REASONS:
        yield _shortened(
            f"    {_number(len(reasons) - _MOST_REASONS, 'more reason')}; --json prints all"
        )
    if item.text is not None:
        yield _shortened(f"    text: {_cut(item.text)}")


def _reasons(item: ItemResult) -> list[tuple[str | None, str]]:
    """Return the gate of each reason and the reason: warnings, then other gates that spoke."""
    found: list[tuple[str | None, str]] = []
    for warning in item.warnings:
        gate = plain(warning[:40]).partition(" ")[0].rstrip(":,;.")
        found.append((gate or None, _cut(warning)))
    known = {gate for gate, _ in found}
    for name, detail in item.checks.items():
        if (gate := plain(name[:40])) not in known:
            found.append((gate, f"{gate}: {_detail(detail)}"))
    return found


def _detail(detail: Any) -> str:
    """Return a gate's detail, which another version may write in another form."""
    if isinstance(detail, dict):
        members = list(detail.items())[:_MOST_REASONS]
        return ", ".join(f"{_cut(name)} {_cut(value)}" for name, value in members)
    return _cut(detail)


def _counted(verdicts: Counter[Kind]) -> str:
    counts = [f"{verdicts[kind]:,} {kind}" for kind in _ORDER if verdicts[kind]]
    return _number(verdicts.total(), "item") + (f": {', '.join(counts)}" if counts else "")


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _cut(content: object) -> str:
    """Return the beginning of what another program wrote, without control characters."""
    return plain(str(content)[: 4 * _width()])


def _shortened(line: str) -> str:
    """Return a line that fits the terminal; wide characters count twice."""
    from rich.cells import cell_len, set_cell_size  # keeps --help fast

    width = _width()
    if cell_len(line) <= width:
        return line
    return set_cell_size(line, width - 1).rstrip() + "…"


def _width() -> int:
    return max(_LEAST_WIDTH, shutil.get_terminal_size((_WIDTH_OF_A_FILE, 24)).columns)
