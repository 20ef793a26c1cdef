"""A ``.cu`` file: the program and a launcher in C that does all that its directives say."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import numpy as np

from optiml_magic.errors import UsageError
from optiml_magic.exports.base import Exportable, Names
from optiml_magic.exports.c_expressions import CExpressions
from optiml_magic.exports.c_types import c_type
from optiml_magic.exports.cuda_launches import CudaLaunches
from optiml_magic.exports.device_text import for_nvcc
from optiml_magic.exports.launcher import HELPERS, LAUNCH
from optiml_magic.exports.own_variables import namespaces, setting_back
from optiml_magic.model.dtypes import DType
from optiml_magic.source.operators import SM_COUNT

_BITS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}


class CudaFileExport:
    """CUDA C++ for nvcc or clang, and for NVRTC, which sees the device part alone."""

    suffix = ".cu"
    form = "a CUDA file with a launcher in C"

    def render(self, what: Exportable) -> str:
        launcher = _Launcher(what)
        host = launcher.text()
        device = for_nvcc(what.device.text)
        flags = [f"-std={what.options.std}", "-diag-suppress=161"]
        flags += ["--use_fast_math"] if what.options.fast_math else []
        flags += ["-expt-relaxed-constexpr"] if re.search(r"\bstd::", device) else []
        flags += [word for word in what.arguments if word.strip("-") != "expt-relaxed-constexpr"]
        head = [
            *what.preface(),
            f"Compile: nvcc {shlex.join(flags)} -c {what.identifier}.cu",
            "(161 is the compiler's warning about the #pragma optiml lines; they change nothing.)",
            f"Call: {launcher.prototype()};",
        ]
        comment = "".join(f"// {line.rstrip(chr(92))}\n" for line in head)
        return f"{comment}\n{device.rstrip()}\n\n{host}"


class _Launcher:
    """The host part: names that collide with nothing, then the function from top to bottom."""

    def __init__(self, what: Exportable) -> None:
        self._what = what
        tuned = what.fixed
        given = [b.name for b in what.interface.buffers] + list(what.scalars)
        scratch = [d.name for d in what.program.scratch]
        names = Names({*what.words, *tuned, *given, *scratch, *what.starts.values()})
        self._fresh = names.fresh
        self._name = names.fresh(f"{what.identifier}_launch")
        self._space = names.fresh(f"{what.identifier}_host")
        self._functions = {word: names.fresh(word) for word in (*HELPERS, "launch")}
        self._stream, self._status, self._invalid, self._sms = map(
            names.fresh, ("stream", "status", "invalid", SM_COUNT)
        )
        self._begin = names.fresh("begin")
        self._types = {b.name: self._buffer_type(b.name, b.dtype) for b in what.interface.buffers}
        self._types |= {d.name: c_type(d.dtype) for d in what.program.scratch}
        self._const = {b.name for b in what.interface.named("input")} | set(self._extra_starts())
        for buffer, start in what.starts.items():
            self._types.setdefault(start, self._types[buffer])
        self._scalar_types = {name: self._scalar_type(name) for name in what.scalars}
        self._wide = {n: names.fresh(f"{n}64") for n in what.scalars if n in what.sized}
        self._extents = dict(self._read_extents())
        self._spell = CExpressions(
            {**self._wide, SM_COUNT: self._sms},
            tuned,
            self._extents,
            self._functions,
            self._invalid,
            what.words & what.program.values.keys(),
        )
        types = self._types, self._const, self._scalar_types
        calls = self._stream, self._status
        self._launches = CudaLaunches(what, self._spell, self._fresh, *types, *calls)

    def prototype(self) -> str:
        """The launcher's signature: buffers, scalars, extents, the stream."""
        what = self._what
        parts = [self._pointer(b.name) for b in what.interface.buffers]
        parts += [self._pointer(start) for start in self._extra_starts()]
        parts += [f"{self._scalar_types[name]} {name}" for name in what.scalars]
        parts += [f"long long {name}" for name in self._extents.values()]
        return f"cudaError_t {self._name}({', '.join([*parts, f'cudaStream_t {self._stream}'])})"

    def text(self) -> str:
        """The whole host part."""
        body = "\n".join(f"    {line}" if line else "" for line in self._body())
        helpers = [
            self._named(source) for word, source in HELPERS.items() if word in self._spell.used
        ]
        return "\n".join(
            [
                "#ifndef __CUDACC_RTC__  // what follows is for the host; NVRTC skips it",
                "#include <cuda_runtime.h>",
                *(["#include <utility>"] if any(g.repeat for g in self._what.rounds) else []),
                "",
                f"namespace {self._space} {{",
                "",
                *self._usings(),
                *helpers,
                *self._setting_back(),
                self._named(LAUNCH),
                "// Everything that one run of the program does, in order, on one stream. Returns",
                "// cudaErrorInvalidValue, with nothing launched, for sizes that it does not take.",
                f'extern "C" {self.prototype()} {{',
                body,
                "}",
                "",
                f"}}  // namespace {self._space}",
                "#endif",
                "",
            ]
        )

    def _usings(self) -> Iterator[str]:
        """For the names of types and constants that are used here as they were there."""
        what = self._what
        names = [v.name for v in what.own if v.initialised]
        names += [step.kernel.name for step in what.steps if what.interface.structs]
        names += [v.name for v, _ in what.tables if v.dtype is None]
        found = namespaces(names)
        yield from (f"using namespace ::{name};" for name in found)
        if found:
            yield ""

    def _setting_back(self) -> Iterator[str]:
        if self._what.own:
            yield "".join(setting_back(self._what.own, self._begin, self._fresh))

    def _body(self) -> Iterator[str]:
        what, invalid, status = self._what, self._invalid, self._status
        if self._wide:
            yield "// Sizes are computed in 64 bits."
            wide = ", ".join(f"{wide} = (long long){name}" for name, wide in self._wide.items())
            yield f"const long long {wide};"
        yield f"bool {invalid} = false;"
        yield f"cudaError_t {status} = cudaSuccess;"
        if any(SM_COUNT in e.names for e in what.expressions):
            yield from self._multiprocessors()
        for extent in self._extents.values():
            yield f"if ({extent} < 0) {invalid} = true;"
        for requirement in what.program.requires:
            yield f"if (!({self._spell.text(requirement.condition)})) {invalid} = true;"
        counts = {}
        for directive in what.program.scratch:
            counts[directive.name] = name = self._fresh(f"{directive.name}_size")
            yield f"const long long {name} = {self._spell.text(directive.count)};"
            yield f"if ({name} < 1) {invalid} = true;"
        rounds = []
        for group in what.rounds:
            rounds.append((yield from self._launches.planned(group)))  # noqa: PERF401  # it yields
        yield f"if ({invalid}) return cudaErrorInvalidValue;"
        yield ""
        for name, count in counts.items():
            kind = self._types[name]
            yield f"{kind}* {name} = nullptr;"
            size = f"{count} * sizeof({kind})"
            yield self._launches.then(f"cudaMallocAsync((void**)&{name}, {size}, {self._stream})")
        yield from self._set_before(counts)
        for group, found in zip(what.rounds, rounds, strict=True):
            yield from self._launches.launched(group, found)
        freed = self._fresh("freed")
        for name in counts:
            yield f"if ({name} != nullptr) {{"
            yield f"    const cudaError_t {freed} = cudaFreeAsync({name}, {self._stream});"
            yield f"    if ({status} == cudaSuccess) {status} = {freed};"
            yield "}"
        yield f"return {status};"

    def _multiprocessors(self) -> Iterator[str]:
        device = self._fresh("device")
        attribute = (
            f"cudaDeviceGetAttribute(&{self._sms}, cudaDevAttrMultiProcessorCount, {device})"
        )
        yield f"int {device} = 0, {self._sms} = 0;"
        yield self._launches.then(f"cudaGetDevice(&{device})")
        yield self._launches.then(attribute)
        yield f"if ({self._status} != cudaSuccess) return {self._status};"

    def _set_before(self, counts: dict[str, str]) -> Iterator[str]:
        """What variables and buffers hold before the launches."""
        stream = self._stream
        if self._what.own:
            yield self._launches.then(
                f"{self._functions['launch']}({self._begin}, dim3(1), dim3(256), 0, {stream})"
            )
        for variable, bound in self._what.tables:
            symbol = f"::{variable.name}"
            copy = f"{symbol}, {bound.name}, sizeof({symbol}), 0, cudaMemcpyDefault, {stream}"
            yield self._launches.then(f"cudaMemcpyToSymbolAsync({copy})")
        for directive in self._what.program.inits:
            name, kind = directive.buffer, self._types[directive.buffer]
            count = counts.get(name) or self._extents[name, None]
            if isinstance(directive.value, str):
                sizes = f"{count} * sizeof({kind}), cudaMemcpyDeviceToDevice"
                yield self._launches.then(
                    f"cudaMemcpyAsync({name}, {directive.value}, {sizes}, {stream})"
                )
            else:
                yield from self._fill(name, count, directive.value)
        for zero in self._what.program.zeros:
            name = zero.buffer
            count = counts.get(name) or self._extents[name, None]
            yield self._launches.then(
                f"cudaMemsetAsync({name}, 0, {count} * sizeof({self._types[name]}), {stream})"
            )

    def _fill(self, name: str, count: str, value: float) -> Iterator[str]:
        dtypes = {b.name: b.dtype for b in self._what.interface.buffers}
        dtypes |= {d.name: np.dtype(d.dtype) for d in self._what.program.scratch}
        element = self._what.filled(dtypes[name], value)
        if element.itemsize not in _BITS:
            raise UsageError(
                f"init({name}) = {value} on {element.dtype} cannot be exported to a .cu file",
                fix="export a .py module",
            )
        bits = int.from_bytes(element.tobytes(), "little")
        if bits == 0:
            size = f"{count} * sizeof({self._types[name]})"
            yield self._launches.then(f"cudaMemsetAsync({name}, 0, {size}, {self._stream})")
            return
        self._spell.used.add("fill")
        kind = _BITS[element.itemsize]
        call = self._functions["launch"]
        arguments = f"({kind}*){name}, {count}, ({kind}){bits:#x}ULL /* {value} */"
        fill = f"{self._functions['fill']}<{kind}>"
        yield f"if ({count} > 0)"
        yield "    " + self._launches.then(
            f"{call}({fill}, dim3(1024), dim3(256), 0, {self._stream}, {arguments})"
        )

    def _pointer(self, name: str) -> str:
        return f"{'const ' if name in self._const else ''}{self._types[name]}* {name}"

    def _extra_starts(self) -> list[str]:
        """The arrays that outputs start from, where they are no buffers of the task anyway."""
        known = {b.name for b in self._what.interface.buffers}
        return [s for s in dict.fromkeys(self._what.starts.values()) if s not in known]

    def _buffer_type(self, name: str, dtype: DType) -> str:
        parameter = self._what.parameter(name)
        structs = (v.ctype for v, bound in self._what.tables if bound.name == name and not v.dtype)
        if parameter is None and (struct := next(structs, None)):
            return struct
        if parameter is None or parameter.lanes > 1:
            return c_type(dtype)
        return parameter.ctype

    def _scalar_type(self, name: str) -> str:
        parameter = self._what.parameter(name)
        if parameter is not None:
            return parameter.ctype
        value = self._what.values.get(name, 0)
        if isinstance(value, (complex, np.complexfloating, np.void)):
            raise UsageError(
                f"`{name}` is a {type(value).__name__} that no kernel takes", fix="remove it"
            )
        return "double" if isinstance(value, (float, np.floating)) else "long long"

    def _read_extents(self) -> Iterator[tuple[tuple[str, int | None], str]]:
        """The shapes and sizes that are read, each a parameter: the C side has pointers alone."""
        what = self._what
        wanted = dict.fromkeys(what.extents)
        own = {b.name for b in what.interface.buffers}
        set_before = [d.buffer for d in what.program.zeros] + [d.buffer for d in what.program.inits]
        wanted |= {(name, None): None for name in set_before if name in own}
        for array, place in wanted:
            suffix = "size" if place is None else f"shape{place}"
            yield (array, place), self._fresh(f"{array}_{suffix}")

    def _named(self, source: str) -> str:
        """A function of the launcher under its name here."""
        for word, name in self._functions.items():
            source = re.sub(rf"\b{word}\b(?=[(<])", name, source)
        return source
