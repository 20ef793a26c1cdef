"""The updates of a kernel that a thread for each element makes alone; see ``pulled``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.collected import address
from optiml_magic.kernels.primitives.effects import names
from optiml_magic.kernels.primitives.endings import denied
from optiml_magic.kernels.primitives.grids import needed, room, said_alike
from optiml_magic.kernels.primitives.limits import limits
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.two_launches import is_even
from optiml_magic.kernels.primitives.updates import Update, Updated, converted
from optiml_magic.kernels.primitives.works import Finder, One
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Declare, Loop, Variable, walk
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import LaunchDirective, RequireDirective
from optiml_magic.source.expressions import parse_expression

_AXES = "xyz"
_MOST = 2**31 - 1  # threads that an `int` numbers
_ONE = Polynomial.constant(1)
_THREADS, _ACROSS = 256, 32  # of a block, and of one with several axes along x: ours


class Pull:
    """Updates of the same elements in the same rounds, as a kernel with a thread for each element.

    Attributes:
        own: the axes of the launch and the loops that say which element it is; along x first.
        along: the same by the axis that they have now: of more than three x has the first ones.
        others: those that do not say it, from outside.
        saved: the locals that take long to find, and the axes and loops that each depends on: a
            launch before leaves them in scratch, whose names ``scratch`` has.
    """

    def __init__(
        self, kernel: Kernel, finder: Finder, updates: Sequence[tuple[Updated, Update]]
    ) -> None:
        self.old, self.finder, self.updates = kernel, finder, updates
        first = updates[0][1].access
        self.line = first.line
        self.loops = tuple(kernel.reading.axis(name).node for name in first.loops)
        every: list[One] = [*finder.launched, *self.loops]
        own = finder.of(updates[0][1].index)
        self.own = tuple(sorted((one for one in every if one in own), key=self._stride))
        self.others = [one for one in every if one not in own]
        several = max(len(self.own) - len(_AXES) + 1, 1)
        self.along = [self.own[:several], *((one,) for one in self.own[several:])]
        if not any(isinstance(one, str) for one in self.others):
            raise NotLegal("each thread has elements of its own", first.line)
        if not self.own:
            raise NotLegal("all threads update one element", first.line)
        self.extents = {one: finder.extent(one) for one in every}
        self.scratch: Mapping[Variable, str] = {}
        self.saved = dict[Variable, tuple[One, ...]]()
        self.locals = self._asked()
        for _, update in updates:
            self._check(update)
        self.speller = Speller(kernel.reading.symbols, {}, moved=finder.effects.moved)
        self.sizes = {one: self.speller.form(form) for one, form in self.extents.items()}
        self.taken: list[str] = []
        self.called = {one: self._named(one) for one in every}

    @property
    def turns(self) -> bool:
        """Whether rounds of a loop say which element it is."""
        return any(isinstance(one, Loop) for one in self.own)

    def _stride(self, one: One) -> tuple[int, int]:
        """How far apart elements are along it, in the order of symbols and numbers."""
        form = self.updates[0][1].access.index
        by = form.coefficient(self._symbol(one)) if form is not None else None
        if form is None or by is None or not by.terms:  # a digit of it, or what lies there
            return _MOST, 0
        return max(len(of) for of, _ in by.terms), max(n for _, n in by.terms)

    def _symbol(self, one: One) -> str:
        if isinstance(one, Loop):
            return self.old.axes()[one].name
        wide = self.old.block[_AXES.index(str(one))] != 1
        return f"{'threadIdx' if wide else 'blockIdx'}.{one}"

    def _check(self, update: Update) -> None:
        """Raise NotLegal where a test says more than how many items and rounds there are."""
        self.finder.asked([update.value], self.saved)
        for access in self.finder.effects.accesses(update.statement):
            met = any(self.finder.effects.same(access.array, a) for a in self.finder.written)
            if access.mode == "load" and (met or not access.array):
                raise NotLegal("it asks for what the kernel writes", access.line)
        tests = {c for condition in update.access.guard for c in condition.conjuncts()}
        known = set[Polynomial]()
        for loop in self.loops:
            axis = self.old.axes()[loop]
            if not axis.exact or not (is_even(self.finder, axis) or self._is_own_test(loop)):
                raise NotLegal("each item may have another number of rounds", loop.line)
            known |= {c.form for c in axis.test.conjuncts() if isinstance(c, Compare)}
        forms = {c.form for c in tests if isinstance(c, Compare) and c.op == ">="}
        for launched in self.finder.launched:
            width = self.old.block[_AXES.index(launched)] or 0
            left = room(launched, width, self.extents[launched])
            if left not in forms and needed(self.old, launched, loads=True) is not None:
                raise NotLegal("threads update elements that have no item", update.access.line)
            known.add(left)
        if len(forms) < len(tests) or not forms <= known:
            raise NotLegal("a test says which elements are updated", update.access.line)

    def _is_own_test(self, loop: Loop) -> bool:
        """Whether the place of an element says whether a loop has a round for it: a triangle's."""
        if loop not in self.own or loop.test is None:
            return False
        return self.finder.of(loop.test) <= {*self.own}

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
            if variable.value in self.finder.whole:
                continue
            found.add(variable)
            if self._is_soon_found(variable, declared[variable]):
                todo += names([variable.value])
            else:
                self.saved[variable] = self._dimensions(variable, declared[variable])
        return sorted(found, key=lambda v: (v.line, v.span or (0, 0)))

    def _is_soon_found(self, variable: Variable, declared: Declare) -> bool:
        """Whether each thread may find a local anew, from what stays."""
        try:
            self.finder.depends(variable)
            self.finder.check_pure(declared)
        except NotLegal:
            return False
        return not self.finder.is_long(declared)

    def _dimensions(self, variable: Variable, declared: Declare) -> tuple[One, ...]:
        """The axes and loops of which a local is one number each; one that is never changed."""
        kind = named(declared_type(self.old, variable), self.old.unit.aliases)
        plain = kind.kind in ("int", "float") and kind.lanes == 1 and kind.size in (4, 8)
        if variable not in self.finder.effects.lasting or variable.array or not plain or kind.depth:
            raise NotLegal(f"`{variable.name}` is not one plain number", variable.line)
        around = [one for one in self.loops if declared in walk(one)]
        return (*self.finder.launched, *around)

    def place(self, variable: Variable, called: Mapping[One, str]) -> str:
        """Where in its scratch a local of what is ``called`` so lies."""
        first, *others = self.saved[variable]
        found = f"(size_t){called[first]}" if others else called[first]
        for number, one in enumerate(others):
            whole = f"({found})" if number else found
            found = f"{whole} * {_grouped(self.sizes[one])} + {called[one]}"
        return found

    def _depends(self, variable: Variable) -> frozenset[One]:
        if variable in self.saved:
            return frozenset(self.saved[variable])
        return self.finder.depends(variable)

    def _alone(self, whole: Updated, update: Update) -> bool:
        """Whether each thread has an element of its own: rows of rows that are as long as these."""
        if sum(one is whole for one, _ in self.updates) > 1:
            return False
        form, length = update.access.index, _ONE
        linear = set[str]()
        for one in self.own:
            if form is None or form.coefficient(self._symbol(one)) != length:
                return False
            length = length * self.extents[one]
            linear |= {self._symbol(one), *(f"{of}Idx.{one}" for of in ("thread", "block"))}
        if form is None:
            return False
        symbols = self.old.reading.symbols
        kinds = {symbols[name].kind for name in symbols.inside(form.without(linear))}
        return kinds <= {"scalar", "operation"}  # no digit of these, and no data

    def _names(self) -> Iterable[Variable]:
        return names([part for _, u in self.updates for part in (u.value, address(u))])

    def _named(self, one: One) -> str:
        """What a place along an axis, or a round, is called: as it was, where it had a name."""
        variable = self.variable(one)
        name = variable.name if variable is not None else self.old.fresh("place", *self.taken)
        if name in self.taken or name in {v.name for v in self.locals}:
            raise NotLegal(f"`{name}` is the name of several locals")
        self.taken.append(name)
        return name

    def variable(self, one: One) -> Variable | None:
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
        variable = self.variable(one)
        return declared_type(self.old, variable) if variable is not None else "int"

    # -- the kernel

    @property
    def body(self) -> str:
        old, swaps = self.old, dict[Node, Node]()
        swaps |= {e: text(self.called[a]) for e, a in self.finder.whole.items() if a in self.called}
        runs = self._runs()
        body = list[str]()
        bounds = list[str]()
        for axis, ones in zip(_AXES, self.along, strict=False):
            place = f"blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"
            if len(ones) > 1:
                name = old.fresh("element", *self.taken, *runs)
                body.append(f"const int {name} = {place};")
                bounds.append(f"{name} >= {self.size(ones)}")
                body += self._digits(name, ones)
            else:
                body.append(f"{self._type(ones[0])} {self.called[ones[0]]} = {place};")
                bounds.append(f"{self.called[ones[0]]} >= {self.sizes[ones[0]]}")
        body.append(f"if ({' || '.join(bounds)}) return;")
        for loop in self.loops:
            if not is_even(self.finder, old.axes()[loop]) and loop.test is not None:
                body.append(f"if ({old.spelled(denied(old, loop.test), swaps)}) return;")
        waiting, known = [*self.locals], set[One](self.own)
        body += self._declared(waiting, known, swaps)
        for (whole, _), run in zip(self.updates, runs, strict=True):
            body.append(f"{whole.kind} {run} = {whole.identity};")
        for one in self.others:
            name = self.called[one]
            head = f"{self._type(one)} {name} = 0; {name} < {self.sizes[one]}; ++{name}"
            body.append(f"for ({head}) {{")
            known.add(one)
            body += self._declared(waiting, known, swaps)
        for (whole, update), run in zip(self.updates, runs, strict=True):
            body.append(whole.combining(run, converted(old, whole, update, swaps)))
        body += ["}"] * len(self.others)
        for (whole, update), run in zip(self.updates, runs, strict=True):
            where = old.spelled(address(update), swaps)
            if self._alone(whole, update):
                place = f"{whole.array}[{old.spelled(update.index, swaps)}]"
                body.append(whole.combining(place, run))
            else:
                body.append(f"{whole.function}({where}, {run});")
        return "\n".join(body)

    def size(self, ones: Sequence[One]) -> str:
        """How many places there are along these, spelled."""
        return self.speller.form(self._count(ones))

    def _count(self, ones: Sequence[One]) -> Polynomial:
        return prod((self.extents[one] for one in ones), start=_ONE)

    def _digits(self, name: str, ones: Sequence[One]) -> Iterator[str]:
        """The places along several axes, of which one has the number of their elements."""
        for at, one in enumerate(ones):
            digit = f"{name} / {_grouped(self.size(ones[:at]))}" if at else name
            if at + 1 < len(ones):
                digit += f" % {_grouped(self.sizes[one])}"
            yield f"{self._type(one)} {self.called[one]} = {digit};"

    def _runs(self) -> list[str]:
        """What the sums are called."""
        found = list[str]()
        for whole, _ in self.updates:
            found.append(self.old.fresh(f"{whole.array}_sum", *self.taken, *found))
        return found

    def _declared(
        self, waiting: list[Variable], known: set[One], swaps: dict[Node, Node]
    ) -> Iterator[str]:
        """The locals that depend on no more than is known now; they wait no longer."""
        for variable in [*waiting]:
            if self._depends(variable) <= known:
                waiting.remove(variable)
                yield self._show(variable, swaps)

    def _show(self, variable: Variable, swaps: dict[Node, Node]) -> str:
        assert variable.value is not None
        kind = declared_type(self.old, variable)
        if variable in self.saved:
            found = f"{self.scratch[variable]}[{self.place(variable, self.called)}]"
            return f"const {kind} {variable.name} = {found};"
        return f"{kind} {variable.name} = {self.old.spelled(variable.value, swaps)};"

    def _widths(self) -> list[int]:
        """Threads of a block along each axis: no more than a short one has elements."""
        found, left = list[int](), _THREADS
        for ones in self.along:
            known = self._count(ones).value
            most = min(left, _ACROSS if len(self.along) > 1 else _THREADS)
            found.append(min(most, 1 << (known - 1).bit_length()) if known else most)
            left //= found[-1]
        return found

    @property
    def launch(self) -> LaunchDirective:
        widths = self._widths()
        counts = [parse_expression(self.size(ones)) for ones in self.along]
        if not said_alike(self.old, {name for count in counts for name in count.names}):
            raise NotLegal("its launch has other names for the sizes")
        grid = tuple(
            parse_expression(f"cdiv({self.size(ones)}, {width})")
            for ones, width in zip(self.along, widths, strict=True)
        )
        block = tuple(parse_expression(str(width)) for width in widths)
        return replace(self.old.launch, grid=grid, block=block)

    @property
    def asked(self) -> list[RequireDirective]:
        """What the launch asks of the sizes: to have threads, and no more blocks than may be."""
        some = [
            RequireDirective(parse_expression(f"{self.sizes[one]} >= 1"))
            for one in self.own
            if isinstance(one, Loop) and self.extents[one].value is None
        ]
        many = [
            RequireDirective(parse_expression(f"{self.size(ones)} <= {_MOST}"))
            for ones in self.along
            if len(ones) > 1
        ]
        return [*some, *many, *limits(self.old, self.launch)]


def _grouped(size: str) -> str:
    return f"({size})" if " " in size else size
