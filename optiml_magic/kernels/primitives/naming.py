"""Forms and types spelled as a kernel would spell them at one of its loops."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import chain

from optiml_magic.kernels.editing import text
from optiml_magic.kernels.expressions import Assign, Binary, Choice, Expr, Literal
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, is_simple, moves_within
from optiml_magic.kernels.primitives.places import axis_of, index
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Condition, Symbol
from optiml_magic.kernels.tree import Declare, Function, Statement, Variable, walk
from optiml_magic.kernels.types import CType, named

_LONG = 8  # bytes
_SIGNED = {4: "int", 8: "long long"}  # smaller ones are promoted
_SUFFIXES = {(4, False): "u", (8, True): "LL", (8, False): "ULL"}
_WORD = re.compile(r"[A-Za-z_]\w*")


def declared_type(kernel: Kernel, variable: Variable) -> str:
    """What a declaration of a local begins with. Raises NotLegal where ``auto`` hides it."""
    kind = kernel.reading.types.get(variable.value) if variable.value else None
    if variable.type.base == "auto":
        if kind is None or kind.depth:
            raise NotLegal(f"the type of `{variable.name}` is not known", variable.line)
        return kind.name
    const = "const " if variable.type.const and variable.type.depth else ""
    return f"{const}{variable.type.base}{'*' * variable.type.depth}"


def type_of(kernel: Kernel, variable: Variable) -> CType:
    """The type of a local, also where nothing reads it whole. Raises NotLegal for ``auto``."""
    return named(declared_type(kernel, variable), kernel.unit.aliases)


def numeral(number: int, kind: CType) -> Expr:
    """A number as one of a type of whole numbers, so that what is computed from it is as wide.

    Smaller types than ``int`` are promoted to that.
    """
    spelled = f"{abs(number)}{_SUFFIXES.get((kind.size or 0, kind.signed), '')}"
    return Literal(None, spelled, number) if number >= 0 else text(f"(-{spelled})")


class LocalSpeller(Speller):
    """A name after ``@`` is a local: ``@row``; ``@x`` where a thread stands along x.

    That of a counter, which may be called ``x``, stands after two of them (``counting``).

    Built-in variables are spelled as signed numbers: a counter that is compared with them, or what
    is divided, may be below zero. So is what is unsigned where something is taken away, and in a
    test.
    """

    kernel: Kernel
    around: tuple[Axis, ...] = ()  # loops whose rounds are spelled by their counters
    _below = False  # whether the sum that is spelled may be below zero
    _tested = False

    def form(self, form: Polynomial, depth: int = 0) -> str:
        below = any(factor < 0 for _, factor in form.terms) or (self._tested and depth == 0)
        before, self._below = self._below, below
        try:
            return super().form(form, depth)
        finally:
            self._below = before

    def condition(self, condition: Condition) -> str:
        before, self._tested = self._tested, True
        try:
            return super().condition(condition)
        finally:
            self._tested = before

    def address(self, form: Polynomial) -> str:
        """A place in an array, in 64 bits where the kernel itself counts so."""
        before, self.wide = self.wide, self.kernel.wide
        try:
            return self.form(form)
        finally:
            self.wide = before

    def count(self, form: Polynomial) -> str:
        """How many there are, as a signed number of 64 bits where the kernel itself counts so.

        What is a number in a launch may be a product of sizes, and too much for their own type.
        """
        before = self.wide, self.kind
        self.wide, self.kind = self.kernel.wide, "long long"
        try:
            words = self.form(form)
        finally:
            self.wide, self.kind = before
        is_sum = len(form.terms) > 1
        if is_sum and self.kernel.wide and not words.startswith(("(long long)", "-")):
            words = f"(long long){words}"
        return f"({words})" if is_sum or words.startswith("-") else words

    def is_long(self, name: str) -> bool:
        words = self.name(name)
        if words is None:
            return super().is_long(name)
        return any(self._kinds[w].size == _LONG for w in _WORD.findall(words) if w in self._kinds)

    def _word(self, name: str, depth: int) -> str:
        text = super()._word(name, depth)
        if not self._below:
            return text
        words = [text.partition("[")[0]]
        if self.name(name) is None and self.symbols[name].kind in ("operation", "select"):
            words = _WORD.findall(text)
        size = max((self.unsigned[word] for word in words if word in self.unsigned), default=0)
        return f"({_SIGNED[size]}){text}" if size else text

    @cached_property
    def unsigned(self) -> dict[str, int]:
        """The sizes of the unsigned numbers that names stand for, or lead to."""
        return {name: kind.size for name, kind in self._kinds.items()
                if kind.size in _SIGNED and not kind.signed}  # fmt: skip

    @cached_property
    def _kinds(self) -> dict[str, CType]:
        """The types of the whole numbers that names stand for, or lead to."""
        function = self.kernel.function
        locals_ = [s.variables for s in walk(function.body) if isinstance(s, Declare)]
        kinds = {variable.name: named(variable.type.base, self.kernel.unit.aliases)
                 for variable in (*function.parameters, *chain(*locals_))}  # fmt: skip
        return {name: kind for name, kind in kinds.items()
                if kind.kind == "int" and kind.lanes == 1}  # fmt: skip

    def name(self, name: str) -> str | None:
        return super().name(name) or (name.lstrip("@") if name.startswith("@") else None)

    def _symbol(self, symbol: Symbol, depth: int) -> str:
        text = super()._symbol(symbol, depth)
        return f"(int){text}" if symbol.kind == "builtin" else text

    def local(self, form: Polynomial) -> Polynomial:
        """A form over the locals that hold where a thread stands, or a loop that it is in."""
        for loop in self.around:
            form = _by_counter(form, loop)
        for axis, width in zip("xyz", self.kernel.block, strict=True):
            if f"@{axis}" in self.names and width is not None:
                form = index(form, axis, width) or form
        return form


def speller_before(kernel: Kernel, effects: Effects, place: Statement) -> LocalSpeller:
    """For forms that hold where a statement begins, and in it."""
    written = kernel.reading.written
    steady = frozenset(a for a in kernel.reading.arrays if a not in written)
    names = {f"@{axis}": name for axis, name in _indices(kernel, effects, place).items()}
    speller = LocalSpeller(kernel.reading.symbols, names, steady=steady, moved=effects.moved)
    speller.kernel = kernel
    for axis in kernel.axes().values():
        own = axis.variable if place in set(walk(axis.node.body)) else None
        if own is not None and is_simple(axis, effects):
            speller.names[axis.name] = own.name
        elif own is not None and not axis.scaled and not moves_within(axis, effects):
            speller.around += (axis,)
    return speller


def counting(variable: Variable) -> str:
    """The symbol of a counter, where forms are over locals."""
    return f"@@{variable.name}"


def _by_counter(form: Polynomial, axis: Axis) -> Polynomial:
    """A form over the counter of a loop in place of its rounds, where it has them whole."""
    by, step, start, variable = form.coefficient(axis.name), axis.step, axis.start, axis.variable
    if by is None or not by.terms or step is None or start is None or variable is None:
        return form
    factor = by.over(step)
    if factor is None:
        return form
    rounds, counter = Polynomial.symbol(axis.name), Polynomial.symbol(counting(variable))
    return form - by * rounds + factor * (counter - start)


def _indices(kernel: Kernel, effects: Effects, place: Statement) -> dict[str, str]:
    """The locals that hold where a thread stands along an axis, before a statement begins."""
    found: dict[str, str] = {}
    every = [v.name for s in walk(kernel.function.body) if isinstance(s, Declare)
             for v in s.variables]  # fmt: skip
    for block in walk(kernel.function.body):
        around = block.statements
        for at, declared in enumerate(around):
            if not isinstance(declared, Declare):
                continue
            if not any(place in set(walk(s)) for s in around[at + 1 :]):
                continue
            for variable in declared.variables:
                if variable.value is None or variable not in effects.lasting:
                    continue
                axis = axis_of(kernel, variable.value)
                if every.count(variable.name) > 1:
                    continue  # it may mean another one where it is used
                if axis and not variable.type.depth:
                    found.setdefault(axis, variable.name)
    return found


def size_of(kernel: Kernel, name: str) -> str:
    """A size in the words of the kernel, or what a number of sizes are of one, ``(pitch / 4)``."""
    symbols = kernel.reading.symbols
    if name not in symbols.table or symbols[name].op != "/":
        return name
    return f"({Speller(symbols, {}).form(Polynomial.symbol(name))})"


def signed_size(kernel: Kernel, name: str, *, wide: bool) -> str:
    """A size as a signed number, since what is stepped may lie before an address."""
    if name.isdigit():
        return f"{name}ll" if wide else name
    symbols = kernel.reading.symbols
    sizes = {name} | (symbols.inside(Polynomial.symbol(name)) if name in symbols.table else set())
    own = [p for p in kernel.function.parameters if p.name in sizes]
    kinds = [named(p.type.base, kernel.unit.aliases) for p in own]
    words = size_of(kernel, name)
    if kinds and (wide or any(kind.size == 8 and not kind.signed for kind in kinds)):
        return f"(long long){words}"
    return f"(int){words}" if any(k.size == 4 and not k.signed for k in kinds) else words


def shadowed(function: Function) -> frozenset[str]:
    """The names of variables that others of the same name hide."""
    found = set[str]()

    def look(statement: Statement, known: set[str]) -> None:
        own = known if isinstance(statement, Declare) else {*known}
        for variable in statement.variables if isinstance(statement, Declare) else ():
            if variable.name in own:
                found.add(variable.name)
            own.add(variable.name)
        for inner in statement.statements:
            look(inner, own)

    look(function.body, {p.name for p in function.parameters})
    return frozenset(found)


def bracketed(kernel: Kernel, expr: Expr, *, tested: bool = False) -> str:
    """The text of an expression, in brackets where one beside it, or a further test, needs them."""
    alone = {*"+-*/%"} | ({"<", ">", "<=", ">=", "==", "!=", "&&"} if tested else set())
    loose = isinstance(expr, Binary) and expr.op not in alone
    words = kernel.spelled(expr)
    return f"({words})" if loose or isinstance(expr, Choice | Assign) else words
