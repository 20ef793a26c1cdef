"""An exported op: its fake function gives the shapes of the plan, the real one launches the plan."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optiml_magic.errors import UsageError
from optiml_magic.exports import Exportable
from optiml_magic.exports.torch_op import TorchOpExport
from optiml_magic.model.launch import BufferArgument
from optiml_magic.source.program import parse_program
from tests.unit.exports import fake_cupy, fake_torch
from tests.unit.exports.programs import ALL, SIZES, drawn, exportable

OPS = [name for name in ALL if name != "headers"]  # structs are none of torch's tensors
MORE = {"rounds": {"steps": 3}, "dispatched": {"steps": 3}, "started": {"low": 255}}


class Exported:
    """A module loaded beside a ``cupy`` that writes down, and ``torch``, a fake one or the real."""

    def __init__(self, what: Exportable, torch: Any, patch: pytest.MonkeyPatch, **changed: str):
        self.launches = fake_cupy.Launches()
        self.text = TorchOpExport().render(what)
        cupy = fake_cupy.module(self.launches)
        for before, after in changed.items():
            assert before in self.text
            self.text = self.text.replace(before, after)
        with patch.context() as patched:
            patched.setitem(sys.modules, "cupy", cupy)
            patched.setitem(sys.modules, "torch", torch)
            self.names: dict[str, Any] = {"__name__": "exported"}
            exec(compile(self.text, "exported.py", "exec"), self.names)  # the module under test
        self.names["_as_torch"] = lambda _: contextlib.nullcontext()


def given(name: str, values: Any) -> list[Any]:
    what = exportable(name)
    names = [b.name for b in what.arrays if b.role != "output"] + list(what.starts.values())
    return [np.ascontiguousarray(values[one]) for one in names]


@pytest.mark.parametrize("name", OPS)
def test_real_and_fake_give_the_outputs_of_the_plan(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered: dict[str, Any] = {}
    what = exportable(name)
    module = Exported(what, fake_torch.module(registered), monkeypatch)
    op = module.names[what.identifier]
    (keywords,) = registered.values()
    assert registered.keys() == {f"optiml::{what.identifier}"}
    assert keywords["device_types"] == "cuda"
    assert keywords["mutates_args"] == ()
    assert ("tags" in keywords) == (name == "tables")
    other = {size: value + 4 for size, value in SIZES[name].items() if size != "steps"}
    for sizes in ({}, other if name != "rounds" else {"cols": 32}):
        wanted = drawn(name, **sizes)
        tensors = [fake_torch.Tensor(array) for array in given(name, wanted.values)]
        before = [tensor.on_host.copy() for tensor in tensors]
        assert op.fake is not None
        for made in (op.fake, op.function):
            module.launches.calls.clear()
            outputs = made(*tensors, **MORE.get(name, {}))
            several = outputs if isinstance(outputs, tuple) else (outputs,)
            written = what.interface.named("output", "inout")
            for buffer, found in zip(written, several, strict=True):
                assert (found.shape, found.dtype) == (wanted.shapes[buffer.name], buffer.dtype)
        launched = [c for c in module.launches.calls if not c[0].endswith("_own::begin")]
        for call, launch in zip(launched, wanted.plan.launches, strict=True):
            assert call[1:3] == (launch.grid, launch.block)
            places = {b.name: found for b, found in zip(written, several, strict=True)}
            for argument, planned in zip(call[3], launch.arguments, strict=True):
                if isinstance(planned, BufferArgument) and planned.buffer in places:
                    assert np.shares_memory(argument, places[planned.buffer].on_host)
        for tensor, same in zip(tensors, before, strict=True):
            assert not any(np.shares_memory(tensor.on_host, found.on_host) for found in several)
            assert np.array_equal(tensor.on_host, same)


def test_tables_come_from_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Exported(exportable("tables"), fake_torch.module({}), monkeypatch)
    op = module.names["tables"].function
    x = fake_torch.Tensor(np.ones(9, np.float32))
    op(x)
    own = bytes(module.launches.variables["&cfg::coef"])
    op(x, coef=fake_torch.Tensor(np.arange(5, dtype=np.float32)))
    mine = bytes(module.launches.variables["&cfg::coef"])
    assert np.frombuffer(own, np.float32, 5).tolist()[:4] == [1, 2, 4, 8]
    assert np.frombuffer(mine, np.float32, 5).tolist() == [0, 1, 2, 3, 4]


def test_a_default_that_a_schema_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {**exportable("saxpy").values, "alpha": np.float32("inf")}
    what = replace(exportable("saxpy"), values=values)
    module = Exported(what, fake_torch.module({}), monkeypatch)
    x = fake_torch.Tensor(np.ones(9, np.float32))
    module.names["saxpy"].function(x, x)
    module.names["saxpy"].function(x, x, 2.5)
    passed = [[a for a in call[3] if isinstance(a, np.float32)] for call in module.launches.calls]
    assert passed == [[np.float32("inf")], [np.float32(2.5)]]


def test_what_torch_cannot_hold_is_refused() -> None:
    with pytest.raises(UsageError, match=r"torch has no tensors of struct|cannot take `affine`"):
        TorchOpExport().render(exportable("headers"))
    text = (
        "#pragma optiml launch ramp grid(cdiv(n, 64)) block(64)\n"
        "__global__ void ramp(float* out, int n) { int i = blockIdx.x * 64 + threadIdx.x; "
        "if (i < n) out[i] = i; }\n"
    )
    known = exportable("saxpy")
    outputs = tuple(b for b in known.interface.buffers if b.role == "output")
    what = replace(
        known, program=parse_program(text), interface=replace(known.interface, buffers=outputs)
    )
    with pytest.raises(UsageError, match="needs a tensor among its inputs"):
        TorchOpExport().render(what)


@pytest.mark.parametrize("name", OPS)
def test_torch_takes_the_op_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real torch on the CPU, and kernels that fill their outputs with one number."""
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")
    from torch._subclasses.fake_tensor import FakeTensorMode

    what = exportable(name)
    flags = {'device_types="cuda"': 'device_types="cpu"'}
    module = Exported(what, torch, monkeypatch, **flags)
    launch = module.names[f"_launch_{what.identifier}"]

    def launched(*arrays: Any, **named: Any) -> None:
        launch(*arrays, **named)
        for buffer in what.interface.named("output"):
            (out,) = (value for key, value in named.items() if key.rstrip("_") == buffer.name)
            out.fill_(7)

    module.names[f"_launch_{what.identifier}"] = launched
    op, more = getattr(torch.ops.optiml, what.identifier), MORE.get(name, {})
    tensors = [torch.from_numpy(array) for array in given(name, drawn(name).values)]
    done = torch.library.opcheck(op.default, tuple(tensors), more)
    assert set(done.values()) == {"SUCCESS"}
    torch.compiler.reset()
    whole = torch.compile(lambda *t: op(*t, **more), backend="aot_eager", fullgraph=True)
    with FakeTensorMode() as mode:
        faked = op(*(mode.from_tensor(tensor) for tensor in tensors), **more)
    several = zip(
        _several(whole(*tensors)), _several(op(*tensors, **more)), _several(faked), strict=True
    )
    for compiled, eager, fake in several:
        assert torch.equal(compiled, eager)
        assert (fake.shape, fake.dtype) == (eager.shape, eager.dtype)


def _several(outputs: Any) -> tuple[Any, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)
