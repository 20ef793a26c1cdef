"""A launcher compiled by g++ against a runtime that writes down what it is asked to do."""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optiml_magic.model.launch import BufferArgument, LaunchPlan

HERE = Path(__file__).parent
_CTYPES = {"int": ctypes.c_int, "long long": ctypes.c_longlong, "float": ctypes.c_float,
           "unsigned char": ctypes.c_ubyte}  # fmt: skip
STREAM = 0x5757


@dataclass(frozen=True)
class Run:
    """The status that the launcher returned, and the log, a line split at blanks each."""

    status: int
    log: tuple[tuple[str, ...], ...]

    def of(self, word: str) -> list[tuple[str, ...]]:
        return [line[1:] for line in self.log if line[0] == word]


class Signature:
    """The launcher that a ``.cu`` text declares: ``parameters`` are pairs of type and name."""

    def __init__(self, text: str) -> None:
        found = re.search(r'extern "C" cudaError_t (\w+)\((.*)\) \{', text)
        assert found is not None
        self.name = found[1]
        parts = [re.fullmatch(r"(.*?)(\w+)", part.strip()) for part in found[2].split(",")]
        self.parameters = [(p[1].strip(), p[2]) for p in parts if p]

    def arguments(
        self,
        values: Mapping[str, Any],
        shapes: Mapping[str, tuple[int, ...]],
        *,
        addresses: Mapping[str, int],
        stream: int,
    ) -> list[Any]:
        """What ctypes passes, in order."""
        return [
            self._argument(kind, name, values, shapes, {**addresses, "stream": stream})
            for kind, name in self.parameters
        ]

    def _argument(
        self,
        kind: str,
        name: str,
        values: Mapping[str, Any],
        shapes: Mapping[str, tuple[int, ...]],
        addresses: Mapping[str, int],
    ) -> Any:
        if kind.endswith("*") or kind == "cudaStream_t":
            return ctypes.c_void_p(addresses[name])
        if name in values:
            value = values[name]
            return _CTYPES[kind](value.item() if hasattr(value, "item") else value)
        array, _, what = name.rpartition("_")
        shape = shapes[array]
        return _CTYPES[kind](int(np.prod(shape)) if what == "size" else shape[int(what[5:])])


class Launcher:
    """A launcher that can be called here."""

    def __init__(self, text: str, folder: Path) -> None:
        source, library = folder / "exported.cpp", folder / "exported.so"
        source.write_text(text)
        command = ["g++", "-std=c++17", "-shared", "-fPIC", "-w", f"-I{HERE}"]
        subprocess.run(
            [*command, "-include", "cuda_runtime.h", "-o", library, source],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        self._library = ctypes.CDLL(str(library))
        self._library.stub_read.restype = ctypes.c_char_p
        self.signature = Signature(text)

    def __call__(
        self,
        values: Mapping[str, Any],
        shapes: Mapping[str, tuple[int, ...]],
        *,
        sms: int = 132,
        fail_after: int = 1 << 30,
    ) -> Run:
        signature = self.signature
        addresses = {name: address(name) for _, name in signature.parameters}
        arguments = signature.arguments(values, shapes, addresses=addresses, stream=STREAM)
        self._library.stub_reset(sms, fail_after)
        status = getattr(self._library, signature.name)(*arguments)
        text = self._library.stub_read().decode()
        return Run(status, tuple(tuple(line.split()) for line in text.splitlines()))


def address(name: str) -> int:
    """Where a buffer pretends to lie."""
    return 0x1000_0000 + 0x1000 * sum(name.encode())


def check(run: Run, plan: LaunchPlan, sizes: Mapping[str, int]) -> None:
    """Whether a run did what the plan says; ``sizes`` are the bytes of the task's buffers."""
    assert run.status == 0
    stream = f"{STREAM:x}"
    mallocs = run.of("malloc")
    assert [int(m[1]) for m in mallocs] == [
        s.elements * np.dtype(s.dtype).itemsize for s in plan.scratch
    ]
    places = {s.name: int(m[0], 16) for s, m in zip(plan.scratch, mallocs, strict=True)}
    assert run.of("free") == [(m[0], stream) for m in mallocs]
    memsets = {int(m[0], 16): int(m[2]) for m in run.of("memset")}
    scratch = {s.name: s.elements * np.dtype(s.dtype).itemsize for s in plan.scratch}
    for name in plan.zeros:
        assert memsets[places.get(name, address(name))] == {**sizes, **scratch}[name]
    symbols = [(sizes[n], f"{address(n):x}", sizes[n], 0, 4, stream) for _, n in plan.variables]
    assert run.of("symbol") == [tuple(map(str, symbol)) for symbol in symbols]
    aside = ("_host4fill", "_host5begin")
    own = [line for line in run.of("launch") if not any(name in line[0] for name in aside)]
    assert len(own) == len(plan.launches)
    for line, wanted in zip(own, plan.launches, strict=True):
        name, *numbers = line
        assert name == wanted.kernel
        assert tuple(map(int, numbers[:7])) == (*wanted.grid, *wanted.block, wanted.shared)
        assert numbers[7] == stream
        passed = numbers[8].rstrip(",").split(",")
        assert len(passed) == len(wanted.arguments)
        for raw, argument in zip(passed, wanted.arguments, strict=True):
            expected = (
                struct.pack("<Q", places.get(argument.buffer, address(argument.buffer))).hex()
                if isinstance(argument, BufferArgument)
                else argument.raw
            )
            assert raw[: len(expected)] == expected
    large = {launch.kernel: launch.shared for launch in plan.launches if launch.shared > 48 << 10}
    assert {name: int(value) for name, value in run.of("attribute")} == large
