"""The model of a benchmark's answer, which a harness calls: ``forward`` with ``get_inputs()``."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator, Mapping

from optiml_magic.commands.python.names import bound

_ANSWER = "ModelNew"


def as_called(tree: ast.Module) -> ast.Module:
    """The module with its model made and called behind it, as a harness does; else as it is."""
    inputs, model = _function(tree, "get_inputs"), _model(tree)
    if inputs is None or model is None:
        return tree
    *made, last = inputs.body if ast.get_docstring(inputs) is None else inputs.body[1:]
    outside = {name for node in tree.body for name in _outer(node)}
    own = {name for node in made for name in bound(node)}
    if not isinstance(last, ast.Return) or not isinstance(last.value, (ast.List, ast.Tuple)):
        return tree
    if own & outside or not all(isinstance(node, ast.Assign) for node in made):
        return tree
    body: list[ast.stmt] = list(made)
    given: list[ast.expr] = []
    for at, one in enumerate(last.value.elts):
        if isinstance(one, ast.Call):
            name = ast.Name(f"input_{at}", ast.Store(), lineno=last.lineno)
            body.append(ast.Assign([name], one, lineno=last.lineno))
            given.append(ast.Name(name.id, ast.Load()))
        else:
            given.append(one)
    maker = ast.Call(ast.Name(model.name, ast.Load()), [], [])
    call = ast.Call(ast.Attribute(maker, "forward", ast.Load()), given, [], lineno=last.lineno)
    body.append(ast.Expr(call, lineno=last.lineno))
    values, arrays = _attributes(tree, model)
    settled = _Attributes(values)
    aside = [n for n in tree.body if isinstance(n, ast.ClassDef) and _function(n, "forward")]
    others = [n for n in tree.body if n not in aside or n is model]
    others = [settled.visit(_with_arrays(n, arrays)) if n is model else n for n in others]
    return ast.Module([*others, *body], [])


def _outer(node: ast.stmt) -> list[str]:
    """What a statement of the module binds there."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    return list(bound(node))


def _function(tree: ast.Module | ast.ClassDef, name: str) -> ast.FunctionDef | None:
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    return found[0] if len(found) == 1 else None


def _model(tree: ast.Module) -> ast.ClassDef | None:
    """The one class with a ``forward``, or of several the answer."""
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and _function(n, "forward")]
    named = [node for node in classes if node.name == _ANSWER] or classes
    return named[0] if len(named) == 1 else None


def _with_arrays(model: ast.stmt, arrays: Mapping[str, ast.expr]) -> ast.stmt:
    """The model with its arrays made where ``forward`` begins."""
    made = copy.deepcopy(model)
    for node in made.body if isinstance(made, ast.ClassDef) else ():
        if isinstance(node, ast.FunctionDef) and node.name == "forward":
            line = node.body[0].lineno
            node.body[:0] = [
                ast.Assign([ast.Name(name, ast.Store(), lineno=line)], value, lineno=line)
                for name, value in arrays.items()
            ]
    return made


def _attributes(
    tree: ast.Module, model: ast.ClassDef
) -> tuple[dict[str, ast.expr], dict[str, ast.expr]]:
    """The numbers that an object of the model has, which ``get_init_inputs()`` may say.

    Beside them the arrays that are made for it, and attributes are the names of these.
    """
    init, inputs = _function(model, "__init__"), _function(tree, "get_init_inputs")
    if init is None:
        return {}, {}
    values: dict[str, ast.expr] = {}
    formals, defaults = init.args.args, init.args.defaults
    for one, default in zip(formals[len(formals) - len(defaults) :], defaults, strict=True):
        values[one.arg] = default
    match inputs.body if inputs is not None else []:
        case [ast.Return(value=ast.List(elts=given) | ast.Tuple(elts=given))]:
            values |= {one.arg: value for one, value in zip(formals[1:], given, strict=False)}
        case _:
            values = values if inputs is None else {}
    times = Counter(bound(model))
    outer = dict(_plain(tree))
    whole = _Names({n: _Names(outer).visit(copy.deepcopy(v)) for n, v in outer.items()})
    own = {name: whole.visit(copy.deepcopy(value)) for name, value in values.items()}
    settled = _Names({**outer, **own})
    found: dict[str, ast.expr] = {}
    arrays: dict[str, ast.expr] = {}
    for node in init.body:
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)],
                            value=value) if times[f"self.{name}"] == 1:  # fmt: skip
                for part, array in _arrays(name, settled.visit(copy.deepcopy(value))):
                    named = f"model_{part.replace('.', '_')}"
                    arrays[named] = array
                    found[part] = ast.Name(named, ast.Load())
                value = values.get(value.id, value) if isinstance(value, ast.Name) else value
                if isinstance(value, (ast.Constant, ast.Name)):
                    found[name] = value
    return found, arrays


def _plain(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The numbers and tuples that names of the module stand for, of those that are set once."""
    times = Counter(name for node in tree.body for name in _outer(node))
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                pairs = list(zip(targets, values, strict=False))
            case ast.Assign(targets=[target], value=value):
                pairs = [(target, value)]
            case _:
                pairs = []
        for target, value in pairs:
            plain = isinstance(value, (ast.Constant, ast.Tuple))
            if plain and isinstance(target, ast.Name) and times[target.id] == 1:
                yield target.id, value


def _arrays(name: str, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The arrays that an attribute is or has: a parameter, or the weights of a layer."""
    if not isinstance(value, ast.Call):
        return
    made, words = (
        ast.unparse(value.func).rpartition(".")[2],
        {w.arg: w.value for w in value.keywords},
    )
    match made, value.args:
        case "Parameter", [ast.Call() as array] | [ast.BinOp(left=ast.Call() as array)]:
            yield name, array
        case "Linear", [columns, rows, *_]:
            yield f"{name}.weight", _random(rows, columns)
            yield f"{name}.bias", _random(rows)
        case "Embedding", [rows, columns, *_]:
            yield f"{name}.weight", _random(rows, columns)
        case (
            ("LayerNorm" | "GroupNorm" | "RMSNorm" | "BatchNorm1d" | "BatchNorm2d"),
            [*_, extent],
        ):
            yield f"{name}.weight", _random(extent)
            yield f"{name}.bias", _random(extent)
        case (("Conv1d" | "Conv2d" | "Conv3d"), [inner, outer, *others]) if "groups" not in words:
            kernel = others[0] if others else words.get("kernel_size")
            if isinstance(kernel, (ast.Constant, ast.Name)):
                yield f"{name}.weight", _random(outer, inner, *[kernel] * int(made[-2]))
                yield f"{name}.bias", _random(outer)


def _random(*extents: ast.expr) -> ast.expr:
    function = ast.Attribute(ast.Name("torch", ast.Load()), "randn", ast.Load())
    return ast.Call(function, list(extents), [])


class _Names(ast.NodeTransformer):
    """What names stand for in their place."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name that is asked for."""
        return copy.deepcopy(self._values.get(node.id, node))


class _Attributes(ast.NodeTransformer):
    """A class with what its attributes are set to in their place."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """``self.alpha`` and ``self.layer.weight``, where they are asked for."""
        own = ast.unparse(node).removeprefix("self.")
        if isinstance(node.ctx, ast.Load) and own in self._values and own != ast.unparse(node):
            return copy.deepcopy(self._values[own])
        self.generic_visit(node)
        return node
