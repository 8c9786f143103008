"""Tests of reading the GPUs through NVML, and of machines without a GPU."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dragoman_worker.engines import machine
from dragoman_worker.engines.gpu import Gpu, Gpus, GpuStats


class NVMLError(Exception):
    pass


class FakeNvml(SimpleNamespace):
    """The calls of the library that are used, on a machine with four GPUs; some are divided."""

    NVMLError = NVMLError

    def __init__(
        self,
        *,
        driver: bool = True,
        unreadable: tuple[int, ...] = (),
        divided: tuple[int, ...] = (),
        lost: tuple[int, ...] = (),
    ) -> None:
        super().__init__(open=0, driver=driver, unreadable=unreadable, divided=divided, lost=lost)

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.driver:
            raise NVMLError("Driver Not Loaded")
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 4

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:  # noqa: N802
        if number in self.lost:
            raise NVMLError("GPU is lost")
        return number

    def nvmlDeviceGetHandleByUUID(self, name: str) -> int:  # noqa: N802
        number = int(name.removeprefix("MIG-"))
        if number // 10 not in self.divided:
            raise NVMLError("Not Found")
        return number

    def nvmlDeviceGetUUID(self, handle: int) -> bytes | str:  # noqa: N802
        """Return bytes for a GPU, as old versions of the library do, and text for a slice."""
        return f"GPU-{handle}abc".encode() if handle < 4 else f"MIG-{handle}"

    def nvmlDeviceGetMigMode(self, handle: int) -> tuple[int, int]:  # noqa: N802
        if handle == 0:
            raise NVMLError("Not Supported")
        return int(handle in self.divided), 0

    def nvmlDeviceGetMaxMigDeviceCount(self, _: int) -> int:  # noqa: N802
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: int, index: int) -> int:  # noqa: N802
        if index > 1:
            raise NVMLError("Not Found")
        return 10 * handle + index

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        if handle in self.unreadable:
            raise NVMLError("Not Supported")
        return SimpleNamespace(gpu=90 + handle, memory=0)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(used=10 + handle, total=100)


def numbers(monkeypatch: pytest.MonkeyPatch, nvml: Any, count: int, visible: str | None) -> str:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpus = Gpus(count, visible=visible)
    found = [gpu.name for gpu in gpus.read()] if gpus.open() else []
    gpus.close()
    return " ".join(found)


@pytest.mark.parametrize(
    ("count", "visible", "found"),
    [
        (1, None, "0"),
        (2, None, "0 1"),
        (1, "3", "3"),
        (2, "2, 1,0", "2 1"),
        (1, "GPU-2", "2"),
        (2, "GPU-2abc,GPU-0abc", "2 0"),
        (2, "GPU-,1", ""),
        (2, "1,-1,0", "1"),
        (1, "", ""),
        (2, "1,7", "1"),
        (1, "MIG-1", ""),
        (0, None, ""),
    ],
)
def test_the_gpus_that_are_visible_to_cuda_are_read(
    monkeypatch: pytest.MonkeyPatch, count: int, visible: str | None, found: str
) -> None:
    nvml = FakeNvml()
    assert numbers(monkeypatch, nvml, count, visible) == found
    assert nvml.open == 0


def listed(monkeypatch: pytest.MonkeyPatch, nvml: FakeNvml, visible: str | None) -> list[Gpu]:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpus = Gpus(None, visible=visible)
    assert gpus.open()
    try:
        return gpus.listed()
    finally:
        gpus.close()


def test_a_gpu_is_listed_with_its_uuid_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert listed(monkeypatch, FakeNvml(), "2") == [Gpu("2", "GPU-2abc", 100)]


def test_a_gpu_that_has_failed_is_left_out_and_the_others_keep_their_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml = FakeNvml(lost=(1,))
    assert [gpu.name for gpu in listed(monkeypatch, nvml, None)] == ["0", "2", "3"]


def test_the_slices_of_a_divided_gpu_are_listed_in_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml = FakeNvml(divided=(1,))
    names = [gpu.name for gpu in listed(monkeypatch, nvml, None)]
    assert names == ["0", "MIG-10", "MIG-11", "2", "3"]
    assert [gpu.name for gpu in listed(monkeypatch, nvml, "MIG-11,0")] == ["MIG-11", "0"]
    first = listed(monkeypatch, nvml, "1,2")
    assert [(gpu.name, gpu.is_slice) for gpu in first] == [("MIG-10", True), ("2", False)]


def test_the_machine_has_the_gpus_that_cuda_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    monkeypatch.setattr(machine, "_cpu_build", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,0")
    assert [gpu.name for gpu in machine.this_machine().gpus] == ["3", "0"]
    monkeypatch.setattr(machine, "_DEVICE_FILES", ("/dev/null",))
    for hidden in ("", " ", "-1", "-1,0", "NoDevFiles"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert not machine.this_machine().on_gpu
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(driver=False))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert machine.this_machine().unlisted, "there is a GPU that NVML cannot read"
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    stale = machine.this_machine()
    assert (stale.unlisted, stale.unmatched, stale.on_gpu) == (False, "7", False)
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr(machine, "_cpu_build", lambda: True)
    assert not machine.this_machine().on_gpu, "a vLLM built for CPUs uses no GPU"


def test_the_visible_gpus_default_to_the_environment_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    gpus = Gpus(1)
    assert gpus.open()
    assert gpus.read() == [GpuStats("2", 0.92, 12, 100)]


def test_a_gpu_that_cannot_be_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(unreadable=(1,)))
    gpus = Gpus(3, visible="0,1,2")
    assert gpus.open()
    assert [gpu.name for gpu in gpus.read()] == ["0", "2"]


def test_a_missing_library_or_driver_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert numbers(monkeypatch, FakeNvml(driver=False), 1, None) == ""
    assert numbers(monkeypatch, None, 1, None) == "", "None in sys.modules: not installed"


def test_the_real_library_finds_no_driver_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use vLLM's own copy of the library, without the seconds that an import of vLLM takes."""
    package = importlib.util.find_spec("vllm")
    if package is None or package.origin is None:
        pytest.skip("vLLM is not installed")
    file = Path(package.origin).with_name("third_party") / "pynvml.py"
    nvml: Any = ModuleType("pynvml")
    monkeypatch.setitem(sys.modules, "pynvml", nvml)  # it looks itself up there
    SourceFileLoader("pynvml", str(file)).exec_module(nvml)
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        assert numbers(monkeypatch, nvml, 1, None) == ""
    else:
        nvml.nvmlShutdown()
        assert numbers(monkeypatch, nvml, 1, None) in {"", "0"}
