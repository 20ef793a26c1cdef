"""P12, vectorise: the rounds of a loop taken several at a time, their elements by one access.

The elements go through a small array that a compiler keeps in registers. Where an address is not
aligned to the vector, a test that all rounds of the loop share leaves every round to the loop that
was there before. Source: CUDA C++ Programming Guide, "Device Memory Accesses": 4, 8 or 16 bytes, at
addresses that are multiples of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.counted import upward
from optiml_magic.kernels.primitives.effects import Effects, loops_in, moves_within
from optiml_magic.kernels.primitives.items import WIDEST, Items, element, vector_of, widest
from optiml_magic.kernels.primitives.naming import LocalSpeller, speller_before
from optiml_magic.kernels.primitives.own_words import own_words
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.vector_groups import Groups, Whole, check_head, quotients
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.tree import Block, Declare, Loop, Statement, Variable, walk
from optiml_magic.source.directives import RequireDirective, TuneDirective
from optiml_magic.source.expressions import parse_expression


@primitive
def vectorise(
    kernel: Kernel,
    at: int,
    whole: Whole | None = None,
    strips: Sequence[int] = (),
    strip: str = "",
    taken: Sequence[str] = (),
) -> Kernel:
    """The loop with this number takes as many elements as 16 bytes of the widest array hold.

    Or one of so many ``strips``, the first of them to begin with, by several vectors; ``strip`` is
    the tuned name that another loop has them by already. Names that are ``taken`` are for others.
    """
    loop = loops_in(kernel.function.body)[at]
    return _Vectorising(kernel, loop, whole, strips, strip, taken).kernel()


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
        names = [one.name for one in whole.values()]
        made = vectorise(upward(kernel, number), number, shared, taken=names)
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
            tests = [test for _, one in group for test in one.tests(speller, width, "")]
        except Unspelled:
            continue
        name = kernel.fresh(f"whole_{first.variable.name}", *taken)
        taken.append(name)
        shared = Whole(name, width, tuple(dict.fromkeys(tests)))
        yield from ((number, shared) for number, _ in group)


class _Vectorising:
    def __init__(
        self,
        kernel: Kernel,
        loop: Loop,
        whole: Whole | None = None,
        strips: Sequence[int] = (),
        strip: str = "",
        taken: Sequence[str] = (),
    ) -> None:
        self.old = kernel
        self.taken = taken
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
        if moves_within(axis, self.effects):
            raise NotLegal("its counter changes in the loop", loop.line)
        match loop.before:
            case Declare(words=words, variables=(only,)) if only is axis.variable:
                self.words = words
            case _:
                raise NotLegal("where the loop begins is not in its head", loop.line)
        check_head(self.effects, loop, axis.variable)
        self.axis: Axis = axis
        self._start, self._stop = axis.start, axis.stop
        self.variable: Variable = axis.variable
        self.found = Groups(kernel, axis, axis.start)
        self.groups = self.found.groups
        self.leader: Items | None = None
        if not self.groups:
            raise NotLegal("it reads no consecutive elements one by one", loop.line)
        if strips:  # how many of its elements fill a sector is not asked of several at once
            own = (g for g in self.groups if g.apart == 1 or not self.found.asks(g))
            self.groups = [*own]
        if not self.groups:
            raise NotLegal("it takes several elements a round", loop.line)
        self.width = widest(self.groups) if whole is None else whole.width
        if self.width < 2:
            raise NotLegal("its elements fill a vector already", loop.line)
        self.longest = max(strips, default=0)
        longest = max(self._whole(group) for group in self.groups) if strips else 1
        self.strips = tuple(n for n in strips if n % longest == 0)
        self.many = str(self.width)
        if self.strips:
            self.width = longest
            several = len(self.strips) > 1
            self.many = strip or kernel.fresh("STRIP") if several else str(self.strips[0])
        if whole is None:
            self.leader, self.groups = self.found.together(self._wide)
        most, begins = max((self.width, *self.strips)), self._start.value == 0
        alike = quotients(kernel, loop, self.variable, most) if begins and not self.leader else {}
        self.alike: dict[Binary, str] = alike
        tunes = {tune.name: tune.values for tune in kernel.program.tunes}
        if strip and tunes[strip] != tuple(sorted(self.strips)) and len(self.strips) != 1:
            raise NotLegal("another loop takes other numbers of elements at once", loop.line)

    def _wide(self, group: Items) -> int:
        """Elements of one vector of a group: in strips each has vectors that are whole."""
        return self._whole(group) if self.strips else vector_of(group, self.width)

    def _whole(self, group: Items) -> int:
        return min(WIDEST // group.size, self.longest)

    @property
    def whole_start(self) -> bool:
        """Whether vectors begin with the first round."""
        return self._start.value is not None and self._start.value % self.width == 0

    @property
    def _is_even(self) -> bool:
        """Whether all rounds, of a known number, are in whole strips, or none is.

        Their loop is written out then, so that a compiler knows the place of each in an array.
        """
        trips, alone = self.axis.trips, self.whole is None and self.leader is None
        even = self.strips and trips and not any(trips % n for n in self.strips)
        return bool(even) and alone and self.whole_start

    @property
    def _is_whole(self) -> bool:
        """Whether all rounds from 0 on are one strip, which then has the counter for its items."""
        return self._is_even and self.many == str(self.axis.trips) and not self._start.terms

    def kernel(self) -> Kernel:
        old, loop, name = self.old, self.loop, self.variable.name
        speller = speller_before(old, self.effects, loop)
        start = speller.form(speller.local(self._start))
        stop = self._end() or speller.form(speller.local(self._stop))
        whole = old.fresh(f"whole_{name}", *self.taken) if self.whole is None else self.whole.name
        first, k = (old.fresh(n) for n in (f"{name}_first", f"{name}_item"))
        first, k = ("0", name) if self._is_whole else (first, k)
        items: dict[Items, str] = {}
        for group in self.groups:
            named = f"{group.array.replace('.', '_')}_items"
            items[group] = old.fresh(named, *items.values())
        own = self.tests(speller, self.width) if self.whole is None else self.whole.tests
        tests = "".join(f"{one} && " for one in own)
        const = "" if "const" in self.words else "const "
        width, many = self.width, self.many
        made = []
        begin, end = "0", whole
        if self._is_even:
            begin, end = start, stop
        elif self.whole_start and self.leader is None:
            begin = start
            length = f"({stop})" if " " in stop else stop
            length = length if start == "0" else f"({stop} - {start})"
            ahead = "" if start == "0" else f"{start} + "
            rounded = f"{ahead}{length} / {many} * {many}"
            if self.whole is None or not self.whole.declared:
                asked = f"{tests}{start} < {stop}" if ahead else tests.removesuffix(" && ")
                made.append(f"{const}{self.words}{whole} = {asked} ? {rounded} : {start};")
        else:  # up to a multiple of the width, where addresses are aligned that begin at one
            up, begin = old.fresh(f"up_{name}"), old.fresh(f"head_{name}")
            least = self._start.value
            next_up = (
                f"({start} + {width - 1}) / {width} * {width}"
                if least is None else str(-(-least // width) * width)
            )  # fmt: skip
            if self.leader is not None:
                next_up, tests = self._peeled(self.leader, start, up, speller)
            made += [
                f"{const}{self.words}{up} = {next_up};",
                f"{const}{self.words}{begin} = {tests}{up} < {stop} ? {up} : {stop};",
                f"{const}{self.words}{whole} = {begin} + ({stop} - {begin}) / {many} * {many};",
                self._again(start, begin),
            ]
        body, told = self._body(items, first, k, speller), hints_of(old, loop)
        hint = "".join(f"{old.show(one).strip()}\n" for one in told)
        strips = (
            f"for ({self.words}{first} = {begin}; {first} < {end}; {first} += {many}) "
            f"{{\n{body}\n}}"
        )
        if self._is_even:
            strips = body if self._is_whole else f"#pragma unroll\n{strips}"
            rest = f"{{\n{hint}{self._again(start, stop)}\n}}"
            made = [f"if ({' && '.join(own)}) {{\n{strips}\n}} else {rest}"]
        else:
            made += [f"{hint}{strips}", self._again(whole, stop)]
        whole_text = lines("\n".join(made))
        hints: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(told)
        body_now = edited(old.function.body, {**hints, loop: (whole_text,)})
        tunes = (
            [TuneDirective(many, tuple(sorted(self.strips)), self.strips[0])]
            if len(self.strips) > 1 and many not in old.program.values else []
        )  # fmt: skip
        needed = dict.fromkeys(c for g, c in self.found.asked.items() if g in self.groups)
        requires = [RequireDirective(parse_expression(one)) for one in needed]
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
            own, width = items[group], self._wide(group)
            whole = str(self.width * group.apart)
            if self.strips:
                whole = f"{self.many} * {group.apart}" if group.apart > 1 else self.many
            lowest = self._lowest(group, first, speller)
            before.append(group.declared(own, width, whole))
            here, there, each = own, self._address(group, lowest, first, speller), ""
            if whole != str(width):
                piece = self.old.fresh("piece")
                here = f"&{own}[{piece}]"
                there = self._address(group, lowest, first, speller, f" + {piece}")
                each = (f"#pragma unroll\nfor (int {piece} = 0; {piece} < {whole}; "
                        f"{piece} += {width}) ")  # fmt: skip
            if self.found.asks(group):
                before.append(each + group.loaded(width, here, there))
            if group.does("store"):
                after.append(each + group.stored(width, here, there))
            for access in group.accesses:
                taken = element(self.effects, access) or access.node
                swaps[taken] = text(f"{own}[{self._place(group, k, access)}]")
        for access, (group, apart) in self.found.beside.items():
            place = element(self.effects, access)
            if group in self.groups and place is not None and abs(apart) < self.width:
                swaps[place] = text(self._near(place, group, items[group], k, apart))
        for expr, by in self.alike.items():
            within = f" + {k}" if expr.op == "%" else ""
            swaps[expr] = text(f"({first} {expr.op} {by}{within})")
        inner = self.old.show_inside(self.loop.body, swaps)
        used = not self._is_whole and self._used(swaps)
        const = "" if "const" in self.words else "const "
        count = [f"{const}{self.words}{self.variable.name} = {first} + {k};"] if used else []
        return "\n".join(
            [*before, "#pragma unroll", f"for (int {k} = 0; {k} < {self.many}; ++{k}) {{",
             *count, inner, "}", *after]
        )  # fmt: skip

    def _place(self, group: Items, item: str, access: Access | None = None) -> str:
        """Where the element of a round is in the vector."""
        if group.apart > 1 and access is not None and access.index is not None:
            part = (access.index - group.index).value
            return f"{group.apart} * {item}" + (f" + {part}" if part else "")
        last = f"{self.many} - 1" if self.strips else str(self.width - 1)
        ahead = f"({item})" if " " in item else item
        return item if self.found.way(group) > 0 else f"{last} - {ahead}"

    def _near(self, place: Expr, group: Items, own: str, k: str, apart: int) -> str:
        """An element of the vector, where it is in there, else loaded as it was."""
        there = f"{k} + {apart} < {self.many}" if apart > 0 else f"{k} >= {-apart}"
        item = f"{k} + {apart}" if apart > 0 else f"{k} - {-apart}"
        shown = self.old.spelled(place)
        return f"({there} ? {own}[{self._place(group, item)}] : {shown})"

    def _used(self, swaps: Mapping[Node, Node]) -> bool:
        """Whether the body asks for the counter still."""
        if self.found.beside:
            return True
        body = edited(self.loop.body, swaps)
        return any(
            isinstance(e, Name) and e.variable is self.variable
            for e in Effects(self.old).inside(body)
        )

    def tests(self, speller: LocalSpeller, width: int, zero: str = "0") -> tuple[str, ...]:
        """What tells, where a speller's loop begins, that the vectors are aligned."""
        wide = {g: self._wide(g) if self.strips else vector_of(g, width) for g in self.groups}
        base = self.found.base
        aligned = (
            f"(size_t){self._address(g, base(g), zero, speller)} % {wide[g] * g.size} == 0"
            for g in self.groups
        )
        many = self.many if self.strips else str(width)
        sizes = (by for by in self.alike.values() if not by.isdecimal())
        return tuple(dict.fromkeys((*aligned, *(f"{by} % {many} == 0" for by in sizes))))

    def _peeled(
        self, leader: Items, start: str, up: str, speller: LocalSpeller
    ) -> tuple[str, str]:  # fmt: skip
        """The first round whose vector of one group is whole, and what tells so of the others."""
        kind = self.variable.type.base if self.variable.type.base != "auto" else "int"
        there = self._address(leader, self.found.first(leader), start, speller)
        wide = self._wide(leader)
        ahead = f"({kind})((size_t){there} / {leader.size} % {wide})"
        if self.found.way(leader) > 0:
            ahead = f"({wide} - {ahead}) % {wide}"
        tests = ""
        for group in self.groups:
            form = self.found.at(group, Polynomial.symbol(f"@{up}"))
            place = self._address(group, form, up, speller)
            if group is not leader:
                tests += f"(size_t){place} % {self._wide(group) * group.size} == 0 && "
        return ahead if start == "0" else f"{start} + {ahead}", tests

    def _address(
        self, group: Items, form: Polynomial, counter: str, speller: LocalSpeller, more: str = ""
    ) -> str:
        """Where the element of a counter lies, or ``more`` behind; without one by forms alone."""
        try:
            at = speller.address(speller.local(form))
        except Unspelled:
            if not counter or self.found.way(group) < 0:
                raise
            words = own_words(self.old, self.loop, self.variable, group, f"{counter}{more}")
            return f"&{words}"
        return group.array if at == "0" else f"&{group.array}[{at}{more}]"

    def _lowest(self, group: Items, first: str, speller: LocalSpeller) -> Polynomial:
        """Where the vectors of rounds from the counter's value ``first`` on begin in memory."""
        at = speller.local(self.found.base(group))
        if not self._is_whole:
            at += Polynomial.constant(self.found.way(group)) * Polynomial.symbol(f"@{first}")
        return at if self.found.way(group) > 0 else at - Polynomial.symbol(f"@{self.many}")
