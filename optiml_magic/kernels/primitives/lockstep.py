"""What expressions are for all threads of a block at once, and for one thread that does it all.

The threads of a block take each step together, which is one of the orders that they may take. What
of them is known as a number is computed for each thread, so that no spelling of a tree, of lanes or
of a first thread has to be recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Lambda,
    Literal,
    Name,
    Step,
    Unary,
    Unread,
    builtin,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grid_rounds import COUNTED, blocks_in_words
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.primitives.roles import key_of, key_of_cast
from optiml_magic.kernels.primitives.shared_places import SharedPlaces
from optiml_magic.kernels.primitives.shares import (
    Each,
    Known,
    Made,
    Mask,
    Numbers,
    Same,
    Share,
    Shared,
    Source,
    Value,
    chosen,
    computed,
    digit_of,
    everywhere,
    joined,
    mentions,
    number,
    whole,
)
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.signature import split_name
from optiml_magic.kernels.tree import Statement, Variable
from optiml_magic.kernels.types import CType, named
from optiml_magic.source.values import constants

_WARP, _WORD = 32, 4


class Lockstep(SharedPlaces):
    """Values of expressions, under a mask of the threads that are there."""

    def __init__(
        self, kernel: Kernel, kept: Iterable[Variable], *, apart: bool, worded: bool = False,
        rows: Iterable[Variable] = (), whole: bool = False,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.rows = frozenset(rows)  # shared arrays that are one thread's own, whatever they hold
        self.worded = worded  # whether the program has words of its own for its blocks
        self.apart = apart  # whether threads keep what they do, but for what they combine
        self.whole = whole  # whether what each does by itself is not looked into then
        self.extents = [extent or 0 for extent in kernel.block]
        self.count = self.extents[0] * self.extents[1] * self.extents[2]
        self.all: Mask = np.ones(self.count, bool)
        self.mask = self.all
        self.thread = kernel.fresh("thread")
        self.env: dict[Variable, Value] = {}
        self.cells: dict[Variable, Value] = {}
        self.kinds: dict[Variable, CType] = {}
        self.sources: dict[object, Source] = {}
        self.taken: list[str] = []
        self.named: dict[str, Expr] = {}  # what each thread's own locals were given first, by name
        self.pending: list[Statement] = []
        self.adding = False  # whether a block adds up what its threads would each add
        self.combines = False  # whether threads combined anything, or one of them walks for all
        self.equals = False  # whether another of equal extremes may be kept
        self.reordered = False  # whether floats are added up in another order
        self.compared = False  # whether floats that may be NaN are compared for an extreme
        _, given = split_name(kernel.launch.kernel or "")
        self.constants: dict[str, int] = dict(constants(kernel.unit.syntax))
        self.types = dict(kernel.unit.aliases)
        for parameter, argument in zip(kernel.function.template, given, strict=False):
            self.constants.pop(parameter.name, None)
            if not parameter.is_type and argument.lstrip("-").isdigit():
                self.constants[parameter.name] = int(argument)
            elif parameter.is_type:
                self.types[parameter.name] = argument
        self.arrays = {_loaded(a): a.array for a in kernel.reading.accesses}
        self.effects = Effects(kernel)
        self.axes = kernel.axes()
        self.words = kernel.spelled
        self.kept = frozenset(kept)  # locals that the program has, whatever is known of them
        self.generic, self.casts = set[str](), dict[object, Each]()  # types not named in a function
        self.added: list[Statement] = []  # what all threads do, whoever did it for a block
        self.left: Mask | None = None  # the threads that are gone
        self.stores = False
        self.quiet = 0  # statements that leave nothing in the program
        self.tests: list[Expr] = []  # what the threads under the mask have in common
        self.conditions: list[Value] = []  # what each thread asks for itself
        #: Elements of shared memory that are the same for all threads.
        self.single: dict[tuple[Variable, int], Value] = {}
        self.names: dict[object, str] = {}
        self.scalars: dict[Statement, list[str]] = {}  # locals in the place of these declarations
        self.homes: dict[Variable, Statement] = {}

    def plain(self, expr: Expr) -> Value:
        """What an expression is for the threads that are there; a whole one is the same for all."""
        return self.entire(self.value(expr))

    def entire(self, found: Value) -> Value:
        """What all the threads that are there have all of, as what is the same for them."""
        if isinstance(found, Share) and (self.adding or not self.apart) and whole(found, self.mask):
            return Same(Name(None, found.source.name, found.source.variable), found.where)
        return found

    def same(self, expr: Expr) -> Expr:
        """How one thread spells what is the same for all threads that are there."""
        found = self.plain(expr)
        if isinstance(found, Known) and found.only(self.mask) is not None:
            return expr if self.apart else number(found.only(self.mask) or 0)
        if self.apart and isinstance(found, Known | Each):
            return found.form
        if not isinstance(found, Same):
            raise NotLegal("a thread tells where in its block it stands")
        return found.form

    def value(self, expr: Expr) -> Value:
        match expr:
            case Literal(value=int() as value):
                return self._known(expr, np.full(self.count, value))
            case Literal():
                return Same(expr, self.all, key=key_of(expr))
            case Cast(type=to) if key := key_of_cast(
                expr, named(to, self.types) if to not in self.generic else None
            ):
                return Same(expr, self.all, key=key)
            case Name():
                return self.of_name(expr)
            case Index() if (place := self.place(expr)) is not None:
                return self._loaded(place)
            case Unary(op="*") if (place := self.place(expr)) is not None:
                return self._loaded(place)
            case Unary(op="-" | "+") if key_of(expr) and not isinstance(
                bare(expr.operand), Literal
            ):
                return Same(expr, self.all, key=key_of(expr))
            case Binary(op="&&" | "||" | "," as op) if op == ",":
                raise NotLegal("an expression is not read")
            case Binary():
                return self._binary(expr)
            case Choice():
                return self._choice(expr)
            case Call() if expr.callee is None and expr.receiver is None:
                return self._call(expr)
            case Lambda() | Unread() | Assign() | Step() | Call():
                raise NotLegal("an expression is not read")
        if builtin(expr):
            return self._builtin(expr)
        return self._made(expr)

    # what the members that follow add

    def _list(self, statements: Iterable[Statement]) -> Made:
        raise NotImplementedError

    def _step(self, statement: Statement) -> Made:
        raise NotImplementedError

    def _scope(self, made: Made, body: Iterable[Statement]) -> Made:
        raise NotImplementedError

    def _left(self, body: Iterable[Statement]) -> None:
        raise NotImplementedError

    def _local(
        self, statement: Statement, variable: Variable, op: str, given: Expr, value: Value
    ) -> Made:
        raise NotImplementedError

    def _binary(self, expr: Binary) -> Value:
        raise NotImplementedError

    def _choice(self, expr: Choice) -> Value:
        raise NotImplementedError

    def _call(self, call: Call) -> Value:
        raise NotImplementedError

    def _builtin(self, expr: Expr) -> Value:
        name, _, axis = builtin(expr).partition(".")
        at = "xyz".index(axis) if axis in "xyz" and axis else 0
        if name == "blockDim":
            return self._known(expr, np.full(self.count, self.extents[at]))
        if name == "threadIdx":
            stride = int(np.prod(self.extents[:at], dtype=np.int64))
            digit = self._known(expr, np.arange(self.count) // stride % self.extents[at])
            if digit.form is not expr or self.apart:
                return digit
            last = stride * self.extents[at] == self.count
            form = digit_of(Name(None, self.thread), stride, None if last else self.extents[at])
            return replace(digit, form=form)
        if name == "gridDim" and self.worded:
            blocks = blocks_in_words(self.kernel, at)
            if isinstance(blocks, Literal):
                return self._known(blocks, np.full(self.count, blocks.value))
            return Same(blocks, self.all)
        counted = "gridDim" in self.kernel.words and not (self.apart or self.worded)
        words = COUNTED.get(builtin(expr)) if counted else None
        return Same(text(words) if words else expr, self.all)

    def _known(self, expr: Expr, numbers: Numbers, where: Mask | None = None) -> Known:
        """A number of each thread, as short as it may be spelled."""
        numbers = numbers.astype(np.int64)
        kind = self.kernel.reading.types.get(expr)
        if kind is None and expr.span is not None and bool((numbers < 0).any()):
            raise NotLegal("a number is beyond what is followed")
        if kind is not None and kind.integral and not kind.signed and kind.size in (4, 8):
            if kind.size == 4:
                numbers = numbers & 0xFFFFFFFF
            elif bool((numbers < 0).any()):
                raise NotLegal("a number is beyond what is followed")
        form: Expr = expr
        if not self.apart:
            first, thread = int(numbers[0]), Name(None, self.thread)
            if bool((numbers == first).all()):
                form = expr if isinstance(expr, Literal) else number(first)
            elif bool((numbers - first == np.arange(self.count)).all()):
                form = thread if not first else Binary(None, "+", thread, number(first))
        return Known(form, self.all if where is None else where, numbers=numbers)

    def of_name(self, expr: Name) -> Value:
        variable = expr.variable
        if variable is None:
            if expr.name == "warpSize" or expr.name in self.constants:
                told = self.constants.get(expr.name, _WARP)
                return self._known(expr, np.full(self.count, told))
            return Same(expr, self.all, key=expr.name)
        if variable in self.rows or (variable.storage == "parameter" and variable not in self.env):
            return Same(expr, self.all)
        if variable.storage in ("shared", "dynamic") and variable.array:
            zero = np.zeros(self.count, np.int64)
            return Shared(expr, self.all, array=variable, kind=self.kind(variable), offset=zero)
        found = (self.cells if variable.storage == "shared" else self.env).get(variable)
        if found is None:
            raise NotLegal(f"what `{variable.name}` holds is not followed")
        if variable.storage == "shared":
            found = chosen(found, np.zeros(self.count, np.int64), self.mask)
        self.check(found, variable.name)
        return found

    def check(self, found: Value, name: str) -> None:
        if not bool(found.where[self.mask].all()):
            raise NotLegal(f"what `{name}` holds is not certain for all threads")

    def _loaded(self, place: Shared) -> Value:
        self.of_kind(place)
        held = self.cells.get(place.array)
        if held is None:
            raise NotLegal(f"what `{place.array.name}` holds is not followed")
        found = chosen(held, place.offset, self.mask)
        self.check(found, place.array.name)
        return found

    def _made(self, expr: Expr) -> Value:
        """What is computed of several values in any way."""
        parts = {part: self.plain(part) for part in expr.parts}
        found = [*parts.values()]
        if any(isinstance(v, Share | Shared) for v in found):
            raise NotLegal("it computes with a part of what its threads combine")
        if found and all(isinstance(v, Known) for v in found):
            numbers = computed(expr, [v.numbers for v in found if isinstance(v, Known)])
            if numbers is not None:
                form = edited(expr, self._swaps(expr, parts))
                known = self._known(expr, numbers, everywhere(found, self.all))
                return replace(known, form=form) if known.form is expr else known
        return self._formed(expr, parts)

    def _formed(self, expr: Expr, parts: Mapping[Expr, Value]) -> Value:
        found = [*parts.values()]
        swaps = self._swaps(expr, parts)
        form = edited(expr, swaps) if swaps else expr
        where = everywhere(found, self.all)
        loads = frozenset(a for v in found for a in v.loads)
        if isinstance(expr, Index) or (isinstance(expr, Unary) and expr.op == "*"):
            loads |= {self.arrays.get(expr, "?")}
        differs = any(
            isinstance(v, Each) or (isinstance(v, Known) and v.only(self.all) is None)
            for v in found
        )
        if not differs:
            return Same(form, where, joined(found), loads)
        kind = self.kernel.reading.types.get(expr)
        return Each(form, where, joined(found), loads, kind=kind)

    def _swaps(self, expr: Expr, parts: Mapping[Expr, Value]) -> dict[Node, Node]:
        """How parts are spelled, where that is not as they stand.

        A thread's place in its block and what the launch says have no sign, and a number has one:
        what is taken away wraps as it did.
        """
        swaps: dict[Node, Node] = {p: v.form for p, v in parts.items() if v.form is not p}
        kind = self.kernel.reading.types.get(expr)
        below = isinstance(expr, Binary | Unary) and expr.op in ("-", "~")
        unsigned = kind is not None and not kind.signed and kind.size == _WORD
        if self.apart or not (below and unsigned):
            return swaps
        spelled = [value.form for part, value in parts.items() if value.form is not part]
        if any(isinstance(form, Literal) or mentions(form, self.thread) for form in spelled):
            first, value = next(iter(parts.items()))
            swaps[first] = Cast(None, "unsigned int", value.form)
        return swaps

    def same_array(self, one: str, other: str) -> bool:
        """Whether two arrays may be one."""
        return "?" in (one, other) or self.effects.same(one, other)

    def own_name(self, variable: Variable, form: Expr) -> str:
        """A name for what a local is each thread's own: another, where it was something else.

        Two blocks may have a local of that name, and each round of a loop another value.
        """
        if variable not in self.kept and self.named.setdefault(variable.name, form) is form:
            return variable.name
        self.taken.append(self.kernel.fresh(variable.name, *self.taken))
        return self.taken[-1]

    def changed(self, variable: Variable) -> None:
        """A local gets another value: what is spelled with it is no longer so."""
        for held in (self.env, self.cells):
            for key, value in [*held.items()]:
                if key is not variable and self._asks(value, variable):
                    held[key] = replace(value, where=np.zeros_like(value.where))

    def _asks(self, value: Value, variable: Variable) -> bool:
        if isinstance(value, Share):
            return value.source.variable is variable
        own = {one.name for one in value.locals}
        forms = [*(one.form for one in value.locals), value.form]
        return variable.name not in own and any(mentions(form, variable.name) for form in forms)

    def stored(self, array: str) -> None:
        """An array gets other elements: what each thread loaded of it is not there any more."""
        for held in (self.env, self.cells):
            for key, value in [*held.items()]:
                each = value.source.each if isinstance(value, Share) else value
                if isinstance(value, Share) and value.source.op:
                    continue
                if each is not None and any(self.same_array(array, a) for a in each.loads):
                    held[key] = replace(value, where=np.zeros_like(value.where))


def _loaded(access: Access) -> Expr:
    """What loads or stores an element: ``x[i]`` of ``__ldg(&x[i])``."""
    match access.node:
        case Call(function="__ldg", arguments=(Unary(op="&", operand=element),)):
            return element
    return access.node
