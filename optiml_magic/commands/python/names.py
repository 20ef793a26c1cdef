"""What the names of a Python text stand for: how they are bound, and what functions return."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

_DEEPEST = 8  # functions within functions; ours
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_WITHIN = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FOLDED = frozenset({"min", "max", "len", "int", "float", "ceil", "cdiv"})  # by name alone


def unknown(what: str) -> ast.Name:
    """An expression that has no value here; what is asked for has other words for each."""
    return ast.Name(f"{what}, which is not known", ast.Load())


def bound(tree: ast.AST) -> Iterator[str]:
    """Each binding of a name, an attribute or an element in a tree, as it is spelled there."""
    for node in ast.walk(tree):
        yield from _bound_by(node)


def _bound_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(ctx=ast.Store() | ast.Del()):
            yield node.id
        case (
            ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del())
        ):
            yield ast.unparse(node)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
        case ast.arg(arg=name):
            yield name
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            yield name


def unclear(body: Sequence[ast.stmt], formals: Sequence[str] = ()) -> set[str]:
    """The names that a function assigns to, and binds in another way as well."""
    times: Counter[str] = Counter()
    assigned = set(formals)
    for node in _own(body):
        own = list(_assigned(node))
        times.update(_bound_by(node))
        times.subtract(own)
        assigned.update(own)
    return {name for name in assigned if times[name] > 0}


def elsewhere(tree: ast.AST) -> set[str]:
    """The names that a function binds for another one: ``global`` and ``nonlocal``."""
    found: set[str] = set()
    for node in ast.walk(tree):
        found |= set(node.names) if isinstance(node, (ast.Global, ast.Nonlocal)) else set()
    return found


def redefined(tree: ast.AST) -> set[str]:
    """What is known by its name alone, of which the text has one of its own."""
    imports = (inner for inner in ast.walk(tree) if isinstance(inner, ast.alias))
    times = Counter(bound(tree))
    times.subtract(name for one in imports for name in _bound_by(one))
    return {name for name in FOLDED if times[name] > 0}


def _own(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of a function without those that belong to a scope within it."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, _WITHIN):
            waiting += [inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)]
        elif not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)


def _assigned(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Assign():
            targets = node.targets
        case ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.AsyncFor():
            targets = [node.target]
        case _:
            return
    for target in targets:
        yield from (name for inner in plain_targets(target) for name in _bound_by(inner))


def plain_targets(target: ast.expr) -> Iterator[ast.expr]:
    """The targets within tuples and lists, but for one that takes any number of values."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for one in target.elts:
            yield from plain_targets(one)
    elif not isinstance(target, ast.Starred):
        yield target


def fixed(tree: ast.Module, kinds: AbstractSet[type[ast.AST]]) -> Iterator[ast.Assign]:
    """What a module sets once, to an expression of such kinds, which its functions may read."""
    times = Counter(bound(tree))
    known: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if times[name] == 1:
                read = {inner.id for inner in ast.walk(value) if isinstance(inner, ast.Name)}
                if {type(inner) for inner in ast.walk(value)} <= kinds and read <= known:
                    known.add(name)
                    yield node


@dataclass(frozen=True)
class Formals:
    """A function of the text: what it may be called with, by the place, and what it returns."""

    names: tuple[str, ...]
    defaults: Mapping[str, ast.expr]
    result: ast.expr | None  # where that is all it does
    owner: str = ""  # the class whose method it is

    def is_called(self, call: ast.Call, objects: Mapping[str, str]) -> bool:
        """Whether it is certain that a call by its name is one of it, by the classes of objects."""
        match call.func:
            case ast.Name():
                return not self.owner
            case ast.Attribute(value=ast.Name(id=on)) if self.owner:
                return on == "self" or objects.get(on) == self.owner
            case ast.Attribute(value=ast.Call(func=ast.Name(id=kind))):
                return kind == self.owner
        return False

    def given(self, call: ast.Call) -> list[ast.expr] | None:
        """What a call gives each of them; None where it cannot be told."""
        by_name = {word.arg: word.value for word in call.keywords if word.arg is not None}
        starred = any(isinstance(one, ast.Starred) for one in call.args)
        if starred or len(by_name) < len(call.keywords):
            return None
        if len(call.args) > len(self.names) or by_name.keys() - set(self.names):
            return None
        parts = {**self.defaults, **dict(zip(self.names, call.args, strict=False)), **by_name}
        return [parts.get(name, unknown(name)) for name in self.names]


def functions(tree: ast.Module) -> dict[str, Formals]:
    """The functions by their names, but for those that have one of something else, too."""
    times = Counter(bound(tree))
    found: dict[str, Formals] = {}
    for owner in ast.walk(tree):
        for node in ast.iter_child_nodes(owner):
            match node:
                case ast.FunctionDef(name=name):
                    own = owner.name if isinstance(owner, ast.ClassDef) else ""
                    found[name] = _formals(node, own)
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as value):
                    found[name] = Formals(*_arguments(value.args), value.body)
    return {name: one for name, one in found.items() if times[name] == 1}


def _formals(node: ast.FunctionDef, owner: str) -> Formals:
    names, defaults = _arguments(node.args)
    marks = {ast.unparse(mark) for mark in node.decorator_list}
    if owner and "staticmethod" not in marks:
        names = names[1:]
    doc = ast.get_docstring(node) is not None
    match node.body[1 if doc else 0 :]:
        case [ast.Return(value=ast.expr() as value)] if not marks:
            return Formals(names, defaults, None if owner else value, owner)
    return Formals(names, defaults, None, owner)


def _arguments(arguments: ast.arguments) -> tuple[tuple[str, ...], dict[str, ast.expr]]:
    """Names by place, then by keyword alone, and the defaults that are numbers."""
    own = [*arguments.posonlyargs, *arguments.args]
    names = [one.arg for one in own]
    pairs = list(
        zip(names[len(names) - len(arguments.defaults) :], arguments.defaults, strict=True)
    )
    if arguments.vararg is None:
        words = zip((one.arg for one in arguments.kwonlyargs), arguments.kw_defaults, strict=True)
        pairs += [(name, value) for name, value in words if value is not None]
        names += [one.arg for one in arguments.kwonlyargs]
    return tuple(names), {n: v for n, v in pairs if isinstance(v, ast.Constant)}


def asked_for(tree: ast.Module) -> set[str]:
    """The functions that the text asks for by name, or that a decorator hands on."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                found.add(name)
            case ast.FunctionDef(name=name, decorator_list=[_, *_]):
                found.add(name)
    return found


def objects(tree: ast.Module) -> Mapping[str, str]:
    """The classes of names that stand for nothing but an object of one."""
    classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    times = Counter(bound(tree))
    found = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=kind))
            ) if kind in classes and times[name] == times[kind] == 1:
                found[name] = kind
    return found


class Settled(ast.NodeTransformer):
    """A statement with what is ``unclear`` unknown, and calls of functions as what they return."""

    def __init__(
        self, unclear: Collection[str], known: Mapping[str, Formals], fixed: Collection[str]
    ) -> None:
        self._unclear = unclear
        self._known = known
        self._fixed = fixed
        self._depth = 0

    def of(self, node: ast.stmt) -> ast.stmt:
        """A copy, since what a module fixes is a statement of several functions."""
        found: ast.stmt = self.visit(copy.deepcopy(node))
        return found

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """One that is unclear, where it is asked for."""
        asked = isinstance(node.ctx, ast.Load)
        return unknown(node.id) if asked and node.id in self._unclear else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """What a function of the text returns, in what it is called with."""
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name):
            return node
        one = self._known.get(node.func.id)
        given = one.given(node) if one is not None else None
        if one is not None and one.result is not None and given is not None:
            names = {inner.id for inner in ast.walk(one.result) if isinstance(inner, ast.Name)}
            open_names = names - {*one.names, *self._fixed, *self._known, *FOLDED}
            calls = [inner for inner in ast.walk(one.result) if isinstance(inner, ast.Call)]
            roots = {ast.unparse(call.func).partition(".")[0] for call in calls}
            if self._depth < _DEEPEST and not open_names - roots:
                self._depth += 1
                made = Placed(dict(zip(one.names, given, strict=True))).visit(
                    copy.deepcopy(one.result)
                )
                result: ast.expr = self.visit(made)
                self._depth -= 1
                return result
        return unknown(node.func.id) if one is not None and node.func.id in FOLDED else node


class Placed(ast.NodeTransformer):
    """An expression with what its parameters are given in their place."""

    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A parameter, or another name as it is."""
        return copy.deepcopy(self._given[node.id]) if node.id in self._given else node
