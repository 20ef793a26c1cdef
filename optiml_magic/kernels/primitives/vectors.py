"""P12, vectorise: the rounds of a loop taken several at a time, their elements by one access.

The elements go through a small array that a compiler keeps in registers. Where an address is not
aligned to the vector, a test that all rounds of the loop share leaves every round to the loop that
was there before. Source: CUDA C++ Programming Guide, "Device Memory Accesses": 4, 8 or 16 bytes, at
addresses that are multiples of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.extents import existing
from optiml_magic.kernels.primitives.items import WIDEST, Items, element, is_plain
from optiml_magic.kernels.primitives.naming import LocalSpeller, speller_before
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Condition
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Loop, Variable, walk
from optiml_magic.source.directives import RequireDirective, TuneDirective
from optiml_magic.source.expressions import parse_expression


@dataclass(frozen=True)
class Whole:
    """The end of the vectors of loops that make the same rounds, from a multiple of ``width``.

    The first of the loops declares it, with the ``tests`` of all of them.
    """

    name: str
    width: int
    tests: tuple[str, ...]
    declared: bool = False


@primitive
def vectorise(
    kernel: Kernel, at: int, whole: Whole | None = None, strips: Sequence[int] = ()
) -> Kernel:
    """The loop with this number takes as many elements as 16 bytes of the widest array hold.

    Or one of so many ``strips``, the first of them to begin with, by several vectors.
    """
    loop = loops_in(kernel.function.body)[at]
    return _Vectorising(kernel, loop, whole, strips).kernel()


def vectorised(kernel: Kernel, at: Sequence[int]) -> tuple[Kernel, tuple[int, ...]]:
    """The loops with these numbers as vectors, where that is legal.

    Also the numbers of the loops that they are then, one of vectors and those of the rest.
    """
    numbers, whole = list[int](), dict(_wholes(kernel, at))
    ahead = 0  # loops that those before have more now
    for own in sorted(at):
        number, shared = own + ahead, whole.get(own)
        before = loops_in(kernel.function.body)
        inner = len(loops_in(before[number].body))
        made = vectorise(kernel, number, shared)
        if isinstance(made, Refused):
            numbers.append(number)
            continue
        after = loops_in(made.function.body)
        added = len(after) - len(before)
        parts = after[number : number + 1 + inner + added]
        within = {i for loop in parts for i in loops_in(loop.body)}
        numbers += [number + at for at, loop in enumerate(parts) if loop not in within]
        kernel, ahead = made, ahead + added
        if shared is not None:
            done = replace(shared, declared=True)
            whole |= {n: done for n, other in whole.items() if other.name == shared.name}
    return kernel, tuple(numbers)


def _wholes(kernel: Kernel, at: Sequence[int]) -> Iterator[tuple[int, Whole]]:
    """What loops side by side have in common that make the same rounds as vectors."""
    loops = loops_in(kernel.function.body)
    around = {s: block for block in walk(kernel.function.body) if isinstance(block, Block)
              for s in block.body}  # fmt: skip
    groups: dict[object, list[tuple[int, _Vectorising]]] = {}
    for number in sorted(at):
        try:
            one = _Vectorising(kernel, loops[number])
        except NotLegal:
            continue
        if one.whole_start and loops[number] in around:
            key = (around[loops[number]], one.axis.start, one.axis.stop)
            groups.setdefault(key, []).append((number, one))
    taken = list[str]()
    for group in (g for g in groups.values() if len(g) > 1):
        first = group[0][1]
        width = min(one.width for _, one in group)
        speller = speller_before(kernel, first.effects, first.loop)
        try:
            tests = [test for _, one in group for test in one.tests(speller, width)]
        except Unspelled:
            continue
        name = kernel.fresh(f"whole_{first.variable.name}", *taken)
        taken.append(name)
        shared = Whole(name, width, tuple(dict.fromkeys(tests)))
        yield from ((number, shared) for number, _ in group)


class _Vectorising:
    def __init__(
        self, kernel: Kernel, loop: Loop, whole: Whole | None = None, strips: Sequence[int] = ()
    ) -> None:
        self.old = kernel
        self.whole = whole
        self.loop = loop
        self.effects = Effects(kernel)
        axis = kernel.axes().get(loop)
        if axis is None or not axis.exact or axis.variable is None or axis.variable.type.depth:
            raise NotLegal("the loop is not read", loop.line)
        step = axis.step.value if axis.step is not None else None
        if (
            loop.kind != "for"
            or step != 1
            or axis.scaled
            or axis.stop is None
            or axis.start is None
        ):
            raise NotLegal("the loop does not count up by one", loop.line)
        if axis.variable in self.effects.changed(loop.body):
            raise NotLegal("its counter changes in the loop", loop.line)
        match loop.before:
            case Declare(words=words, variables=(only,)) if only is axis.variable:
                self.words = words
            case _:
                raise NotLegal("where the loop begins is not in its head", loop.line)
        self.axis: Axis = axis
        self._start, self._stop = axis.start, axis.stop
        self.variable: Variable = axis.variable
        self.groups = self._groups()
        self.asked = self._existing()
        self.groups += self.asked
        self.beside = self._beside()
        if not self.groups:
            raise NotLegal("it reads no consecutive elements one by one", loop.line)
        widest = WIDEST // max(group.size for group in self.groups)
        self.width = widest if whole is None else whole.width
        if self.width < 2:
            raise NotLegal("its elements fill a vector already", loop.line)
        self.strips = tuple(n for n in strips if n % self.width == 0)
        self.many = kernel.fresh("STRIP") if self.strips else str(self.width)

    def _groups(self) -> list[Items]:
        found: dict[str, list[Access]] = {}
        for access in self.effects.accesses(self.loop):
            found.setdefault(access.array, []).append(access)
        groups = []
        for array, every in found.items():
            others = [a for name, more in found.items() if name != array for a in more
                      if self.effects.same(name, array)]  # fmt: skip
            if any(a.mode != "load" for a in (*every, *others)):
                alike = every[0].index is not None and all(a.index == every[0].index
                                                           for a in (*every, *others))  # fmt: skip
                clusters = [every] if alike else []
            else:
                clusters = self._rows(every)
            groups += [Items(array, form, tuple(own)) for own in clusters
                       if (form := own[0].index) is not None and self._is_group(own)]  # fmt: skip
        return groups

    def _existing(self) -> dict[Items, str]:
        """Loads that some rounds leave alone, with what says that their elements exist."""
        written, known = self.old.reading.written, {group.array for group in self.groups}
        found: dict[tuple[str, Polynomial], list[Access]] = {}
        for access in self.effects.accesses(self.loop):
            if access.array not in known and access.index is not None:
                found.setdefault((access.array, access.index), []).append(access)
        asked = {}
        for (array, form), own in found.items():
            if any(self.effects.same(array, other) for other in written):
                continue
            group = Items(array, form, tuple(own))
            if not all(self._consecutive(a, form) for a in own):
                continue
            condition = existing(self.old, group, None, self.groups)
            if condition is not None:
                asked[group] = condition
        return asked

    def _is_group(self, accesses: Sequence[Access]) -> bool:
        """Whether vectors may bring and take these, of which each takes the same element."""
        form = accesses[0].index
        sure = [self._always(a.guard) for a in accesses]
        return (
            form is not None
            and all(self._consecutive(a, form) for a in accesses)
            and any(sure)
            and all(s or a.mode == "load" for a, s in zip(accesses, sure, strict=True))
        )

    def _rows(self, loads: Sequence[Access]) -> list[list[Access]]:
        """The loads that vectors may bring: of those a constant apart the likeliest ones alone.

        They are where the first round's is aligned if the array is, and of these as many as may be.
        """
        found: dict[Polynomial, list[Access]] = {}
        for access in loads:
            if access.index is not None:
                found.setdefault(access.index, []).append(access)
        rows: list[list[Polynomial]] = []
        for form in (form for form, own in found.items() if self._is_group(own)):
            near = next((row for row in rows if (form - row[0]).value is not None), None)
            if near is None:
                rows.append([form])
            else:
                near.append(form)
        best = (max(row, key=lambda f: (not self._behind(f), len(found[f]))) for row in rows)
        return [found[form] for form in best]

    def _behind(self, form: Polynomial) -> int:
        """How many elements an index lies behind what is told by names alone."""
        own = form.without([self.axis.name]) - self._start
        return next((factor for monomial, factor in own.terms if not monomial), 0)

    def _beside(self) -> dict[Access, tuple[Items, int]]:
        """Loads that lie so many elements from one that a vector brings, and are in it mostly."""
        found = {}
        for group in self.groups:
            for access in self.effects.accesses(self.loop):
                if access.array != group.array or access in group.accesses or access.index is None:
                    continue
                apart = (access.index - group.index).value
                if apart and self._consecutive(access, access.index):
                    found[access] = group, apart
        return found

    def _consecutive(self, access: Access, form: Polynomial) -> bool:
        """Whether a round that takes an element takes the one behind that of the round before."""
        by = form.coefficient(self.axis.name)
        inner = {a.name for a in self.old.reading.axes if a.node in set(loops_in(self.loop.body))}
        symbols = self.old.reading.symbols
        rest = form.without([self.axis.name])
        return (
            access.mode in ("load", "store")
            and access.index == form
            and by is not None and by.value == 1
            and not ({self.axis.name} | inner) & symbols.inside(rest)
            and is_plain(self.old, access)
            and not any(loop in inner for loop in access.loops)
            and element(self.effects, access) is not None
        )  # fmt: skip

    def _always(self, guard: tuple[Condition, ...]) -> bool:
        """Whether nothing but the loop's own test decides on it."""
        held = self.axis.held
        return all(part in held for c in guard for part in c.conjuncts())

    @property
    def whole_start(self) -> bool:
        """Whether vectors begin with the first round."""
        return self._start.value is not None and self._start.value % self.width == 0

    def kernel(self) -> Kernel:
        old, loop, name = self.old, self.loop, self.variable.name
        speller = speller_before(old, self.effects, loop)
        start = speller.form(speller.local(self._start))
        stop = self._end() or speller.form(speller.local(self._stop))
        whole, first, k = (old.fresh(n) for n in (f"whole_{name}", f"{name}_first", f"{name}_item"))
        whole = whole if self.whole is None else self.whole.name
        items: dict[Items, str] = {}
        for group in self.groups:
            named = f"{group.array.replace('.', '_')}_items"
            items[group] = old.fresh(named, *items.values())
        own = self.tests(speller, self.width) if self.whole is None else self.whole.tests
        tests = " && ".join(own)
        const = "" if "const" in self.words else "const "
        width, many = self.width, self.many
        made = []
        begin = "0"
        if self.whole_start:
            begin = start
            length = f"({stop})" if " " in stop else stop
            length = length if start == "0" else f"({stop} - {start})"
            ahead = "" if start == "0" else f"{start} + "
            rounded = f"{ahead}{length} / {many} * {many}"
            if self.whole is None or not self.whole.declared:
                made.append(f"{const}{self.words}{whole} = {tests} ? {rounded} : {start};")
        else:  # up to a multiple of the width, where addresses are aligned that begin at one
            up, begin = old.fresh(f"up_{name}"), old.fresh(f"head_{name}")
            least = self._start.value
            next_up = (
                f"({start} + {width - 1}) / {width} * {width}"
                if least is None else str(-(-least // width) * width)
            )  # fmt: skip
            made += [
                f"{const}{self.words}{up} = {next_up};",
                f"{const}{self.words}{begin} = {tests} && {up} < {stop} ? {up} : {stop};",
                f"{const}{self.words}{whole} = {begin} + ({stop} - {begin}) / {many} * {many};",
                self._again(start, begin),
            ]
        body = self._body(items, first, k, speller)
        made.append(
            f"for ({self.words}{first} = {begin}; {first} < {whole}; {first} += {many}) "
            f"{{\n{body}\n}}"
        )
        made.append(self._again(whole, stop))
        whole_text = lines("\n".join(made))
        body_now = edited(old.function.body, {loop: (whole_text,)})
        tunes = (
            [TuneDirective(many, tuple(sorted(self.strips)), self.strips[0])] if self.strips else []
        )
        asked = dict.fromkeys(self.asked.values())
        requires = [RequireDirective(parse_expression(one)) for one in asked]
        return old.rewritten(body_now, directives=[*tunes, *requires])

    def _end(self) -> str:
        """The local that holds where the loop ends; empty where there is none.

        Its type is then certain, where ``min`` of two types, spelled anew, is ambiguous.
        """
        match self.loop.test:
            case Binary(op="<", left=Name(variable=own), right=Name(name=name, variable=end)):
                return name if own is self.variable and end in self.effects.lasting else ""
        return ""

    def _again(self, start: str, stop: str) -> str:
        """The loop as it was, from one place to another."""
        name = self.variable.name
        body = self.old.show(self.loop.body)
        return f"for ({self.words}{name} = {start}; {name} < {stop}; ++{name}) {body}"

    def _body(self, items: Mapping[Items, str], first: str, k: str, speller: LocalSpeller) -> str:
        swaps: dict[Node, Node] = {}
        before, after = [], []
        for group in self.groups:
            own = items[group]
            at = speller.address(self._at(group.index, first, speller))
            before.append(group.declared(own, self.width, self.many))
            here, there, each = own, f"&{group.array}[{at}]", ""
            if self.strips:
                piece = self.old.fresh("piece")
                here, there = f"&{own}[{piece}]", f"&{group.array}[{at} + {piece}]"
                each = (f"#pragma unroll\nfor (int {piece} = 0; {piece} < {self.many}; "
                        f"{piece} += {self.width}) ")  # fmt: skip
            if group.does("load"):
                before.append(each + group.loaded(self.width, here, there))
            if group.does("store"):
                after.append(each + group.stored(self.width, here, there))
            for access in group.accesses:
                swaps[element(self.effects, access) or access.node] = text(f"{own}[{k}]")
        for access, (group, apart) in self.beside.items():
            place = element(self.effects, access)
            if place is not None and abs(apart) < self.width:
                swaps[place] = text(self._near(place, items[group], k, apart))
        inner = self.old.show_inside(self.loop.body, swaps)
        used = self._used(swaps)
        const = "" if "const" in self.words else "const "
        count = [f"{const}{self.words}{self.variable.name} = {first} + {k};"] if used else []
        return "\n".join(
            [*before, "#pragma unroll", f"for (int {k} = 0; {k} < {self.many}; ++{k}) {{",
             *count, inner, "}", *after]
        )  # fmt: skip

    def _near(self, place: Expr, own: str, k: str, apart: int) -> str:
        """An element of the vector, where it is in there, else loaded as it was."""
        there = f"{k} + {apart} < {self.many}" if apart > 0 else f"{k} >= {-apart}"
        index = f"{k} + {apart}" if apart > 0 else f"{k} - {-apart}"
        shown = self.old.show(Evaluate(None, 0, place)).strip().removesuffix(";")
        return f"({there} ? {own}[{index}] : {shown})"

    def _used(self, swaps: Mapping[Node, Node]) -> bool:
        """Whether the body asks for the counter still."""
        if self.beside:
            return True
        body = edited(self.loop.body, swaps)
        return any(
            isinstance(e, Name) and e.variable is self.variable
            for e in Effects(self.old).inside(body)
        )

    def tests(self, speller: LocalSpeller, width: int) -> tuple[str, ...]:
        """What tells, where a speller's loop begins, that the vectors are aligned."""
        return tuple(dict.fromkeys(self._aligned(g, speller, width) for g in self.groups))

    def _aligned(self, group: Items, speller: LocalSpeller, width: int) -> str:
        own = group.index.without([self.axis.name]) - self._start
        at = speller.address(speller.local(own))
        place = group.array if at == "0" else f"&{group.array}[{at}]"
        return f"(size_t){place} % {width * group.size} == 0"

    def _at(self, form: Polynomial, first: str, speller: LocalSpeller) -> Polynomial:
        """An index at the counter's value ``first``, which is at the start in round 0."""
        own = form.without([self.axis.name]) - self._start
        return speller.local(own) + Polynomial.symbol(f"@{first}")
