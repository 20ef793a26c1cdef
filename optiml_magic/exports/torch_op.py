"""A torch custom op: the CuPy module with its launches on torch's stream, and a fake function.

The fake function makes the outputs of the real one as well, so that their shapes cannot differ.
All memory is torch's, which a CUDA graph of torch's keeps alive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from optiml_magic.binding import BoundBuffer
from optiml_magic.errors import UsageError
from optiml_magic.exports.base import Exportable
from optiml_magic.exports.cupy_module import Module
from optiml_magic.exports.python_literals import is_integer
from optiml_magic.model.dtypes import BFLOAT16, DType, title

_OP = '''\
@torch.library.custom_op("optiml::{op}", mutates_args=(), device_types="cuda"{tags})
def {op}({parameters}) -> {returns}:
    """{summary}"""
    {written} = {made}({shaping})
    with _as_torch({first}.device):
        {launch}({passed})
    return {written}


@{op}.register_fake
def {made}({fake_parameters}):
    """What it gives back, before anything is in it."""
{outputs}
    return {written}
'''
_AS_TORCH = '''
@contextlib.contextmanager
def _as_torch(device):
    """CuPy on a device of torch's, on its current stream and with its memory."""
    with torch.cuda.device(device), cp.cuda.Device(device.index):
        stream = torch.cuda.current_stream()
        if hasattr(cp.cuda.Stream, "from_external") and hasattr(stream, "__cuda_stream__"):
            stream = cp.cuda.Stream.from_external(stream)
        else:
            stream = cp.cuda.ExternalStream(stream.cuda_stream)
        with stream, cp.cuda.using_allocator(_memory):
            yield


def _memory(size):
    """For what lives no longer than the launches: scratch."""
    held = torch.empty(size, dtype=torch.uint8, device="cuda")
    memory = cp.cuda.UnownedMemory(held.data_ptr(), size, held, held.device.index)
    return cp.cuda.MemoryPointer(memory, 0)


def _plain(tensor):
    """What CuPy can take: contiguous, and without a gradient to follow."""
    return tensor.detach().contiguous()

'''
_GIVEN = '''
def _given(**tables):
    """Those that were given, where they lie."""
    known = {name: _plain(table) for name, table in tables.items() if table is not None}
    return {n: cp.from_dlpack(t) if t.is_cuda else t.numpy() for n, t in known.items()}

'''


class TorchOpExport:
    """Meant to be imported: that registers the op."""

    suffix = "_torch.py"
    form = "a torch op"

    def render(self, what: Exportable) -> str:
        return _Operator(what).text()


class _Operator(Module):
    taken = Module.taken | {
        "torch",
        "Optional",
        "contextlib",
        "_as_torch",
        "_plain",
        "_memory",
        "_given",
    }
    standard = ("import contextlib", "from typing import Optional")
    imports = ("import torch",)

    def __init__(self, what: Exportable) -> None:
        super().__init__(what)
        self._op = self._name
        self._name = self._fresh(f"_launch_{self._op}")
        self._made = self._fresh(f"_outputs_of_{self._op}")
        self._written = what.interface.named("output", "inout")
        self._tensors = [self._names[b.name] for b in self._inputs]
        self._tensors += [self._names[start] for start in self._starts]
        if not self._tensors:
            raise UsageError("a torch op needs a tensor among its inputs", fix="export a .py file")

    def _usage(self, results: str, arguments: str) -> Iterator[str]:
        yield f"    {results} = torch.ops.optiml.{self._op}({arguments})"
        yield ""
        yield f"Importing this registers the op; {self._op}(...) is the same. Tensors lie on a GPU;"
        yield "inputs stay as they are. It runs on torch's current stream, and under torch.compile."

    def _front(self) -> Iterator[str]:
        """The op and its fake function; the launches come next."""
        written = [self._names[b.name] for b in self._written]
        tensors = ", ".join(["torch.Tensor"] * len(written))
        of_arrays, self._spell = self._spell, replace(self._spell, elements="numel()")
        outputs = [f"    {line}" for line in self._outputs_made()]
        self._spell = of_arrays
        yield _OP.format(
            op=self._op,
            # A table that lies in host memory is copied from there, which a CUDA graph cannot do.
            tags=", tags=(torch.Tag.cudagraph_unsafe,)" if self._tables else "",
            parameters=", ".join(self._signature()),
            fake_parameters=", ".join(
                re.sub(": [^=]+(= )?", r"\1", p).replace("= ", "=") for p in self._signature()
            ),
            returns=f"tuple[{tensors}]" if len(written) > 1 else tensors,
            summary=self._summary(),
            written=", ".join(written),
            first=written[0],
            made=self._made,
            shaping=", ".join([*self._tensors, *(self._names[n] for n in self._what.scalars)]),
            launch=self._name,
            passed=", ".join(self._passed()),
            outputs="\n".join(outputs),
        )
        yield from (_AS_TORCH, *([_GIVEN] if self._tables else []))

    def _signature(self) -> Iterator[str]:
        """The parameters with the types that torch makes its schema of."""
        yield from (f"{tensor}: torch.Tensor" for tensor in self._tensors)
        for name in self._what.scalars:
            kind, default = self._scalar_kind(name)
            yield f"{self._names[name]}: {kind} = {default}"
        for bound in self._tables:  # no keywords alone: torch takes no tensors by these
            _torch_dtype(bound.dtype)
            yield f"{self._names[bound.name]}: Optional[torch.Tensor] = None"

    def _scalar_kind(self, name: str) -> tuple[str, str]:
        """A scalar's type and default in the op's schema."""
        value, default = self._what.values.get(name), self._default(name)
        if isinstance(value, (np.void, np.ndarray, complex, np.complexfloating)):
            raise UsageError(f"a torch op cannot take `{name}`", fix="export a .cu file")
        kind = "int" if value is None or is_integer(value) else "float"
        if default == "None" or "(" in default:  # a schema knows neither infinity nor NaN
            return f"Optional[{kind}]", "None"
        return kind, default

    def _passed(self) -> Iterator[str]:
        """What the launches are given."""
        copies = {self._names[b.name] for b in self._written}
        for tensor in self._tensors:
            yield tensor if tensor in copies else f"_plain({tensor})"
        for name in self._what.scalars:
            variable, (_, default) = self._names[name], self._scalar_kind(name)
            own = self._default(name)
            yield variable if own == default else f"{own} if {variable} is None else {variable}"
        yield from (f"{n}={n}" for b in self._outputs if (n := self._names[b.name]))
        if self._tables:
            names = [self._names[b.name] for b in self._tables]
            yield f"**_given({', '.join(f'{name}={name}' for name in names)})"

    def _outputs_made(self) -> Iterator[str]:
        what = self._what
        for name in what.scalars:
            yield from self._follows(name)
        for buffer in self._written:
            variable, start = self._names[buffer.name], what.starts.get(buffer.name)
            if buffer.role == "inout":
                made = f"{variable}.clone(memory_format=torch.contiguous_format)"
            elif start is not None:
                form = "memory_format=torch.contiguous_format"
                made = f"torch.empty_like({self._names[start]}, {form})"
            else:
                lines, shape = self._shape(buffer)
                yield from lines
                dtype = _torch_dtype(buffer.dtype)
                made = f"torch.empty({shape}, dtype={dtype}, device={self._tensors[0]}.device)"
            yield f"{variable} = {made}"

    def _parameters(self) -> Iterator[str]:
        yield from self._tensors
        yield from (self._names[n] for n in self._what.scalars)
        if self._outputs or self._tables:
            yield "*"
            yield from (self._names[b.name] for b in self._outputs)
            yield from (self._table_parameter(b) for b in self._tables)

    def _checked(self, buffer: BoundBuffer, name: str, *, copied: bool) -> Iterator[str]:
        """In-out tensors are copies already."""
        del copied
        yield from super()._checked(buffer, name, copied=False)

    def _output(self, buffer: BoundBuffer) -> Iterator[str]:
        yield from self._checked(buffer, buffer.name, copied=False)


def _torch_dtype(dtype: DType) -> str:
    """As torch calls it; UsageError where it has none such."""
    known = np.dtype(dtype)
    if known == BFLOAT16:
        return "torch.bfloat16"
    if known.kind not in "biufc":
        raise UsageError(f"torch has no tensors of {title(known)}", fix="export a .cu file")
    return f"torch.{known.name}"
