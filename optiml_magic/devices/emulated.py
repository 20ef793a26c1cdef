"""The emulated GPU: PTX on the CPU, counted like ncu counts, for a named chip."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from optiml_magic import chips, emulator
from optiml_magic.devices.base import Array, Buffer, Case, Execution, Fault, Job
from optiml_magic.devices.compare import compare, poison_like, same_bits
from optiml_magic.devices.maps import digest
from optiml_magic.devices.unfinished import unfinished
from optiml_magic.errors import InternalError, MachineError
from optiml_magic.model.build import Build
from optiml_magic.model.counters import KernelCounters
from optiml_magic.model.hazard import Hazard
from optiml_magic.model.launch import BufferArgument, Launch
from optiml_magic.model.verdict import Outcome, OutputCheck, Writer
from optiml_magic.ptx.faults import UnsupportedPtx
from optiml_magic.settings import resolve

_OUTCOMES = {
    "out_of_bounds": Outcome.OUT_OF_BOUNDS,
    "misaligned": Outcome.MISALIGNED,
    "trap": Outcome.TRAP,
    "assertion": Outcome.TRAP,
    "barrier_divergence": Outcome.BARRIER,
    "deadlock": Outcome.BARRIER,
    "instruction_limit": Outcome.TIMEOUT,
    "invalid_launch": Outcome.LAUNCH_ERROR,
    "too_large": Outcome.UNSUPPORTED,
}


@dataclass
class _Resident:
    case: Case
    memory: emulator.Memory
    addresses: dict[str, int]


class EmulatedDevice:
    """A device of the protocol in ``base``; holds each case in an arena of its own.

    ``objects`` is the folder that keeps object code, else the one of the settings.
    """

    def __init__(self, chip: str, objects: Path | None = None) -> None:
        self._objects = objects or resolve().objects
        self.name = f"emulated:{chip}"
        self._l2_bytes = chips.chip(chip).l2_bytes
        self._resident: dict[str, _Resident] = {}
        self._modules: dict[tuple[str, tuple[int, ...], bool], emulator.Module] = {}

    def put(self, case: Case) -> None:
        memory = emulator.Memory()
        case = replace(case, buffers=tuple(map(_filled, case.buffers)))
        resident = _Resident(case, memory, {})
        for buffer in case.buffers:
            address = memory.allocate(
                buffer.array.nbytes, name=buffer.name, itemsize=buffer.array.itemsize
            )
            resident.addresses[buffer.name] = address
            if buffer.role == "input":
                memory.view(address)[:] = _raw(buffer.array)
        self._resident[case.key] = resident

    def execute(self, build: Build, job: Job) -> Execution:
        resident = self._resident.get(job.case)
        if resident is None:
            raise InternalError(f"case {job.case!r} is not on the device")
        try:
            module = self._load(build, checks=job.checks)
        except UnsupportedPtx as unsupported:
            return Execution(Fault(Outcome.UNSUPPORTED, unsupported.message, unsupported.line))
        poison = _prepare(resident, job)
        try:
            scratch = _scratch(resident, job)
        except MemoryError:
            return Execution(Fault(Outcome.LAUNCH_ERROR, "no memory for the scratch buffers"))
        variables = module.images()
        for symbol, buffer in job.plan.variables:
            variables[symbol][:] = resident.memory.view(resident.addresses[buffer])
        try:
            counters: list[KernelCounters] = []
            hazards: list[Hazard] = []
            printed = ""
            writer: Writer | None = None
            watched = _watched(resident, job)
            launches = job.plan.launches
            alone = unfinished(build.ptx, launches) if job.sample else (False,) * len(launches)
            for launch, nobody_asks in zip(launches, alone, strict=True):
                limits = self._limits(job, complete=not nobody_asks)
                run = _launch(module, variables, launch, resident, scratch, job, limits)
                hazards += run.hazards
                printed += run.printed
                if run.fault is not None:
                    _mended(resident)
                    return Execution(_fault(run.fault), hazards=tuple(hazards), printed=printed)
                counters += [run.counters] if run.counters else []
                writer = run.writer(*watched) or writer if watched and run.writer else writer
        finally:
            for address in scratch.values():
                resident.memory.free(address)
        whole = not any(c.sampled for c in counters)
        return Execution(
            checks=_checks(resident, poison) if whole else (),
            modified_inputs=_mended(resident),
            counters=tuple(counters),
            hazards=tuple(hazards),
            printed=printed,
            writer=writer,
            unwritten=tuple(
                (
                    b.name,
                    int(
                        np.count_nonzero(
                            same_bits(
                                _typed(resident, b.name, b.array), poison[b.name], b.array.dtype
                            )
                        )
                    ),
                )
                for b in resident.case.buffers
                if b.expected is None and b.name in poison
            ),
        )

    def read(self, case: str, buffer: str) -> Array:
        resident = self._resident[case]
        shape = next(b.array for b in resident.case.buffers if b.name == buffer)
        return _typed(resident, buffer, shape).copy()

    def close(self) -> None:
        self._resident.clear()
        self._modules.clear()

    def _limits(self, job: Job, *, complete: bool) -> emulator.Limits:
        sample = emulator.Sample(job.sample, complete=complete) if job.sample else None
        return emulator.Limits(
            job.instructions, os.cpu_count() or 1, job.order, sample, self._l2_bytes
        )

    def _load(self, build: Build, *, checks: bool) -> emulator.Module:
        """Translation and JIT dominate a run, so the last few modules stay loaded.

        By their PTX: builds of one digest may still have their code on other lines.
        """
        key = build.ptx, build.early_returns, checks
        module = self._modules.get(key)
        if module is None:
            module = emulator.load(
                build.ptx,
                early_returns=build.early_returns,
                checks=checks,
                objects=self._objects,
            )
            while len(self._modules) >= 4:
                del self._modules[next(iter(self._modules))]
            self._modules[key] = module
        return module


def _filled(buffer: Buffer) -> Buffer:
    """The buffer with its content as its array."""
    buffer = replace(buffer, array=buffer.content, map=None)
    if buffer.digest is not None and digest(buffer.array) != buffer.digest:
        raise MachineError(
            f"the content of `{buffer.name}` is not what it should be", fix="run it again"
        )
    return buffer


def _prepare(resident: _Resident, job: Job) -> dict[str, Array]:
    """Fill every buffer that the program may write; returns what was put into the poisoned ones."""
    fills = dict(job.plan.fills)
    poisoned = {}
    for at, buffer in enumerate(resident.case.buffers):
        address = resident.addresses[buffer.name]
        known = buffer.role != "output" or buffer.name in {*job.plan.zeros, *fills}
        resident.memory.define(address, defined=known or not job.checks)
        view = resident.memory.view(address)
        if buffer.role == "inout":
            view[:] = _raw(buffer.array)
        elif buffer.role == "output" and buffer.name in job.plan.zeros:
            view[:] = 0
        elif buffer.role == "output" and buffer.name in fills:
            view[:] = _raw(np.full_like(buffer.array, float(fills[buffer.name])))
        elif buffer.role == "output":
            poisoned[buffer.name] = poison_like(buffer.array, job.poison + at)
            view[:] = _raw(poisoned[buffer.name])
    return poisoned


def _scratch(resident: _Resident, job: Job) -> dict[str, int]:
    addresses = {}
    for at, temporary in enumerate(job.plan.scratch):
        shape = np.empty(temporary.elements, temporary.dtype)
        address = addresses[temporary.name] = resident.memory.allocate(
            max(shape.nbytes, 1), name=temporary.name, itemsize=shape.itemsize
        )
        known = temporary.name in job.plan.zeros
        resident.memory.define(address, defined=known or not job.checks)
        content = np.zeros_like(shape) if known else None
        if content is None:
            content = poison_like(shape, job.poison + 1000 + at)
        resident.memory.view(address)[: shape.nbytes] = _raw(content)
    return addresses


def _launch(
    module: emulator.Module,
    variables: dict[str, NDArray[np.uint8]],
    launch: Launch,
    resident: _Resident,
    scratch: dict[str, int],
    job: Job,
    limits: emulator.Limits,
) -> emulator.Run:
    addresses = {**resident.addresses, **scratch}
    arguments = [
        addresses[argument.buffer].to_bytes(8, "little")
        if isinstance(argument, BufferArgument)
        else bytes.fromhex(argument.raw)
        for argument in launch.arguments
    ]
    return module.launch(
        launch.kernel,
        launch.grid,
        launch.block,
        dynamic_shared=launch.shared,
        arguments=arguments,
        memory=resident.memory,
        limits=limits,
        count=job.count,
        variables=variables,
    )


def _watched(resident: _Resident, job: Job) -> tuple[int, int] | None:
    """The address and the bytes of the element that the job watches."""
    if job.watch is None:
        return None
    name, index = job.watch
    array = next(buffer.array for buffer in resident.case.buffers if buffer.name == name)
    at = int(np.ravel_multi_index(index, array.shape)) if index else 0
    return resident.addresses[name] + at * array.itemsize, array.itemsize


def _fault(fault: emulator.Fault) -> Fault:
    return Fault(_OUTCOMES[fault.kind], fault.message, fault.line, fault.block, fault.thread)


def _mended(resident: _Resident) -> tuple[str, ...]:
    """The inputs that the run wrote to; they hold their own values again."""
    modified = []
    for buffer in resident.case.buffers:
        if buffer.role != "input":
            continue
        view, own = resident.memory.view(resident.addresses[buffer.name]), _raw(buffer.array)
        if not np.array_equal(view, own):
            modified.append(buffer.name)
            view[:] = own
    return tuple(modified)


def _checks(resident: _Resident, poison: dict[str, Array]) -> tuple[OutputCheck, ...]:
    return tuple(
        compare(
            buffer.name,
            _typed(resident, buffer.name, buffer.array),
            buffer.expected,
            buffer.tolerance,
            poison.get(buffer.name),
        )
        for buffer in resident.case.buffers
        if buffer.expected is not None and buffer.tolerance is not None
    )


def _typed(resident: _Resident, name: str, like: Array) -> Array:
    view = resident.memory.view(resident.addresses[name])
    typed: Array = view.view(like.dtype).reshape(like.shape)
    return typed


def _raw(array: Array) -> Array:
    flat: Array = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return flat
