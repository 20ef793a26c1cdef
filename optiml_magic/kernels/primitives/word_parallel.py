"""P25, words: loops that ask packed symbols one by one take as many at once as a word holds.

Counts become ``__popc`` of flags, the last word masked; a search for the first symbol becomes
``__ffs`` of them. Where the symbols of a step may begin anywhere in a word, they are taken from two
neighbours by a funnel shift; the second is the one of the last symbol that the bounds of the loop
let be asked for, and so never lies beyond. A search that does no more than end may find what lies
beyond its bounds: it ends there. Source: CUDA Math API, "Integer Intrinsics".
"""

from __future__ import annotations

from functools import reduce
from math import gcd

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Index,
    Literal,
    Name,
    Unread,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, once, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.nonnegative import is_above
from optiml_magic.kernels.primitives.packed_places import Symbol
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.word_ends import Ends, ends_of, second_of
from optiml_magic.kernels.primitives.word_flags import Flags
from optiml_magic.kernels.primitives.word_loops import Count, WordLoop, word_loops
from optiml_magic.kernels.primitives.word_tests import loads
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.tree import Declare, Evaluate, Loop, Statement, Variable
from optiml_magic.kernels.types import named

_SHORT = 32  # bits below which a word has others above it in a register
_FEWEST = 4  # rounds below which a loop stays: ours


@primitive
def in_words(kernel: Kernel) -> Kernel:
    """The kernel with all such loops by words."""
    made, refused = steps_of(kernel)
    if not made:
        if refused:
            raise refused[0]
        raise NotLegal("no loop asks packed symbols one by one")
    swaps = dict[Node, Node | tuple[Statement, ...] | None]()
    for loop, words in made.items():
        swaps |= dict.fromkeys(hints_of(kernel, loop))
        swaps[loop] = lines(words)
    return kernel.rewritten(edited(kernel.function.body, swaps))


@once
def steps_of(kernel: Kernel) -> tuple[dict[Loop, str], list[NotLegal]]:
    """The loops that go by words, with what stands for them, and why others do not."""
    made, refused = dict[Loop, str](), list[NotLegal]()
    for found in word_loops(kernel):
        if isinstance(found, NotLegal):
            refused.append(found)
            continue
        try:
            made[found.loop] = _Writer(kernel, found).text()
        except NotLegal as reason:
            refused.append(reason)
    return made, refused


class _Writer:
    """What stands in the place of one loop."""

    def __init__(self, kernel: Kernel, found: WordLoop) -> None:
        self.kernel, self.found, self.round, self.axis = kernel, found, found.round, found.axis
        first = found.symbols[0]
        self.bits, self.width = first.bits, first.width
        self.count = first.width // first.bits
        self.unsigned = "unsigned long long" if self.width == 64 else "unsigned int"
        self.names = set[str]()
        self.unsure = list[Expr]()  # places that may be below 0, where the loop stays as it was
        self.left, self.stop, self.asked = (self._fresh(n) for n in ("left", "found", "asked"))
        self.flags = Flags(found.round, self.bits, self.width, self._word_name, self._inside)
        trips = found.axis.trips
        if trips is not None and trips < _FEWEST:
            raise NotLegal("it has few rounds", found.loop.line)
        self.whole = self._is_whole()
        self.ends = None if self.whole else ends_of(found)

    def text(self) -> str:
        found, loop = self.found, self.found.loop
        body = self._stopping() if found.stops else [self._counting(c) for c in found.counts]
        begun = [self._word(name, symbol) for name, symbol in self.flags.words]
        if self.ends is not None:
            return self._guarded(self._ended(self.ends, [*begun, *body]))
        if not self.whole:
            ones = self.flags.ones
            shift = "<<" if self.flags.words[0][1].top else ">>"
            gone = f"{self.width} - {_times(self.bits, self.left)}"
            asked = f"{ones} {shift} ({gone})"
            if shift == "<<" and self.width < _SHORT:
                asked = f"({asked}) & {ones}"
            begun.append(f"const {self.unsigned} {self.asked} = {asked};")
            begun = [*self._leaving(), *begun]
        elif any(f"{self.left} - 1" in line for line in begun):
            begun = [f"const int {self.left} = {self.count};", *begun]
        step = f"{self.counter} += {self.count if self.whole else self.left};"
        update = ""
        if self.whole or (not found.stops and isinstance(loop.before, Declare)):
            update = f"{self.counter} += {self.count}"
        else:
            body.append(step)
        going = " && ".join(self._inside(test, compared=True) for test in found.going)
        before = self.kernel.show(loop.before).strip().rstrip(";") if loop.before else ""
        plain = not before and not update
        head = f"while ({going})" if plain else f"for ({before}; {going}; {update})"
        return self._guarded("\n".join((f"{head} {{", *begun, *body, "}")))

    def _ended(self, ends: Ends, body: list[str]) -> str:
        """A search whose last step may go beyond what it stays below."""
        name, first, most = self.counter, self._fresh("begun"), self._fresh("most")
        bounds = [self._shown(bound) for bound in ends.bounds]
        least = reduce(lambda one, other: f"min({one}, {other})", bounds)
        held = (self._inside(test, compared=True) for test in ends.going)
        before = self.found.loop.before
        return "\n".join((
            "{", f"{self.kernel.show(before).strip().rstrip(';')};" if before is not None else "",
            f"const int {first} = {name}, {most} = {least};",
            f"while ({' && '.join((f'{name} < {most}', *held))}) {{",
            *body, f"{name} += {self.count};", "}",
            f"{name} = min({name}, max({first}, {most}));", "}",
        ))  # fmt: skip

    def _guarded(self, made: str) -> str:
        """What is made, where no place is below 0; elsewhere the loop as it was."""
        if not self.unsure:
            return made
        first = self._first()
        inside = (self._shown(Binary(None, ">=", self._at_first(at, first), Literal(None, "0", 0)))
                  for at in self.unsure)  # fmt: skip
        test = " && ".join(dict.fromkeys(inside))
        return (
            f"if ({test}) {{\n{made}\n}} else {{\n{self.kernel.show(self.found.loop).strip()}\n}}"
        )

    def _first(self) -> Expr:
        """What the counter begins with, as it is said before the loop."""
        match self.found.loop.before:
            case None:
                return Name(None, self.counter, self.round.counter)
            case Declare(variables=(Variable(value=Expr() as value),)):
                plain = isinstance(value, Literal)
                return value if plain else Cast(None, self.round.counter.type.base, value)
            case Evaluate(expression=Assign(op="=", value=value)):
                return value
        raise NotLegal(
            "whether the place of a symbol is below 0 is not certain", self.found.loop.line
        )

    def _at_first(self, at: Expr, first: Expr) -> Expr:
        """The place of a symbol of the first round."""
        swaps: dict[Node, Node] = {
            e: first for e in every(at)
            if isinstance(e, Name) and e.variable is self.round.counter
        }  # fmt: skip
        return swaps[at] if at in swaps else edited(at, swaps)  # type: ignore[return-value]

    @property
    def counter(self) -> str:
        return self.round.counter.name

    def _fresh(self, name: str) -> str:
        found = self.kernel.fresh(name, *self.names)
        self.names.add(found)
        return found

    def _shown(self, expr: Expr, swaps: dict[Node, Node] | None = None) -> str:
        return self.kernel.spelled(expr, swaps)

    def _inside(self, expr: Expr, *, compared: bool = False) -> str:
        """An expression as a part of others; a comparison of conjuncts has no parentheses."""
        shown = self._shown(expr)
        alone = isinstance(expr, Name | Literal | Index | Call)
        if compared and isinstance(expr, Binary) and expr.op in ("<", "<=", ">", ">=", "!="):
            alone = True
        return shown if alone else f"({shown})"

    def _word_name(self, symbol: Symbol) -> str:
        if not symbol.floor and not self._above(symbol.at) and not self._reads_upward():
            if loads(symbol.at):
                raise NotLegal(
                    "whether the place of a symbol is below 0 is not certain", self.found.loop.line
                )
            self.unsure.append(symbol.at)
        return self._fresh(f"{symbol.array or 'packed'}_word")

    def _above(self, expr: Expr) -> bool:
        """Whether an expression is not below 0 where the loop goes on."""
        return is_above(self.kernel, expr, self.found.going)

    def _reads_upward(self) -> bool:
        """Whether the guards of all loads of the loop say that no place in a word is below 0."""
        inside = Effects(self.kernel).inside(self.found.loop)
        symbols = self.kernel.reading.symbols
        for access in (a for a in self.kernel.reading.accesses if a.own in inside):
            if access.index is None:
                return False
            held = Ranges((*access.guard, *self.axis.held), symbols, sizes=True)
            for part in access.index.symbols:
                moves = self.axis.name in symbols.inside(Polynomial.symbol(part))
                if (
                    moves
                    and symbols[part].op
                    and (
                        symbols[part].op not in ("/", ">>")
                        or not held.nonnegative(symbols[part].arguments[0])
                    )
                ):
                    return False
        return True

    def _is_whole(self) -> bool:
        """Whether all steps are of whole words."""
        start, stop = self.axis.start, self.axis.stop
        if len(self.found.bounds) != 1 or start is None or stop is None:
            return False
        if self.axis.variable is not self.round.counter:
            return False
        return (stop - start).divided(self.count) is not None

    def _leaving(self) -> list[str]:
        """How many symbols the bounds leave to a step, all that a word holds at most."""
        made = list[str]()
        for bound in self.found.bounds:
            apart: Expr = Binary(None, "-", bound.high, bound.low)
            kind = ""
            if (bound.kind.size or 8) == 8:
                kind = "unsigned long long"
            elif not bound.kind.signed or not self._above(bound.low):
                kind = "unsigned int"
            if kind:
                high, low = (Cast(None, kind, side) for side in (bound.high, bound.low))
                apart = Binary(None, "-", high, low)
            more = int(bound.op == "<=")
            most = f"{self.left} - {more}" if made and more else self.left
            if not made:
                most = str(self.count - more)
            elif more and kind:
                most = f"({most})"
            most = f"({kind}){most}" if kind else most
            least = f"min({most}, {self._shown(apart)}){' + 1' if more else ''}"
            made.append(f"{'' if made else 'int '}{self.left} = {least};")
        return [f"const {made[0]}"] if len(made) == 1 else made

    def _word(self, name: str, symbol: Symbol) -> str:
        """The symbols of a step, from the first of them on."""
        own, word = f"const {self.unsigned} {name}", self._shown(symbol.word)
        begins = self._begins(symbol)
        if symbol.alone and self._factor(symbol.at) % self.count:
            return f"{own} = ({self.unsigned}){word} {'<<' if symbol.top else '>>'} ({begins});"
        if self._factor(symbol.at) % self.count == 0:
            return f"{own} = {word};"
        word = self._shifted(symbol.word, None)
        if self.ends is not None and isinstance(symbol.word, Index):
            high = second_of(self.found, symbol, self._shifted(symbol.word.index, None))
        else:
            high = self._shifted(symbol.word, text(f"({self.counter} + {self.left} - 1)"))
        if self.width == 32:
            if symbol.top:
                return f"{own} = __funnelshift_l({high}, {word}, {begins});"
            return f"{own} = __funnelshift_r({word}, {high}, {begins});"
        if self.width < _SHORT:
            first, then = (word, high) if not symbol.top else (high, word)
            shift = f"{self.width} - ({begins})" if symbol.top else f"({begins})"
            return f"{own} = ({first} | {then} << {self.width}) >> ({shift});"
        shift, begins = begins, self._fresh(f"{name}_begins")
        one, other = ("<<", ">>") if symbol.top else (">>", "<<")
        first = f"({self.unsigned}){word} {one} {begins}"
        then = f"({self.unsigned})({high}) {other} 1 {other} ({self.width - 1} - {begins})"
        return f"const int {begins} = {shift};\n{own} = {first} | {then};"

    def _begins(self, symbol: Symbol) -> str:
        """By how many bits the first symbol of a step is away from the end of its word."""
        shift = self._shifted(symbol.shift, None)
        return f"{self.width - self.bits} - ({shift})" if symbol.top else shift

    def _shifted(self, expr: Expr, counter: Expr | None) -> str:
        """An expression with shifts and masks for quotients and rests of what is not below 0.

        ``counter`` stands in it for the counter of the loop.
        """
        swaps, outer = dict[Node, Node](), {e.index for e in every(expr) if isinstance(e, Index)}
        for part in every(expr):
            if counter is not None and isinstance(part, Name):
                swaps |= {part: counter} if part.variable is self.round.counter else {}
        for part in every(expr):
            match part:
                case Binary(op="/" | "%" as op, left=left, right=Literal(value=int() as by)):
                    if self.round.slope(left) and by > 0 and not by & by - 1:
                        shown = self._shown(left, swaps)
                        shown = f"({shown})" if isinstance(left, Binary) else shown
                        words = (
                            f"{shown} >> {by.bit_length() - 1}"
                            if op == "/"
                            else f"{shown} & {by - 1}"
                        )
                        swaps[part] = Unread(None, words) if part in outer else text(words)
        return self._shown(expr, swaps)

    def _factor(self, expr: Expr) -> int:
        """A number that certainly divides an expression in the first round."""
        match expr:
            case Literal(value=int() as value):
                return value
            case Binary(op="+" | "-", left=left, right=right):
                return gcd(self._factor(left), self._factor(right))
            case Binary(op="*", left=left, right=right):
                return self._factor(left) * self._factor(right)
            case Binary(op="<<", left=left, right=Literal(value=int() as value)):
                return self._factor(left) << min(value, 8)
            case Cast(operand=operand) if (self.round.kind(expr).size or 0) >= 4:
                return self._factor(operand)
            case Name(variable=variable) if variable is self.round.counter:
                start = self.axis.start if self.axis.variable is variable else None
                return gcd(*(c for _, c in start.terms)) if start is not None else 1
            case Name(variable=Variable(value=Expr() as value) as variable):
                if variable in Effects(self.kernel).lasting:
                    return self._factor(value)
        return 1

    def _masked(self, flags: str) -> str:
        if self.whole or self.ends is not None:
            if self.width >= _SHORT:
                return flags
            return f"{self.flags.open.get(flags, flags)} & {self.flags.ones}"
        return f"{self.flags.open.get(flags, flags)} & {self.asked}"

    def _counting(self, count: Count) -> str:
        """What a step adds to a local."""
        popc = "__popcll" if self.width == 64 else "__popc"
        terms = self.flags.terms(count.value, self.flags.where(count.tests))
        name = count.variable.name
        kind = named(count.variable.type.base, self.kernel.unit.aliases)
        if count.op == "^=":
            if len(terms) != 1 or terms[0][1:] != ("1", False) or not terms[0][0]:
                raise NotLegal("what it combines is not followed", self.found.loop.line)
            return f"{name} ^= {popc}({self._masked(terms[0][0])}) & 1;"
        made = ""
        for flags, weight, less in terms:
            sign = "-" if less != (count.op == "-=") else "+"
            many = f"{popc}({self._masked(flags)})" if flags else self._all
            wide = f"({kind.name})" if (kind.size or 0) == 8 and weight != "1" else ""
            term = many if weight == "1" else f"{wide}{many} * {weight}"
            made += f"{name} {sign}= {term};\n"
        return made.strip()

    @property
    def _all(self) -> str:
        return str(self.count) if self.whole else self.left

    def _stopping(self) -> list[str]:
        """What ends a step early, and what is done then."""
        flags = " | ".join(self.flags.holds(test, denied=no) for test, no in self.found.stops)
        if len(self.found.stops) > 1:
            flags = f"({flags})"
        wide = "ll" if self.width == 64 else ""
        at = f"__ffs{wide}({self.stop}) - 1"
        if self.flags.words[0][1].top:
            gone = f" - {_SHORT - self.width}" if self.width < _SHORT else ""
            at = f"__clz{wide}({self.stop}){gone}"
        if self.bits > 1:
            at = f"({at}) / {self.bits}"
        own = {v for let in self.found.lets for v in let.variables}
        asks = any(own & Effects(self.kernel).mentions(s) for s in self.found.then)
        then = [*(self.found.lets if asks else ()), *self.found.then]
        words = [self.kernel.show(s).strip() for s in then] or ["break;"]
        return [
            f"const {self.unsigned} {self.stop} = {self._masked(flags)};",
            "\n".join((f"if ({self.stop}) {{", f"{self.counter} += {at};", *words, "}")),
        ]


def _times(bits: int, name: str) -> str:
    return name if bits == 1 else f"{bits} * {name}"
