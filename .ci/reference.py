"""Writer of the reference tables in docs/reference that follow from the code.

`python .ci/reference.py` rewrites the generated columns of the pages in `PAGES`, in the order of
the code. The other columns are written by hand and are kept by name;
`tests/unit/docs/test_pages.py` fails while a page is not current or such a cell is empty.
"""

from __future__ import annotations

import ast
import inspect
import re
import runpy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from typer.models import OptionInfo

from dragoman_documents.registry import codec, formats, is_streamed
from dragoman_gateway.settings import ServeSettings
from dragoman_producer.cli.translate import translate
from dragoman_schemas.failures import RETRYABLE, FailureCode
from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.results import TranslationResult
from dragoman_worker.engines.vllm.patches.table import PATCHES
from dragoman_worker.metrics import Metrics, TimesFamily
from dragoman_worker.process.supervisor import ReplicaMetrics
from dragoman_worker.settings import WorkerSettings

_ROOT: Final = Path(__file__).parent.parent
_PAGES: Final = _ROOT / "docs" / "reference"
_TABLE: Final = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
Rows = Mapping[str, Sequence[str]]


# --- what the code says ---------------------------------------------------------------------------


def settings() -> Rows:
    """Return type and default of every setting, by dotted name."""
    return dict(_settings(WorkerSettings))


def _settings(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Sequence[str]]]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _settings(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", (_bounds(field), _default(field.default))


def _default(default: Any) -> str:
    if default is None or default is PydanticUndefined or default == ():
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return f"`{', '.join(default)}`"
    return f"`{_number(default)}`" if isinstance(default, int | float) else f"`{default}`"


def _number(value: float) -> str:
    """Return a number as TOML takes it: in groups of three digits from 10,000 on."""
    return f"{int(value):_}" if value == int(value) and value >= 10_000 else f"{value:g}"


def _bounds(field: FieldInfo) -> str:
    """Return the values that a field takes: the members of a Literal, or a range."""
    literals = [value for value in get_args(field.annotation) if isinstance(value, str)]
    if literals:
        return " ".join(f"`{value}`" for value in literals)
    metadata = [*field.metadata]
    for argument in get_args(field.annotation):
        metadata += getattr(argument, "__metadata__", ())
    signs = {"Ge": ("ge", "≥"), "Gt": ("gt", ">"), "Le": ("le", "≤"), "Lt": ("lt", "<")}
    flat = [one for info in metadata for one in (getattr(info, "metadata", None) or [info])]
    return ", ".join(
        f"{sign} {_number(getattr(bound, attribute))}"
        for bound in flat
        if type(bound).__name__ in signs
        for attribute, sign in [signs[type(bound).__name__]]
    )


def metrics() -> Rows:
    """Return type, labels and help text of every metric, by its name in a scrape."""
    ours: list[Metrics | ReplicaMetrics] = [
        Metrics(CollectorRegistry()),
        ReplicaMetrics(CollectorRegistry()),
    ]
    labels: dict[str, Sequence[str]] = {}
    for collector in (each for one in ours for each in one.registry._collector_to_names):
        if isinstance(collector, TimesFamily):
            labels[collector.name] = collector.labels
        elif isinstance(collector, MetricWrapperBase):
            labels[collector._name] = collector._labelnames
    return {
        family.name + ("_total" if family.type == "counter" else ""): (
            family.type,
            " ".join(f"`{label}`" for label in labels[family.name]),
            family.documentation,
        )
        for one in ours
        for family in one.registry.collect()
    }


def log_events() -> Rows:
    """Return the levels of every log event of the worker: the first arguments of logger calls."""
    levels = ("debug", "info", "warning", "error", "critical")
    found: dict[str, set[str]] = {"run_failed": {"critical"}}  # written without a logger
    for path in sorted((_ROOT / "worker" / "dragoman_worker").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr in levels and node.args and isinstance(node.args[0], ast.Constant):
                found.setdefault(str(node.args[0].value), set()).add(node.func.attr)
    return {name: (", ".join(sorted(found[name], key=levels.index)),) for name in sorted(found)}


def error_codes() -> Rows:
    """Return whether a replay of the same bytes may succeed, by error code."""
    return {code.value: ("yes" if code in RETRYABLE else "no",) for code in FailureCode}


def job_fields() -> Rows:
    """Return type and bounds of every field of a job, from its JSON Schema."""
    return _fields(TranslationJob)


def result_fields() -> Rows:
    """Return the type of every field of a result, from its JSON Schema."""
    return _fields(TranslationResult)


def _fields(model: type[BaseModel]) -> Rows:
    schema = model.model_json_schema(by_alias=True)
    required = schema.get("required", ())
    return {
        name: (_type(field), "yes" if name in required else "")
        for name, field in schema["properties"].items()
    }


def _type(field: Mapping[str, Any]) -> str:
    """Return a short type of a field: names of its kinds, values and bounds."""
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    kinds = [kind for key in ("oneOf", "anyOf") for kind in field.get(key, ())]
    if kinds:
        return " or ".join(_type(kind) for kind in kinds if kind.get("type") != "null")
    if "enum" in field:
        return " ".join(f"`{value}`" for value in field["enum"])
    if field["type"] == "array":
        return f"list of {_bound(field, 'Items')}{_type(field['items'])}"
    if field["type"] == "object":
        return f"map of {_bound(field, 'Properties')}{_type(field['additionalProperties'])}"
    pattern = f" `{field['pattern']}`" if "pattern" in field else ""
    value = f"`{field['const']}`" if "const" in field else field.get("format", field["type"])
    return value + pattern + _bound(field, "Length") + _range(field)


def _bound(field: Mapping[str, Any], what: str) -> str:
    most = field.get(f"max{what}")
    if most is None:
        return ""
    return f", up to {most} characters" if what == "Length" else f"up to {most} × "


def _range(field: Mapping[str, Any]) -> str:
    least, most = field.get("minimum"), field.get("maximum")
    return "" if least is None or most is None else f" {_number(least)} to {_number(most)}"


def document_formats() -> Rows:
    """Return the suffixes of every document format, and whether it can be bilingual."""
    return {
        name: (
            " ".join(f"`{suffix}`" for suffix in sorted(suffixes)),
            "no" if is_streamed(name) or not codec(name).can_double else "yes",
        )
        for name, suffixes in sorted(formats().items())
    }


def translate_options() -> Rows:
    """Return value and default of every option of `dragoman translate`."""
    hints = get_type_hints(translate, include_extras=True)
    return {
        _option_name(name, info): (_value(info, kind), _option_default(parameter.default))
        for name, parameter in inspect.signature(translate).parameters.items()
        for kind, info in [get_args(hints[name])]
        if isinstance(info, OptionInfo)
    }


def _option_name(name: str, info: OptionInfo) -> str:
    given = str(info.default)  # in an annotation typer holds the first name as default
    return given if given.startswith("--") else f"--{name.replace('_', '-')}"


def _value(info: OptionInfo, kind: Any) -> str:
    """Return what stands behind an option, and whether the option may be repeated."""
    if kind is bool:
        return ""
    plain = "NUMBER" if kind is int else "TEXT"
    value = f"`{info.metavar or plain}`".replace("|", "\\|")
    return f"{value}, repeatable" if "list[" in str(kind) else value


def _option_default(default: Any) -> str:
    return "" if default is inspect.Parameter.empty or default is False else _default(default)


def vllm_patches() -> Rows:
    """Return what each patch of vLLM changes, what is lost without it, and where it is known."""
    return {
        name: (
            "stays" if patch.protects else "left out",
            " to ".join(patch.known),
            patch.changes,
            patch.lost,
        )
        for name, patch in PATCHES.items()
    }


def gateway_settings() -> Rows:
    """Return type and default of every setting of the gateway, by dotted name."""
    return dict(_settings(ServeSettings, "serve."))


PAGES: Final = {
    "gateway.md": gateway_settings,
    "translate.md": translate_options,
    "jobs.md": job_fields,
    "results.md": result_fields,
    "settings.md": settings,
    "metrics.md": metrics,
    "log-events.md": log_events,
    "error-codes.md": error_codes,
    "vllm-patches.md": vllm_patches,
    "documents.md": document_formats,
}


# --- pages ----------------------------------------------------------------------------------------


def current(page: str) -> str:
    """Return the text of a page with its tables brought up to date.

    A page may have its rows in several tables with the same head, such as the settings by group: a
    row goes where others of its group are, that is where names begin alike up to the first dot.
    """
    text = (_PAGES / page).read_text(encoding="utf-8")
    rows = PAGES[page]()
    first = _TABLE.search(text)
    assert first is not None, page
    head = first.group().partition("\n")[0]
    tables = [each.group() for each in _TABLE.finditer(text) if each.group().startswith(head)]
    groups = [{_group(cells[0]) for cells in map(_cells, each.splitlines()[2:])} for each in tables]
    known = set().union(*groups)
    for place, table in enumerate(tables):
        own = {
            name: given
            for name, given in rows.items()
            if _group(name) in groups[place] or (place == 0 and _group(name) not in known)
        }
        text = text.replace(table, _merged(table.splitlines(), own))
    return text


def _group(name: str) -> str:
    group, dot, _ = name.strip("`").partition(".")
    return group if dot else ""


def _merged(lines: Sequence[str], rows: Rows) -> str:
    """Return a table with the cells of the code, and the cells by hand that it had.

    Those by hand come last, or a single one, `meaning`, directly behind the name.
    """
    had = {cells[0].strip("`"): cells for cells in map(_cells, lines[2:])}
    head = _cells(lines[0])
    meaning_first = head[1] == "meaning"
    merged = [*lines[:2]]
    for name, given in rows.items():
        old = had.get(name, ())
        if meaning_first:
            cells = [old[1] if len(old) > 1 else "", *given]
        else:
            end = range(1 + len(given), len(head))
            cells = [*given, *(old[n] if n < len(old) else "" for n in end)]
        merged.append("| " + " | ".join([f"`{name}`", *cells]) + " |")
    return "\n".join(merged) + "\n"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def main() -> None:
    """Write every page, and the schema of the Helm chart's values."""
    for page in PAGES:
        (_PAGES / page).write_text(current(page), encoding="utf-8")
    runpy.run_path(str(Path(__file__).with_name("chart.py")), run_name="__main__")


if __name__ == "__main__":
    main()
