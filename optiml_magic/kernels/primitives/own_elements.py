"""Elements of shared arrays that belong to a thread each, in registers of the lane that takes it.

Only a thread stores its own element, and threads ask for those of near neighbours. A lane that
takes neighbours then has most of what they ask for, and gets the rest from the lanes beside it by
shuffles: on a ring, the first lane from the last. These may stand in front of all that is done up
to the next barrier, since nobody may store what another thread asks for between two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import Assign, Expr, Index, Step, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.near_elements import (
    Among,
    Fixed,
    Near,
    Place,
    first_element,
    place_of,
)
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Declare, Evaluate, Loop, Statement, expressions
from optiml_magic.kernels.types import CType

_LANES = 32
_NEAR = 4  # elements to either side; ours
_ALL = "0xffffffffu"


@dataclass(frozen=True)
class _Own:
    """An array of which each thread owns an element, beginning with ``first``.

    Others ask for elements up to ``behind`` before and ``ahead`` after their own. Where ``longer``,
    the array may have elements beyond those of the threads; these, and those before the first,
    stay in shared memory. ``ends`` are what threads at the ends ask for in the place of these.
    """

    array: str
    name: str
    first: int
    behind: int
    ahead: int
    longer: bool
    ends: Mapping[int, int]


class Held:
    """The shared arrays of a kernel whose blocks are rows of threads, ``each`` of them a lane."""

    def __init__(self, kernel: Kernel, each: int, item: str = "item") -> None:
        """Raises NotLegal where an array is touched in another way, or where there is none."""
        self.kernel = kernel
        self.each = each
        self.item = item
        width, height, depth = kernel.block
        if width is None or width != each * _LANES or (height, depth) != (1, 1):
            raise NotLegal("its blocks are no rows of whole warps")
        self.width = width
        reading = kernel.reading
        self._places: dict[Access, Place] = {}
        shared = [a for a in reading.arrays.values() if a.space == "shared"]
        self.own = {a.name: self._owned(a.name) for a in shared}
        if not any(one.behind or one.ahead for one in self.own.values()):
            raise NotLegal("its threads ask for no element of a neighbour's")
        touched = [a for a in reading.accesses if a.space == "shared"]
        self._loads = {a.node: a for a in touched if isinstance(a.node, Index)}
        self._stores = {a.node: a for a in touched if a.mode == "store"}

    def _owned(self, array: str) -> _Own:
        found, first = self.kernel.reading.arrays[array], first_element(self.kernel, array)
        if len(found.extents) != 1 or found.dynamic:
            raise NotLegal(f"`{array}` is not a plain row of elements")
        ends = dict[int, int]()
        for access in self.kernel.reading.of(array):
            node = access.node
            place = node.target if isinstance(node, Assign | Step) else node
            plain = access.call is None and not access.verbatim and isinstance(place, Index)
            if not plain or access.mode == "atomic" or access.element != found.element:
                raise NotLegal(f"what is done with `{array}` is not followed", access.line)
            self._places[access] = where = place_of(self.kernel, access, first, self.width)
            near = where if isinstance(where, Near) else Near(0)
            if max(map(abs, self._far(access))) > _NEAR:
                raise NotLegal("a thread asks for a far element", access.line)
            for thread, source in near.ends.items():
                beyond = thread + near.apart
                alike = source == thread or ends.setdefault(beyond, source) == source
                if not alike or not self._reaches(beyond, source):
                    raise NotLegal("what threads at the ends ask for is not followed", access.line)
        asked = [far for access in self.kernel.reading.of(array) for far in self._far(access)]
        behind, ahead = -min([0, *asked]), max([0, *asked])
        if max(behind, ahead) > self.each:
            raise NotLegal("a lane has too few elements")
        if not _is_exchanged(found.element):
            raise NotLegal(f"lanes do not exchange elements of `{array}`")
        extent = found.extents[0].value if found.extents[0] is not None else None
        longer = extent is None or extent > first + self.width
        name = self.kernel.fresh(f"{array}_own")
        return _Own(array, name, first, behind, ahead, longer, ends)

    def _reaches(self, beyond: int, source: int) -> bool:
        """Whether a lane at an end has what it asks for there, or the lane at the other end."""
        lane = 0 if beyond < 0 else _LANES - 1
        return source == beyond % self.width or source // self.each == lane

    def _apart(self, access: Access) -> int | None:
        """How far an element is from the thread's own; None where it is not one of near ones."""
        place = self._places[access]
        return place.apart if isinstance(place, Near) else None

    def _far(self, access: Access) -> tuple[int, int]:
        """How far an access is behind a thread's own element at least, and ahead at most."""
        match self._places[access]:
            case Near(apart=apart):
                return apart, apart
            case Among(low=low, high=high):
                return low, high
        return 0, 0

    def _fixed(self, access: Access) -> int | None:
        """The number of a thread's element that is the same for all who load it."""
        place = self._places[access]
        return place.thread if isinstance(place, Fixed) else None

    def declared(self, statement: Declare) -> Iterator[str]:
        """The registers beside the declaration of a shared array."""
        for one in (self.own.get(v.name) for v in statement.variables if v.storage == "shared"):
            if one is not None:
                kind = self.kernel.reading.arrays[one.array].element.name
                yield f"{kind} {one.name}[{one.behind + self.each + one.ahead}];"

    def fetched(self, statements: Iterable[Statement]) -> list[str]:
        """What lanes get of each other for all that these ask for."""
        found = dict[str, None]()
        for access in self._asked(e for s in statements for e in expressions(s)):
            one, at, (low, high) = self.own[access.array], self._fixed(access), self._far(access)
            for number in range(high):
                found.update(dict.fromkeys(self._moved(one, self.width + number)))
            for number in range(-low):
                found.update(dict.fromkeys(self._moved(one, -1 - number)))
            if at is not None:
                kind = access.element.name
                found[f"const {kind} {self._named(one, at)} = {self._shuffled(one, at)};"] = None
        return [*found]

    def _moved(self, one: _Own, beyond: int) -> Iterator[str]:
        """How lanes get what lies so far beyond their own, ``beyond`` for those at the end."""
        low, near = beyond < 0, beyond % self.width
        at, to = (
            one.behind + near,
            one.behind + (beyond if low else beyond - self.width + self.each),
        )
        got = f"{one.name}[{at - self.width + self.each if low else at}]"
        source = one.ends.get(beyond)
        if source == near:
            other = f"(threadIdx.x + {_LANES - 1 if low else 1}) % {_LANES}"
            yield f"{one.name}[{to}] = __shfl_sync({_ALL}, {got}, {other});"
            return
        way, lane = ("up", 0) if low else ("down", _LANES - 1)
        yield f"{one.name}[{to}] = __shfl_{way}_sync({_ALL}, {got}, 1);"
        if source is not None:
            held = f"{one.name}[{one.behind + source - lane * self.each}]"
            yield f"if (threadIdx.x == {lane}) {one.name}[{to}] = {held};"

    def _asked(self, given: Iterable[Expr]) -> Iterator[Access]:
        """The loads of elements that threads own."""
        for part in (part for expr in given for part in every(expr)):
            access = self._loads.get(part) if isinstance(part, Index) else None
            if access is not None and access.mode == "load":
                yield access

    def _named(self, one: _Own, at: int) -> str:
        return self.kernel.fresh(f"{one.array}_at_{at}")

    def _shuffled(self, one: _Own, at: int) -> str:
        own = f"{one.name}[{one.behind + at % self.each}]"
        return f"__shfl_sync({_ALL}, {own}, {at // self.each})"

    def loads(
        self, given: Iterable[Expr], swaps: dict[Node, Node], *, once: bool = False
    ) -> dict[Node, Node]:
        """Loads of what lanes have, or have ``fetched``; ``once`` where all lanes ask at once."""
        found: dict[Node, Node] = {}
        for access in self._asked(given):
            part, at = access.node, self._fixed(access)
            one, place = self.own[access.array], self._places[access]
            if at is not None:
                words = self._shuffled(one, at) if once else self._of_one(one, at)
                found[part] = text(words)
            elif isinstance(place, Among):
                assert isinstance(part, Index)
                words = self.kernel.spelled(part.index, swaps)
                held = f"(int)({words}) - (int)threadIdx.x * {self.each} - {one.first}"
                own = f"{one.name}[{held.removesuffix(' - 0')} + {one.behind}]"
                tests = self._ends_of(one, place, held.removesuffix(" - 0"))
                found[part] = text(self._or_beside(own, tests, part, swaps))
            elif isinstance(place, Near):
                own = self._place(one, place.apart)
                test = "" if place.ends else self._is_held(one, place.apart)
                own = self._or_beside(own, test, part, swaps)
                for thread in (t for t, source in place.ends.items() if t == source):
                    lane, item = divmod(thread, self.each)  # may have stored it itself
                    test = f"threadIdx.x == {lane} && {self.item} == {item}"
                    own = f"({test} ? {self._place(one, 0)} : {own})"
                found[part] = text(own)
        return found

    def _or_beside(self, own: str, test: str, part: Node, swaps: dict[Node, Node]) -> str:
        """A lane's element where the ``test`` says that it is one, else that in shared memory."""
        if not test:
            return own
        assert isinstance(part, Index)
        beside = self.kernel.show(Evaluate(None, 0, part), swaps)
        return f"({test} ? {own} : {beside.strip().removesuffix(';')})"

    def _ends_of(self, one: _Own, place: Among, held: str) -> str:
        """The test whether a thread owns an element, which is at ``held`` of those of its lane."""
        tests = []
        if place.low < 0 and one.first:
            tests.append(f"({held} >= 0 || threadIdx.x > 0)")
        if place.high > 0 and one.longer:
            tests.append(f"({held} < {self.each} || threadIdx.x < {_LANES - 1})")
        return " && ".join(tests)

    def _is_held(self, one: _Own, apart: int) -> str:
        """The test whether a thread owns an element so far away; none where no other is there."""
        if apart > 0 and one.longer:
            return f"{self.item} + {apart} < {self.each} || threadIdx.x < {_LANES - 1}"
        if apart < 0 and one.first:
            return f"{self.item} >= {-apart} || threadIdx.x > 0"
        return ""

    def _place(self, one: _Own, apart: int) -> str:
        """A thread's own element, or one so far from it."""
        by = one.behind + apart
        return f"{one.name}[{self.item}{f' + {by}' if by else ''}]"

    def _of_one(self, one: _Own, at: int) -> str:
        """What one thread owns, which it may store itself before it loads it."""
        thread = f"threadIdx.x * {self.each} + {self.item} == {at}"
        return f"({thread} ? {self._place(one, 0)} : {self._named(one, at)})"

    def stores(self, given: Iterable[Expr]) -> dict[Node, Node]:
        """The elements that threads store, which are their own."""
        found: dict[Node, Node] = {}
        for part in (part for expr in given for part in every(expr)):
            access = self._stores.get(part) if isinstance(part, Assign | Step) else None
            if access is not None and self._apart(access) is not None:
                assert isinstance(part, Assign | Step)
                found[part.target] = text(self._place(self.own[access.array], 0))
        return found

    def quiet(self, loop: Loop) -> bool:
        """Whether a loop stores nothing but what lanes have in registers, so that none waits."""
        inside = {*expressions(loop)}
        stored = [a for a in self.kernel.reading.accesses if a.mode != "load" and a.own in inside]
        return all(a.space == "local" or self._is_own(a) for a in stored)

    def _is_own(self, access: Access) -> bool:
        return access.array in self.own and self._apart(access) is not None


def _is_exchanged(kind: CType) -> bool:
    """Whether there is a shuffle for a type."""
    plain = kind.kind in ("int", "bool") or (kind.kind == "float" and kind.size in (4, 8))
    return plain and not kind.depth
