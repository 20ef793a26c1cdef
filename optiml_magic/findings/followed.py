"""What a program has already, or cannot have: advice to that end is left out.

A rule that is asked for anew where it was applied finds nothing, and a person who reads it stops
believing the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from optiml_magic.findings.subject import Subject
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, kernels
from optiml_magic.kernels.reading import Array, Axis, Reading
from optiml_magic.model.counters import Access
from optiml_magic.model.finding import Action, Finding

_STAGING = frozenset({"stage_tile", "transpose_tile"})
_BLOCKS = frozenset({"blockIdx.x", "blockIdx.y", "blockIdx.z"})
_WAYS: tuple[Access, ...] = ("load", "store")


def fitting(findings: Iterable[Finding], subject: Subject) -> Iterator[Finding]:
    """The findings without actions that do not fit, or that their tool said of a line before."""
    told: set[tuple[str, str]] = set()
    for finding in findings:
        fit = [a for a in finding.actions if not _followed(a, finding, subject)]
        new = tuple(a for a in fit if (finding.tool, a.advice) not in told)
        told |= {(finding.tool, action.advice) for action in new}
        yield replace(finding, actions=new) if new != finding.actions else finding


def _followed(action: Action, finding: Finding, subject: Subject) -> bool:
    if action.rewrite == "row_to_lanes":
        return all(shares_rounds(reading) for reading in _at(finding.line, subject))
    if action.rewrite in _STAGING and finding.tool != "bank_conflicts":
        return waits_alone(finding.line, subject)
    return False


def _at(line: int, subject: Subject) -> tuple[Reading, ...]:
    """The kernel that a line is in; all of them where it is in none."""
    before = [r for r in subject.readings if r.function.line <= line]
    return (max(before, key=lambda r: r.function.line),) if before else subject.readings


def exchanges(subject: Subject) -> bool:
    """Whether lanes of a warp exchange values by shuffles."""
    return any(LANES.fullmatch(name) for reading in subject.readings for name in reading.calls)


def shares_rounds(reading: Reading) -> bool:
    """Whether lanes, or the threads of a block, share the rounds of some loop already."""
    if any(LANES.fullmatch(name) for name in reading.calls):
        return True
    return any(_strided(reading, axis) for axis in reading.axes)


def _strided(reading: Reading, axis: Axis) -> bool:
    """Whether each thread begins at a round of its own and steps over those of its block."""
    if axis.start is None or axis.step is None or axis.step.value in (1, -1):
        return False
    inside = reading.symbols.inside
    by_thread = "threadIdx.x" in inside(axis.start)
    return by_thread and not any(name.startswith("gridDim") for name in inside(axis.step))


def waits_alone(line: int, subject: Subject) -> bool:
    """Whether a line is in a loop of which the threads of a block may make different rounds.

    No barrier may stand in such a loop.
    """
    sites = [s for way in _WAYS for s in subject.lines.sites(line, way, "global")] if line else []
    return any(
        not site.reading.uniform(axis.test)
        for site in sites for axis in site.reading.loops(site.access)
    )  # fmt: skip


def padded(line: int, access: Access, subject: Subject) -> bool:
    """Whether the rows of all shared arrays of a line lie an odd number of words apart."""
    arrays = _shared(line, access, subject)
    return bool(arrays) and all(_odd(array) for array in arrays)


def without_rows(line: int, access: Access, subject: Subject) -> bool:
    """Whether all shared arrays of a line have one axis alone, so that no row can be padded."""
    arrays = _shared(line, access, subject)
    return bool(arrays) and all(len(array.extents) == 1 for array in arrays)


def _shared(line: int, access: Access, subject: Subject) -> list[Array]:
    names = subject.lines.arrays(line, access, "shared") if line else ()
    return [r.arrays[name] for r in _at(line, subject) for name in names if name in r.arrays]


def _odd(array: Array) -> bool:
    inner = array.extents[-1] if len(array.extents) > 1 else None
    size = array.element.size
    if inner is None or not size:
        return False
    if inner.value is not None:
        return inner.value * size % 8 == 4
    return size == 4 and dict(inner.terms).get((), 0) % 2 == 1


def across_the_grid(subject: Subject) -> bool:
    """Whether each launch that follows another needs what all blocks of that one did.

    It adds up what they left, or takes a step in which each element meets its neighbours.
    """
    found = kernels(subject.program, subject.facts)
    pairs = [*pairwise(found)]
    if len(subject.plan.launches) > len(subject.program.alternatives):
        pairs += [(kernel, kernel) for kernel in found]
    try:
        needs = [each for one, other in pairs if (each := [*_needs(one, other)])]
    except NotLegal:
        return False
    return bool(needs) and all(map(any, needs))


def _needs(one: Kernel, other: Kernel) -> Iterator[bool]:
    """For each array that one launch writes and the next reads: whether it needs all of it."""
    if one.facts is None or other.facts is None:
        return
    for name in sorted(one.reading.written & one.facts.arrays.keys()):
        stores = [a for a in one.reading.of(name) if a.mode != "load"]
        same = [
            n for n, array in other.facts.arrays.items()
            if (one is other and array.dtype == one.facts.arrays[name].dtype)
            or array.buffer == one.facts.arrays[name].buffer
        ]  # fmt: skip
        loads = [a for n in same for a in other.reading.of(n) if a.mode == "load"]
        if not loads:
            continue
        if one is other:
            forms = {a.index for a in stores}
            yield any(a.index not in forms for a in loads)
        else:
            added = any(a.mode == "atomic" for a in stores)
            yield added or any(not _by_block(other.reading, a.index) for a in loads)


def _by_block(reading: Reading, index: Polynomial | None) -> bool:
    return index is not None and bool(_BLOCKS & reading.symbols.inside(index))
