"""P24, pull: what many threads add to an element, one thread of its own adds up.

``for (i) atomicAdd(&dw[o * n + i], dy[b * m + o] * x[b * n + i])`` by a thread for each ``b`` and
``o`` pushes to every element as often as there are ``b``. Where no data say which element that is,
the element can as well pull: a thread for each ``o`` and ``i`` goes through all ``b``, which is a
product or a sum along columns as others write them.

Source of the words: Besta and others, "To Push or To Pull", HPDC 2017.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, lines, text
from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.beforehand import works
from optiml_magic.kernels.primitives.collected import address
from optiml_magic.kernels.primitives.effects import names
from optiml_magic.kernels.primitives.grids import needed, room, said_alike
from optiml_magic.kernels.primitives.limits import limits
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.primitives.two_launches import is_even
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.updates import Update, Updated, converted, updated
from optiml_magic.kernels.primitives.works import One
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Block, Declare, Loop, Statement, Variable, walk
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_AXES = "xyz"
_ORDER = "the order of additions"
_THREADS, _ACROSS = 256, 32  # of a block, and of one with several axes along x: ours


@primitive
def pulled(kernel: Kernel) -> Kernel:
    """The kernel that has a thread for each element which its threads updated."""
    if not any(a.mode == "atomic" and a.loops for a in kernel.reading.accesses):
        raise NotLegal("no rounds of a loop update elements by atomic operations")
    kernel = kernel.settled()
    try:
        return Pulling(kernel).kernel()
    except NotLegal:
        apart = unravelled(kernel)  # one long axis may have a digit for each element
        if isinstance(apart, Refused):
            raise
        return Pulling(apart).kernel()


class Pulling:
    """The updates of a kernel that does nothing else. Raises NotLegal where it does.

    Attributes:
        arrays: what is updated.
        own: the axes of the launch and the loops that say which element it is; along x first.
        others: those that do not, from outside.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.old = kernel
        self.finder, _ = works(kernel)
        if kernel.function.launch_bounds:
            raise NotLegal("its launch bounds say how many threads a block has")
        self.arrays = tuple(self._updated())
        self.updates = [update for whole in self.arrays for update in whole.updates]
        if not self.updates or {a.array for a in self.arrays} != self.finder.written:
            raise NotLegal("it does more than to update elements")
        first = self.updates[0].access
        self.loops = [kernel.reading.axis(name).node for name in first.loops]
        every: list[One] = [*self.finder.launched, *self.loops]
        own = self._own(self.updates[0])
        if any(u.access.loops != first.loops or self._own(u) != own for u in self.updates):
            raise NotLegal("its updates are not of the same rounds", first.line)
        self.own = sorted((one for one in every if one in own), key=self._stride)
        self.others = [one for one in every if one not in own]
        if not any(isinstance(one, Loop) for one in self.own):
            raise NotLegal("no rounds of a loop say which element is updated", first.line)
        if not any(isinstance(one, str) for one in self.others) or len(self.own) > len(_AXES):
            raise NotLegal("each thread has elements of its own", first.line)
        self.extents = {one: self.finder.extent(one) for one in every}
        for update in self.updates:
            self._check(update)
        self.locals = self._asked()
        self.speller = Speller(kernel.reading.symbols, {}, moved=self.finder.effects.moved)
        self.taken: list[str] = []
        self.called = {one: self._named(one) for one in every}

    def _updated(self) -> Iterator[Updated]:
        for found in updated(self.old):
            if isinstance(found, Refused):
                raise NotLegal(found.reason, found.line)
            yield found

    def _own(self, update: Update) -> frozenset[One]:
        """What says which element it is, which is no data."""
        form, symbols = update.access.index, self.old.reading.symbols
        if form is None or any(symbols.table[n].kind == "load" for n in symbols.inside(form)):
            raise NotLegal("the data say which element is updated", update.access.line)
        return self.finder.of(update.index)

    def _stride(self, one: One) -> tuple[int, int]:
        """How far apart elements are along it, in the order of symbols and numbers."""
        form = self.updates[0].access.index
        assert form is not None
        by = form.coefficient(self._symbol(one))
        terms = by.terms if by is not None else ()
        return max((len(of) for of, _ in terms), default=0), max((n for _, n in terms), default=0)

    def _symbol(self, one: One) -> str:
        return self.old.axes()[one].name if isinstance(one, Loop) else f"threadIdx.{one}"

    def _check(self, update: Update) -> None:
        """Raise NotLegal where a test says more than how many items and rounds there are."""
        self.finder.of(update.value)
        for access in self.finder.effects.accesses(update.statement):
            met = any(self.finder.effects.same(access.array, a) for a in self.finder.written)
            if access.mode == "load" and (met or not access.array):
                raise NotLegal("it asks for what the kernel writes", access.line)
        tests = {c for condition in update.access.guard for c in condition.conjuncts()}
        known = set[Polynomial]()
        for loop in self.loops:
            axis = self.old.axes()[loop]
            if not axis.exact or not is_even(self.finder, axis):
                raise NotLegal("each item may have another number of rounds", loop.line)
            known.add(self.extents[loop] - Polynomial.symbol(axis.name) - Polynomial.constant(1))
        forms = {c.form for c in tests if isinstance(c, Compare) and c.op == ">="}
        for launched in self.finder.launched:
            width = self.old.block[_AXES.index(launched)] or 0
            left = room(launched, width, self.extents[launched])
            if left not in forms and needed(self.old, launched, loads=True) is not None:
                raise NotLegal("threads update elements that have no item", update.access.line)
            known.add(left)
        if len(forms) < len(tests) or not forms <= known:
            raise NotLegal("a test says which elements are updated", update.access.line)

    def _asked(self) -> list[Variable]:
        """The locals that the updates ask for, in their order."""
        found, todo = set[Variable](), [*self._names()]
        counters = {self.old.axes()[loop].variable for loop in self.loops}
        declared = {
            v: s for s in walk(self.old.function.body) if isinstance(s, Declare)
            for v in s.variables
        }  # fmt: skip
        while todo:
            variable = todo.pop()
            if variable in found or variable in counters or variable.storage == "parameter":
                continue
            if variable.value is None or variable not in declared:
                raise NotLegal(f"`{variable.name}` changes", variable.line)
            self.finder.depends(variable)
            if variable.value in self.finder.whole:
                continue
            self.finder.check_pure(declared[variable])
            if self.finder.is_long(declared[variable]):
                raise NotLegal(f"`{variable.name}` takes long to find", variable.line)
            found.add(variable)
            todo += names([variable.value])
        return sorted(found, key=lambda v: (v.line, v.span or (0, 0)))

    def _alone(self, update: Update) -> bool:
        """Whether each thread has an element of its own: rows of rows that are as long as these."""
        form, length = update.access.index, Polynomial.constant(1)
        assert form is not None
        for one in self.own:
            if form.coefficient(self._symbol(one)) != length:
                return False
            length = length * self.extents[one]
        return True

    def _names(self) -> Iterable[Variable]:
        return names([part for u in self.updates for part in (u.value, address(u))])

    def _named(self, one: One) -> str:
        """What a place along an axis, or a round, is called: as it was, where it had a name."""
        variable = self._variable(one)
        name = variable.name if variable is not None else self.old.fresh("place", *self.taken)
        if name in self.taken or name in {v.name for v in self.locals}:
            raise NotLegal(f"`{name}` is the name of several locals")
        self.taken.append(name)
        return name

    def _variable(self, one: One) -> Variable | None:
        """The local that holds it."""
        if isinstance(one, Loop):
            return self.old.axes()[one].variable
        for statement in walk(self.old.function.body):
            for variable in statement.variables if isinstance(statement, Declare) else ():
                held = variable.value is not None and self.finder.whole.get(variable.value) == one
                if held and variable in self.finder.effects.lasting:
                    return variable
        return None

    def _type(self, one: One) -> str:
        variable = self._variable(one)
        return declared_type(self.old, variable) if variable is not None else "int"

    # -- the kernel

    def kernel(self) -> Kernel:
        old, sizes = self.old, {one: self.speller.form(form) for one, form in self.extents.items()}
        swaps: dict[Node, Node] = {e: text(self.called[a]) for e, a in self.finder.whole.items()}
        runs = {u: old.fresh(f"{u.access.array}_sum", *self.taken, *map(str, range(n)))
                for n, u in enumerate(self.updates)}  # fmt: skip
        if len({*runs.values()}) < len(runs):
            runs = {u: f"{name}{n}" for n, (u, name) in enumerate(runs.items())}
        body = list[str]()
        for axis, one in zip(_AXES, self.own, strict=False):
            place = f"blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"
            body.append(f"{self._type(one)} {self.called[one]} = {place};")
        bounds = " || ".join(f"{self.called[one]} >= {sizes[one]}" for one in self.own)
        body.append(f"if ({bounds}) return;")
        waiting = [*self.locals]
        known = set[One](self.own)
        body += self._declared(waiting, known, swaps)
        for whole in self.arrays:
            body += [f"{whole.kind} {runs[u]} = {whole.identity};" for u in whole.updates]
        for one in self.others:
            name = self.called[one]
            body.append(f"for ({self._type(one)} {name} = 0; {name} < {sizes[one]}; ++{name}) {{")
            known.add(one)
            body += self._declared(waiting, known, swaps)
        for whole in self.arrays:
            for update in whole.updates:
                value = converted(old, whole, update, swaps)
                body.append(whole.combining(runs[update], value))
        body += ["}"] * len(self.others)
        for whole in self.arrays:
            alone = len(whole.updates) == 1 and self._alone(whole.updates[0])
            for update in whole.updates:
                if alone:
                    where = f"{whole.array}[{old.spelled(update.index, swaps)}]"
                    body.append(whole.combining(where, runs[update]))
                else:
                    where = old.spelled(address(update), swaps)
                    body.append(f"{whole.function}({where}, {runs[update]});")
        return self._launched(lines("\n".join(body)), sizes)

    def _declared(
        self, waiting: list[Variable], known: set[One], swaps: dict[Node, Node]
    ) -> Iterator[str]:
        """The locals that depend on no more than is known now; they wait no longer."""
        for variable in [*waiting]:
            if self.finder.depends(variable) <= known:
                waiting.remove(variable)
                yield self._show(variable, variable.value, swaps)

    def _show(self, variable: Variable, value: Expr | None, swaps: dict[Node, Node]) -> str:
        assert value is not None
        kind = declared_type(self.old, variable)
        return f"{kind} {variable.name} = {self.old.spelled(value, swaps)};"

    def _widths(self) -> list[int]:
        """Threads of a block along each axis: no more than a short one has elements."""
        found, left = list[int](), _THREADS
        for one in self.own:
            known = self.extents[one].value
            most = min(left, _ACROSS if len(self.own) > 1 else _THREADS)
            found.append(min(most, 1 << (known - 1).bit_length()) if known else most)
            left //= found[-1]
        return found

    def _launched(self, body: Statement, sizes: dict[One, str]) -> Kernel:
        old = self.old
        widths = self._widths()
        counts = [parse_expression(sizes[one]) for one in self.own]
        if not said_alike(old, {name for count in counts for name in count.names}):
            raise NotLegal("its launch has other names for the sizes")
        grid = tuple(
            parse_expression(f"cdiv({sizes[one]}, {width})")
            for one, width in zip(self.own, widths, strict=True)
        )
        block = tuple(parse_expression(str(width)) for width in widths)
        new = replace(old.launch, grid=grid, block=block)
        some = [RequireDirective(parse_expression(f"{count} >= 1"))
                for one, count in zip(self.own, counts, strict=True)
                if isinstance(one, Loop) and self.extents[one].value is None]  # fmt: skip
        made = old.rewritten(
            Block(None, 0, (body,)), launch=new, directives=[*some, *limits(old, new)]
        )
        changed = () if all(whole.exact for whole in self.arrays) else (_ORDER,)
        return with_grid(replace(made, arithmetic=(*made.arithmetic, *changed)))
