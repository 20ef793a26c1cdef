"""A real GPU through CuPy: cubins by RawModule, buffers between canaries, comparison on the card.

Lives in the device host. Most faults of a kernel are sticky: the context is lost with them, and the
parent replaces the host.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from optiml_magic.devices.answers import Answers
from optiml_magic.devices.base import (
    Array,
    Buffer,
    Case,
    Draw,
    Execution,
    Fault,
    Job,
    Sampling,
    Timing,
)
from optiml_magic.devices.clock import Clock, TimedRun
from optiml_magic.devices.compare import compare, same_bits, unlikely
from optiml_magic.devices.driver import advice, driver_release
from optiml_magic.devices.faults import fault_of, outside
from optiml_magic.devices.memory import (
    Memory,
    broken_guards,
    content,
    exact,
    guarded,
    places,
    raw,
    starts,
    stored,
)
from optiml_magic.devices.module import CudaModule
from optiml_magic.devices.noise import noise
from optiml_magic.devices.power import draw
from optiml_magic.devices.reductions import are_large, compile_quickly, counted, same_bytes
from optiml_magic.devices.telemetry import Telemetry
from optiml_magic.errors import InternalError, MachineError
from optiml_magic.model.build import Build
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.verdict import OutputCheck

_MODULES = 8
_ATTEMPTS = 3  # at a timing in which no further variable turns out to change


class CudaDevice:
    """One card by its index. Raises MachineError where CuPy or the card is missing."""

    def __init__(self, index: int) -> None:
        try:
            import cupy
        except ImportError as cause:
            raise MachineError("CuPy is not installed", fix=advice(driver_release())) from cause
        self._cp = cupy
        compile_quickly(cupy)
        self.name = f"cuda:{index}"
        try:
            cupy.cuda.Device(index).use()
            self._stream = cupy.cuda.Stream(non_blocking=True)
        except cupy.cuda.runtime.CUDARuntimeError as cause:
            raise MachineError(
                f"cuda:{index} does not answer: {cause}", fix="run optiml doctor"
            ) from cause
        self._cases: dict[str, tuple[Case, dict[str, Memory]]] = {}
        self._modules: dict[str, CudaModule] = {}
        self._answers = Answers(cupy)
        self._rehearsed: set[object] = set()

    @cached_property
    def _clock(self) -> Clock:
        """With what the card says of itself; opened when something is timed."""
        telemetry = Telemetry(self._cp.cuda.Device().pci_bus_id)
        return Clock(self._cp, self._stream, telemetry)

    def put(self, case: Case) -> None:
        self._cases.pop(case.key, None)
        memories = {buffer.name: self._allocate(buffer) for buffer in case.buffers}
        self._cases[case.key] = (case.with_answers_elsewhere(), memories)
        self._rehearse(case, memories)
        self._cp.cuda.Device().synchronize()

    def _rehearse(self, case: Case, memories: dict[str, Memory]) -> None:
        """Judge outputs that nobody wrote: CuPy compiles what a judgement needs at its first use.

        That takes seconds on a new machine, and is no part of a candidate's time limit.
        """
        kinds = {
            (b.role, b.array.dtype, b.array.ndim, b.expected is None, *are_large(b.array))
            for b in case.buffers
        }
        if kinds <= self._rehearsed or all(b.expected is None for b in case.buffers):
            return
        self._rehearsed |= kinds
        written = [b.name for b in case.buffers if b.role != "input"]
        poison = {name: self._poison(memories[name], 0) for name in written}
        for name, bits in poison.items():
            raw(memories[name].array)[...] = raw(bits)
        broken_guards(self._cp, memories)
        self._mended(memories)
        self._checks(case, memories, poison, memories)

    def execute(self, build: Build, job: Job) -> Execution:
        case, memories = self._case(job.case)
        if job.checks:
            return self._bare(build, case, job)
        try:
            module = self._load(build)
            poison = self._prepare(case, memories, job.plan, job.poison)
            scratch = self._scratch(job)
            module.fill(_contents(job.plan, memories))
            self._synchronize()
            self._profile(job.count, start=True)
            module.run(job.plan, places({**memories, **scratch}), self._stream)
            self._synchronize()
            self._profile(job.count, start=False)
        except self._errors() as error:
            return Execution(fault_of(error))
        module.note_changes()
        if job.count:  # under ncu; what it computes was compared before
            return Execution()
        broken = broken_guards(self._cp, {**memories, **scratch})
        if broken:
            return Execution(outside(broken))
        return Execution(
            checks=self._checks(case, memories, poison, memories),
            modified_inputs=self._mended(memories),
            unwritten=tuple(
                (b.name, self._unwritten(memories[b.name], poison[b.name]))
                for b in case.buffers
                if b.expected is None and b.name in poison
            ),
        )

    def _unwritten(self, memory: Memory, poison: Any) -> int:
        return counted(same_bits(memory.array, poison, memory.dtype), self._cp)

    def _bare(self, build: Build, case: Case, job: Job) -> Execution:
        """A run for a tool that watches it.

        Each buffer is an allocation of the driver's, of its exact size; outputs and scratch are not
        filled, and nothing is compared.
        """
        fills, allocated = dict(job.plan.fills), partial(exact, self._cp)
        try:
            module = self._load(build)
            memories = {}
            for b in case.buffers:
                memory = memories[b.name] = allocated(b.array.shape, b.array.dtype)
                if b.role != "output":
                    memory.array.set(np.ascontiguousarray(stored(b.content)))
                elif b.name in fills:
                    memory.array.set(stored(np.full_like(b.array, float(fills[b.name]))))
            for wanted in job.plan.scratch:
                memories[wanted.name] = allocated((wanted.elements,), np.dtype(wanted.dtype))
            module.fill(_contents(job.plan, memories))
            self._synchronize()
            module.run(job.plan, places(memories), self._stream)
            self._synchronize()
        except self._errors() as error:
            return Execution(fault_of(error))
        return Execution()

    def time(
        self, runs: Sequence[tuple[Build, Job]], sampling: Sampling
    ) -> tuple[Timing, ...] | Fault:
        """Seconds of each run, in rounds (A B B A), by events on the stream.

        Short plans are launched several times between two events, so that an event's resolution and
        the launch itself do not stand in the figure. Every launch of such a batch has buffers of
        its own, whose outputs and scratch are overwritten before: neither an earlier answer nor a
        note of one is left for it. It finds its data outside of the L2, as ncu arranges it too.

        At the end each run but the first, whose batch was the last, has one batch more, after which
        one set of its buffers, chosen at random, is compared with the oracle; nothing tells a
        kernel that this batch is the last.
        """
        try:
            timings = self._sampled(runs, sampling)
        except self._errors() as error:
            return fault_of(error)
        self._cp.get_default_memory_pool().free_all_blocks()  # they are full of answers
        faults = (timing.after.fault for timing in timings if timing.after is not None)
        return next(filter(None, faults), timings)

    def draw(self, build: Build, job: Job, seconds: float) -> Draw | Fault:
        """Energy and time of a run repeated for ``seconds``, from warm caches."""
        try:
            return draw(self._cp, self._stream, self._run(build, job, 1), seconds)
        except self._errors() as error:
            return fault_of(error)

    def _sampled(self, runs: Sequence[tuple[Build, Job]], sampling: Sampling) -> tuple[Timing, ...]:
        clock = self._clock
        first, *others = runs
        prepared = [self._run(*first, len(runs))]
        if 0 < sampling.alone < prepared[0].seconds:
            sampling = replace(sampling, least=1, most=1)
        else:
            prepared += [self._run(*other, len(runs)) for other in others]
        for _ in range(_ATTEMPTS):
            found = clock.sampled(prepared, sampling)
            left = []
            for at, run in enumerate(prepared):
                if at:  # the last batch of all was the first run's
                    clock.batch(run)
                left.append(self._after(run))  # before another run writes to the same buffers
            # A variable that changed late was not set back: what ran since then is void.
            changed = [run.module.note_changes() for run in prepared]
            if not any(changed):
                break
        return tuple(
            Timing(seconds, len(run.sets), after, conditions)
            for run, (seconds, conditions), after in zip(prepared, found, left, strict=True)
        )

    def _run(self, build: Build, job: Job, runs: int) -> TimedRun:
        case, memories = self._case(job.case)
        self._prepare(case, memories, job.plan, job.poison)
        module = self._load(build)
        module.fill(_contents(job.plan, memories))
        own = {**memories, **self._scratch(job)}
        held = starts(self._cp, case, memories, job.plan)
        run = TimedRun(module, job.plan, case, held, [own])
        self._synchronize()
        run, count = self._clock.looked(run)
        self._synchronize()
        module.note_changes()
        run = replace(run, sets=[own, *self._clock.copies(own, count, runs)])
        self._synchronize()
        return run

    def _after(self, run: TimedRun) -> Execution:
        """What the last batch left in one of its buffer sets."""
        self._synchronize()
        chosen = run.sets[secrets.randbelow(len(run.sets))]
        _, memories = self._case(run.case.key)
        broken = broken_guards(
            self._cp, {n: m for n, m in run.sets[0].items() if m.canary is not None}
        )
        if broken:
            return Execution(outside(broken))
        modified = [
            name
            for name, memory in memories.items()
            if memory.pristine is not None
            and not same_bytes(raw(chosen[name].array), raw(memory.pristine), self._cp)
        ]
        self._mended(memories)
        return Execution(
            checks=self._checks(run.case, memories, {}, chosen), modified_inputs=tuple(modified)
        )

    def read(self, case: str, buffer: str) -> Array:
        found, memories = self._case(case)
        memory, like = memories[buffer], next(b.array for b in found.buffers if b.name == buffer)
        array: Array = memory.array.get(stream=self._stream).view(memory.dtype).reshape(like.shape)
        return array

    def close(self) -> None:
        self._cases.clear()
        self._modules.clear()
        self._cp.get_default_memory_pool().free_all_blocks()

    def _case(self, key: str) -> tuple[Case, dict[str, Memory]]:
        found = self._cases.get(key)
        if found is None:
            raise InternalError(f"case {key!r} is not on the device")
        return found

    def _allocate(self, buffer: Buffer) -> Memory:
        cp = self._cp
        memory = guarded(self._cp, buffer.array.nbytes, buffer.array.dtype, buffer.array.shape)
        if buffer.role != "output":
            lying = next(self._lying(buffer.array), None) if buffer.digest is not None else None
            memory.initial = content(cp, buffer, lying)
            memory.array[...] = memory.initial
        if buffer.role == "input":
            memory.pristine = memory.initial
        if buffer.expected is not None:
            memory.hidden = self._answers.hide(stored(buffer.expected))
        return memory

    def _lying(self, array: Array) -> Iterator[Any]:
        """Where this very array lies on the card, unchanged."""
        for case, memories in self._cases.values():
            for buffer in case.buffers:
                if buffer.array is array and buffer.map is None and buffer.role != "output":
                    yield memories[buffer.name].initial

    def _load(self, build: Build) -> CudaModule:
        module = self._modules.pop(build.digest, None) or CudaModule(build)
        while len(self._modules) >= _MODULES:
            del self._modules[next(iter(self._modules))]  # the one that was not used for longest
        self._modules[build.digest] = module
        return module

    def _prepare(
        self, case: Case, memories: dict[str, Memory], plan: LaunchPlan, seed: int
    ) -> dict[str, Any]:
        """Fill every buffer that the program may write; returns the poison of the poisoned ones."""
        cp, fills, poisons = self._cp, dict(plan.fills), {}
        for at, buffer in enumerate(case.buffers):
            array = memories[buffer.name].array
            if buffer.role == "inout":
                array[...] = memories[buffer.name].initial
            elif buffer.role == "output" and buffer.name in fills:
                one = np.full(1, float(fills[buffer.name]), buffer.array.dtype)
                array[...] = cp.asarray(stored(one))[0]
            elif buffer.role == "output" and buffer.name not in plan.zeros:
                poisons[buffer.name] = self._poison(memories[buffer.name], seed + at)
                raw(array)[...] = raw(poisons[buffer.name])
        return poisons

    def _poison(self, memory: Memory, seed: int) -> Any:
        like = memory.array
        poison = noise(self._cp, seed, like.nbytes)
        unlikely(poison, memory.dtype)
        return poison.view(like.dtype).reshape(like.shape)

    def _scratch(self, job: Job) -> dict[str, Memory]:
        made = {}
        for at, wanted in enumerate(job.plan.scratch):
            dtype = np.dtype(wanted.dtype)
            memory = guarded(self._cp, wanted.elements * dtype.itemsize, dtype, (wanted.elements,))
            raw(memory.array)[...] = raw(self._poison(memory, job.poison + 1000 + at))
            made[wanted.name] = memory
        return made

    def _profile(self, wanted: bool, *, start: bool) -> None:
        """Under ncu with ``--profile-from-start off``, what stands between the two is counted."""
        if wanted:
            profiler = self._cp.cuda.profiler
            (profiler.start if start else profiler.stop)()

    def _synchronize(self) -> None:
        self._cp.cuda.Device().synchronize()

    def _errors(self) -> tuple[type[Exception], ...]:
        cuda = self._cp.cuda
        return (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError)

    def _mended(self, memories: dict[str, Memory]) -> tuple[str, ...]:
        """The inputs that the run wrote to, by their bits; they hold their own values again."""
        modified = []
        for name, memory in memories.items():
            if memory.pristine is None:
                continue
            if not same_bytes(raw(memory.array), raw(memory.pristine), self._cp):
                modified.append(name)
                memory.array[...] = memory.pristine
        return tuple(modified)

    def _checks(
        self,
        case: Case,
        memories: Mapping[str, Memory],
        poison: dict[str, Any],
        holding: Mapping[str, Memory],
    ) -> tuple[OutputCheck, ...]:
        """The outputs in ``holding`` against what the case's own memories hide."""
        checks = []
        for b in case.buffers:
            hidden = memories[b.name].hidden
            if hidden is None or b.expected is None or b.tolerance is None:
                continue
            judged = partial(
                compare,
                b.name,
                holding[b.name].array,
                tolerance=b.tolerance,
                poison=poison.get(b.name),
                xp=self._cp,
                dtypes=(b.array.dtype, b.expected.dtype),
            )
            checks.append(self._answers.shown(hidden, judged))
        return tuple(checks)


def _contents(plan: LaunchPlan, memories: Mapping[str, Memory]) -> dict[str, Any]:
    return {symbol: raw(memories[buffer].array) for symbol, buffer in plan.variables}
