"""Arrays of torch, CuPy and other libraries as inputs, and references written in them."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import standins

from optiml_magic.commands.parsers import cell_parser, parse, split
from optiml_magic.commands.tasks import from_cell
from optiml_magic.errors import BindingError
from optiml_magic.model.task import Task
from optiml_magic.problem import Problem, prepare

TEXT = """\
#pragma optiml launch k grid(1) block(64)
__global__ void k(const float* x, float s, float* out, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = s * x[i] + x[i];
}
"""
X = np.random.default_rng(0).uniform(-1, 1, 64).astype(np.float32)
REAL = [pytest.param(True, id="real", marks=pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"))]  # fmt: skip


@pytest.fixture(params=[False, *REAL], ids=["stand-in", "real"])
def torch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if request.param:
        return pytest.importorskip("torch")
    module = standins.torch()
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = standins.cupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def task(x: Any, reference: Any = None, text: str = TEXT) -> Task:
    return Task(text, reference=reference, inputs={"x": x, "s": 2.0, "n": 64})


def buffers(problem: Problem, seed: int = 0) -> dict[str, Any]:
    return {b.name: b for b in problem.instances[seed].case.buffers}


def test_a_tensor_is_converted_and_its_reference_called_on_float64_tensors(
    torch: ModuleType,
) -> None:
    seen = []

    def reference(x: Any, s: float) -> Any:
        seen.append((torch.is_tensor(x), x.dtype))
        return s * x + x

    x = torch.from_numpy(X.copy())
    x.requires_grad = True
    problem = prepare(task(x, reference), seeds=2)
    found = buffers(problem)
    assert np.array_equal(found["x"].array, X)
    assert isinstance(buffers(problem, 1)["x"].array, np.ndarray)
    assert np.array_equal(found["out"].expected, 3.0 * X.astype(np.float64))
    assert set(seen) == {(True, torch.float64)}
    assert problem.oracle == "reference in float64"


def test_a_tensor_that_needs_a_gradient_or_comes_transposed_may_be_returned(
    torch: ModuleType,
) -> None:
    def reference(x: Any) -> Any:
        doubled = x + x + x
        doubled.requires_grad = True
        return doubled

    expected = buffers(prepare(task(torch.from_numpy(X.copy()), reference), seeds=1))
    assert np.allclose(expected["out"].expected, 3 * X)


def test_bfloat16_tensors(torch: ModuleType) -> None:
    text = "#include <cuda_bf16.h>\n" + TEXT.replace("float*", "__nv_bfloat16*")
    wanted = X.astype(ml_dtypes.bfloat16)
    x = torch.from_numpy(wanted.view(np.int16)).view(torch.bfloat16)
    kinds = []

    def picky(x: Any, s: float) -> Any:
        kinds.append(x.dtype)
        if x.dtype != torch.bfloat16:
            raise TypeError(x.dtype)
        return x * s + x

    problem = prepare(task(x, picky, text), seeds=1)
    found = buffers(problem)
    assert found["x"].array.dtype == ml_dtypes.bfloat16
    assert np.array_equal(found["x"].array.view(np.int16), wanted.view(np.int16))
    assert set(kinds) == {torch.float64, torch.bfloat16}
    assert problem.oracle == "picky in the dtypes of the inputs"
    assert np.allclose(found["out"].expected, 3 * X, rtol=2e-2)


def test_a_tensor_that_is_a_view_is_refused(torch: ModuleType) -> None:
    x = torch.from_numpy(np.ones((8, 8), np.float32)).T
    with pytest.raises(BindingError, match=r"`x` is not contiguous.*\n.*x.contiguous\(\)"):
        prepare(task(x), seeds=1)


def test_numbers_without_axes_are_scalars(torch: ModuleType) -> None:
    given = {"x": X, "s": torch.from_numpy(np.array(2.0)), "n": torch.from_numpy(np.array(64))}
    problem = prepare(Task(TEXT, reference=lambda x, s: s * x + x, inputs=given), seeds=1)
    assert (problem.instances[0].values["s"], problem.instances[0].values["n"]) == (2.0, 64)


def test_a_function_may_draw_tensors(torch: ModuleType) -> None:
    def inputs(rng: np.random.Generator, n: int) -> dict[str, Any]:
        return {"x": torch.from_numpy(rng.random(n, np.float32)), "s": 0.5}

    def reference(x: Any, s: float) -> Any:
        assert torch.is_tensor(x)
        return x * s + x

    drawn = Task(TEXT, reference=reference, inputs=inputs, sizes={"n": 64})
    problem = prepare(drawn, seeds=2)
    assert not np.array_equal(buffers(problem)["x"].array, buffers(problem, 1)["x"].array)


def test_a_stand_in_on_a_gpu_comes_back_from_it() -> None:
    module = standins.torch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch", module)
        devices = []

        def reference(x: Any) -> Any:
            devices.append(x.device)
            return x + x

        x = module.Tensor(X, "cuda:0", requires_grad=True)
        found = buffers(prepare(task(x, reference), seeds=1))
    assert set(devices) == {"cuda:0"}
    assert np.allclose(found["out"].expected, 2 * X)


def test_cupy_arrays_and_references(cupy: ModuleType) -> None:
    seen = []

    def reference(x: Any, s: float) -> Any:
        seen.append((type(x), x.dtype))
        return s * x + x

    found = buffers(prepare(task(cupy.asarray(X), reference), seeds=1))
    assert np.array_equal(found["x"].array, X)
    assert np.array_equal(found["out"].expected, 3.0 * X.astype(np.float64))
    assert set(seen) == {(cupy.ndarray, np.dtype("f8"))}
    with pytest.raises(BindingError, match=r"not contiguous.*\n.*x.copy\(\)"):
        prepare(task(cupy.asarray(np.ones((8, 8), np.float32)).T), seeds=1)


class Producer:
    """An array of a library that speaks DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array, self.dtype = array, array.dtype

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Unreadable:
    dtype = np.dtype("f4")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("not from here")


def test_other_producers_are_read_through_dlpack_or_array() -> None:
    found = buffers(prepare(task(Producer(X.copy()), lambda x, s: s * x + x), seeds=1))
    assert np.array_equal(found["x"].array, X)
    with pytest.raises(BindingError, match=r"`x`, a Unreadable, cannot be read as a NumPy array"):
        prepare(task(Unreadable()), seeds=1)


def test_names_in_a_notebook_may_be_lists_and_tensors(torch: ModuleType) -> None:
    options = parse(cell_parser(), split("check"))
    names = {"x": torch.from_numpy(X.copy()), "s": 2.0, "n": 64, "out": X}
    found = buffers(prepare(from_cell(TEXT, options, names), seeds=1))
    assert np.array_equal(found["x"].array, X)
    with pytest.raises(BindingError, match=r"`x` is a list.*\n.*np.asarray\(x, np.float32\)"):
        prepare(from_cell(TEXT, options, {**names, "x": [1.0] * 64}), seeds=1)
