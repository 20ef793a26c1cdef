"""What a reading says that each thread of a launch touches, held against what it did touch.

Both sides are sets of bytes of an array: the compiler may merge accesses, and split them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optiml_magic.kernels.expressions import Call
from optiml_magic.kernels.functions import ATOMICS, bare
from optiml_magic.kernels.read import read
from optiml_magic.kernels.reading import Access, Reading
from optiml_magic.kernels.unit import Unit, lift
from optiml_magic.source.program import parse_program
from optiml_magic.testing.claims import claims
from optiml_magic.testing.lanes import Lanes, Numbers, Numeric
from optiml_magic.testing.traces import LaunchTrace
from optiml_magic.testing.walks import Walker

_AXES = "xyz"
_Key = tuple[str, str, int]  # the name of a buffer, a mode, and a line where those are kept apart
_Keys = NDArray[np.int64]
_Spans = tuple[_Keys, _Keys, int]  # threads, offsets and how many bytes each
_NO_KEYS = np.empty(0, np.int64)
_FAR = 1 << 40


@dataclass(frozen=True)
class Contradiction:
    """Something a reading says that is not so; ``line`` is one of the program where it shows."""

    kernel: str
    what: str
    line: int
    detail: str

    def __str__(self) -> str:
        return f"{self.kernel}:{self.line}: {self.what}: {self.detail}"


@dataclass(frozen=True)
class Comparison:
    """One launch against its reading.

    Attributes:
        addresses: how many bytes of threads were executed and compared.
        exact: those of them where the reading had to be right both ways.
        unchecked: of arrays into which some access is not followed.
        spared: loads that were predicted and did not run, as the compiler kept the element from
            another access of the thread; ``dropped`` those that nothing explains but that nobody
            needs their value.
        notes: what could not be decided, such as loops without an end.
    """

    kernel: str
    contradictions: tuple[Contradiction, ...]
    addresses: int
    exact: int
    unchecked: int
    spared: int
    dropped: int
    notes: tuple[str, ...] = ()


def reading_of(launch: LaunchTrace, *, fixed: bool = False) -> Reading:
    """The reading of a launch's kernel; with ``fixed`` the launch's block sizes are numbers."""
    unit = lift(launch.text)
    named = [f for f in unit.kernels if f.name == launch.kernel]
    dims = dict(zip(_AXES, launch.block, strict=True))
    return read(
        unit,
        named[0],
        launch.template,
        tuned=sorted(parse_program(launch.text).values),
        fixed={f"blockDim.{axis}": size for axis, size in dims.items()} if fixed else {},
    )


def numeric_of(launch: LaunchTrace, reading: Reading) -> Numeric:
    """The evaluation of forms with what a launch was given."""
    scalars: dict[str, int] = dict(parse_program(launch.text).values)
    for axis, blocks, threads in zip(_AXES, launch.grid, launch.block, strict=True):
        scalars |= {f"gridDim.{axis}": blocks, f"blockDim.{axis}": threads}
    unit = lift(launch.text)
    for parameter in reading.function.parameters:
        value = launch.scalars.get(parameter.name)
        if isinstance(value, int):
            scalars[parameter.name] = value
        elif isinstance(value, bytes):
            scalars |= _members(unit, parameter.name, parameter.type.base, value)
    for name, symbol in reading.symbols.table.items():
        if name.startswith("sizeof(") and (struct := unit.structs.of(name[7:-1])):
            scalars |= {name: struct.size} if struct.size is not None else {}
        elif symbol.kind == "scalar" and name not in scalars and name in launch.variables:
            held = launch.variables[name].tobytes()
            scalars[name] = int.from_bytes(held, "little", signed=True)
    memory = {**launch.variables, **launch.arrays}
    wide = any(s.op == "wrap" and abs(s.arguments[1].value or 0) == 64
               for s in reading.symbols.table.values())  # fmt: skip
    return Numeric(
        reading.symbols, scalars, {name: _flat(array) for name, array in memory.items()}, wide
    )


def _flat(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _members(unit: Unit, name: str, struct: str, raw: bytes) -> dict[str, int]:
    known = unit.structs.of(struct)
    found = {}
    for field_ in known.fields if known is not None else ():
        kind, at = field_.type, field_.offset
        if kind.integral and at is not None and kind.size and not field_.rank:
            part = raw[at : at + kind.size]
            found[f"{name}.{field_.name}"] = int.from_bytes(part, "little", signed=kind.signed)
    return found


def threads_of(launch: LaunchTrace) -> Lanes:
    """One lane for every thread of a launch."""
    gx, gy, gz = launch.grid
    bx, by, bz = launch.block
    every = np.arange(gx * gy * gz * bx * by * bz, dtype=np.int64)
    block, thread = np.divmod(every, bx * by * bz)
    names = {}
    for number, axis in enumerate(_AXES):
        names[f"threadIdx.{axis}"] = thread // (1, bx, bx * by)[number] % launch.block[number]
        names[f"blockIdx.{axis}"] = block // (1, gx, gx * gy)[number] % launch.grid[number]
    return Lanes(names, every, np.ones(len(every), bool))


@dataclass
class _Side:
    """The bytes of one array and mode: what ran, what may run, what must; ``open`` may be more."""

    ran: list[_Spans] = field(default_factory=list)
    may: list[_Spans] = field(default_factory=list)
    must: list[_Spans] = field(default_factory=list)
    open: bool = False
    lines: set[int] = field(default_factory=set)


def check(
    launch: LaunchTrace, reading: Reading | None = None, *, by_line: bool = False
) -> Comparison:
    """Hold a reading against what a launch did; line by line where no compiler moved anything."""
    reading = reading or reading_of(launch)
    numeric = numeric_of(launch, reading)
    try:
        return _check(launch, reading, numeric, by_line=by_line)
    except OverflowError:  # a form of 64 bits without a sign
        numeric = replace(numeric, wide=True, breaches=set())
        return _check(launch, reading, numeric, by_line=by_line)


def _check(launch: LaunchTrace, reading: Reading, numeric: Numeric, *, by_line: bool) -> Comparison:
    walker = Walker(reading, numeric, threads_of(launch))
    found: list[Contradiction] = []
    sides: dict[_Key, _Side] = {}
    _predict(launch, walker, sides, by_line=by_line)
    _execute(launch, sides, by_line=by_line)
    unclear = {launch.buffers.get(array, array) for array in reading.unclear}
    # What the compiler made itself, such as the tables of virtual functions, is in no reading.
    named = {launch.buffers.get(array, array) for array in reading.arrays}
    for (buffer, _, _), side in sides.items():
        side.open |= buffer in unclear or buffer not in named
    totals = _Totals(launch, max((end for s in sides.values() for end in _ends(s)), default=1))
    for (buffer, mode, _), side in sides.items():
        stored = [s.ran for (name, m, _), s in sides.items() if name == buffer and m != "load"]
        found += totals.compare(buffer, mode, side, [span for ran in stored for span in ran])
    for what, line, detail in claims(walker):
        found.append(Contradiction(launch.kernel, what, line, detail))
    notes = tuple(f"{name}: no end is known" for name in sorted(walker.endless))
    return Comparison(launch.kernel, tuple(found), totals.addresses, totals.exact,
                      totals.unchecked, totals.spared, totals.dropped, notes)  # fmt: skip


def _predict(
    launch: LaunchTrace, walker: Walker, sides: dict[_Key, _Side], *, by_line: bool
) -> None:
    for access in walker.reading.accesses:
        array = walker.reading.arrays.get(access.array)
        if access.space != "global" or (array is None and access.array not in launch.buffers):
            continue
        buffer = launch.buffers.get(access.array, access.array)
        key = buffer, access.mode, access.line if by_line else 0
        side = sides.setdefault(key, _Side())
        side.lines.add(access.line)
        size = 8 if access.element.depth else access.element.size
        if size is None:
            size = walker.numeric.scalars.get(f"sizeof({access.element.name})")
        if access.offset is None or size is None:
            side.open = True
            continue
        lanes = walker.reaching(access)
        at, known = walker.numeric.form(access.offset, lanes)
        side.open |= not known.all()
        offsets = _addresses(at[known])
        threads, must = lanes.thread[known], lanes.must[known]
        side.may.append((threads, offsets, size))
        side.must.append((threads[must], offsets[must], size))
        if _swaps(access):
            first = sides.setdefault((buffer, "load", key[2]), _Side())
            first.lines.add(access.line)
            first.may.append((threads, offsets, size))


def _swaps(access: Access) -> bool:
    """Whether a function of the text repeats a compare-and-swap: it may load the element first."""
    call = access.node
    return access.mode == "atomic" and isinstance(call, Call) and (
        re.sub(r"_(?:block|system)$", "", bare(call.function)) not in ATOMICS
    )  # fmt: skip


def _addresses(offsets: Numbers) -> _Keys:
    """Offsets as a pointer of 64 bits adds them; those that no array has are all one."""
    if offsets.dtype == object:
        offsets = (offsets + 2**63) % 2**64 - 2**63
    return np.clip(offsets, -_FAR, _FAR).astype(np.int64)


def _execute(launch: LaunchTrace, sides: dict[_Key, _Side], *, by_line: bool) -> None:
    per_block = launch.block[0] * launch.block[1] * launch.block[2]
    rows: dict[tuple[_Key, int], tuple[list[int], list[int]]] = {}
    for (block, thread), touches in launch.touches.items():
        owner = block * per_block + thread
        for touch in touches:
            key = touch.array, touch.access, touch.line if by_line else 0
            threads, offsets = rows.setdefault((key, touch.width), ([], []))
            threads.append(owner)
            offsets.append(touch.offset)
    for (side, width), (threads, offsets) in rows.items():
        spans = np.array(threads, np.int64), np.array(offsets, np.int64), width
        sides.setdefault(side, _Side()).ran.append(spans)


def _ends(side: _Side) -> Iterable[int]:
    for _, offsets, size in (*side.ran, *side.may):
        if offsets.size:
            yield int(max(offsets.max(), -offsets.min())) + size


@dataclass
class _Totals:
    """Compares sets of bytes; a byte of a thread is one number."""

    launch: LaunchTrace
    reach: int
    addresses: int = 0
    exact: int = 0
    unchecked: int = 0
    spared: int = 0
    dropped: int = 0

    def compare(
        self, buffer: str, mode: str, side: _Side, stored: list[_Spans]
    ) -> Iterable[Contradiction]:
        ran, may, must = (self._keys(spans) for spans in (side.ran, side.may, side.must))
        if side.open:
            self.unchecked += ran.size
        else:
            self.addresses += ran.size
            beyond = np.setdiff1d(ran, may, assume_unique=True)
            if beyond.size:
                yield self._contradiction(buffer, mode, "executed, not predicted", beyond, side)
        missing = np.setdiff1d(must, ran, assume_unique=True)
        if mode == "load":
            kept = np.intersect1d(missing, self._keys(stored), assume_unique=True)
            self.spared += kept.size
            self.dropped += missing.size - kept.size
        elif missing.size:
            yield self._contradiction(buffer, mode, "predicted, not executed", missing, side)
        if not side.open and may.size == must.size:
            self.exact += ran.size

    def _keys(self, spans: list[_Spans]) -> _Keys:
        parts = [
            (threads * (2 * self.reach) + offsets + self.reach)[:, None] + np.arange(size)
            for threads, offsets, size in spans
        ]
        if not parts:
            return _NO_KEYS
        return np.unique(np.concatenate([part.reshape(-1) for part in parts]))

    def _contradiction(
        self, buffer: str, mode: str, what: str, keys: _Keys, side: _Side
    ) -> Contradiction:
        owner, place = divmod(int(keys[0]), 2 * self.reach)
        bx, by, bz = self.launch.block
        block, thread = divmod(owner, bx * by * bz)
        lines = sorted(side.lines) or [
            t.line for t in self.launch.touches[block, thread]
            if (t.array, t.access) == (buffer, mode)
        ]  # fmt: skip
        detail = (
            f"{mode} of {buffer} at byte {place - self.reach} by thread {thread} of block "
            f"{block}, and {keys.size - 1} bytes more; accesses on lines {lines}"
        )
        return Contradiction(self.launch.kernel, what, lines[0] if lines else 0, detail)


__all__ = ["Comparison", "Contradiction", "check", "reading_of"]
