"""LLVM IR text to machine code, with nothing but llvmlite."""

from __future__ import annotations

import re
import threading
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from optiml_magic.emulator.library import closure
from optiml_magic.emulator.parser import split

_LOCK = threading.Lock()  # an LLVM context is not for several threads at once
_CALL = re.compile(r"call ([^@]*?) ?@((?:llvm\.)?[\w.]+)\((.*)\)")
_ARGUMENT = re.compile(r"<\d+ x \w+>|\w+")


class Native:
    """Compiled functions by name; the code lives as long as this object."""

    def __init__(self, text: str, worker: str) -> None:
        with _LOCK:
            machine = _machine()
            module = llvm.parse_assembly(complete(text, worker), _context())
            module.triple = machine.triple
            module.data_layout = str(machine.target_data)
            _optimise(module, machine)
            self._engine = llvm.create_mcjit_compiler(module, machine)
            self._engine.finalize_object()
        self.worker = self.address(worker)

    def address(self, function: str) -> int:
        return int(self._engine.get_function_address(function))


def complete(text: str, worker: str) -> str:
    """The kernels' text with the library functions that it uses, and all declarations."""
    whole = "\n".join([text, *closure(f"{text}\n@{worker}(")])
    declared: dict[str, str] = {}
    for result, name, arguments in _CALL.findall(whole):
        if not name.startswith("om_"):
            types = ", ".join(_ARGUMENT.match(a)[0] for a in split(arguments))  # type: ignore[index]
            declared[name] = f"declare {result} @{name}({types})"
    return "\n".join([*declared.values(), whole])


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


def _machine() -> Any:
    """A new one each time: the engine takes it over and ends its life."""
    _initialise()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=1,
        codemodel="jitdefault",
        jit=True,
    )


def _optimise(module: Any, machine: Any) -> None:
    """O1: more costs time at each kernel and gains nothing on code that is vectors already."""
    tuning = llvm.create_pipeline_tuning_options(1)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
