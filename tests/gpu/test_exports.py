"""Exported files on a real card, against NumPy: the .cu through nvcc and ctypes, the .py as it is."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from optiml_magic import binding
from optiml_magic.exports import write
from tests.unit.exports.programs import SIZES, exportable, task_of

pytestmark = pytest.mark.gpu
# Not the sizes that the programs were prepared at, so that every scalar has to follow.
OTHER = {"saxpy": {"n": 777}, "transpose_tiled": {"rows": 65, "cols": 130}, "matmul_tiled": {"m": 33, "n": 50, "k": 70},
         "row_sum": {"rows": 65, "cols": 130}, "softmax": {"rows": 65, "cols": 130}, "histogram": {"n": 5000},
         "two passes": {"n": 4000}, "rounds": {"rows": 5, "cols": 32, "steps": 4}, "started": {"n": 500},
         "tables": {"n": 700}, "headers": {"n": 250}, "dispatched": {"rows": 7, "cols": 33, "steps": 2},
         "ruled": {"rows": 7, "cols": 33}}  # fmt: skip
# Each program at its other sizes, and those that dispatch where each of their launches runs.
PLACES = [
    *OTHER.items(),
    ("dispatched", {"rows": 8, "cols": 36, "steps": 4}),
    ("dispatched", {"rows": 5, "cols": 38, "steps": 1}),
    ("ruled", {"rows": 8, "cols": 33}),
]


@dataclass(frozen=True)
class Drawn:
    """Inputs by name with the sizes, shapes of the outputs, and what must come out, in order."""

    values: dict[str, Any]
    wanted: list[Any]


def drawn(name: str, chosen: dict[str, int] | None = None) -> Drawn:
    sizes = {**SIZES[name], **(chosen or OTHER[name])}
    task = task_of(name, **sizes)
    assert callable(task.inputs)
    values = {**sizes, **task.inputs(np.random.default_rng(1), **sizes)}
    return Drawn(values, _wanted(name, values))


def _wanted(name: str, v: dict[str, Any]) -> list[Any]:
    if name == "two passes":
        return [v["x"].sum(keepdims=True)]
    if name == "started":
        return [1 + (v["in"] & 255)]
    if name == "tables":
        return [convolved(v)]
    if name == "headers":
        x, affine = v["x"].astype(np.float64), v["affine"][0]
        return [x / 2 * affine["scale"] + affine["shift"]]
    if name == "dispatched":
        even = v["steps"] // 2 * 2  # `out` holds what the last even round wrote, `back` an odd one
        odd = (v["steps"] - 1) // 2 * 2 + 1
        return [v["weight"] * v["a"] + even, v["weight"] * v["a"] + odd]
    if name == "ruled":
        return [v["weight"] * v["a"]]
    if name == "rounds":
        return []  # its kernels race on purpose: only the launches count, and they are checked above
    from optiml_magic.testing.kernels import known_task

    reference = known_task(name).reference
    assert reference is not None
    names = [b.name for b in exportable(name).arrays if b.role == "input"]
    names += [n for n in exportable(name).scalars if n == "alpha"]
    return [reference(**{n: v[n] for n in names})]


def convolved(v: dict[str, Any]) -> Any:
    """Also what the program's own variables come to in one run that began with their values."""
    n = v["n"]
    padded = np.pad(v["x"], 2)
    sums = v["bias"] + 2 * sum(v["coef"][k] * padded[k : k + n] for k in range(5))
    return np.concatenate([sums, [-(-n // 128), 0.5 + 0.25 + 1, 3 + v["taps"]]])


def _close(got: Any, wanted: Any) -> None:
    if wanted.dtype.kind == "i":
        assert np.array_equal(got, wanted)
    elif got.dtype == ml_dtypes.bfloat16:  # cut off, not rounded
        assert np.allclose(got.astype(np.float64), wanted, rtol=2**-7)
    else:
        assert np.allclose(got, wanted, rtol=1e-4, atol=1e-4)


def imported(name: str, folder: Path, file: str = "exported.py") -> Any:
    path = write(exportable(name), folder / file)
    spec = importlib.util.spec_from_file_location("exported", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, exportable(name).identifier)


def arguments(name: str, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    what = exportable(name)
    names = [b.name for b in what.arrays if b.role != "output"] + list(what.starts.values())
    more = {
        "rounds": ("steps", "weight"),
        "headers": ("affine",),
        "started": ("low",),
        "dispatched": ("steps",),
        "saxpy": ("alpha",),
    }.get(name, ())
    return [values[n] for n in names], {n: values[n] for n in more}


@pytest.mark.parametrize(("name", "sizes"), PLACES)
def test_the_module_computes_what_numpy_does(
    name: str, sizes: dict[str, int], tmp_path: Path
) -> None:
    import cupy as cp

    found = drawn(name, sizes)
    arrays, more = arguments(name, found.values)
    function = imported(name, tmp_path)
    for _ in range(2):  # every run begins with the module's own values
        results = function(*map(cp.asarray, arrays), **more)
        results = results if isinstance(results, tuple) else (results,)
        cp.cuda.Device().synchronize()
        for got, wanted in zip(results, found.wanted, strict=bool(found.wanted)):
            _close(got.get(), wanted)


@pytest.mark.parametrize("on_device", [True, False])
def test_the_module_takes_tables_from_either_side(on_device: bool, tmp_path: Path) -> None:
    import cupy as cp

    values = {**drawn("tables").values, "coef": np.arange(5, dtype=np.float32), "bias": 9}
    coef = cp.asarray(values["coef"]) if on_device else values["coef"]
    function = imported("tables", tmp_path)
    with cp.cuda.Stream(non_blocking=True) as stream:
        out = function(cp.asarray(values["x"]), coef=coef, bias=9)
        stream.synchronize()
    _close(out.get(), convolved(values))


def test_the_module_takes_tensors_on_a_stream_of_their_own(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    function = imported("transpose_tiled", tmp_path)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), _of_cupy(stream.cuda_stream):
        a = torch.randn(2000, 3000, device="cuda")
        out = torch.from_dlpack(function(a + 1))
        assert torch.equal(out, (a + 1).T)


@pytest.mark.filterwarnings("default")  # torch.compile warns of itself
@pytest.mark.parametrize(("name", "sizes"), [place for place in PLACES if place[0] != "headers"])
def test_the_torch_op_computes_what_numpy_does(
    name: str, sizes: dict[str, int], tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    imported(name, tmp_path, "exported_torch.py")
    op = getattr(torch.ops.optiml, exportable(name).identifier)
    found = drawn(name, sizes)
    arrays, more = arguments(name, found.values)
    more = {n: v.item() if isinstance(v, np.generic) else v for n, v in more.items()}
    torch.compiler.reset()
    whole = torch.compile(lambda *tensors: op(*tensors, **more), fullgraph=True)
    for call in (op, whole):
        with torch.cuda.stream(torch.cuda.Stream()):
            tensors = [torch.from_numpy(array).cuda().clone() for array in arrays]
            results = call(*tensors, **(more if call is op else {}))
            torch.cuda.current_stream().synchronize()
        results = results if isinstance(results, tuple) else (results,)
        for got, wanted in zip(results, found.wanted, strict=bool(found.wanted)):
            _close(got.cpu().numpy(), wanted)
        for tensor, array in zip(tensors, arrays, strict=True):
            assert np.array_equal(tensor.cpu().numpy(), array)


def test_the_torch_op_lives_in_a_graph_and_takes_what_is_not_contiguous(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    imported("two passes", tmp_path, "exported_torch.py")  # it has scratch
    op = torch.ops.optiml.two_passes
    x = torch.randn(8000, device="cuda")[::2].requires_grad_()
    assert torch.allclose(op(x), x.sum(), rtol=1e-3, atol=1e-2)
    graph, given = torch.cuda.CUDAGraph(), torch.zeros(4000, device="cuda")
    with torch.cuda.graph(graph):
        out = op(given)
    for _ in range(3):
        given.normal_()
        graph.replay()
        assert torch.allclose(out, given.sum(), rtol=1e-3, atol=1e-2)
    with pytest.raises(NotImplementedError, match="CPU"):
        op(torch.zeros(4000))


@dataclass(frozen=True)
class _Stream:
    address: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.address


def _of_cupy(address: int) -> Any:
    """A stream of another library as CuPy's own; CuPy 14 deprecates the older way."""
    import cupy as cp

    if not hasattr(cp.cuda.Stream, "from_external"):
        return cp.cuda.ExternalStream(address)
    return cp.cuda.Stream.from_external(_Stream(address))


def test_the_module_runs_on_the_current_stream_of_cupy(tmp_path: Path) -> None:
    import cupy as cp

    function = imported("transpose_tiled", tmp_path)
    a = cp.random.default_rng(0).random((2000, 3000), dtype=cp.float32)
    cp.cuda.Device().synchronize()
    with cp.cuda.Stream(non_blocking=True) as stream:
        out = function(a)
        stream.synchronize()
    assert cp.array_equal(out, a.T)


@pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc on this machine")
@pytest.mark.parametrize(("name", "sizes"), PLACES)
def test_the_launcher_computes_what_numpy_does(
    name: str, sizes: dict[str, int], tmp_path: Path
) -> None:
    import cupy as cp

    from tests.unit.exports.stub import Signature

    path = write(exportable(name), tmp_path / "exported.cu")
    command = ["nvcc", "-std=c++17", "-arch=native", "-diag-suppress=161", "-shared"]
    done = subprocess.run(
        [*command, "-Xcompiler", "-fPIC", "-o", "exported.so", path.name],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    signature = Signature(path.read_text())
    function = getattr(ctypes.CDLL(str(tmp_path / "exported.so")), signature.name)
    found, what = drawn(name, sizes), exportable(name)
    outputs = [b for b in what.interface.buffers if b.role == "output"]
    shapes = [w.shape for w in found.wanted] or [found.values["a"].size]
    tables = {b.name: binding.content(b, found.values) for _, b in what.tables}
    held = {
        n: cp.asarray(v)
        for n, v in found.values.items()
        if isinstance(v, np.ndarray) and n not in tables
    }
    held |= {b.name: cp.full(s, 77, b.dtype) for b, s in zip(outputs, shapes, strict=True)}
    addresses = {n: a.data.ptr for n, a in held.items()}
    addresses |= {n: a.ctypes.data for n, a in tables.items()}  # tables may lie on either side
    values = {n: v for n, v in found.values.items() if n not in tables}
    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    for _ in range(2):  # every run begins with the module's own values
        status = function(
            *signature.arguments(
                values,
                {n: a.shape for n, a in held.items()},
                addresses=addresses,
                stream=stream.ptr,
            )
        )
        stream.synchronize()
        assert status == 0
        for buffer, wanted in zip(outputs, found.wanted, strict=bool(found.wanted)):
            _close(held[buffer.name].get(), wanted)
