"""Two kernels that are launched one behind the other, made ready to become one text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Name,
    Unary,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.called import called_alike
from optiml_magic.kernels.primitives.dispatched import declaration
from optiml_magic.kernels.primitives.sizes import threads, usual_rounds
from optiml_magic.kernels.primitives.unshadowed import apart_from
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tidying import tidied
from optiml_magic.kernels.tree import Variable
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.program import Program, parse_program

_WORD = re.compile(r"[A-Za-z_]\w*")
#: Names in a text, without those of members and without suffixes of numbers.
NAMES = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*")
_RESTRICT = re.compile(r"\s*\b__restrict(?:__)?\b")


@dataclass(frozen=True)
class Pair:
    """``second`` is launched right behind ``first``; what both are passed has one name in both.

    ``facts`` are of that, and ``behind`` is the launch that follows.
    """

    first: Kernel
    second: Kernel
    facts: LaunchFacts | None
    behind: Kernel | None

    @property
    def program(self) -> Program:
        return self.second.program

    def with_first(self, made: Kernel) -> Pair:
        """The pair after a step on its first kernel."""
        at = self.program.alternatives.index((self.second.launch,))
        return replace(self, first=made, second=_at(made.program, at, self.second))

    def with_second(self, made: Kernel) -> Pair:
        """The pair after a step on its second kernel."""
        at = self.program.alternatives.index((self.first.launch,))
        return replace(self, first=_at(made.program, at, self.first), second=made)

    def alone(self, array: str) -> bool:
        """Whether an array is scratch that only these two touch."""
        return alone(self.second, array, self.first.launch)

    def last(self, array: str) -> bool:
        """Whether an array is scratch that nobody asks for behind these two."""
        at = self.program.alternatives.index((self.first.launch,))
        before = (launch for way in self.program.alternatives[:at] for launch in way)
        return alone(self.second, array, self.first.launch, *before)

    def as_one(self, body: str, gone: Collection[str]) -> Kernel:
        """A kernel with this body in the place of both, launched as the second one was.

        Arrays of scratch that are ``gone`` are no parameters any longer.
        """
        first, second = self.first, self.second
        name = first.fresh(f"{first.function.name}_{second.function.name}")
        words = ", ".join(self._parameters(gone))
        made = tidied(f"__global__ void {name}({words}) {{\n{body}\n}}")
        raw = self.program.text.encode()
        early, late = sorted(declaration(k.unit, k.function) for k in (first, second))
        end = len(raw) - len(raw[early[1] :].lstrip(b"\n"))
        launch = second.launch
        start, stop = (len(self.program.text[:at].encode()) for at in (launch.start, launch.end))
        fresh = replace(launch, kernel=name, args=None)
        # It stands behind what either calls.
        edits = [Edit(early[0], end, ""), Edit(*late, made), Edit(start, stop, str(fresh))]
        program = parse_program(apply(self.program.text, edits))
        program = program.without(next(d for d in program.launches if str(d) == str(first.launch)))
        for array in gone:
            program = program.without(next(s for s in program.scratch if s.name == array))
        program = _without_idle(program)
        found = next(d for d in program.launches if str(d) == str(fresh))
        return Kernel(program, found, self.facts, second.chip, self.behind, second.defines)

    def _parameters(self, gone: Collection[str]) -> list[str]:
        """Those of both kernels, each once; what one of them writes is not const."""
        found: dict[str, tuple[Kernel, Variable]] = {}
        loose = set()
        for kernel in (self.first, self.second):
            for parameter in kernel.function.parameters:
                name = parameter.name
                if name in gone:
                    continue
                before = found.get(name)
                if before is None:
                    found[name] = kernel, parameter
                    continue
                kinds = before[1].type, parameter.type
                if (kinds[0].base, kinds[0].depth) != (kinds[1].base, kinds[1].depth):
                    raise NotLegal(f"`{name}` has two types", parameter.line)
                if not (before[1].restrict and parameter.restrict):
                    loose.add(name)
                if kinds[0].const and not kinds[1].const:
                    found[name] = kernel, parameter
        words = []
        for name, (kernel, parameter) in found.items():
            if parameter.span is None:
                raise NotLegal("where its parameters stand is not known", parameter.line)
            start, end = kernel.unit.origin.origin(*parameter.span)
            spelled = kernel.program.text.encode()[start:end].decode()
            words.append(_RESTRICT.sub("", spelled) if name in loose else spelled)
        return words


def paired(kernel: Kernel, shape: Sequence[Callable[[Kernel], Kernel | Refused]] = ()) -> Pair:
    """A kernel and the one behind it, each after the steps of ``shape`` that apply to it.

    Raises NotLegal where they are no pair.
    """
    program, behind = kernel.program, kernel.behind
    at = next((n for n, s in enumerate(program.alternatives) if s == (kernel.launch,)), None)
    if behind is None or at is None or len(program.alternatives[at + 1]) > 1:
        raise NotLegal("its launch and the next one are not one after the other")
    other = _at(program, at + 1, behind)
    if str(other.launch) != str(behind.launch):
        raise NotLegal("the launch behind it is another one")
    _check_pair(kernel, other)
    facts = _facts(kernel, behind)
    pair = Pair(replace(kernel, facts=None), replace(other, facts=None), facts, behind.behind)
    pair = pair.with_second(done(called_alike(pair.second.settled())))
    pair = pair.with_first(done(called_alike(pair.first.settled())))
    pair = pair.with_second(where_legal(apart_from, pair.second, pair.first))
    pair = pair.with_first(where_legal(apart_from, pair.first, pair.second))
    for step in shape:
        pair = pair.with_second(where_legal(step, pair.second))
        pair = pair.with_first(where_legal(step, pair.first))
    return pair


def rounds(kernel: Kernel) -> bool:
    """Whether a compiler may round once, together, what both round apart: a product that is added.

    Source: CUDA C++ Programming Guide, "Floating-Point Standard": contraction to ``fma``.
    """
    behind = kernel.behind
    asked = {name for p, name in _passed(behind) if any(behind.reading.of(p))} if behind else set()
    return any(
        isinstance(access.node, Assign) and access.element.floating
        and (access.node.op == "*="
             or (access.node.op == "=" and _may_be_product(kernel, access.node.value)))
        for parameter, name in _passed(kernel) if name in asked
        for access in kernel.reading.of(parameter) if access.mode != "load"
    )  # fmt: skip


def asked(kernel: Kernel) -> float:
    """How often the kernel behind asks for each element that this one stores, at the least once."""
    behind = kernel.behind
    items = threads(kernel)
    others = threads(behind) if behind is not None else None
    if behind is None or not items or others is None:
        return 1.0
    stored = {
        name for p, name in _passed(kernel) if any(a.mode != "load" for a in kernel.reading.of(p))
    }
    axes = {axis.name: axis for axis in behind.reading.axes}
    times = [
        math.prod(usual_rounds(behind, axes[loop]) or 1 for loop in access.loops if loop in axes)
        for parameter, name in _passed(behind) if name in stored
        for access in behind.reading.of(parameter) if access.mode == "load"
    ]  # fmt: skip
    return max(1.0, others * sum(times) / items)


def _may_be_product(kernel: Kernel, value: Expr) -> bool:
    match value:
        case Binary(op=op):
            return op == "*"
        case Choice(then=then, other=other):
            return any(_may_be_product(kernel, e) for e in (then, other))
        case Cast(operand=operand) | Unary(operand=operand):
            return _may_be_product(kernel, operand)
        case Call(function=function, arguments=given):
            return bool(kernel.unit.called(function, len(given)))
        case Index() | Literal():
            return False
        case Name(variable=variable):
            return variable is None or variable.storage != "parameter"
    return True


def alone(kernel: Kernel, array: str, *more: LaunchDirective) -> bool:
    """Whether an array is scratch that only a kernel's launch touches, and these ``more``."""
    program = kernel.program
    own = next((s for s in program.scratch if s.name == array), None)
    if own is None:
        return False
    others = [d for d in program.directives if d is not own and not isinstance(d, LaunchDirective)]
    if any(array in _WORD.findall(str(d)) for d in others):
        return False
    for launch in program.launches:
        if launch in (kernel.launch, *more):
            continue
        given = launch.args or ()
        if any(array in _WORD.findall(str(a)) for a in given):
            return False
        called = replace(kernel, launch=launch).function
        if not given and any(p.name == array for p in called.parameters):
            return False
    return True


def touching(kernel: Kernel, array: str) -> list[Access]:
    """The accesses of a kernel to an array in global memory."""
    return [a for a in kernel.reading.of(array) if a.space == "global"]


def _check_pair(*kernels: Kernel) -> None:
    """Raise NotLegal where two launches are not of plain kernels and of arrays apart."""
    found: dict[str, str] = {}
    for kernel in kernels:
        function = kernel.function
        if kernel.launch.repeat is not None:
            raise NotLegal("its launches are of several rounds", function.line)
        if function.template or function.launch_bounds or "::" in function.name:
            raise NotLegal(f"`{function.name}` is not a plain kernel", function.line)
        if any(parameter.type.volatile for parameter in function.parameters):
            raise NotLegal("a parameter is volatile", function.line)
        for parameter, name in _passed(kernel):
            facts = kernel.facts.arrays.get(parameter) if kernel.facts is not None else None
            if facts is not None and found.setdefault(facts.buffer, name) != name:
                raise NotLegal("one array is passed under two names", function.line)


def _passed(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """The parameters with what is passed as each."""
    own = [p.name for p in kernel.function.parameters]
    given = kernel.launch.args
    return zip(own, own if given is None else [a.name or "" for a in given], strict=False)


def _facts(kernel: Kernel, behind: Kernel) -> LaunchFacts | None:
    """What is known of what both are passed, under the names of that."""
    if kernel.facts is None or behind.facts is None:
        return None
    arrays, scalars = {}, {}
    for one, facts in ((kernel, kernel.facts), (behind, behind.facts)):
        for parameter, name in _passed(one):
            if parameter in facts.arrays:
                arrays[name] = facts.arrays[parameter]
            if parameter in facts.scalars:
                scalars[name] = facts.scalars[parameter]
    return replace(behind.facts, arrays=arrays, scalars=scalars)


def done(made: Kernel | Refused) -> Kernel:
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    return made


def numbered(kernel: Kernel) -> Kernel:
    """The kernel, launched in blocks whose extents are spelled as numbers."""
    launch, program = kernel.launch, kernel.program
    names = {name for size in launch.block for name in size.names}
    values = {name: str(program.values[name]) for name in names & program.values.keys()}

    def spelled(size: Expression) -> Expression:
        return parse_expression(_WORD.sub(lambda m: values.get(m[0], m[0]), str(size)))

    grid, block = (tuple(map(spelled, sizes)) for sizes in (launch.grid, launch.block))
    new = replace(launch, grid=grid, block=block)
    start, end = (len(program.text[:at].encode()) for at in (launch.start, launch.end))
    program = parse_program(apply(program.text, [Edit(start, end, str(new))]))
    return replace(kernel, program=program,
                   launch=next(d for d in program.launches if str(d) == str(new)))  # fmt: skip


def _at(program: Program, place: int, kernel: Kernel) -> Kernel:
    return replace(kernel, program=program, launch=program.alternatives[place][0])


def _without_idle(program: Program) -> Program:
    """The program without tuned names that nothing asks for any longer."""
    for tune in program.tunes:
        if len(re.findall(rf"\b{re.escape(tune.name)}\b", program.text)) == 1:
            program = program.without(tune)
    return program
