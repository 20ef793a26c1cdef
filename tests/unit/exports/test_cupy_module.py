"""An exported module does what ``binding.plan`` says, size by size, on a CuPy that runs nothing."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optiml_magic.compilers.nvrtc import NvrtcCompiler, include_folders
from optiml_magic.errors import UsageError
from optiml_magic.exports.cupy_module import CupyModuleExport
from optiml_magic.model.build import CompileFailure
from optiml_magic.model.launch import BufferArgument
from optiml_magic.source.program import parse_program
from tests.present import examples
from tests.unit.exports import fake_cupy
from tests.unit.exports.programs import ALL, SIZES, build, drawn, exportable

FUNCTION = {"two passes": "two_passes"}


class Exported:
    """A module loaded beside a ``cupy`` that writes down; ``names`` are its variables."""

    def __init__(self, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.launches = fake_cupy.Launches()
        self.text = text
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, "cupy", fake_cupy.module(self.launches))
            self.names: dict[str, Any] = {"__name__": "exported"}
            exec(compile(text, "exported.py", "exec"), self.names)  # the module under test
        self.function = self.names[FUNCTION.get(name, name)]

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        self.launches.calls.clear()
        self.launches.allocated.clear()
        return self.function(*arrays, **named)


def exported(name: str, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Exported:
    what = replace(exportable(name), **changes) if changes else exportable(name)
    return Exported(name, CupyModuleExport().render(what), monkeypatch)


def on_device(array: Any) -> Any:
    return np.ascontiguousarray(array).view(fake_cupy.ndarray)


def inputs(name: str, values: Any) -> list[Any]:
    """The arrays that the module asks for, in order."""
    what = exportable(name)
    given = [b.name for b in what.arrays if b.role != "output"]
    return [on_device(values[n]) for n in [*given, *("lambda" for _ in what.starts)]]


def raw(argument: Any) -> str:
    return np.asarray(argument).tobytes().hex()


@pytest.mark.parametrize("name", ALL)
@settings(
    max_examples=examples(4, 300), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_the_module_does_what_the_plan_says(
    name: str, data: st.DataObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 40 if name.startswith("matmul") else 300
    drawn_sizes = {size: data.draw(st.integers(1, most), size) for size in SIZES[name]}
    if name == "rounds":
        drawn_sizes["cols"] *= 4
    if name == "two passes" and drawn_sizes["n"] % 5:
        drawn_sizes["n"] *= 4  # one in five is left to be refused
    module = exported(name, monkeypatch)
    more = {
        "rounds": {"steps": drawn_sizes.get("steps")},
        "dispatched": {"steps": drawn_sizes.get("steps")},
        "started": {"low": 255},
        "headers": {"affine": exportable("headers").values["affine"]},
    }.get(name, {})
    try:
        wanted = drawn(name, **drawn_sizes)
    except UsageError:
        x = on_device(np.ones(drawn_sizes["n"], np.float32))
        with pytest.raises(ValueError, match="needs"):
            module(x)
        assert module.launches.calls == []
        return
    given = inputs(name, wanted.values)
    results = module(*given, **more)
    results = results if isinstance(results, tuple) else (results,)
    check(module, name, wanted, given, results)


def check(module: Exported, name: str, wanted: Any, given: Any, results: Any) -> None:
    what = exportable(name)
    written = what.interface.named("output", "inout")
    buffers = dict(zip([b.name for b in written], results, strict=True))
    for buffer in written:
        assert buffers[buffer.name].shape == wanted.shapes[buffer.name]
        assert buffers[buffer.name].dtype == buffer.dtype
    buffers |= {b.name: a for b, a in zip(what.interface.named("input"), given, strict=False)}
    own = [id(a) for a in buffers.values()]
    scratch = [a for a in module.launches.allocated if id(a) not in own]
    assert [(a.size, a.dtype) for a in scratch] == [
        (s.elements, np.dtype(s.dtype)) for s in wanted.plan.scratch
    ]
    buffers |= {s.name: a for s, a in zip(wanted.plan.scratch, scratch, strict=True)}
    lowered = build(name).names
    symbols = {lowered[n]: bytes(raw) for n, raw in module.launches.variables.items()}
    assert symbols.keys() == {symbol for symbol, _ in wanted.plan.variables}
    for symbol, buffer in wanted.plan.variables:
        filled = np.asarray(wanted.values[buffer], module_dtype(name, buffer)).tobytes()
        assert symbols[symbol].startswith(filled)
    begun = [call[0].endswith("_own::begin") for call in module.launches.calls]
    assert begun == [True] * bool(what.own) + [False] * len(wanted.plan.launches)
    own = [c for c, first in zip(module.launches.calls, begun, strict=True) if not first]
    assert len(own) == len(wanted.plan.launches)
    for call, launch in zip(own, wanted.plan.launches, strict=True):
        expression, grid, block, arguments, shared = call
        assert (lowered[expression], grid, block, shared) == (
            launch.kernel, launch.grid, launch.block, launch.shared,
        )  # fmt: skip
        assert (module.launches.shared.get(expression, 0) or shared) == shared
        assert len(arguments) == len(launch.arguments)
        for argument, planned in zip(arguments, launch.arguments, strict=True):
            if isinstance(planned, BufferArgument):
                assert argument is buffers[planned.buffer]
            else:
                assert raw(argument) == planned.raw
    for zero in wanted.plan.zeros:
        assert not np.asarray(buffers[zero]).any()
    for fill, value in wanted.plan.fills:
        assert np.all(np.asarray(buffers[fill]) == float(value))
    for buffer in what.interface.named("inout"):
        assert not any(buffers[buffer.name] is array for array in given)


def module_dtype(name: str, buffer: str) -> Any:
    return next(b.dtype for b in exportable(name).interface.buffers if b.name == buffer)


def test_large_shared_memory_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    module = exported("rounds", monkeypatch)
    module(*inputs("rounds", exportable("rounds").values))
    assert module.launches.shared == {"ns::smooth": 60000}


def test_an_output_starts_from_its_array(monkeypatch: pytest.MonkeyPatch) -> None:
    module = exported("started", monkeypatch)
    start = on_device(np.arange(5, dtype=np.int32))
    out = module(on_device(np.ones(5, np.int32)), start, low=3)
    assert out is not start
    assert np.array_equal(out, start)


@pytest.mark.parametrize("name", ALL)
def test_nvrtc_takes_the_source_with_the_toolkits_headers_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = exported(name, monkeypatch).launches.modules[0]
    folders = [
        f for f in include_folders(NvrtcCompiler().major) if f.name not in ("shims", "ahead")
    ]
    flags = ["--gpu-architecture=sm_90", *given["options"]]
    flags += [f"--include-path={folder}" for folder in folders]
    found = NvrtcCompiler()._run(given["code"], given["name_expressions"], flags)
    assert not isinstance(found, CompileFailure), found
    own = {n: low for n, low in found[2].items() if not n.endswith("_own::begin")}
    assert own == build(name).names


def test_standard_headers_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "#include <cstdint>\n#include <stdio.h>\n#include <limits>\n"
        "#pragma optiml launch k grid(1) block(1)\n"
        "__global__ void k(const float* x, float* out, int n) {\n"
        "    uint64_t i = 0; out[i] = std::numeric_limits<float>::max() + FLT_MAX + HUGE_VALF; }\n"
    )
    known = replace(exportable("saxpy"), program=parse_program(text))
    source = exported("saxpy", monkeypatch, program=known.program).launches.modules[0]["code"]
    flags = ["--gpu-architecture=sm_90", "-std=c++17", "-diag-suppress=161"]
    flags += [
        f"--include-path={f}"
        for f in include_folders(NvrtcCompiler().major)
        if f.name not in ("shims", "ahead")
    ]
    found = NvrtcCompiler()._run(source, ("k",), flags)
    assert not isinstance(found, CompileFailure), found


def test_a_tensor_comes_in_by_dlpack(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tensor:
        on_host = np.ones((40, 70), np.float32)
        __dlpack__ = __dlpack_device__ = None

    module = exported("transpose_naive", monkeypatch)
    assert module(Tensor()).shape == (70, 40)
    assert np.shares_memory(module.launches.calls[0][3][0], Tensor.on_host)


X = np.ones((40, 70), np.float32)


@pytest.mark.parametrize(
    ("arguments", "named", "error", "message"),
    [
        ([X], {}, TypeError, "numpy.ndarray.*cupy.asarray"),
        ([[1.0]], {}, TypeError, "a is <class .list.>: pass a CuPy array"),
        ([on_device(X.astype("f8"))], {}, TypeError, "a holds float64, the kernel wants float32"),
        ([X.view(fake_cupy.ndarray).T], {}, ValueError, "a is not contiguous"),
        ([on_device(X.ravel())], {}, ValueError, "a has 1 axes, not 2"),
        ([on_device(X)], {"rows": 2.5}, TypeError, "rows is 2.5, the kernel wants an integer"),
        ([on_device(X)], {"rows": 2**40}, ValueError, "axis 1 of out could be any of"),
        ([on_device(X)], {"cols": 2**31, "out": on_device(X)}, OverflowError, "int32 cannot hold"),
        ([on_device(X)], {"rows": 0, "out": on_device(X)}, ValueError, "grid.y is 0"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    arguments: list[Any],
    named: dict[str, Any],
    error: type[Exception],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = exported("transpose_naive", monkeypatch)
    with pytest.raises(error, match=message):
        module(*arguments, **named)
    assert module.launches.calls == []


def test_vectors_ask_for_their_alignment(monkeypatch: pytest.MonkeyPatch) -> None:
    module = exported("rounds", monkeypatch)
    whole = np.zeros(6 * 16 + 8, np.float32)
    start = (-whole.__array_interface__["data"][0] // 4) % 4
    aligned = whole[start : start + 96].reshape(6, 16).view(fake_cupy.ndarray)
    odd = whole[start + 1 : start + 97].reshape(6, 16).view(fake_cupy.ndarray)
    module(aligned, aligned)
    with pytest.raises(ValueError, match="b is read 4 elements at a time"):
        module(aligned, odd)


def test_sizes_that_do_not_follow_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    known = exportable("transpose_naive")
    square = {"shapes": {"a": (64, 64), "out": (64, 64)}}
    values = {**known.values, "rows": 64, "cols": 64}
    module = exported("transpose_naive", monkeypatch, values=values, **square)
    assert module(on_device(np.ones((64, 64), np.float32))).shape == (64, 64)
    other = on_device(np.ones((3, 5), np.float32))
    with pytest.raises(ValueError, match="pass rows"):
        module(other)
    out = on_device(np.ones((5, 3), np.float32))
    assert module(other, 3, 5, out=out) is out


@pytest.mark.parametrize("name", ALL)
def test_only_cupy_and_numpy_are_imported(name: str) -> None:
    text = CupyModuleExport().render(exportable(name))
    tree = ast.parse(text)
    found = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    more = {"ml_dtypes"} if name == "headers" else set()
    assert {"cupy", "numpy", *more} <= found <= {"cupy", "numpy", "operator", "math", *more}
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))


@pytest.mark.parametrize("body", ['"""', "'''", "\"\"\"'''", "\\", '"'])
def test_any_text_survives_in_the_source(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = parse_program(f"{exportable('saxpy').program.text}// {body} \\n é\n")
    module = exported("saxpy", monkeypatch, program=program)
    assert module.launches.modules[0]["code"].strip() == program.text.strip()


def test_the_module_of_a_file_can_be_imported(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(CupyModuleExport().render(exportable("histogram")), encoding="utf-8")
    compile(path.read_text(encoding="utf-8"), str(path), "exec")


def test_tables_of_the_caller_are_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    module = exported("tables", monkeypatch)
    x, ones = on_device(np.ones(300, np.float32)), np.ones(5, np.float32)
    module(x, coef=on_device(ones), bias=7)
    assert module.launches.variables["&cfg::coef"].startswith(ones.tobytes())
    assert module.launches.variables["&bias"].startswith(b"\7\0\0\0")
    module(x, coef=[1, 2, 3, 4, 5])
    five = np.arange(1, 6, dtype=np.float32).tobytes()
    assert module.launches.variables["&cfg::coef"].startswith(five)
    assert module.launches.variables["&bias"].startswith(b"\3\0\0\0")


@pytest.mark.parametrize(
    ("named", "error", "message"),
    [
        ({"coef": np.ones(5)}, TypeError, "coef holds float64, the kernel wants float32"),
        ({"coef": [1, 2]}, ValueError, r"coef has the shape \(2,\); the variable's is \(5,\)"),
        ({"bias": 2.5}, OverflowError, "bias is 2.5, which int32 cannot hold"),
    ],
)
def test_tables_that_do_not_fit_are_refused(
    named: dict[str, Any], error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = exported("tables", monkeypatch)
    with pytest.raises(error, match=message):
        module(on_device(np.ones(300, np.float32)), **named)
    assert module.launches.calls == []


def test_a_large_table_has_to_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    known = exportable("tables")
    large = np.ones(65, np.float32)
    changes = {
        "shapes": {**known.shapes, "coef": (65,)},
        "values": {**known.values, "coef": large},
    }
    module = exported("tables", monkeypatch, **changes)
    with pytest.raises(TypeError, match="required keyword-only argument: 'coef'"):
        module(on_device(np.ones(300, np.float32)))
    module(on_device(np.ones(300, np.float32)), taps=5, coef=large)
    assert "tables(x, coef=coef)" in module.text


def test_a_struct_table_is_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    module = exported("headers", monkeypatch)
    x = on_device(exportable("headers").values["x"])
    affine = exportable("headers").values["affine"]
    for record in (affine, affine[0]):
        module(x, affine=record)
        assert module.launches.variables["&affine"].startswith(affine.tobytes())
    with pytest.raises(TypeError, match="affine holds"):
        module(x, affine=np.zeros(1, [("scale", "f4"), ("shift", "f4")]))


def test_bfloat16_asks_for_a_cupy_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = CupyModuleExport().render(exportable("headers"))
    old = fake_cupy.module(fake_cupy.Launches())
    old.__version__ = "13.6.0"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", old)
    with pytest.raises(ImportError, match="bfloat16 needs CuPy 14"):
        exec(compile(text, "exported.py", "exec"), {})


def test_arrays_of_structs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    known = exportable("saxpy")
    pairs = np.dtype([("a", "f4"), ("b", "f4")])
    x, *others = known.interface.buffers
    interface = replace(known.interface, buffers=(replace(x, dtype=pairs), *others))
    with pytest.raises(UsageError, match=r"an array of struct \{a: float32, b: float32\}"):
        exported("saxpy", monkeypatch, interface=interface)


def test_a_static_of_a_function_cannot_be_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    text = exportable("saxpy").program.text.replace(
        "if (i < n)", "static __device__ int seen; seen++; if (i < n)"
    )
    assert "seen" in text
    with pytest.raises(UsageError, match="`seen` keeps its value"):
        exported("saxpy", monkeypatch, program=parse_program(text))
