"""Whether floats decide whole numbers that must be right to the last: which branch, which element.

A float that is off by a little is within the tolerance where it is stored. Where it is compared, or
becomes a whole number, the result is the right one or another one, and no inputs that are tried
need be those at the border. So it is with the element that a store chooses. An edit that makes
floats less exact leaves such a kernel alone. Values are followed through locals, arrays, functions
and branches without regard to order, and through memory to the launches behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Index,
    Lambda,
    Member,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import (
    Declare,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    Verbatim,
    expressions,
    walk,
)

REASON = "a whole number that must be exact depends on its last bits"
TURNED = "an angle, which may be many turns, depends on its last bits"
ANGLES = frozenset({"sin", "cos", "tan", "sincos"})


def line_decided(kernel: Kernel, changed: Iterable[Expr]) -> int:
    """The first line that stores a whole number by what these decide, and must be right; else 0."""
    reach = _Reach(kernel, {*changed}, frozenset())
    buffers = frozenset[str]()
    while True:
        lines = [a.line for a in reach.stores if _exact(reach.kernel, a) or reach.misplaces(a)]
        if lines:
            return min(lines)
        behind = reach.kernel.behind
        buffers |= {_buffer(reach.kernel, a.array) for a in reach.stores}
        if behind is None or not buffers:
            return 0
        names = [parameter.name for parameter in behind.function.parameters]
        held = frozenset(name for name in names if _buffer(behind, name) in buffers)
        reach = _Reach(behind, set(), held)


def line_turned(kernel: Kernel, changed: Iterable[Expr]) -> int:
    """The first line that asks for the sine of an angle that these decide; 0 where none does.

    What is off by a millionth of a thousand radians points elsewhere.
    """
    reach = _Reach(kernel, {*changed}, frozenset())
    lines = (
        statement.line
        for statement in walk(kernel.function.body)
        for top in statement.expressions
        for e in every(top)
        if isinstance(e, Call) and bare(e.function).removesuffix("f") in ANGLES
        if any(map(reach.holds, e.arguments))
    )
    return min(lines, default=0)


def line_magnified(kernel: Kernel, changed: Iterable[Expr]) -> int:
    """The first line where what these are off by may become much more; 0 where none is found.

    A float that chooses which element is loaded is between two of them, and the farther from zero
    the fewer bits say where. Of the difference of two such values that are nearly the same only
    their last bits are left, and what is divided by it is off by as much.
    """
    reach = _Reach(kernel, {*changed}, frozenset())
    lines = [a.line for a in kernel.reading.accesses if a.mode == "load" and reach.chooses(a)]
    lines += (
        statement.line
        for statement in walk(kernel.function.body)
        for e in chain(*map(every, statement.expressions))
        if isinstance(e, Binary) and e.op == "/" and reach.cancels(e.right)
    )
    return min(lines, default=0)


def doubles(kernel: Kernel) -> Iterator[Expr]:
    """What a kernel computes in double."""
    for expr, kind in kernel.reading.types.items():
        if kind.floating and kind.size == 8:
            yield expr


def _exact(kernel: Kernel, access: Access) -> bool:
    """Whether no other number than the right one will do for what is stored there."""
    array = kernel.facts.arrays.get(access.array) if kernel.facts is not None else None
    return access.element.lane.integral and (array is None or array.exact)


def _buffer(kernel: Kernel, array: str) -> str:
    """What an array of a kernel is called by the launches of its program."""
    names = [parameter.name for parameter in kernel.function.parameters]
    if kernel.launch.args is None or array not in names:
        return array
    passed = kernel.launch.args[names.index(array)].name
    return array if passed is None else passed


class _Reach:
    """All that some expressions of a kernel, or what it finds in some arrays, may decide."""

    def __init__(self, kernel: Kernel, changed: set[Expr], arrays: frozenset[str]) -> None:
        self.kernel = kernel
        self._changed = changed
        self._arrays = {*arrays}
        self._variables = set[Variable]()
        self._left = set[Statement]()  # the loops and the body that are left where it decides
        self._told: dict[Access, None] = {}
        self._placed = set[Access]()  # stores to an element that it chooses
        self._loads: dict[Expr, list[Access]] = {}
        self._stores: dict[Expr, list[Access]] = {}
        for access in kernel.reading.accesses:
            if access.mode != "store":
                self._loads.setdefault(access.own, []).append(access)
            if access.mode != "load":
                self._stores.setdefault(access.own, []).append(access)
        self._functions = self._calling(changed)
        body, before = kernel.function.body, -1
        while before != self._size:
            before = self._size
            self._follow(body, body, decided=False)

    @property
    def stores(self) -> tuple[Access, ...]:
        """Those to global memory whose value, place or taking place is decided."""
        return tuple(access for access in self._told if access.space == "global")

    def misplaces(self, access: Access) -> bool:
        """Whether a float may go to another element; counts may where they have a tolerance."""
        return access in self._placed and not access.element.lane.integral

    def chooses(self, access: Access) -> bool:
        """Whether it decides which element a load takes."""
        return any(map(self.holds, _where(access.own)))

    def cancels(self, divisor: Expr) -> bool:
        """Whether a divisor is a difference of two values that it decides."""
        match divisor:
            case Binary(op="-", left=left, right=right):
                return self.holds(left) and self.holds(right)
            case Name(variable=Variable(value=Expr() as value)):
                return self.cancels(value)
            case Cast(operand=operand):
                return self.cancels(operand)
        return False

    @property
    def _size(self) -> int:
        return len(self._variables) + len(self._arrays) + len(self._left) + len(self._told)

    def _calling(self, changed: Collection[Expr]) -> set[str]:
        """The functions of the text in which some of it stands, or that call one of those."""
        functions = [*reached(self.kernel.unit, self.kernel.function)]
        found, before = set[str](), -1
        while before != len(found):
            before = len(found)
            for function in functions:
                for e in expressions(function.body):
                    if e in changed or (isinstance(e, Call) and bare(e.function) in found):
                        found.add(bare(function.name))
        return found

    def holds(self, whole: Expr) -> bool:
        return any(map(self._is, every(whole)))

    def _is(self, e: Expr) -> bool:
        if e in self._changed or any(a.array in self._arrays for a in self._loads.get(e, ())):
            return True
        match e:
            case Name(variable=Variable() as variable):
                return variable in self._variables
            case Call(function=name):
                return bare(name) in self._functions
        return False

    def _follow(self, statement: Statement, around: Statement, *, decided: bool) -> None:
        """``around`` is the innermost loop; ``decided``, whether it runs for such a reason."""
        decided = decided or statement in self._left
        inside = decided
        for top in statement.expressions:
            for e in every(top):
                self._does(e, decided=decided)
        match statement:
            case If(test=test) | Loop(test=Expr() as test):
                inside = decided or self.holds(test)
            case Leave(kind="return") if decided:
                self._left.add(self.kernel.function.body)
            case Leave() if decided:
                self._left.add(around)
            case Verbatim(mentions=mentions):
                inside = decided or any(map(self.holds, mentions))
                self._mark(mentions if inside else ())
            case Declare(variables=variables):
                for variable in variables:
                    first = variable.initial if variable.value is None else (variable.value,)
                    if any(map(self.holds, first)):
                        self._variables.add(variable)
        for inner in statement.statements:
            within = statement if isinstance(statement, Loop) else around
            self._follow(inner, within, decided=inside)

    def _does(self, e: Expr, *, decided: bool) -> None:
        match e:
            case Assign(target=target) | Step(target=target):
                taken: Iterable[Expr] = (target,)
            case Call(function=name, arguments=arguments):
                own = self.kernel.unit.called(name, len(arguments))
                taken = [a for a in arguments if own or (isinstance(a, Unary) and a.op == "&")]
            case Lambda(mentions=mentions) | Unread(mentions=mentions):
                taken = mentions
            case _:
                taken = ()
        stored = self._stores.get(e, ())
        if (taken or stored) and (decided or self.holds(e)):
            self._mark(taken)
            places = e.arguments[:1] if isinstance(e, Call) else chain(*map(_where, taken))
            chosen = any(map(self.holds, places))
            for access in stored:
                self._told[access] = None
                self._placed |= {access} if chosen else set()
                self._arrays.add(access.array)

    def _mark(self, taken: Iterable[Expr]) -> None:
        """Locals that may hold it from then on; what pointers lead to is an array's."""
        for place in taken:
            e = place
            while isinstance(e, Member | Index | Cast | Unary):
                e = e.base if isinstance(e, Member | Index) else e.operand
            held = e.variable if isinstance(e, Name) else None
            if held is not None and (held.array or not held.type.depth):
                self._variables.add(held)
            if held is not None and held.value is not None and not held.array:
                self._mark(_led_to(held, held.value))


def _where(target: Expr) -> Iterator[Expr]:
    """What says which element a target is; what is there already does not."""
    match target:
        case Member(base=base):
            yield from _where(base)
        case Index(base=base, index=index):
            yield index
            yield from _where(base)
        case Cast(operand=operand):
            yield from _where(operand)
        case Unary(operand=operand):
            yield operand


def _led_to(variable: Variable, value: Expr) -> Iterator[Expr]:
    """The locals that a reference or a pointer is another name of."""
    if variable.type.reference:
        yield value
    elif variable.type.depth:
        for e in every(value):
            is_array = isinstance(e, Name) and e.variable is not None and e.variable.array
            if is_array or (isinstance(e, Unary) and e.op == "&"):
                yield e
