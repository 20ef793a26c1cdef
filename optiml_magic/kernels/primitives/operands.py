"""A loop whose rounds combine what belongs to a row with what belongs to a column.

``C[i][j] += f(A[i][k], B[k][j])``: each load depends on one of the two indices of a thread and on
the counter. Rows and columns are two axes of the launch, or the quotient and the rest of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.collapsed import rejoined, rejoined_digits
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.grids import form_of, needed_form, said_alike
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.primitives.tile_added import added
from optiml_magic.kernels.primitives.tile_always import always, of_data
from optiml_magic.kernels.primitives.zeros import adds_nothing
from optiml_magic.kernels.reading import Access, Axis, Reduction
from optiml_magic.kernels.symbols import Condition, Symbol
from optiml_magic.kernels.tree import Declare, Evaluate, Leave, Loop, Variable, walk
from optiml_magic.source.directives import RequireDirective

ROW, COLUMN = "@row", "@col"


@dataclass(frozen=True)
class Operand:
    """Loads of one form; ``form`` is over ``@row`` or ``@col``, whichever ``side`` is, if any.

    They are ``deep`` where each round has its own.
    """

    array: str
    kind: str
    size: int
    form: Polynomial
    side: str
    accesses: tuple[Access, ...]
    deep: bool = True


@dataclass(frozen=True)
class Outputs:
    """The indices of an output as what the launch gives, and how many of each there are.

    Of ``counted`` sides the launch has as many blocks, so that no guard need say where they end.
    """

    rows: Polynomial
    columns: Polynomial
    flat: Polynomial | None  # the length of a row where a thread's one index is cut into two
    swapped: bool  # whether rows lie along x of the launch
    counted: tuple[str, ...] = ()


_INDICES = frozenset({"threadIdx.x", "threadIdx.y", "blockIdx.x", "blockIdx.y"})


class Contraction:
    """The parts of such a kernel; raises NotLegal for any other."""

    def __init__(self, kernel: Kernel, loop: Loop) -> None:
        self.kernel = kernel
        self.loop = loop
        self.effects = Effects(kernel)
        self.effects.straightforward()
        for variable in self.effects.changed(kernel.function.body):
            if variable.storage == "parameter":
                raise NotLegal(f"it changes its parameter `{variable.name}`", variable.line)
        axis = kernel.axes().get(loop)
        if axis is None or not axis.exact:
            raise NotLegal("the loop is not read", loop.line)
        self.axis: Axis = axis
        self._alone()
        self.reductions = self._reductions()
        self._choose([*self._outputs()])
        self._alone_changed()
        self._stores()

    def _choose(self, ways: Sequence[Outputs]) -> None:
        """The first rows and columns whose loads are of either; raises what the first lack."""
        refused: NotLegal | None = None
        for self.outputs in ways:
            self.asked: dict[RequireDirective, None] = {}
            self.idle: dict[Expr, frozenset[Condition]] = {}
            try:
                every = tuple(self._operands())
            except NotLegal as reason:
                refused = refused or reason
                continue
            self.operands = tuple(o for o in every if o.deep and o.side)
            self.others = tuple(o for o in every if o not in self.operands)
            if {o.side for o in self.operands} == {ROW, COLUMN}:
                return
            refused = refused or NotLegal("it combines no rows with columns", self.loop.line)
        assert refused is not None
        raise refused

    def _alone(self) -> None:
        loop = self.loop
        for other in loops_in(self.kernel.function.body):
            if other is not loop and loop in set(loops_in(other.body)):
                raise NotLegal("the loop is inside another", loop.line)
        if self.effects.kept(loop.body):
            raise NotLegal(f"`{self.effects.kept(loop.body)}` goes from round to round", loop.line)
        for statement in walk(loop.body):
            leaves = isinstance(statement, Leave) and statement.kind != "continue"
            if leaves or isinstance(statement, Loop):
                raise NotLegal("what the loop does depends on more than its round", statement.line)
        for other in loops_in(self.kernel.function.body):
            leaves = any(isinstance(s, Leave) and s.kind == "return" for s in walk(other.body))
            if leaves:
                raise NotLegal("the kernel is left within a loop", other.line)

    # -- where outputs are

    def _outputs(self) -> Iterator[Outputs]:
        """By the parts of one index, where it is cut into two, and by the axes of the launch."""
        kernel = self.kernel
        widths = kernel.block
        stores = [a for a in kernel.reading.accesses if a.mode != "load"]
        if not stores:
            raise NotLegal("it stores nothing")
        names = kernel.reading.symbols.table
        if widths[2] != 1 or None in widths:
            raise NotLegal("its blocks are not of two dimensions at most")
        flat = self._flat()
        if flat is not None:
            yield flat
        if not {"threadIdx.y", "blockIdx.y"} & names.keys():
            if flat is None:
                raise NotLegal("its threads have one index")
            return
        x, y = self._needed("x"), self._needed("y")
        if x is None or y is None:
            if flat is not None:
                return
            raise NotLegal("its launch and its guards do not bound the outputs alike")
        along_x = self._unit(stores[0], "@x")
        along_y = self._unit(stores[0], "@y")
        swapped = along_y and not along_x
        sides = (ROW, COLUMN) if swapped else (COLUMN, ROW)
        counted = tuple(s for s, width in zip(sides, widths, strict=False) if width == 1)
        rows, columns = (x, y) if swapped else (y, x)
        yield Outputs(rows, columns, None, swapped, counted)

    def _needed(self, axis: str) -> Polynomial | None:
        """The outputs along an axis; where blocks have one thread there, as many as blocks."""
        kernel, at = self.kernel, "xyz".index(axis)
        if kernel.block[at] != 1 or at >= len(kernel.launch.grid):
            return needed_form(kernel, axis)
        blocks = kernel.launch.grid[at]
        form = form_of(blocks.tree, kernel.reading.symbols)
        if form is None or not form.symbols <= kernel.reading.symbols.table.keys():
            return None
        return form if said_alike(kernel, blocks.names) else None

    def _unit(self, access: Access, name: str) -> bool:
        form = self._two(access.index) if access.index is not None else None
        by = form.coefficient(name) if form is not None else None
        return by is not None and by.value == 1

    def _two(self, form: Polynomial) -> Polynomial | None:
        found: Polynomial | None = rejoined_digits(self.kernel, form)
        for axis, width in zip("xy", self.kernel.block, strict=False):
            if found is not None and width == 1 and f"threadIdx.{axis}" not in found.symbols:
                found = _renamed(found, f"blockIdx.{axis}", f"@{axis}")
            found = index(found, axis, width) if found is not None and width else None
        return found

    def _flat(self) -> Outputs | None:
        """Rows and columns as ``t / n`` and ``t % n`` of a thread's one index ``t``."""
        whole = needed_form(self.kernel, "x")
        if self.kernel.block[1] != 1:  # rows have an axis of their own
            return None
        lengths = [symbol.arguments[1] for symbol in self._quotients()]
        for length in lengths:
            rows = whole.over(length) if whole is not None else None
            if rows is not None:
                return Outputs(rows, length, length, swapped=False)
        # Where rows are an axis of their own, the parts of a column are no other index.
        if lengths and not {"threadIdx.y", "blockIdx.y"} & self.kernel.reading.symbols.table.keys():
            raise NotLegal("its launch and its guards do not bound the outputs alike")
        return None

    def _quotients(self) -> Iterator[Symbol]:
        width = self.kernel.block[0]
        for symbol in self.kernel.reading.symbols.table.values():
            if symbol.op != "%" or len(symbol.arguments) != 2 or width is None:
                continue
            if index(symbol.arguments[0], "x", width) == Polynomial.symbol("@x"):
                yield symbol

    def placed(self, form: Polynomial) -> Polynomial:
        """A form over ``@row`` and ``@col``; so are its quotients and rests of these."""
        found = self._placed(form)
        table = self.kernel.reading.symbols
        for name in sorted(found.symbols):
            symbol, times = table.table.get(name), found.coefficient(name)
            if symbol is None or symbol.op not in ("/", "%") or times is None:
                continue
            if not _INDICES & table.inside(Polynomial.symbol(name)):
                continue
            self._number_sides()
            parts = tuple(map(self.placed, symbol.arguments))
            digit = self.kernel.reading_operations().operation(
                symbol.op, parts, symbol.low, symbol.high
            )
            found = found.without([name]) + times * digit
        return found

    def _number_sides(self) -> None:
        """Rows and columns are symbols of the reading, as the indices that they stand for."""
        for side in (ROW, COLUMN):
            self.kernel.reading.symbols.of(Symbol(side, "builtin", frozenset({side}), low=0))

    def _placed(self, form: Polynomial) -> Polynomial:
        out = self.outputs
        if out.flat is not None:
            terms = dict(form.terms)
            for symbol in [*self.kernel.reading.symbols.table.values()]:
                if symbol.op not in ("/", "%") or len(symbol.arguments) != 2:
                    continue
                of, by = symbol.arguments
                if by != out.flat or index(of, "x", self.kernel.block[0] or 1) != (
                    Polynomial.symbol("@x")
                ):
                    continue
                name = ROW if symbol.op == "/" else COLUMN
                terms = dict(_renamed(Polynomial.of(terms), symbol.name, name).terms)
            found: Polynomial | None = index(Polynomial.of(terms), "x", self.kernel.block[0] or 1)
            if found is not None:
                flat = Polynomial.symbol(ROW) * out.flat + Polynomial.symbol(COLUMN)
                times = found.coefficient("@x")
                if times is None:
                    raise NotLegal("an index is not a sum of its parts", self.loop.line)
                found = found.without(["@x"]) + times * flat
        else:
            found = self._two(form)
            if found is not None:
                x, y = (ROW, COLUMN) if out.swapped else (COLUMN, ROW)
                found = _renamed(_renamed(found, "@x", x), "@y", y)
        if found is None:
            raise NotLegal("an index tells blocks from threads", self.loop.line)
        return found

    # -- what is combined

    def _reductions(self) -> tuple[Reduction, ...]:
        changed = self.effects.changed(self.loop.body)
        known = {r.place: r for r in self.kernel.reading.reductions if self.axis.name in r.axes}
        found = []
        for variable in changed:
            reduction = known.get(variable.name)
            if reduction is None or reduction.carried:
                raise NotLegal(f"`{variable.name}` is not a sum of its rounds", self.loop.line)
            combine.supported(reduction)
            if reduction.op in "<>" and combine.test(reduction) != reduction.op:
                raise NotLegal("which of equals it keeps is not certain", self.loop.line)
            combine.nothing(reduction)
            found.append(reduction)
        if not found:
            raise NotLegal("the loop sums nothing", self.loop.line)
        return tuple(found)

    def variables(self) -> dict[str, Variable]:
        """The locals that hold the sums."""
        return {v.name: v for v in self.effects.changed(self.loop.body)}

    @property
    def exact(self) -> bool:
        """Whether the order of the parts shows nowhere, or stays, as where sums begin with 0."""
        return all(one.exact for one in self.added) and all(
            r.exact or (r.op == "+" and getattr(r.start, "value", None) == 0)
            for r in self.reductions
        )

    def _operands(self) -> Iterator[Operand]:
        symbols = self.kernel.reading.symbols
        groups: dict[tuple[str, Polynomial, frozenset[Condition]], list[Access]] = {}
        for access in self.effects.accesses(self.loop):
            if access.index is None or access.mode != "load" or not symbols.known(access.index):
                raise NotLegal("an access of the loop is not followed", access.line)
            if self.effects.taken(access) is None:
                raise NotLegal("a function loads for it", access.line)
            form = rejoined(self.kernel, self.placed(access.index), self.axis.name)
            held = frozenset(self._held(access, form))
            groups.setdefault((access.array, form, held), []).append(access)
        for (array, form, _), accesses in groups.items():
            kind = accesses[0].element
            own = self.kernel.reading.arrays[array].element
            sides = {ROW, COLUMN} & (form.symbols | symbols_inside(self, form))
            if len(sides) > 1 or own != kind or not kind.size:
                raise NotLegal("a load belongs to no row and no column alone", accesses[0].line)
            begun = self.kernel.unit.structs.begins_with_zeros
            if kind.kind == "record" and not begun(kind.name):
                raise NotLegal(f"a `{kind.name}` does not begin with zeros", accesses[0].line)
            side = sides.pop() if sides else ""
            deep = self.axis.name in form.symbols | symbols_inside(self, form)
            yield Operand(array, kind.name, kind.size, form, side, tuple(accesses), deep)

    def _held(self, access: Access, form: Polynomial) -> list[Condition]:
        """When an element is there; what data say of it counts for nothing where it always is."""
        parts = [part for c in access.guard for part in c.conjuncts()]
        data = [part for part in parts if of_data(self.kernel.reading.symbols, part)]
        rows, columns = self.outputs.rows, self.outputs.columns
        if data and self.axis.stop is not None:
            ends = {ROW: rows, COLUMN: columns, self.axis.name: self.axis.stop}
            asked = always(self.kernel, self.axis, access, form, ends)
            if asked is not None:
                self.asked[asked] = None
                self.idle[access.own] = frozenset(data)
                return [part for part in parts if part not in data]
        return parts

    def _alone_changed(self) -> None:
        for statement in walk(self.loop.body):
            if isinstance(statement, Evaluate):
                changed = self.effects.changed(statement)
                if not changed.keys() <= set(self.variables().values()):
                    raise NotLegal("a round changes more than its sums", statement.line)

    @property
    def zero_beyond(self) -> bool:
        """Whether rounds behind the last add nothing, where what they load is zero."""
        every = (*self.operands, *self.others)
        loads = {access.own for o in every if o.deep for access in o.accesses}
        lets = {
            v: v.value for s in walk(self.loop.body) if isinstance(s, Declare) for v in s.variables
        }
        return all(adds_nothing(reduction, loads, lets) for reduction in self.reductions)

    def _stores(self) -> None:
        accesses = self.kernel.reading.accesses
        self.added = added(self.kernel, (a for a in accesses if a.mode == "atomic"))
        for access in self.kernel.reading.accesses:
            if access.mode == "load":
                continue
            for operand in (*self.operands, *self.others):
                if self.effects.same(operand.array, access.array):
                    raise NotLegal("it reads what it writes", access.line)
        for access in self.effects.hidden():
            if access.mode != "load":
                raise NotLegal("a function stores for it", access.line)

    def extent(self, side: str) -> Polynomial:
        """How many rows or columns there are."""
        return self.outputs.rows if side == ROW else self.outputs.columns


def combining(kernel: Kernel, loop: Loop) -> bool:
    """Whether a loop sums over loads of more than one place, some of a row and some of a column."""
    axis = kernel.axes().get(loop)
    sums = [r for r in kernel.reading.reductions if axis is not None and axis.name in r.axes]
    if axis is None or not sums:
        return False
    inside = kernel.reading.symbols.inside
    forms = {a.index for a in Effects(kernel).accesses(loop) if a.index is not None}
    across = [f for f in forms if axis.name in f.symbols | inside(f)]
    return len(across) > 1 and any("threadIdx.x" in inside(f) for f in across)


def symbols_inside(contraction: Contraction, form: Polynomial) -> frozenset[str]:
    """The names in the operations of a form."""
    table = contraction.kernel.reading.symbols
    known = [n for n in form.symbols - {ROW, COLUMN} if n in table.table]
    inside = frozenset[str]().union(*(table.inside(Polynomial.symbol(n)) for n in known))
    if inside & _INDICES:
        raise NotLegal("an index is not a sum of its parts", contraction.loop.line)
    return inside


def _renamed(form: Polynomial, old: str, new: str) -> Polynomial:
    return Polynomial.of(
        {tuple(sorted(new if n == old else n for n in m)): c for m, c in form.terms}
    )
