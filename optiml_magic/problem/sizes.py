"""Sizes that a candidate never saw, for tasks whose inputs can be made at others.

A task's ``inputs(rng, **sizes)`` is called with them. Other arrays are drawn anew at other extents
where a scalar of the kernel equals an extent, or follows from one by a ``size`` directive: every
axis of that extent follows, and every scalar; one that counts the elements of an array follows that
array. Where none equals an extent, the integer scalars are taken for the sizes: one that counts the
elements of an array, ``n = rows * cols``, gives it as many, all along its first axis. Whether that
meant what the task means is learned on the input kernel: a size at which it is not right is not
asked of a candidate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations
from types import MappingProxyType
from typing import Any

import numpy as np

from optiml_magic.devices.base import Array
from optiml_magic.errors import RequirementError, UsageError
from optiml_magic.model.task import Task
from optiml_magic.problem import inputs
from optiml_magic.source.program import Program

Sizes = Mapping[str, int]
_SMALL = (1, 2, 3, 31, 32, 33, 61)
_ROUND = (64, 128)  # for kernels that can do multiples of something alone
_BEYOND = (65, 129, 257)  # the first of another tile or block
_EVEN = (34, 100)  # whole vectors of 2 and not of 4, of 4 and not of 8
_SHRUNK = (16, 4, 1)  # sizes beside those that a condition reads
_FEW = 1 << 18  # elements of an array that has every size as an axis
_MOST_AROUND = 24  # sets of sizes for the numbers of a condition
_MOST_NEAR = 12  # these cost as much as a verification
_LARGEST_DIVISOR = 64
_KEPT = 128  # a size that is as small where it is measured may be verified as it is
GROWN = 16  # times the work of a verification that this, or larger sizes, may take: ours
_SEED = 1000  # of the first set of inputs; those of the given sizes count from 0


@dataclass(frozen=True)
class Sizing:
    """The sizes of a task that can be changed.

    ``own`` are those of its inputs ``first``, ``given`` the largest that it is verified at, and
    ``known`` what is known of the arrays among its inputs.
    """

    task: Task
    program: Program
    first: Mapping[str, Any]
    own: Sizes
    given: Sizes
    known: dict[str, inputs.Alike] = field(default_factory=dict, repr=False, compare=False)

    def draw(self, sizes: Sizes, seed: int, *, contents: bool = True) -> dict[str, Any]:
        """Every value by name at these sizes; whatever the task's own code raises.

        Without ``contents`` arrays hold nothing, where it is not that code that makes them.
        """
        if _is_sized(self.task):
            chosen = replace(self.task, sizes={**self.task.sizes, **sizes})
            values = inputs.draw(chosen, seed)
        else:
            values = self._resized(sizes, seed, contents)
        return with_sizes(self.program, values)

    def _alike(self, name: str, array: Array) -> inputs.Alike:
        if name not in self.known:
            self.known[name] = inputs.Alike(array)
        return self.known[name]

    def _resized(self, sizes: Sizes, seed: int, contents: bool) -> dict[str, Any]:
        first, rng = self.first, np.random.default_rng(seed)
        extents = {self.own[name]: size for name, size in sizes.items()}
        shapes = {
            name: _shape(value, extents)
            for name, value in first.items()
            if isinstance(value, np.ndarray) and value.ndim
        }
        follow = {first[name].size: math.prod(shape) for name, shape in shapes.items()} | extents
        derived = {directive.name for directive in self.program.sizes}
        values: dict[str, Any] = {}
        for name, value in first.items():
            if name in shapes:
                none: Any = np.broadcast_to(np.zeros((), value.dtype), shapes[name])
                alike = self._alike(name, value)
                values[name] = alike.drawn(rng, shapes[name]) if contents else none
            elif isinstance(value, (int, np.integer)) and name not in derived:
                values[name] = type(value)(follow.get(int(value), int(value)))
            elif name not in derived:
                values[name] = value
        return values


def _shape(array: Array, extents: Mapping[int, int]) -> tuple[int, ...]:
    """Each axis at its new extent; of an array that is only counted, one axis with all elements."""
    if array.size in extents and not any(extent in extents for extent in array.shape):
        return (extents[array.size], *[1] * (array.ndim - 1))
    return tuple(extents.get(extent, extent) for extent in array.shape)


def with_sizes(program: Program, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, with scalars that a ``size`` directive derives from an array's shape."""
    shapes = {n: v.shape for n, v in values.items() if isinstance(v, np.ndarray)}
    integers = inputs.whole_numbers(values)
    derived = {
        directive.name: directive.expression.evaluate(integers, shapes)
        for directive in program.sizes
        if directive.name not in values
    }
    return {**values, **derived}


def sizing(
    task: Task,
    program: Program,
    scalars: Sequence[str],
    first: Mapping[str, Any],
    verified: Sizes = MappingProxyType({}),
) -> Sizing | None:
    """The sizes that can be changed, or None; ``verified`` are smaller ones that it is verified at.

    ``first`` are the task's own inputs, ``scalars`` the parameters of the kernel that are none.
    """
    if _is_sized(task):
        own = inputs.whole_numbers(task.sizes)
        return Sizing(task, program, first, own, {**own, **verified}) if own else None
    extents = {e for v in first.values() if isinstance(v, np.ndarray) for e in v.shape}
    derived = {directive.name for directive in program.sizes}
    integers = {
        name: int(first[name])
        for name in scalars
        if isinstance(first.get(name), (int, np.integer)) and not isinstance(first[name], bool)
    }
    found = {name: value for name, value in integers.items() if value in extents} or {
        name: value for name, value in integers.items() if value > 1 and name not in derived
    }
    # Scalars of one value move together: a square stays a square.
    own = {name: value for value, name in {v: n for n, v in reversed(found.items())}.items()}
    return Sizing(task, program, first, own, {**own, **verified}) if own else None


def small(given: Sizes) -> Iterator[tuple[dict[str, int], int]]:
    """Sizes that cost next to nothing, each with a seed; several sizes differ from one another."""
    for at in range(len(_SMALL)):
        yield _rotated(given, _SMALL, at, step=2), _SEED + at
    for at in range(len(_ROUND)):
        yield _rotated(given, _ROUND, at, step=1), _SEED + len(_SMALL) + at
    for at in range(len(_BEYOND)):
        yield _rotated(given, _BEYOND, at, step=1), _SEED + 50 + at
    for at in range(len(_EVEN)):
        yield _rotated(given, _EVEN, at, step=1), _SEED + 60 + at


def kept(given: Sizes, smaller: Sizes) -> dict[str, int]:
    """Sizes to verify at, in which small ones are those that are measured: the nearest first.

    A program may be made for them: ``require dim == 16`` is then verified, and not refused. What
    both sets agree on stays: heads come in whole groups, and no more are chosen than there are.
    """
    found, work = {**smaller}, 1.0
    both = _relations(given) & _relations(smaller)
    agreed = {(a, b, whole) for a, b, whole in both if (b, a, whole) not in both}
    for name in sorted(smaller, key=lambda name: given[name] / max(smaller[name], 1)):
        times = given[name] / max(smaller[name], 1)
        mixed = {**found, name: given[name]}
        if times <= 1 or given[name] > _KEPT or work * times > GROWN:
            continue
        if agreed <= _relations(mixed):
            found, work = mixed, work * times
    return found


def _relations(sizes: Sizes) -> set[tuple[str, str, bool]]:
    """Which size is larger than which, and whether it is a multiple of that one."""
    larger = [(a, b) for a, b in permutations(sizes, 2) if sizes[a] >= sizes[b] > 0]
    multiple = {(a, b, True) for a, b in larger if sizes[a] % sizes[b] == 0}
    return {(a, b, False) for a, b in larger} | multiple


def much_larger(sizing: Sizing | None, sizes: Sizes, asked: Sizes) -> bool:
    """Whether inputs have many more elements than those of the sizes that were asked for.

    Of a size that is an exponent, one more may be twice as many.
    """
    if sizing is None or sizes == asked:
        return False
    try:
        many, few = (_elements(sizing.draw(each, 0)) for each in (sizes, asked))
    except UsageError:  # whoever verifies there says so
        return False
    return many > GROWN * max(few, 1)


def _elements(values: Mapping[str, Any]) -> int:
    return sum(value.size for value in values.values() if isinstance(value, np.ndarray))


def check_required(program: Program, values: Mapping[str, Any]) -> None:
    """Raise RequirementError where the program says itself that it is not for these values."""
    shapes = {n: v.shape for n, v in values.items() if isinstance(v, np.ndarray)}
    integers = inputs.whole_numbers(values)
    known = {**integers, **program.macros, **program.values}
    for condition in (requirement.condition for requirement in program.requires):
        is_known = condition.names <= known.keys() and condition.arrays <= shapes.keys()
        if is_known and not condition.evaluate(known, shapes):
            raise RequirementError(f"`require {condition}` does not hold")


def _is_sized(task: Task) -> bool:
    """Whether the task's inputs are a function of named sizes."""
    return callable(task.inputs) and bool({**task.sizes, **task.verify_sizes})


def large(given: Sizes) -> Iterator[tuple[dict[str, int], int]]:
    """A prime below each size, half of each, and the next below that is even but not by four."""
    yield {name: _prime(size) for name, size in given.items()}, _SEED + 100
    yield {name: max(1, size // 2) for name, size in given.items()}, _SEED + 101
    yield {n: max(1, size - 1 - (size - 3) % 4) for n, size in given.items()}, _SEED + 102


def grown(given: Sizes, own: Sizes) -> Iterator[tuple[dict[str, int], int]]:
    """Up to four times the given sizes where the task is measured at larger ones.

    The inside of a tile that is larger than the given sizes shows there. At most 16 times the work
    where sizes multiply.
    """
    larger = [name for name, size in given.items() if own.get(name, size) > size]
    by = 4 if len(larger) <= 2 else 2
    if larger:
        more = {name: min(own[name], by * given[name] + 1) for name in larger}
        yield {**given, **more}, _SEED + 103


def around(
    given: Sizes, numbers: Sequence[int], asked: Sizes = MappingProxyType({})
) -> Iterator[tuple[dict[str, int], int]]:
    """Small sizes at both sides of a condition that compares with, or divides by, ``numbers``.

    ``asked`` are the sizes that conditions read, as the task is measured at them: these may be
    above the given ones, which a task that is verified at smaller sizes never reaches.
    """
    found: list[dict[str, int]] = []
    if any(size > given[name] for name, size in asked.items()):
        found += _beside(given, asked)
    for number in numbers:
        level = {name: min(number, _ROUND[0], max(1, size)) for name, size in given.items()}
        found.append({name: min(number, max(1, size)) for name, size in given.items()})
        for name, size in given.items():
            largest = max(size, asked.get(name, 0))
            found += [{**level, name: n} for n in (number, number + 1, number - 1) if n <= largest]
    few = [sizes for sizes in found if math.prod(sizes.values()) <= _FEW]
    distinct = [sizes for at, sizes in enumerate(few) if sizes not in few[:at]]
    yield from ((sizes, _SEED + 200 + at) for at, sizes in enumerate(distinct[:_MOST_AROUND]))


def measured(
    given: Sizes, own: Sizes, asked: Sizes = MappingProxyType({})
) -> Iterator[tuple[dict[str, int], int]]:
    """One size at a time as the task is measured, from which what a condition reads may follow.

    It may follow from two of them, or from those that are ``asked`` as well: these come behind.
    """
    others = {name: size for name, size in own.items() if size != given[name]}
    few = [sizes for name, size in others.items() for sizes in _beside(given, {name: size})]
    few = few[:_MOST_NEAR]
    yield from ((sizes, _SEED + 400 + at) for at, sizes in enumerate(few))
    shrinking = {**{name: given[name] for name in others}, **given}
    free = [name for name in others if name not in asked]
    both = _fitting(shrinking, asked) if asked else []
    for count in (1, 2)[not asked :]:
        for names in combinations(free, count):
            both += _fitting(shrinking, {**asked, **{name: own[name] for name in names}})[:1]
    distinct = [sizes for at, sizes in enumerate(both) if sizes not in (*few, *both[:at])]
    yield from ((sizes, _SEED + 420 + at) for at, sizes in enumerate(distinct[:_MOST_NEAR]))


def _fitting(given: Sizes, fixed: Sizes) -> list[dict[str, int]]:
    """The given sizes but for those fixed, and more and more of the first ones 1.

    No more work than a verification; behind these what is no more than larger sizes may be.
    """
    work = math.prod(given.values())
    others = [name for name in given if name not in fixed]
    found = [
        {**given, **dict.fromkeys(others[:ones], 1), **fixed} for ones in range(len(others) + 1)
    ]
    few = [sizes for sizes in found if math.prod(sizes.values()) <= max(_FEW, work)]
    more = [sizes for sizes in found if math.prod(sizes.values()) <= GROWN * work]
    return [*few, *(sizes for sizes in more if sizes not in few)]


def _beside(given: Sizes, fixed: Sizes) -> list[dict[str, int]]:
    """The given sizes but for those fixed, as small as that needs; none where it is too large."""
    most = (max(given.values()), *_SHRUNK)
    found = [{n: fixed.get(n, min(one, size)) for n, size in given.items()} for one in most]
    return [sizes for sizes in found if math.prod(sizes.values()) <= _FEW][:1]


def near(given: Sizes, numbers: Sequence[int]) -> Iterator[tuple[dict[str, int], int]]:
    """Sizes just below the given ones, for what no small ones reach."""
    whole = dict(given)
    found = [{name: max(1, size - 1) for name, size in given.items()}]
    for divisor in (n for n in numbers if n <= _LARGEST_DIVISOR):
        found.append({n: size // divisor * divisor or size for n, size in given.items()})
        for name, size in given.items():
            found += [{**whole, name: n} for n in (size // divisor * divisor, size - 1) if n > 0]
    distinct = [sizes for at, sizes in enumerate(found) if sizes not in (whole, *found[:at])]
    yield from ((sizes, _SEED + 300 + at) for at, sizes in enumerate(distinct[:_MOST_NEAR]))
    yield from large(given)


def spelled(sizes: Sizes) -> str:
    """``rows = 31, cols = 33``."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _rotated(given: Sizes, values: tuple[int, ...], at: int, *, step: int) -> dict[str, int]:
    """No size above the given one: what it counts may grow faster than itself."""
    return {
        name: min(values[(at + step * place) % len(values)], max(1, size))
        for place, (name, size) in enumerate(given.items())
    }


def _prime(below: int) -> int:
    """The largest prime below a number; 1 where there is none."""
    for number in range(below - 1, 1, -1):
        if all(number % divisor for divisor in range(2, int(number**0.5) + 1)):
            return number
    return 1
