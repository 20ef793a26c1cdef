"""How much of one kernel is read, in numbers."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from benchmarks.reading.subjects import Subject
from optiml_magic.kernels.read import read
from optiml_magic.kernels.reading import Access, Reading
from optiml_magic.kernels.symbols import UNKNOWN
from optiml_magic.kernels.tree import Block, Statement, Verbatim, walk
from optiml_magic.kernels.unit import lift

ROUNDS = 5
_MADE_OF = {
    "final": "what a loop leaves behind that is not followed",
    "load": "what is loaded by such a value, or stored as well",
    "operation": "an operation on such a value",
    "select": "a choice that is not followed",
    "unknown": "a value that is not followed",
}


@dataclass(frozen=True)
class Figures:
    """Counts of one kernel or of many; ``reasons`` say why the rest is not read."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Figures) -> Figures:
        return Figures(self.counts + other.counts, self.reasons + other.reasons)


def figures(subject: Subject) -> Figures:
    kernel = subject.kernel
    counts: Counter[str] = Counter(kernels=1)
    reasons: Counter[str] = Counter()
    try:
        found = read(
            subject.unit, kernel, subject.template, tuned=subject.tuned, fixed=subject.fixed
        )
    except Exception as error:  # noqa: BLE001  # a fault of the reading; the rest is counted
        counts["statements"] = counts["verbatim"] = _statements(kernel.body)
        return Figures(counts, Counter({f"a kernel: reading it raises {error!r}": 1}))
    counts["statements"] = _statements(kernel.body)
    kept = [s for s in walk(kernel.body) if isinstance(s, Verbatim)]
    counts["verbatim"] = sum(map(_statements, kept))
    reasons.update(f"a statement: {s.reason}" for s in kept)
    why = _unfollowed(found)
    counts["followed"] = not why
    if why:
        reasons[f"a kernel: {why}"] += 1
    for access in found.accesses:
        counts["accesses"] += 1
        digits = found.subscript(access)
        counts["delinearised"] += digits is not None and (
            digits.proved or digits.written or digits.bounded
        )
        if digits is None:
            reasons[f"an index: {_not_followed(found, access)}"] += 1
        elif not (digits.proved or digits.written or digits.bounded):
            reasons["an index: a digit is not bounded"] += 1
    for axis in found.axes:
        counts["loops"] += 1
        counts["bounded"] += axis.bounded
        if not axis.bounded:
            reasons[f"a loop: {axis.reason or 'its start or step is not followed'}"] += 1
    counts["reductions"] = len(found.reductions)
    counts["guards"] = len(found.guards)
    counts["conditions"] = sum(UNKNOWN not in guard.condition.depends for guard in found.guards)
    return Figures(counts, reasons)


def _statements(statement: Statement) -> int:
    """The statements, those inside of ones that are kept as they are included."""
    total = 0
    for inner in walk(statement):
        if isinstance(inner, Verbatim):
            total += sum(map(_statements, inner.inner))
        total += not isinstance(inner, Block)
    return total


def _unfollowed(found: Reading) -> str:
    """Why some access to global memory is not followed to its array; empty where all are."""
    used = [access for access in found.accesses if access.space == "global"]
    if any(access.verbatim for access in used):
        return "an access is in a statement that is kept as it is"
    if found.unclear:
        return "an array is handed to what is not read"
    arrays: dict[int, set[str]] = defaultdict(set)
    for access in used:
        arrays[id(access.node)].add(access.array)
    if any(not access.array for access in used):
        return "a pointer leads to no array that is known"
    if any(len(names) > 1 for names in arrays.values()):
        return "a pointer leads to one of several arrays"
    return ""


def _not_followed(found: Reading, access: Access) -> str:
    if access.index is None:
        return "where its pointer leads is not followed"
    kinds = {
        found.symbols[name].kind
        for name in found.symbols.inside(access.index)
        if UNKNOWN in found.symbols[name].depends
    }
    least = min(kinds, key=lambda kind: (kind != "unknown", kind))
    return f"it is made of {_MADE_OF.get(least, least)}"


def cost(text: str) -> tuple[float, float]:
    """Milliseconds of processor time to lift a text and to read its kernels, the best of five."""
    lifting, reading = [], []
    for round_ in range(ROUNDS):
        fresh = f"{text}\n// {round_} {time.process_time_ns()}\n"  # what was seen is not done again
        begun = time.process_time()
        unit = lift(fresh)
        lifted = time.process_time()
        for kernel in unit.kernels:
            read(unit, kernel)
        lifting.append(lifted - begun)
        reading.append(time.process_time() - lifted)
    return round(1e3 * min(lifting), 1), round(1e3 * min(reading), 1)
