"""What a function is handed and gives back, by value or by reference: ``acc = f(p[i], b, acc)``.

A reference to a local is that local under another name. One to an element, ``const Body& b``, may
as well be a copy of it, where nothing that the function changes can be there, and where it asks for
the element whatever else holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Braces,
    Call,
    Choice,
    Expr,
    Index,
    Lambda,
    Member,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.functions import pure
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import lent_in, names
from optiml_magic.kernels.primitives.endings import denied
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.primitives.quiet import base_of, locals_of, quiet
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Function,
    If,
    Leave,
    Statement,
    TypeName,
    Variable,
    expressions,
    only_leaves,
    walk,
)
from optiml_magic.kernels.types import CType


def gives_back(function: Function, statement: Statement, call: Call) -> bool:
    """Whether a call adds to a local, or to a member of one, that the function is handed."""
    match statement:
        case Evaluate(expression=whole) if whole is call:
            return any(_adds(function, p) for p in function.parameters if changeable(p))
    own = _assigned(statement, call)
    return own is not None and any(
        isinstance(argument, Name) and argument.variable is own
        and alike(replace(parameter.type, reference=False), own.type)
        and (_returned_whole(function, parameter) or _adds(function, parameter))
        for parameter, argument in zip(function.parameters, call.arguments, strict=True)
    )  # fmt: skip


def handed_on(
    kernel: Kernel, function: Function, statement: Statement, call: Call
) -> Variable | None:
    """The parameter that ``sum = f(sum, x)`` changes and returns, if it may be ``sum`` itself."""
    own = _assigned(statement, call)
    places = [isinstance(e, Name) and e.variable is own for e in call.arguments]
    named_ = sum(isinstance(e, Name) and e.variable is own for e in every(call))
    *_, last = function.body.body or (None,)
    if own is None or places.count(True) != 1 or named_ != 1 or own.type.depth:
        return None
    parameter = function.parameters[places.index(True)]
    match last:
        case Leave(value=Name(variable=returned)) if returned is parameter:
            members = any(isinstance(e, Member) for e in expressions(function.body))
            plain = alike(parameter.type, own.type) and own not in lent_in(kernel.function.body)
            adds = members or gives_back(function, statement, call)
            return parameter if plain and adds else None
    return None


def without_copy(function: Function) -> Function:
    """The function that changes what it is handed, and no copy: ``r = sum; ... return r;``."""
    *_, last = function.body.body or (None,)
    own = last.value.variable if isinstance(last, Leave) and isinstance(last.value, Name) else None
    for statement in function.body.body:
        match statement:
            case Declare(variables=(Variable(value=Name(variable=given)) as copy,)) if copy is own:
                known = given is not None and given in function.parameters
                return _handed(function, statement, copy, given) if known and given else function
            case Declare() if not any(
                isinstance(e, Assign | Step | Lambda | Unread)
                or (isinstance(e, Call) and not pure(e.function))
                for top in statement.expressions for e in every(top)
            ):  # fmt: skip
                continue
        break
    return function


def _handed(function: Function, begun: Statement, copy: Variable, given: Variable) -> Function:
    """The function with a parameter by value in the place of a copy of it."""
    inside = [e for e in expressions(function.body) if isinstance(e, Name)]
    kind = replace(given.type, reference=False, const=False)
    if sum(e.variable is given for e in inside) > 1 or not alike(copy.type, kind):
        return function
    if given.type.volatile or given.extents or copy.extents or copy.storage != "local":
        return function
    if given.type.reference and not given.type.const:
        return function
    parameter = replace(given, type=kind)
    swaps: dict[Node, Node | None] = {
        e: Name(None, parameter.name, parameter) for e in inside if e.variable is copy
    }
    body = edited(function.body, {**swaps, begun: None})
    own = tuple(parameter if p is given else p for p in function.parameters)
    return replace(function, body=body, parameters=own)


def one_way(kernel: Kernel, function: Function) -> Function:
    """The function without early ways out that return what its end does: the rest is a branch."""
    body = function.body.body
    last = body[-1] if body and isinstance(body[-1], Leave) else None
    returned = last.value if last is not None else None
    if last is not None and not isinstance(returned, Name):
        return function
    rest = _branched(kernel, body[:-1] if last is not None else body, returned)
    whole = replace(function.body, body=(*rest, *((last,) if last is not None else ())), span=None)
    return function if whole.body == body else replace(function, body=whole)


def _branched(
    kernel: Kernel, body: tuple[Statement, ...], returned: Expr | None
) -> tuple[Statement, ...]:
    own = returned.variable if isinstance(returned, Name) else None
    for at, statement in enumerate(body):
        match statement:
            case If(before=None, test=test, then=then, other=None) if only_leaves(then, "return"):
                ends = [s.value for s in walk(then) if isinstance(s, Leave)]
                if not all(_same(value, own) for value in ends) or not ends:
                    return body
                rest = Block(None, statement.line, _branched(kernel, body[at + 1 :], returned))
                turned = If(None, statement.line, denied(kernel, test), rest)
                return (*body[:at], turned)
    return body


def _same(value: Expr | None, own: Variable | None) -> bool:
    """Whether a way out returns this parameter, or nothing as the function does."""
    return value is None if own is None else isinstance(value, Name) and value.variable is own


def references(
    kernel: Kernel, function: Function, statement: Statement, call: Call
) -> Mapping[Variable, str] | None:
    """What parameters that are references are called where the function is; empty for a copy.

    None where one can be neither.
    """
    found: dict[Variable, str] = {}
    pairs = [(p, a) for p, a in zip(function.parameters, call.arguments, strict=True)
             if p.type.reference]  # fmt: skip
    if pairs and any(isinstance(e, Lambda | Unread) for e in expressions(function.body)):
        return None  # what they name would have to be another name
    for parameter, argument in pairs:
        kind = parameter.type
        if parameter.extents or kind.depth or kind.volatile or kind.base == "auto":
            return None
        found[parameter] = _place(kernel, parameter, argument)
        if not kind.const and not found[parameter]:
            return None
    copied = [(p, a) for p, a in pairs if not found[p]]
    outside = changed_outside(function, statement, call)
    if copied and (
        outside & lent_in(kernel.function.body)
        or outside & names(a for _, a in copied)
        or _addressed(kernel, function)
        or not all(quiet(kernel, e, locals_of(function), frozenset(), (function,))
                   for e in expressions(function.body))
    ):  # fmt: skip
        return None
    return found if all(_is_there(function, p, a) for p, a in copied) else None


def changed_outside(function: Function, statement: Statement, call: Call) -> frozenset[Variable]:
    """The locals of a kernel that a function may change, or that get what it returns."""
    pairs = zip(function.parameters, call.arguments, strict=True)
    own = _assigned(statement, call)
    changed = names(a for p, a in pairs if changeable(p))
    return changed | {own} if own is not None else changed


def may_change(kernel: Kernel, function: Function, call: Call, local: Variable) -> bool:
    """Whether a local that a function is given by value may change while the function runs."""
    changed = names(
        a for p, a in zip(function.parameters, call.arguments, strict=True) if changeable(p)
    )
    led = local in changed or local in lent_in(kernel.function.body)
    return bool(changed) and (led or any(v.type.reference for v in changed))


def alike(one: TypeName, other: TypeName) -> bool:
    """Whether two types are the same but for what is const."""
    return replace(one, const=False) == replace(other, const=False)


def _assigned(statement: Statement, call: Call) -> Variable | None:
    """The local that gets what a call returns, where that is all that a statement does."""
    match statement:
        case Evaluate(expression=Assign(op="=", target=Name(variable=own), value=whole)):
            return own if whole is call else None
    return None


def changeable(parameter: Variable) -> bool:
    return parameter.type.reference and not parameter.type.const and not parameter.type.depth


def _has_members(function: Function, parameter: Variable) -> bool:
    own = _same_at_first(function, parameter)
    return any(isinstance(e, Member) and _is(e.base, *own) for e in expressions(function.body))


def _adds(function: Function, parameter: Variable) -> bool:
    """Whether a function of several statements adds to a parameter, or to members of it."""
    if len(function.body.body) < 2 and not _has_members(function, parameter):
        return False  # one expression, as ``unfolded`` has them
    own = _same_at_first(function, parameter)
    for e in expressions(function.body):
        match e:
            case Assign(op="+=" | "-=", target=target) if _is(base_of(target), *own):
                return True
            case Assign(op="=", target=target, value=value) if _is(base_of(target), *own):
                if _is_more(value, own):
                    return True
    *_, last = function.body.body or (None,)
    match last:
        case Leave(value=Call(arguments=made) | Braces(members=made)):
            return any(_is_more(part, own) for part in made)
        case Leave(value=Expr() as value):
            return _is_more(value, own)
    return False


def _is_more(value: Expr, own: tuple[Variable, ...]) -> bool:
    """Whether something is added to one of these, or to a member of one."""
    match value:
        case Binary(op="+" | "-", left=left, right=right):
            return any(_is(base_of(side), *own) or _is_more(side, own) for side in (left, right))
    return False


def _returned_whole(function: Function, parameter: Variable) -> bool:
    """Whether a vector or a structure is returned with members that the function gave values."""
    *_, last = function.body.body or (None,)
    match last:
        case Leave(value=Name(variable=own)) if own in _same_at_first(function, parameter):
            return _has_members(function, parameter)
    return False


def _same_at_first(function: Function, parameter: Variable) -> tuple[Variable, ...]:
    """A parameter, and the locals that begin as it is."""
    declared = (v for s in walk(function.body) if isinstance(s, Declare) for v in s.variables)
    copies = (v for v in declared if v.value is not None and _is(v.value, parameter))
    return (parameter, *copies)


def _is(expr: Expr, *variables: Variable) -> bool:
    return isinstance(expr, Name) and expr.variable in variables


def _place(kernel: Kernel, parameter: Variable, argument: Expr) -> str:
    """The local, or the member of one, that a reference is bound to; empty for anything else."""
    base = argument
    while isinstance(base, Member) and not base.arrow:
        base = base.base
    if not isinstance(base, Name) or base.variable is None or base.variable.array:
        return ""
    own = base.variable
    if own.storage not in ("local", "parameter") or own.type.depth or own.type.volatile:
        return ""
    kind = kernel.unit.structs.type(parameter.type.base, kernel.unit.aliases)
    same = kind.name and _kind(kernel, argument) == kind
    return kernel.spelled(argument) if same else ""


def _kind(kernel: Kernel, place: Expr) -> CType | None:
    """The type of a local, or of a member of one."""
    structs, aliases = kernel.unit.structs, kernel.unit.aliases
    match place:
        case Name(variable=Variable(type=kind)):
            return structs.type(kind.base, aliases)
        case Member(base=base, field=name):
            whole = _kind(kernel, base)
            if whole is None or whole.kind == "vector":
                return whole.lane if whole is not None and name in "xyzw" else None
            known = structs.of(whole.name)
            own = [f for f in known.fields if f.name == name] if known is not None else []
            return own[0].type if len(own) == 1 and own[0].rank == 0 else None
    return None


def _addressed(kernel: Kernel, function: Function) -> bool:
    """Whether it, or what it calls, asks where a reference leads: an element beside it may be."""
    for one in (function, *reached(kernel.unit, function)):
        given = {p for p in one.parameters if p.type.reference}
        for e in expressions(one.body):
            if isinstance(e, Unary) and e.op == "&" and given & names([e.operand]):
                return True
    return False


def _is_there(function: Function, parameter: Variable, argument: Expr) -> bool:
    """Whether a copy loads nothing that the function need not ask for."""
    if any(variable.type.volatile for variable in names([argument])):
        return False
    loads = any(
        isinstance(e, Index) or (isinstance(e, Unary) and e.op == "*")
        or (isinstance(e, Member) and e.arrow) or (isinstance(e, Call) and not pure(e.function))
        for e in every(argument)
    )  # fmt: skip
    certain = (e for top in _surely(function.body.body) for e in _parts(top))
    return not loads or any(_is(e, parameter) for e in certain)


def _surely(body: Iterable[Statement]) -> Iterator[Expr]:
    """The expressions that a function is certain to come to."""
    for statement in body:
        match statement:
            case Declare() | Evaluate() | Leave():
                yield from statement.expressions
            case If(before=None, test=test):
                yield test
                if any(isinstance(s, Leave) for s in walk(statement)):
                    return
            case Block(body=inner):
                yield from _surely(inner)
                if any(isinstance(s, Leave) for s in walk(statement)):
                    return
            case _ if any(isinstance(s, Leave) for s in walk(statement)):
                return


def _parts(expr: Expr) -> Iterator[Expr]:
    """The parts of an expression that are evaluated whatever the others are."""
    yield expr
    match expr:
        case Choice(test=test):
            yield from _parts(test)
        case Binary(op="&&" | "||", left=left):
            yield from _parts(left)
        case Lambda() | Unread():
            return
        case Call(function=name) if not pure(name):
            return  # what it is given by reference it need not ask for
        case _:
            for part in expr.parts:
                yield from _parts(part)
