"""The table of vLLM's patches against the names of each version, and what applies when."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman_worker.engines.vllm.patches.names import Names, first_missing, names_in
from dragoman_worker.engines.vllm.patches.table import (
    FORKED_START,
    ISOLATION,
    LATENCIES,
    PATCHES,
    PREFILL_GROUPS,
    SIGNS_OF_LIFE,
    SOCKETS,
    WHOLE_OUTPUTS,
    WORKER_START,
    chosen,
)

LISTS = sorted((Path(__file__).parents[3] / "data" / "vllm-names").glob("*.txt"))
PROTECTING = {ISOLATION, SIGNS_OF_LIFE, SOCKETS, WORKER_START}


def names_of(listed: str) -> Callable[[str], Names]:
    """Return what a list says of each module."""
    modules: dict[str, dict[str, tuple[str, ...]]] = {}
    for line in listed.splitlines():
        name, _, parameters = line.rstrip(")").partition("(")
        module, _, inside = name.partition(":")
        modules.setdefault(module, {})[inside] = tuple(parameters.split(","))
    return lambda module: modules.get(module, {})


@pytest.mark.parametrize("listed", LISTS, ids=lambda file: file.stem)
def test_every_patch_finds_its_names_in_the_versions_that_the_table_says(listed: Path) -> None:
    found = chosen("auto", names_of(listed.read_text(encoding="utf-8")))
    assert found.missing == {}, "for new names run `make vllm-names` on the wheels"
    assert found.names == PATCHES.keys()


def test_the_lists_reach_from_the_first_to_the_last_version_of_the_table() -> None:
    minors = sorted(int(file.stem.split(".")[1]) for file in LISTS)
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert {patch.known for patch in PATCHES.values()} == {(f"0.{minors[0]}", f"0.{minors[-1]}")}


def test_off_leaves_only_what_protects() -> None:
    listed = names_of(LISTS[-1].read_text(encoding="utf-8"))
    assert chosen("off", listed).names == PROTECTING
    assert chosen("auto", listed).names - PROTECTING == {
        FORKED_START,
        LATENCIES,
        PREFILL_GROUPS,
        WHOLE_OUTPUTS,
    }


@pytest.mark.parametrize(
    ("gone", "left_out"),
    [
        (
            "EngineCoreProc.run_engine_core",
            {ISOLATION, WORKER_START, WHOLE_OUTPUTS, PREFILL_GROUPS},
        ),
        ("Scheduler.update_from_output", {WHOLE_OUTPUTS}),
        ("(self,throttle_prefills)", {PREFILL_GROUPS}),
        ("utils:get_mp_context", {FORKED_START}),
        ("BackgroundResources.validate_alive", {SIGNS_OF_LIFE}),
        ("IterationStats.inter_token_latencies_iter", {LATENCIES, WHOLE_OUTPUTS}),
    ],
)
def test_a_patch_whose_name_is_gone_or_has_another_shape_is_left_out(
    gone: str, left_out: set[str]
) -> None:
    listed = LISTS[-1].read_text(encoding="utf-8")
    assert gone in listed
    found = chosen("auto", names_of(listed.replace(gone, "other")))
    assert found.missing.keys() == left_out
    assert found.names == PATCHES.keys() - left_out


def test_without_any_vllm_nothing_applies() -> None:
    assert chosen("auto", lambda module: {}).names == set()


def test_the_installed_vllm_is_read_without_importing_it() -> None:
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed")
    assert chosen("auto").missing == {}


SOURCE = """
import os as system
from x import y
if system:
    SIZE: int = 1
class A:
    kind = "a"
    def made(self, first, /, second=2, *rest, third, **others):
        self.one, self.two = first, second
        other.three = self.four
    class Inner: ...
def free(): ...
"""


def test_names_are_imports_assignments_functions_members_and_what_is_set_on_self() -> None:
    assert dict(names_in(SOURCE)) == {
        "system": (),
        "y": (),
        "SIZE": (),
        "A": (),
        "A.kind": (),
        "A.made": ("self", "first", "second", "third"),
        "A.one": (),
        "A.two": (),
        "A.Inner": (),
        "free": (),
    }


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [
        (("m:A.made(third,first)", "m:free"), None),
        (("m:free", "m:A.made(fourth)"), "m:A.made(fourth)"),
        (("m:A.three",), "m:A.three"),
        (("other:A",), "other:A"),
    ],
)
def test_the_first_missing_name_is_named(wanted: tuple[str, ...], missing: str | None) -> None:
    modules = {"m": names_in(SOURCE)}
    assert first_missing(wanted, lambda module: modules.get(module, {})) == missing
