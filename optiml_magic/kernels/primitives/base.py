"""What primitives take and give: a launched kernel with all that is known of it, or a refusal.

A primitive is one legal step: ``(kernel, where, parameters) -> Kernel | Refused``. It prints what
it makes, and the result is read anew, so that the next step sees what the compiler will see.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from optiml_magic.kernels.editing import Node, Swaps, edited
from optiml_magic.kernels.expressions import Binary, Call, Expr, Name
from optiml_magic.kernels.operations import Operations
from optiml_magic.kernels.primitives.spelled_names import apart, beside_macros, renamed
from optiml_magic.kernels.printing import Printer, printed
from optiml_magic.kernels.read import read
from optiml_magic.kernels.reading import Axis, Reading
from optiml_magic.kernels.signature import split_name
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.tidying import tidied
from optiml_magic.kernels.tree import Block, Evaluate, Function, Loop, Statement, expressions, walk
from optiml_magic.kernels.unit import Unit, lift_program
from optiml_magic.model.facts import Facts, LaunchFacts
from optiml_magic.source.directives import Directive, LaunchDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.program import Program, parse_program

_WIDE = 8  # bytes
_WORD = re.compile(r"[A-Za-z_]\w*")
_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Refused:
    """Why a primitive leaves a kernel alone; ``line`` counts from 1, 0 where it has none."""

    reason: str
    line: int = 0


class NotLegal(Exception):  # noqa: N818  # it says what happened
    """Inside of a primitive only: it ends in a ``Refused``."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(frozen=True, eq=False)
class Kernel:
    """One kernel of a program under the one directive that launches it.

    ``behind`` is the one launched next, as the program was before any step. ``defines`` are macros
    from outside of the text, None where nobody knows them; ``arithmetic`` what has other results.
    """

    program: Program
    launch: LaunchDirective
    facts: LaunchFacts | None = None
    chip: str = ""
    behind: Kernel | None = None
    defines: Mapping[str, str] | None = None
    arithmetic: tuple[str, ...] = ()

    @cached_property
    def unit(self) -> Unit:
        return lift_program(self.program, self.defines)

    @cached_property
    def function(self) -> Function:
        name, _ = split_name(self.launch.kernel or "")
        found = [k for k in self.unit.kernels if not name or k.name in (name, f"::{name}")]
        if len(found) != 1:
            raise NotLegal("the kernel of the launch is not found")
        return found[0]

    @cached_property
    def reading(self) -> Reading:
        """What it does, with the extents of its block where they are numbers."""
        _, arguments = split_name(self.launch.kernel or "")
        extents = zip("xyz", self.block, strict=True)
        fixed = {f"blockDim.{axis}": size for axis, size in extents if size is not None}
        return read(
            self.unit, self.function, arguments, tuned=tuple(self.program.values), fixed=fixed
        )

    def reading_operations(self) -> Operations:
        """For forms that the reading itself has not made."""
        return Operations(self.reading.symbols)

    @cached_property
    def block(self) -> tuple[int | None, int | None, int | None]:
        """Threads of a block along each axis, where the program alone decides them."""
        values = self.program.values
        found = [
            size.evaluate(values) if size.names <= values.keys() and not size.arrays else None
            for size in self.launch.block
        ]
        found += [1] * (3 - len(found))
        return found[0], found[1], found[2]

    @cached_property
    def known(self) -> dict[object, Any]:
        """What was found of it, by who found it: a dozen rules ask alike."""
        return {}

    def shaped(self, steps: Sequence[Callable[[Kernel], Kernel | Refused]]) -> Kernel:
        """The kernel after those of the steps that apply; each is taken once, whoever asks."""
        kernel = self
        for step in steps:
            if step not in kernel.known:
                kernel.known[step] = where_legal(step, kernel)
            kernel = kernel.known[step]
        return kernel

    @cached_property
    def wide(self) -> bool:
        """Whether it counts in 64 bits somewhere: then places in arrays may need them."""
        return any(kind.integral and kind.size == _WIDE for kind in self.reading.types.values())

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(_WORD.findall(self.program.text))

    def fresh(self, name: str, *more: str) -> str:
        """A name like this that stands nowhere in the program."""
        taken = self.words | set(more)
        number, found = 2, name
        while found in taken:
            found, number = f"{name}_{number}", number + 1
        return found

    def show(self, node: Statement, swaps: Swaps | None = None) -> str:
        """The text of a statement, with parts of it exchanged."""
        return Printer(self.unit).statement(edited(node, swaps) if swaps else node)

    def spelled(self, expr: Expr, swaps: Swaps | None = None) -> str:
        """The text of an expression, with parts of it exchanged; in brackets if of several."""
        words = self.show(Evaluate(None, 0, expr), swaps).strip().removesuffix(";")
        return f"({words})" if isinstance(expr, Binary) and expr.op == "," else words

    def show_inside(self, body: Statement, swaps: Swaps | None = None) -> str:
        """The text of a body without braces of its own."""
        shown = self.show(body, swaps).strip()
        return shown[1:-1].strip() if shown.startswith("{") else shown

    def axes(self) -> dict[Loop, Axis]:
        """The loops of the kernel's own body that are read once."""
        return {**self._axes}

    @cached_property
    def _axes(self) -> dict[Loop, Axis]:
        own = {s for s in walk(self.function.body) if isinstance(s, Loop)}
        counts: dict[Loop, list[Axis]] = {}
        for axis in self.reading.axes:
            counts.setdefault(axis.node, []).append(axis)
        return {node: axes[0] for node, axes in counts.items() if node in own and len(axes) == 1}

    def settled(self) -> Kernel:
        """This kernel where the tuned names that its block comes from have no other values.

        For steps that say in numbers what a block was, or that give it another.
        """
        names = {name for size in self.launch.block for name in size.names}
        edits = []
        for tune in self.program.tunes:
            if tune.name in names and tune.value is not None and len(tune.values) > 1:
                start, end = (len(self.program.text[:at].encode()) for at in (tune.start, tune.end))
                edits.append(Edit(start, end, str(replace(tune, values=(tune.value,)))))
        if not edits:
            return self
        program = parse_program(apply(self.program.text, edits))
        return replace(self, program=program, launch=_same(program, self.launch))

    def rewritten(
        self,
        body: Block,
        *,
        launch: LaunchDirective | None = None,
        directives: Iterable[Directive | str] = (),
        helpers: Iterable[str] = (),
        tidy: bool = True,
        bounds: str = "",
    ) -> Kernel:
        """This kernel with another body, in the program where it stands.

        One that is not to be made ``tidy`` keeps its own lines, but for what changes in them.
        ``bounds`` are what ``__launch_bounds__`` says from now on, where that is to change.
        """
        function = replace(self.function, body=replace(body, span=None))
        text = printed(self.unit, function, tidied if tidy else str)
        program = parse_program(_inserted(self, text, helpers))
        old = _same(program, self.launch)
        new = launch or self.launch
        edits = [_relaunch(program, old, new, directives)]
        if bounds:
            edits.append(_bounded(replace(self, program=program, launch=old), bounds))
        program = parse_program(apply(program.text, edits))
        return replace(self, program=program, launch=_same(program, new))

    def with_bodies(self, bodies: Mapping[Function, Block], helpers: Iterable[str] = ()) -> Kernel:
        """This kernel in its program, where these functions have other bodies.

        ``helpers`` stand in front of them: one that stands further below is moved there.
        """
        edits, raw = list[Edit](), self.program.text.encode()
        start = min(self.unit.origin.origin(*(f.whole or f.span))[0] for f in bodies)
        first = raw.rfind(b"\n", 0, start) + 1
        for words in (f"{beside_macros(h, self.program.text).strip()}\n\n" for h in helpers):
            if words.strip().encode() not in raw[:first]:
                at, end = raw.find(words.encode(), first), len(words.encode())
                edits += [Edit(at, at + end, ""), Edit(first, first, words)][at < 0 :]
        for function, body in bodies.items():
            new = replace(function, body=replace(body, span=None))
            span = self.unit.origin.origin(*function.span)
            edits.append(Edit(*span, Printer(self.unit).function(new)))
        program = parse_program(apply(self.program.text, edits))
        return replace(self, program=program, launch=_same(program, self.launch))


_LATEST: deque[tuple[Program, Facts | None, list[Kernel]]] = deque(maxlen=4)  # ours


def kernels(program: Program, facts: Facts | None) -> list[Kernel]:
    """The kernels that one directive each launches, of a dispatch those that run.

    Whoever asks again of the same objects gets the same kernels, with all that was found of them.
    """
    for known, given, found in _LATEST:
        if known is program and given is facts:
            return [*found]
    _LATEST.appendleft((program, facts, _kernels(program, facts)))
    return [*_LATEST[0][2]]


def _kernels(program: Program, facts: Facts | None) -> list[Kernel]:
    found = []
    known = {launch.kernel: launch for launch in facts.launches} if facts is not None else {}
    chip, defines = (facts.chip, facts.defines) if facts is not None else ("", None)
    behind: Kernel | None = None
    for launch in reversed(running(program, facts)):
        name, _ = split_name(launch.kernel or "")
        same = [d for d in program.launches if split_name(d.kernel or "")[0] == name]
        if len(same) == 1:
            kernel = Kernel(program, launch, None, chip, behind, defines)
            spelled = launch.kernel or kernel.function.name
            behind = replace(kernel, facts=known.get(spelled))
            found.append(_whole(behind))
        else:
            behind = None
    return found[::-1]


def running(program: Program, facts: Facts | None) -> list[LaunchDirective]:
    """The launches in order, of a dispatch the one for the sizes at hand; else its first."""
    lines = {launch.line for launch in facts.launches} if facts is not None else set[int]()
    return [
        next((launch for launch in step if launch.line in lines), step[0])
        for step in program.alternatives
    ]


def _whole(kernel: Kernel) -> Kernel:
    """A kernel that only calls one function, with the body of that function as its own."""
    match kernel.function.body.body:
        case (Evaluate(expression=Call(function=name, arguments=given, template=())),):
            called = kernel.unit.called(name, len(given))
        case _:
            return kernel
    if len(called) != 1 or called[0].template or called[0].result.base != "void":
        return kernel
    swaps: dict[Node, Node] = {}
    for parameter, argument in zip(called[0].parameters, given, strict=False):
        if not isinstance(argument, Name) or argument.variable is None:
            return kernel
        if argument.variable.type != parameter.type:
            return kernel
        swaps |= {
            e: Name(None, argument.name, argument.variable)
            for e in expressions(called[0].body)
            if isinstance(e, Name) and e.variable is parameter and e.name != argument.name
        }
    return kernel.rewritten(edited(called[0].body, swaps) if swaps else called[0].body)


def primitive(
    make: Callable[Concatenate[Kernel, _P], Kernel],
) -> Callable[Concatenate[Kernel, _P], Kernel | Refused]:
    """A step whose ``NotLegal`` becomes a value."""

    @wraps(make)
    def step(kernel: Kernel, /, *args: _P.args, **kwargs: _P.kwargs) -> Kernel | Refused:
        try:
            return make(kernel, *args, **kwargs)
        except NotLegal as reason:
            return Refused(reason.reason, reason.line)
        except Unspelled as reason:
            return Refused(f"a part of it cannot be written anew: {reason}")

    return step


def once(
    find: Callable[Concatenate[Kernel, _P], _R],
) -> Callable[Concatenate[Kernel, _P], _R]:
    """A function that is called once for a kernel and other arguments; it may raise NotLegal."""

    @wraps(find)
    def found(kernel: Kernel, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        key = find, args, *kwargs.items()
        if key not in kernel.known:
            try:
                kernel.known[key] = find(kernel, *args, **kwargs)
            except NotLegal as reason:
                kernel.known[key] = reason
        answer: _R | NotLegal = kernel.known[key]
        if isinstance(answer, NotLegal):
            raise NotLegal(answer.reason, answer.line)
        return answer

    return found


def in_turn(
    kernel: Kernel, steps: Iterable[Callable[[Kernel], Kernel | Refused]]
) -> Kernel | Refused:
    """One step after the other, until one refuses."""
    for step in steps:
        made = step(kernel)
        if isinstance(made, Refused):
            return made
        kernel = made
    return kernel


def where_legal(
    step: Callable[Concatenate[Kernel, _P], Kernel | Refused],
    kernel: Kernel,
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> Kernel:
    """What a step makes of a kernel, or the kernel as it was where the step is refused."""
    made = step(kernel, *args, **kwargs)
    return made if isinstance(made, Kernel) else kernel


def _same(program: Program, launch: LaunchDirective) -> LaunchDirective:
    return next(d for d in program.launches if str(d) == str(launch))


def _inserted(kernel: Kernel, text: str, helpers: Iterable[str]) -> str:
    """Helpers in front of a kernel or its template head; one further below is moved there."""
    function, raw, old = kernel.function, text.encode(), kernel.unit.text.encode()
    first, end = kernel.unit.origin.origin(*(function.whole or function.span))
    head = kernel.unit.origin.origin(*function.head)[1] if function.head else first
    made = [beside_macros(helper, kernel.program.text) for helper in helpers]
    names = apart(made, kernel.program.text, function, body := old[head:end].decode())
    if taken := [name for name, other in names.items() if not other]:
        raise NotLegal(f"`{taken[0]}` is a name of its own, and that of a function it needs")
    start, to = raw.rfind(b"\n", 0, first) + 1, len(raw) - len(old[end:])
    own = raw[start:head].decode() + renamed(raw[head:to].decode(), names, body)
    before, behind, added = raw[:start].decode(), own + old[end:].decode(), ""
    for helper in (renamed(helper, names).strip() for helper in made):
        if helper not in before:
            behind = behind.replace(f"{helper}\n\n", "")
            added += f"{helper}\n\n"
    return before + added + behind


def _bounded(kernel: Kernel, bounds: str) -> Edit:
    """How many threads and blocks the head of a kernel promises, in the place of what it did."""
    function, unit = kernel.function, kernel.unit
    start, end = unit.origin.origin(*(function.head or function.span))
    head = kernel.program.text.encode()[start:end].decode()
    words = f"__launch_bounds__({bounds})"
    old = re.search(r"__launch_bounds__\s*(\((?:[^()]|\([^()]*\))*\))", head)
    name = re.search(rf"\b{function.name.rpartition('::')[2]}\s*\(", head)
    place = old.span() if old is not None else (name.start(), name.start()) if name else None
    if place is None:
        raise NotLegal("its name does not stand in front of its parameters", function.line)
    at, to = (start + len(head[:where].encode()) for where in place)
    return Edit(at, to, words if old is not None else f"{words} ")


def _relaunch(
    program: Program, old: LaunchDirective, new: LaunchDirective, before: Iterable[Directive | str]
) -> Edit:
    text = program.text
    known = {str(d) for d in program.directives}
    start = text.rfind("\n", 0, old.start) + 1
    blanks = text[start : old.start] if text[start : old.start].isspace() else ""
    lines = f"\n{blanks}".join([*(str(d) for d in before if str(d) not in known), str(new)])
    return Edit(len(text[: old.start].encode()), len(text[: old.end].encode()), lines)
