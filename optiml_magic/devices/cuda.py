"""A real GPU through CuPy: cubins by RawModule, buffers between canaries, comparison on the card.

Lives in the device host. Most faults of a kernel are sticky: the context is lost with them, and the
parent replaces the host.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optiml_magic.devices.base import Array, Buffer, Case, Execution, Fault, Job, Timing
from optiml_magic.devices.compare import compare, same_bits, unlikely
from optiml_magic.devices.driver import advice, driver_release
from optiml_magic.devices.module import CudaModule, Place
from optiml_magic.errors import InternalError, MachineError
from optiml_magic.model.build import Build
from optiml_magic.model.dtypes import BFLOAT16, DType
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.verdict import Outcome, OutputCheck

Places = Mapping[str, Place]
_GUARD = 512  # bytes of canary on each side of a buffer; keeps CuPy's alignment
_MODULES = 8
_BATCH_SECONDS = 1e-3  # between two events, so that their resolution does not show
_MOST_LAUNCHES = 200
_MOST_COPIED = 2 << 30  # bytes of buffer sets
_ATTEMPTS = 3  # at a timing in which no further variable turns out to change

# cudaError_t by name to what it means for a kernel. Source: CUDA Runtime API, "Data types".
_FAULTS = {
    "cudaErrorIllegalAddress": (Outcome.OUT_OF_BOUNDS, "an access outside of every allocation"),
    "cudaErrorInvalidAddressSpace": (Outcome.OUT_OF_BOUNDS, "an access to the wrong memory space"),
    "cudaErrorInvalidPc": (Outcome.OUT_OF_BOUNDS, "the program counter left the kernel"),
    "cudaErrorMisalignedAddress": (Outcome.MISALIGNED, "an access that is not aligned"),
    "cudaErrorHardwareStackError": (Outcome.TRAP, "the stack overflowed"),
    "cudaErrorIllegalInstruction": (Outcome.TRAP, "an illegal instruction"),
    "cudaErrorAssert": (Outcome.TRAP, "an assertion failed"),
    "cudaErrorLaunchFailure": (Outcome.TRAP, "the kernel trapped"),
    "cudaErrorLaunchTimeout": (Outcome.TIMEOUT, "the driver ended the kernel"),
}


@dataclass(frozen=True)
class _Hidden:
    """An array under a noise that only its key repeats.

    A kernel may read more memory than it was given, and must not find the answer there.
    """

    masked: Any  # bytes
    key: int
    dtype: DType
    shape: tuple[int, ...]


@dataclass
class _Memory:
    """A buffer between two canaries; ``pristine`` is what an input must still hold afterwards.

    ``array`` holds ``dtype`` as a type that CuPy knows: see ``_stored``.
    """

    whole: Any
    canary: Any
    array: Any
    dtype: DType
    pristine: Any = None
    hidden: _Hidden | None = None  # what an output should hold


@dataclass(frozen=True)
class _Run:
    """A plan on a case, launched between two events once on each of the buffer sets.

    ``starts`` holds what in-out buffers and filled outputs hold before.
    """

    module: CudaModule
    plan: LaunchPlan
    case: Case
    starts: Mapping[str, Any]
    sets: Sequence[Mapping[str, _Memory]]


class CudaDevice:
    """One card by its index. Raises MachineError where CuPy or the card is missing."""

    def __init__(self, index: int) -> None:
        try:
            import cupy
        except ImportError as cause:
            raise MachineError("CuPy is not installed", fix=advice(driver_release())) from cause
        self._cp = cupy
        self.name = f"cuda:{index}"
        try:
            cupy.cuda.Device(index).use()
            self._stream = cupy.cuda.Stream(non_blocking=True)
        except cupy.cuda.runtime.CUDARuntimeError as cause:
            raise MachineError(
                f"cuda:{index} does not answer: {cause}", fix="run optiml doctor"
            ) from cause
        self._cases: dict[str, tuple[Case, dict[str, _Memory]]] = {}
        self._modules: dict[str, CudaModule] = {}
        self._answers = cupy.cuda.MemoryPool()  # for what a kernel must not find
        self._flushing = 2 * int(cupy.cuda.Device().attributes["L2CacheSize"])
        self._overwrite: Any = None  # of that many bytes

    def put(self, case: Case) -> None:
        self._cases.pop(case.key, None)
        memories = {buffer.name: self._allocate(buffer) for buffer in case.buffers}
        self._cases[case.key] = (case, memories)
        self._cp.cuda.Device().synchronize()

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
            module.run(job.plan, _places({**memories, **scratch}), self._stream)
            self._synchronize()
            self._profile(job.count, start=False)
        except self._errors() as error:
            return Execution(self._fault(error))
        module.note_changes()
        broken = self._broken_guards({**memories, **scratch})
        if broken:
            return Execution(_outside(broken))
        return Execution(
            checks=self._checks(case, memories, poison, memories),
            modified_inputs=self._mended(memories),
            unwritten=tuple(
                (b.name, self._unwritten(memories[b.name], poison[b.name]))
                for b in case.buffers
                if b.expected is None and b.name in poison
            ),
        )

    def _unwritten(self, memory: _Memory, poison: Any) -> int:
        return int(self._cp.count_nonzero(same_bits(memory.array, poison, memory.dtype)))

    def _bare(self, build: Build, case: Case, job: Job) -> Execution:
        """A run for a tool that watches it.

        Each buffer is an allocation of the driver's, of its exact size; outputs and scratch are not
        filled, and nothing is compared.
        """
        cp, fills = self._cp, dict(job.plan.fills)

        def allocated(shape: tuple[int, ...], dtype: np.dtype[Any]) -> _Memory:
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            pointer = cp.cuda.MemoryPointer(cp.cuda.Memory(max(size, 1)), 0)
            like = _stored(np.empty(1, dtype))
            array = cp.ndarray(shape + like.shape[1:], like.dtype, memptr=pointer)
            return _Memory(array, None, array, dtype)

        try:
            module = self._load(build)
            memories = {}
            for b in case.buffers:
                memory = memories[b.name] = allocated(b.array.shape, b.array.dtype)
                if b.role != "output":
                    memory.array.set(np.ascontiguousarray(_stored(b.array)))
                elif b.name in fills:
                    memory.array.set(_stored(np.full_like(b.array, float(fills[b.name]))))
            for wanted in job.plan.scratch:
                memories[wanted.name] = allocated((wanted.elements,), np.dtype(wanted.dtype))
            module.fill(_contents(job.plan, memories))
            self._synchronize()
            module.run(job.plan, _places(memories), self._stream)
            self._synchronize()
        except self._errors() as error:
            return Execution(self._fault(error))
        return Execution()

    def time(self, runs: Sequence[tuple[Build, Job]], samples: int) -> tuple[Timing, ...] | Fault:
        """Seconds of each run, ``samples`` times in turn (A B A B), by events on the stream.

        Short plans are launched several times between two events, so that an event's resolution and
        the launch itself do not stand in the figure. Every launch of such a batch has buffers of
        its own, whose outputs and scratch are overwritten before: neither an earlier answer nor a
        note of one is left for it. It finds its data outside of the L2, as ncu arranges it too.

        After the last batch one set of buffers, chosen at random, is compared with the oracle.
        """
        try:
            prepared = [self._run(build, job, len(runs)) for build, job in runs]
            for _ in range(_ATTEMPTS):
                seconds: list[list[float]] = [[] for _ in prepared]
                for _ in range(samples):
                    for run, found in zip(prepared, seconds, strict=True):
                        found.append(self._timed(run))
                self._synchronize()
                # A variable that changed late was not set back: what ran since then is void.
                changed = [run.module.note_changes() for run in prepared]
                if not any(changed):
                    break
            timings = tuple(
                Timing(tuple(found), len(run.sets), self._after(run))
                for found, run in zip(seconds, prepared, strict=True)
            )
        except self._errors() as error:
            return self._fault(error)
        for timing in timings:
            if timing.after is not None and timing.after.fault is not None:
                return timing.after.fault
        del prepared
        self._cp.get_default_memory_pool().free_all_blocks()  # they are full of answers
        return timings

    def _run(self, build: Build, job: Job, runs: int) -> _Run:
        case, memories = self._case(job.case)
        self._prepare(case, memories, job.plan, job.poison)
        module = self._load(build)
        module.fill(_contents(job.plan, memories))
        own = {**memories, **self._scratch(job)}
        starts = self._starts(case, job.plan)
        run = _Run(module, job.plan, case, starts, [own])
        self._synchronize()
        count = self._calibrated(run)
        self._synchronize()
        module.note_changes()
        run = replace(run, sets=[own, *self._copies(own, count, runs)])
        self._synchronize()
        return run

    def _starts(self, case: Case, plan: LaunchPlan) -> dict[str, Any]:
        """What in-out buffers and filled outputs hold before each launch."""
        fills, found = dict(plan.fills), {}
        for buffer in case.buffers:
            if buffer.role == "inout":
                found[buffer.name] = self._cp.asarray(_stored(buffer.array))
            elif buffer.role == "output" and buffer.name in fills:
                filled = np.full_like(buffer.array, float(fills[buffer.name]))
                found[buffer.name] = self._cp.asarray(_stored(filled))
        return found

    def _after(self, run: _Run) -> Execution:
        """What the last batch left in one of its buffer sets."""
        chosen = run.sets[secrets.randbelow(len(run.sets))]
        _, memories = self._case(run.case.key)
        broken = self._broken_guards({n: m for n, m in run.sets[0].items() if m.canary is not None})
        if broken:
            return Execution(_outside(broken))
        modified = [
            name
            for name, memory in memories.items()
            if memory.pristine is not None
            and not bool(self._cp.array_equal(_bytes(chosen[name].array), _bytes(memory.pristine)))
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

    def _case(self, key: str) -> tuple[Case, dict[str, _Memory]]:
        found = self._cases.get(key)
        if found is None:
            raise InternalError(f"case {key!r} is not on the device")
        return found

    def _allocate(self, buffer: Buffer) -> _Memory:
        cp = self._cp
        memory = self._guarded(buffer.array.nbytes, buffer.array.dtype, buffer.array.shape)
        if buffer.role != "output":
            memory.array[...] = cp.asarray(_stored(buffer.array))
        if buffer.role == "input":
            memory.pristine = memory.array.copy()
        if buffer.expected is not None:
            memory.hidden = self._hide(_stored(buffer.expected))
        return memory

    def _guarded(self, nbytes: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> _Memory:
        cp = self._cp
        canary = cp.asarray(np.random.default_rng().integers(0, 256, 2 * _GUARD, np.uint8))
        padded = -(-nbytes // 16) * 16
        whole = cp.empty(_GUARD + padded + _GUARD, cp.uint8)
        whole[:_GUARD] = canary[:_GUARD]
        # The tail guard begins where the data ends, padding included: an off-by-one write is seen.
        tail = whole[_GUARD + nbytes :]
        tail[...] = cp.resize(canary[_GUARD:], tail.shape)
        like = _stored(np.empty(1, dtype))
        shape = shape + like.shape[1:]
        array = whole[_GUARD : _GUARD + nbytes].view(like.dtype).reshape(shape)
        return _Memory(whole, canary, array, dtype)

    def _load(self, build: Build) -> CudaModule:
        module = self._modules.get(build.digest)
        if module is None:
            module = CudaModule(build)
            while len(self._modules) >= _MODULES:
                del self._modules[next(iter(self._modules))]
            self._modules[build.digest] = module
        return module

    def _prepare(
        self, case: Case, memories: dict[str, _Memory], plan: LaunchPlan, seed: int
    ) -> dict[str, Any]:
        """Fill every buffer that the program may write; returns the poison of the poisoned ones."""
        cp, fills, poisons = self._cp, dict(plan.fills), {}
        for at, buffer in enumerate(case.buffers):
            array = memories[buffer.name].array
            if buffer.role == "inout":
                array[...] = cp.asarray(_stored(buffer.array))
            elif buffer.role == "output" and buffer.name in fills:
                one = np.full(1, float(fills[buffer.name]), buffer.array.dtype)
                array[...] = cp.asarray(_stored(one))[0]
            elif buffer.role == "output" and buffer.name not in plan.zeros:
                poisons[buffer.name] = self._poison(memories[buffer.name], seed + at)
                _bytes(array)[...] = _bytes(poisons[buffer.name])
        return poisons

    def _poison(self, memory: _Memory, seed: int) -> Any:
        cp, like = self._cp, memory.array
        rng = cp.random.default_rng(seed)
        raw = rng.integers(0, 2**32, -(-like.nbytes // 4), dtype=cp.uint32).view(cp.uint8)
        raw = raw[: like.nbytes]
        unlikely(raw, memory.dtype)
        return raw.view(like.dtype).reshape(like.shape)

    def _scratch(self, job: Job) -> dict[str, _Memory]:
        made = {}
        for at, wanted in enumerate(job.plan.scratch):
            dtype = np.dtype(wanted.dtype)
            memory = self._guarded(wanted.elements * dtype.itemsize, dtype, (wanted.elements,))
            _bytes(memory.array)[...] = _bytes(self._poison(memory, job.poison + 1000 + at))
            made[wanted.name] = memory
        return made

    def _hide(self, array: Array) -> _Hidden:
        cp, key = self._cp, secrets.randbits(62)
        masked = cp.empty(array.nbytes, cp.uint8)
        with cp.cuda.using_allocator(self._answers.malloc):
            plain = _bytes(cp.asarray(array))
            cp.bitwise_xor(plain, self._noise(key, array.nbytes), out=masked)
            self._synchronize()
            del plain
        self._answers.free_all_blocks()
        return _Hidden(masked, key, array.dtype, array.shape)

    def _revealed(self, hidden: _Hidden) -> Any:
        raw = hidden.masked ^ self._noise(hidden.key, hidden.masked.size)
        return raw.view(hidden.dtype).reshape(hidden.shape)

    def _noise(self, key: int, nbytes: int) -> Any:
        cp = self._cp
        words = cp.random.default_rng(key).integers(0, 2**32, -(-nbytes // 4), dtype=cp.uint32)
        return words.view(cp.uint8)[:nbytes]

    def _copies(self, own: dict[str, _Memory], count: int, runs: int) -> list[dict[str, _Memory]]:
        """Further buffer sets, one for each launch of a batch.

        Fewer where so many would not fit, but together at least twice the L2.
        """
        footprint = max(1, sum(memory.array.nbytes for memory in own.values()))
        free = int(self._cp.cuda.Device().mem_info[0])
        room = min(_MOST_COPIED, free // (4 * runs)) // footprint
        wanted = min(count, max(-(-self._flushing // footprint), room))
        return [{name: _copied(memory) for name, memory in own.items()} for _ in range(wanted - 1)]

    def _timed(self, run: _Run) -> float:
        cp = self._cp
        if self._overwrite is None:
            self._overwrite = cp.empty(self._flushing, cp.uint8)
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        places = [_places(one) for one in run.sets]
        with self._stream:
            for one in run.sets:
                self._refresh(run, one)
            self._overwrite.fill(0)
        begin.record(self._stream)
        for one_set in places:
            run.module.run(run.plan, one_set, self._stream)
        end.record(self._stream)
        end.synchronize()
        return float(cp.cuda.get_elapsed_time(begin, end)) / 1e3 / len(places)

    def _refresh(self, run: _Run, memories: Mapping[str, _Memory]) -> None:
        """Outputs and scratch overwritten by a byte that is another each time, on the stream."""
        kept = {buffer.name for buffer in run.case.buffers if buffer.role == "input"}
        for name, memory in memories.items():
            if name in run.starts:
                memory.array[...] = run.starts[name]
            elif name not in kept:
                byte = secrets.randbelow(126) + 129  # no bool, and no small number
                runtime, array = self._cp.cuda.runtime, memory.array
                runtime.memsetAsync(array.data.ptr, byte, array.nbytes, self._stream.ptr)

    def _calibrated(self, run: _Run) -> int:
        """How many launches between two events: enough for ``_BATCH_SECONDS``; warms up as well."""
        self._timed(run)
        once = max(min(self._timed(run) for _ in range(3)), 1e-7)
        return max(1, min(_MOST_LAUNCHES, int(_BATCH_SECONDS / once)))

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

    def _fault(self, error: Exception) -> Fault:
        text = str(error)
        for name, (outcome, message) in _FAULTS.items():
            if name in text or _driver_name(name) in text:
                return Fault(outcome, message, sticky=True)
        return Fault(Outcome.LAUNCH_ERROR, text.splitlines()[0][:200])

    def _broken_guards(self, memories: dict[str, _Memory]) -> tuple[str, ...]:
        cp, broken = self._cp, []
        for name, memory in memories.items():
            tail = memory.whole[_GUARD + memory.array.nbytes :]
            same = cp.array_equal(memory.whole[:_GUARD], memory.canary[:_GUARD])
            same &= cp.array_equal(tail, cp.resize(memory.canary[_GUARD:], tail.shape))
            if not bool(same):
                broken.append(name)
                memory.whole[:_GUARD] = memory.canary[:_GUARD]
                tail[...] = cp.resize(memory.canary[_GUARD:], tail.shape)
        return tuple(broken)

    def _mended(self, memories: dict[str, _Memory]) -> tuple[str, ...]:
        """The inputs that the run wrote to, by their bits; they hold their own values again."""
        cp, modified = self._cp, []
        for name, memory in memories.items():
            if memory.pristine is None:
                continue
            if not bool(cp.array_equal(_bytes(memory.array), _bytes(memory.pristine))):
                modified.append(name)
                memory.array[...] = memory.pristine
        return tuple(modified)

    def _checks(
        self,
        case: Case,
        memories: Mapping[str, _Memory],
        poison: dict[str, Any],
        holding: Mapping[str, _Memory],
    ) -> tuple[OutputCheck, ...]:
        """The outputs in ``holding`` against what the case's own memories hide."""
        checks = []
        for b in case.buffers:
            hidden = memories[b.name].hidden
            if hidden is None or b.expected is None or b.tolerance is None:
                continue
            with self._cp.cuda.using_allocator(self._answers.malloc):
                check = compare(
                    b.name,
                    holding[b.name].array,
                    self._revealed(hidden),
                    b.tolerance,
                    poison.get(b.name),
                    xp=self._cp,
                    dtypes=(b.array.dtype, b.expected.dtype),
                )
            self._answers.free_all_blocks()  # an answer must not be left behind in free memory
            checks.append(check)
        return tuple(checks)


def _outside(broken: Sequence[str]) -> Fault:
    """Sticky: who knows what lies behind the guards that were written over."""
    message = f"the kernel wrote just outside of {', '.join(broken)}"
    return Fault(Outcome.OUT_OF_BOUNDS, message, sticky=True)


def _contents(plan: LaunchPlan, memories: Mapping[str, _Memory]) -> dict[str, Any]:
    return {symbol: _bytes(memories[buffer].array) for symbol, buffer in plan.variables}


def _places(memories: Mapping[str, _Memory]) -> dict[str, Place]:
    return {n: Place(m.array.data.ptr, m.array.nbytes) for n, m in memories.items()}


def _copied(memory: _Memory) -> _Memory:
    array = memory.array.copy()
    return _Memory(array, None, array, memory.dtype)


def _bytes(array: Any) -> Any:
    return array.reshape(-1).view(np.uint8)


def _stored(array: Array) -> Array:
    """An array in a type of CuPy's: bfloat16 as uint16, a struct as one more axis of its bytes."""
    if array.dtype.names is not None:
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return raw.reshape(*array.shape, array.dtype.itemsize)
    return array.view(np.uint16) if array.dtype == BFLOAT16 else array


def _driver_name(runtime_name: str) -> str:
    """``cudaErrorIllegalAddress`` as the driver spells it: ``CUDA_ERROR_ILLEGAL_ADDRESS``."""
    words = re.findall(r"[A-Z][a-z]*", runtime_name.removeprefix("cudaError"))
    return "CUDA_ERROR_" + "_".join(words).upper()
