"""LLVM IR text to machine code, with nothing but llvmlite."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from optiml_magic.emulator.library import parts
from optiml_magic.emulator.objects import ObjectCache, key_of
from optiml_magic.emulator.ternlog import is_suspect, without_avx512
from optiml_magic.ptx.parser import split

_LOCK = threading.Lock()  # an LLVM context is not for several threads at once
#: Effort of LLVM. The library is compiled once. Kernels hold their registers in memory, and what
#: they compute are vectors already: passes over them take several times as long and gain nothing.
_LIBRARY, _KERNELS = 1, 0
WORKERS = "om_worker", "om_worker_checked"  # which runs kernels; which looks for hazards as well
_CALL = re.compile(r"call ([^@]*?) ?@((?:llvm\.)?[\w.]+)\((.*)\)")
_ARGUMENT = re.compile(r"<\d+ x \w+>|\w+")


class Native:
    """Compiled functions by name; the code lives as long as this object.

    ``objects`` is a folder of object code made earlier, here or by another process.
    """

    def __init__(self, text: str, worker: str, objects: Path | None = None) -> None:
        own, *library = complete(text, worker)
        with _LOCK:
            machine = _machine()
            self._engine = llvm.create_mcjit_compiler(_module("", machine), machine)
            for code in _objects(own, library, ObjectCache(objects) if objects else None):
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self._engine.finalize_object()
        self.worker = self.address(worker)

    def address(self, function: str) -> int:
        return int(self._engine.get_function_address(function))


def make_library(objects: Path) -> None:
    """Have the object code in the folder that every kernel needs."""
    cache = ObjectCache(objects)
    for worker in WORKERS:
        for text in complete("", worker)[1:]:
            with _LOCK:
                _object(text, str, cache, _LIBRARY)


def _objects(own: str, library: Sequence[str], cache: ObjectCache | None) -> list[bytes]:
    """The object code of every part, all for the same features: they pass each other vectors."""

    def made(change: Callable[[str], str]) -> list[bytes]:
        keep = _KNOWN if cache is None else cache
        known = [_object(text, change, keep, _LIBRARY) for text in library]
        return [_object(own, change, cache, _KERNELS), *known]

    codes = made(str)
    return made(without_avx512) if any(map(is_suspect, codes)) else codes  # slower, and right


def _object(text: str, change: Callable[[str], str], kept: Kept | None, level: int) -> bytes:
    """Object code for this processor. The text decides, so no version of ours is in the key."""
    if kept is None:
        return _compiled(text, _machine(change, level), level)
    cpu, features = _processor()
    made_for = f"O{level}, ternlog, parts", llvm.get_process_triple(), cpu, change(features)
    key = key_of([text, *made_for, *_versions()])
    known = kept.get(key)
    if known is None:
        known = _compiled(text, _machine(change, level), level)
        kept.put(key, known)
    return known


class _Known:
    """The library's object code of this process, for who names no folder."""

    def __init__(self) -> None:
        self._codes: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        return self._codes.get(key)

    def put(self, key: str, content: bytes) -> None:
        self._codes[key] = content


_KNOWN = _Known()
Kept = ObjectCache | _Known


def _compiled(text: str, machine: Any, level: int) -> bytes:
    module = _module(text, machine)
    _optimise(module, machine, level)
    return bytes(machine.emit_object(module))


def _module(text: str, machine: Any) -> Any:
    module = llvm.parse_assembly(text, _context())
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    return module


def complete(text: str, worker: str) -> list[str]:
    """The kernels' text, and one for each function of the library that stands by itself.

    Each has the inlined functions that it uses, and all declarations. Every kernel shares those of
    the library, so the machine code of most of what a small kernel needs is there already.
    """
    own, *library = parts(text, (worker, "om_replay"))
    return [_declared(own), *map(_declared_once, library)]


def _declared(text: str) -> str:
    """With the declarations of what is neither defined nor declared in it."""
    declared: dict[str, str] = {}
    for result, name, arguments in _CALL.findall(text):
        if not name.startswith("om_"):
            types = ", ".join(_ARGUMENT.match(a)[0] for a in split(arguments))  # type: ignore[index]
            declared[name] = f"declare {result} @{name}({types})"
    return "\n".join([*declared.values(), text])


_declared_once = cache(_declared)


@cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _context() -> Any:
    """Our own, with opaque pointers: llvmlite 0.44 (LLVM 15) makes others unless told."""
    from llvmlite.binding import context

    before = getattr(context, "opaque_pointers_enabled", True)
    context.opaque_pointers_enabled = True
    try:
        return llvm.create_context()
    finally:
        context.opaque_pointers_enabled = before


def _machine(change: Callable[[str], str] = str, level: int = 1) -> Any:
    """A new one each time: the engine takes it over and ends its life."""
    _initialise()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    cpu, features = _processor()
    return target.create_target_machine(
        cpu=cpu, features=change(features), opt=level, codemodel="jitdefault", jit=True
    )


@cache
def _processor() -> tuple[str, str]:
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _versions() -> tuple[str, str]:
    return llvmlite.__version__, ".".join(map(str, llvm.llvm_version_info))


def _optimise(module: Any, machine: Any, level: int) -> None:
    tuning = llvm.create_pipeline_tuning_options(level)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
