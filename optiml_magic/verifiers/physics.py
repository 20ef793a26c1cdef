"""Faster than the memory allows: a time, or a traffic, below that of the bytes a task needs.

What a task needs is declared (``Task.bytes``), or it is its outputs and those inputs that matter:
an element matters if the reference answers otherwise once it is changed. Operations are no such
limit, since another algorithm may need fewer.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from optiml_magic.chips import Chip
from optiml_magic.devices.base import Array
from optiml_magic.errors import OracleError
from optiml_magic.model.dtypes import kind
from optiml_magic.model.measurement import Measurement
from optiml_magic.problem import Problem

_SECTOR = 32
_SHARE = 0.9  # of the needed bytes: what lies below is no rounding of ours
_PICKS = 32  # elements of each input that are changed
_SECONDS = 10.0  # for all of them
_MOST_CALLS = 20  # that these are for, where one value in each place must do
_Z = 1.96


@dataclass(frozen=True)
class Traffic:
    """Bytes that any program for the task reads and writes at least."""

    read: int
    written: int


class Physics:
    """The limits of one problem on one chip."""

    def __init__(self, problem: Problem, chip: Chip) -> None:
        self._problem = problem
        self._chip = chip
        self._needed: Traffic | None = None

    def shortfall(self, measured: Measurement) -> str:
        """What is too little to be true, in a sentence; empty where nothing is.

        What matters is asked of the reference only where the inputs and outputs as a whole would
        be too much for the measurement, so this costs nothing for most.
        """
        declared = self._problem.task.bytes
        if declared is not None:
            # An array that starts as something is read and written: each may be what was declared.
            read = max(0, declared - _writable(self._problem))
            return self._short(measured, Traffic(read, declared - read))
        if not self._short(measured, self._everything):
            return ""
        if self._needed is None:
            self._needed = needed(self._problem)
        return self._short(measured, self._needed)

    def note(self, measured: Measurement) -> str:
        """More declared operations than the chip can do in that time: a fact, not a fault."""
        flops = self._problem.task.flops
        if flops is None or measured.source != "events":
            return ""
        if flops <= measured.seconds * self._chip.fp32_flops:
            return ""
        return f"{flops} operations in {measured.seconds:.3g} s are above the fp32 peak"

    @property
    def _everything(self) -> Traffic:
        buffers = self._problem.instances[0].case.buffers
        read = sum(b.array.nbytes for b in buffers if b.name in _readable(self._problem))
        return Traffic(read, _written(self._problem))

    def _short(self, measured: Measurement, need: Traffic) -> str:
        if measured.source == "events":
            # What is written may stay in the L2 when the clock stops; what is read was not there.
            moved = need.read + max(0, need.written - self._chip.l2_bytes)
            least = moved / self._chip.dram_bandwidth
            if measured.seconds >= least:
                return ""
            return (
                f"{measured.seconds * 1e6:.3g} us is less than the {least * 1e6:.3g} us that "
                f"{moved} bytes take at {self._chip.dram_bandwidth / 1e12:.3g} TB/s"
            )
        counted = [k.read_sectors_unique for k in measured.kernels if not k.sampled]
        if not counted or len(counted) < len(measured.kernels) or None in counted:
            return ""
        sectors = sum(filter(None, counted))
        if sectors * _SECTOR >= _SHARE * need.read:
            return ""
        return (
            f"it reads {sectors * _SECTOR} distinct bytes, and {need.read} bytes of the inputs "
            "decide what comes out"
        )


def needed(problem: Problem) -> Traffic:
    """The outputs, and of each input the share that was shown to matter."""
    references = problem.references
    if references is None:
        return Traffic(0, _written(problem))
    values = dict(problem.first.values)
    outputs = [b.name for b in problem.interface.named("output", "inout")]
    for bound in problem.interface.named("output"):
        values.pop(bound.name, None)

    def answer(changed: dict[str, Any]) -> dict[str, Array]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return references.answer(changed).outputs

    base, rng, until = answer(values), np.random.default_rng(0), time.monotonic() + _SECONDS
    own, read = problem.instances[0].values, 0.0  # which may be less than what it is verified on
    for name in _readable(problem):
        array = values[name]
        picks = rng.permutation(array.size)[:_PICKS]
        hits = tried = 0
        for at in picks:
            if time.monotonic() > until:
                break
            tried += 1
            others = _others(array)
            for other in others if references.seconds < _SECONDS / _MOST_CALLS else others[:1]:
                changed = array.copy()
                changed.reshape(-1)[at] = other
                try:
                    found = answer({**values, name: changed})
                except OracleError:
                    continue
                if any(not _same(base[o], found[o]) for o in outputs):
                    hits += 1
                    break
        whole = min(array.nbytes, own[name].nbytes)
        read += whole * _least_share(hits, tried, array.size)
    return Traffic(int(read), _written(problem))


def _readable(problem: Problem) -> list[str]:
    """The arrays that come through global memory, and that have numbers to be changed."""
    values = problem.instances[0].values
    return [
        b.name
        for b in problem.interface.named("input", "inout")
        if b.place != "variable" and isinstance(values.get(b.name), np.ndarray)
    ]


def _written(problem: Problem) -> int:
    """Bytes of the outputs; of one that starts as something, none may have to be written."""
    started = {d.buffer for d in problem.program.inits}
    buffers = problem.instances[0].case.buffers
    return sum(b.array.nbytes for b in buffers if b.role == "output" and b.name not in started)


def _writable(problem: Problem) -> int:
    buffers = problem.instances[0].case.buffers
    return sum(b.array.nbytes for b in buffers if b.role in ("output", "inout"))


def _others(array: Any) -> list[Any]:
    """Values to put into one place of an array; none where that could break its order."""
    letter = kind(array.dtype)
    ordered = array.ndim == 1 and array.size > 2 and letter in "iuf"
    if letter == "V" or (ordered and bool(np.all(array[:-1] <= array[1:]))):
        return []
    if letter == "b":
        return [False, True]
    if letter in "iu":
        return [array.min(), array.max()]
    finite = np.abs(array[np.isfinite(array)].astype(np.float64))
    large = min(4 * float(finite.max(initial=0.0)) + 1, float(np.finfo(np.float32).max) / 8)
    return [large, -large, 0.0]


def _same(one: Array, two: Array) -> bool:
    if one.dtype.names is not None:
        return one.tobytes() == two.tobytes()
    return bool(np.array_equal(one, two, equal_nan=one.dtype.kind in "fc"))


def _least_share(hits: int, tried: int, size: int) -> float:
    """The lower end of the 95 % interval (Wilson) for the share of elements that matter."""
    if not tried:
        return 0.0
    share = hits / tried
    if tried == size:
        return share
    middle = share + _Z**2 / (2 * tried)
    spread = _Z * math.sqrt((share * (1 - share) + _Z**2 / (4 * tried)) / tried)
    return max(0.0, (middle - spread) / (1 + _Z**2 / tried))
