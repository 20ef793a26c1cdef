"""Functions of the text that have loops stand where they are called: ``s = dot(a, b, n);``.

So do those that load within bounds, ``a = pixel(image, x - 1, y);``, and those that add to a vector
or a structure and return it, ``sum = pulled(sum, me, body[j]);``, lambdas and methods.

Rules look for loops and loads in the body of a kernel, and a compiler does the same with such
functions. What they are given, and what they declare, has names of its own, but for a local array
that is lent to one, ``m = median(window);``, whose elements it may change. The call is in a place
that is evaluated whatever else holds, and nothing else that stands there changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Choice,
    Expr,
    Lambda,
    Name,
    Step,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, kernels, primitive
from optiml_magic.kernels.primitives.handing import (
    alike,
    changeable,
    gives_back,
    handed_on,
    may_change,
    one_way,
    references,
    without_copy,
)
from optiml_magic.kernels.primitives.lending import lent_to
from optiml_magic.kernels.primitives.meant import meant, unnamed
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.primitives.quiet import base_of, locals_of, quiet
from optiml_magic.kernels.primitives.straight import loads, straight
from optiml_magic.kernels.primitives.unshadowed import renaming
from optiml_magic.kernels.swapping import swapping
from optiml_magic.kernels.tree import (
    Declare,
    Evaluate,
    Function,
    If,
    Leave,
    Loop,
    Statement,
    TypeName,
    Variable,
    Verbatim,
    expressions,
    walk,
)
from optiml_magic.source.program import Program

_MOST = 64  # calls of a kernel; ours
_LONG = 60  # statements of a function; ours


def all_expanded(program: Program) -> Program:
    """The program with such functions in the bodies of its kernels; as it was where it has none."""
    for place in range(len(kernels(program, None))):
        made = expanded(kernels(program, None)[place])
        program = made.program if isinstance(made, Kernel) else program
    return program


@primitive
def expanded(kernel: Kernel) -> Kernel:
    """The kernel with the bodies of such functions in the place of their calls; it has some."""
    kernel = _declared_apart(kernel)
    for count in range(_MOST):
        site = next(_sites(kernel), None)
        if site is None:
            if not count:
                raise NotLegal(
                    "it calls no function with a loop or a load that may stand in its place"
                )
            break
        kernel = _with_body(kernel, site)
    return unnamed(kernel)


def _declared_apart(kernel: Kernel) -> Kernel:
    """The kernel with a declaration for each of several locals, of which one calls a function.

    What a function is given may ask for those before it, in front of which its body cannot stand.
    """
    body = kernel.function.body
    heads = {s.before for s in walk(body) if isinstance(s, Loop | If)}
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {
        s: tuple(replace(s, variables=(v,), span=None, lead=None) for v in s.variables)
        for s in walk(body)
        if isinstance(s, Declare) and s not in heads and len(s.variables) > 1
        and "{" not in s.words and any(meant(kernel, call) is not None for top in s.expressions
                                       for call in every(top) if isinstance(call, Call))
    }  # fmt: skip
    return kernel.rewritten(edited(body, swaps)) if swaps else kernel


@dataclass(frozen=True, eq=False)
class _Site:
    statement: Statement
    call: Call
    function: Function


def _sites(kernel: Kernel) -> Iterator[_Site]:
    body = kernel.function.body
    heads = {s.before for s in walk(body) if isinstance(s, Loop | If)}
    for statement in walk(body):
        if statement in heads or not isinstance(statement, Declare | Evaluate | If | Leave):
            continue
        if isinstance(statement, Declare) and len(statement.variables) > 1:
            continue
        own = [part for top in statement.expressions for part in every(top)]
        changing = sum(isinstance(e, Assign | Step) for e in own)
        top = statement.expression if isinstance(statement, Evaluate) else None
        if changing > isinstance(top, Assign) or any(isinstance(e, Lambda | Unread) for e in own):
            continue
        for expr in statement.expressions:
            for call in _certain(expr):
                function = meant(kernel, call)
                if function is not None and (loads(function) or _within(call)):
                    function = straight(function)
                if function is not None and gives_back(function, statement, call):
                    function = without_copy(one_way(kernel, function))
                elif function is not None and _void(function):
                    function = one_way(kernel, function)
                if function is not None and _stands_alone(kernel, function, statement, call):
                    yield _Site(statement, call, function)


def _within(call: Call) -> bool:
    """Whether a call is of a lambda or of a method, in which rules see nothing."""
    return call.callee is not None or call.receiver is not None


def _void(function: Function) -> bool:
    return function.result.base == "void" and not function.result.depth


def _leads_on(kernel: Kernel, function: Function) -> bool:
    """Whether it takes or returns a structure with pointers, through which it reaches arrays."""
    types = [function.result, *(p.type for p in function.parameters)]
    structs = (kernel.unit.structs.of(t.base) for t in types if not t.depth)
    return any(field.type.depth for one in structs if one is not None for field in one.fields)


def _certain(expr: Expr) -> Iterator[Call]:
    """The calls of an expression that are made whatever its parts are, arguments first."""
    match expr:
        case Choice(test=test):
            yield from _certain(test)
        case Binary(op="&&" | "||", left=left):
            yield from _certain(left)
        case _:
            for part in expr.parts:
                yield from _certain(part)
            if isinstance(expr, Call):
                yield expr


def _stands_alone(kernel: Kernel, function: Function, statement: Statement, call: Call) -> bool:
    """Whether a function's body may stand before a statement that calls it."""
    inside = [*walk(function.body)]
    loops = any(isinstance(s, Loop) for s in inside) or gives_back(function, statement, call)
    some = loops or _leads_on(kernel, function) or loads(function) or _within(call)
    some = some or any(map(loads, reached(kernel.unit, function)))
    if not some or len(inside) > _LONG or function.template:
        return False
    if swapping(function) is not None:  # an atomic operation, as it is
        return False
    again = (e for e in expressions(function.body) if isinstance(e, Call))
    if any(isinstance(s, Verbatim) for s in inside) or any(
        function.name in {f.name for f in kernel.unit.called(e.function, len(e.arguments))}
        for e in again
    ):
        return False
    declared = {v for s in inside if isinstance(s, Declare) for v in s.variables}
    plain = all((v.storage == "local" or (v.storage == "shared" and _once(kernel, function)))
                and not v.type.reference for v in declared)  # fmt: skip
    lent = lent_to(kernel, function, statement, call)
    bound = references(kernel, function, statement, call)
    given = bound is not None and all(
        p in lent or p in bound or (p.type.depth < 2 and not p.extents) for p in function.parameters
    )
    *_, last = function.body.body or (None,)
    ends = [s for s in inside if isinstance(s, Leave) and s.kind == "return"]
    void = _void(function)
    if not plain or not given or ends != ([] if void else [last]) or function.result.reference:
        return False
    if void or _only(statement) is call or any(map(changeable, function.parameters)):
        return _only(statement) is call
    own = locals_of(function)
    return all(quiet(kernel, e, own, lent, (function,)) for e in expressions(function.body))


def _once(kernel: Kernel, function: Function) -> bool:
    """Whether a function is lent an array, and called in one place alone.

    What its threads share may as well be the kernel's then.
    """
    lent = any(p.type.depth for p in function.parameters)
    bodies = [f.body for f in kernel.unit.functions]
    called = [e for b in bodies for e in expressions(b) if isinstance(e, Call)
              and function.name in {f.name for f in
                                    kernel.unit.called(e.function, len(e.arguments))}]  # fmt: skip
    return lent and len(called) == 1


def _only(statement: Statement) -> Expr | None:
    """What is all that a statement computes."""
    match statement:
        case Evaluate(expression=Assign(op="=", target=Name(), value=value)):
            return value
        case Evaluate(expression=whole):
            return whole
        case Declare(variables=(Variable(value=value),)):
            return value
    return None


def _with_body(kernel: Kernel, site: _Site) -> Kernel:
    function, call = site.function, site.call
    taken, new = list[str](), dict[Variable, str]()

    def fresh(name: str) -> str:
        taken.append(kernel.fresh(name, *taken))
        return taken[-1]

    changing = {base.variable for e in expressions(function.body) if isinstance(e, Assign | Step)
                if isinstance(base := base_of(e.target), Name)}  # fmt: skip
    before, handed = list[Statement](), handed_on(kernel, function, site.statement, call)
    lent = lent_to(kernel, function, site.statement, call)
    bound = references(kernel, function, site.statement, call) or {}
    for parameter, argument in zip(function.parameters, call.arguments, strict=True):
        if bound.get(parameter):
            new[parameter] = bound[parameter]
            continue
        match argument:
            case Name(name=name, variable=Variable(type=kind) as given) if (
                parameter is handed
                or parameter in lent
                or (
                    parameter not in changing
                    and alike(parameter.type, kind)
                    and not may_change(kernel, function, call, given)
                )
            ):
                new[parameter] = name
                continue
        new[parameter] = fresh(parameter.name)
        shown = kernel.spelled(argument)
        words = _words(parameter.type, changes=parameter in changing)
        before.append(lines(f"{words}{new[parameter]} = {shown};"))
    own = (v for s in walk(function.body) if isinstance(s, Declare) for v in s.variables)
    new |= {variable: fresh(variable.name) for variable in own}
    swaps = renaming(function.body, new)
    *rest, last = function.body.body
    void = _void(function)
    before += [edited(statement, swaps) for statement in (function.body.body if void else rest)]
    if void or handed is not None:
        made: tuple[Statement, ...] = tuple(before)
    else:
        assert isinstance(last, Leave)
        assert last.value is not None
        value = edited(last.value, swaps)
        result = value
        named_alike = isinstance(last.value, Name) and last.value.variable is not None and alike(
            last.value.variable.type, function.result
        )  # fmt: skip
        if not named_alike and not _given_alike(site):
            name = fresh(f"{function.name.rpartition('::')[2]}_value")
            shown = kernel.spelled(value)
            before.append(lines(f"{_words(function.result)}{name} = {shown};"))
            result = text(name)
        made = (*before, edited(site.statement, {call: result}))
    exchanged = dict[Node, Node | tuple[Statement, ...] | None]({site.statement: made})
    return kernel.rewritten(edited(kernel.function.body, exchanged))


def _given_alike(site: _Site) -> bool:
    """Whether a call is all that a local of the type that it returns begins with, or is given."""
    match site.statement:
        case (
            Declare(variables=(Variable(value=value, type=kind),))
            | Evaluate(expression=Assign(
                op="=", target=Name(variable=Variable(type=kind)), value=value))
        ):  # fmt: skip
            return value is site.call and alike(kind, site.function.result)
    return False


def _words(kind: TypeName, *, changes: bool = False) -> str:
    """How a local of a type is declared, which stays what it is unless it ``changes``."""
    const = "const " if kind.const or (not kind.depth and not changes) else ""
    return f"{const}{kind.base}{'*' * kind.depth} "
