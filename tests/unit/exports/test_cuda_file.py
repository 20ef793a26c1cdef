"""The launcher of an exported ``.cu`` file does what ``binding.plan`` says, size by size."""

from __future__ import annotations

import math
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.errors import UsageError
from optiml_magic.exports.cuda_file import CudaFileExport
from optiml_magic.model.build import Build
from tests.present import examples, sampled
from tests.unit.exports.programs import ALL, H200, SIZES, build, drawn, exportable
from tests.unit.exports.stub import Launcher, address, check

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="no g++ on this machine")
ANY_SIZE = st.one_of(st.integers(1, 40), st.integers(1, 5000))


@lru_cache(maxsize=32)
def rendered(name: str) -> str:
    return CudaFileExport().render(exportable(name))


@pytest.fixture(scope="module")
def launchers(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    made: dict[str, Launcher] = {}

    def launcher(name: str) -> Launcher:
        if name not in made:
            made[name] = Launcher(rendered(name), tmp_path_factory.mktemp("launcher"))
        return made[name]

    return launcher


def nbytes(name: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, int]:
    buffers = exportable(name).interface.buffers
    return {b.name: math.prod(shapes[b.name]) * np.dtype(b.dtype).itemsize for b in buffers}


@pytest.mark.parametrize("name", sampled(ALL, 8))
@settings(
    max_examples=examples(4, 300), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_the_launcher_does_what_the_plan_says(name: str, data: st.DataObject, launchers) -> None:  # type: ignore[no-untyped-def]
    most = 40 if name.startswith("matmul") else 300
    sizes = {size: data.draw(st.integers(1, most), size) for size in SIZES[name]}
    if name == "rounds":
        sizes["cols"] *= 4
    if name == "two passes" and sizes["n"] % 5:
        sizes["n"] *= 4  # one in five is left to be refused
    launcher = launchers(name)
    try:
        wanted = drawn(name, **sizes)
    except UsageError:
        known = exportable(name)
        refused = {**known.values, **sizes}
        assert launcher(refused, known.shapes).status == 1
        assert launcher(refused, known.shapes).log == ()
        return
    run = launcher(wanted.values, wanted.shapes)
    check(run, wanted.plan, nbytes(name, dict(wanted.shapes)))


def test_a_fill_a_copy_and_a_clear_come_before_the_launches(launchers) -> None:  # type: ignore[no-untyped-def]
    wanted = drawn("started")
    run = launchers("started")(wanted.values, wanted.shapes)
    assert run.log[0][:4] == ("memcpy", f"{address('sum'):x}", f"{address('lambda'):x}", "1200")
    wanted = drawn("rounds")
    run = launchers("rounds")(wanted.values, wanted.shapes)
    assert "4fill" in run.log[0][1]
    place, count, value = run.log[0][-1].rstrip(",").split(",")
    assert int.from_bytes(bytes.fromhex(place)[:8], "little") == address("out")
    assert int.from_bytes(bytes.fromhex(count)[:8], "little") == 96
    assert np.frombuffer(bytes.fromhex(value)[:4], "<f4") == 2.5


def test_a_failing_call_ends_the_run_and_frees_what_was_allocated(launchers) -> None:  # type: ignore[no-untyped-def]
    wanted = drawn("two passes")
    launcher = launchers("two passes")
    whole = launcher(wanted.values, wanted.shapes)
    for calls in range(len(whole.log) - 1):
        run = launcher(wanted.values, wanted.shapes, fail_after=calls)
        assert run.status == 2
        mallocs = run.of("malloc")[: 1 if calls else 0]
        assert [f[0] for f in run.of("free")] == [m[0] for m in mallocs]
        assert len(run.of("launch")) <= max(calls - 1, 0)


def test_the_grid_follows_the_multiprocessors(launchers) -> None:  # type: ignore[no-untyped-def]
    wanted = drawn("two passes", n=100_000)
    run = launchers("two passes")(wanted.values, wanted.shapes, sms=7)
    assert run.of("launch")[0][1] == "14"
    assert run.of("malloc")[0][1] == str(14 * 4)


@pytest.mark.parametrize("name", sampled(ALL, 8))
def test_nvrtc_takes_the_device_part_of_the_file(name: str) -> None:
    names = tuple(build(name).names)
    found = NvrtcCompiler().compile(rendered(name), names, H200, CompileOptions())
    assert isinstance(found, Build), found
    assert found.names == build(name).names


@pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc on this machine")
@pytest.mark.parametrize(
    "name",
    sampled(
        ["rounds", "softmax", "two passes", "headers", "started", "tables", "dispatched", "ruled"],
        8,
    ),
)
def test_nvcc_takes_the_file_without_a_warning(name: str, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(rendered(name))
    done = subprocess.run(
        ["nvcc", "-std=c++17", "-arch=sm_90", "-diag-suppress=161", "-c", "k.cu", "-o", "k.o"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_the_head_says_what_it_is() -> None:
    head = rendered("two passes").split("\n\n")[0]
    for part in (
        "two_passes: exported",
        "9x faster, estimated",
        "nvcc -std=c++17",
        "two_passes_launch(",
    ):
        assert part in head
    assert all(line.startswith("//") for line in head.splitlines())
