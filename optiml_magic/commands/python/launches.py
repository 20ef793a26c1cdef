"""How Python around a kernel launches it, by CuPy and PyCUDA, written as the host code of C++.

What reads the host code of a pasted program then reads it, too: numbers, sizes of arrays, and which
array is passed on to the next kernel. Nothing is run. What has no counterpart is ``unread()``,
whose value is not known.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from optiml_magic.commands.python.arrays import (
    Extents,
    Made,
    keeps_axes,
    made,
    memory_of,
    with_own_axes,
)
from optiml_magic.commands.python.expressions import (
    PLAIN,
    UNREAD,
    argument,
    axes,
    drawn,
    expression,
    extents,
    is_name,
    last,
    tensor,
)
from optiml_magic.commands.python.handles import (
    Launch,
    handle,
    handles_in,
    launch_in,
    mentioned,
)
from optiml_magic.commands.python.names import (
    Formals,
    Placed,
    Settled,
    asked_for,
    bound,
    elsewhere,
    fixed,
    functions,
    objects,
    plain_targets,
    redefined,
    unclear,
    unknown,
)

_OWN_NAMES = (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEAVES = frozenset({"exit", "_exit", "quit"})
_ENTRY = "as_launched_from_python"


def as_host_code(tree: ast.Module, first: int, wrappers: Collection[str] = ()) -> str:
    """Functions that launch as the Python does, for the line ``first`` of a text and those behind.

    Lines keep their numbers where they can. Empty where nothing launches. A function that nobody
    asks for is left out where others launch. ``wrappers`` are functions of C++ that launch.
    """
    writer = _written(tree, first, frozenset(wrappers), asked_for(tree))
    if not writer.launches:
        writer = _written(tree, first, frozenset(wrappers), None)
    return writer.text if writer.launches else ""


def _written(
    tree: ast.Module, first: int, wrappers: frozenset[str], asked: Collection[str] | None
) -> _Writer:
    handles, known, numbers = handles_in(tree), functions(tree), list(fixed(tree, PLAIN))
    writer = _Writer(handles, known, objects(tree), mentioned(tree, handles), wrappers, first)
    methods = {
        node for owner in ast.walk(tree) if isinstance(owner, ast.ClassDef) for node in owner.body
    }
    inlined = {name for name, one in known.items() if one.result is not None}
    open_names = elsewhere(tree) | (redefined(tree) - inlined)
    defined = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    for function in sorted(defined, key=lambda node: node.lineno):
        if asked is not None and function not in methods and function.name not in asked:
            continue
        given = known.get(function.name)
        formals = [one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)]
        own = {*formals, *(name for one in function.body for name in bound(one))}
        outer = [node for node in numbers if not own & set(bound(node))]
        names = {name for node in outer for name in bound(node)}
        settled = Settled(open_names | unclear(function.body, formals), known, names)
        body = [settled.of(node) for node in (*outer, *function.body)]
        writer.function(function.name, given.names if given is not None else (), body,
                        function.lineno)  # fmt: skip
    names = {name for node in numbers for name in bound(node)}
    settled = Settled(open_names | unclear(tree.body), known, names)
    writer.function(_ENTRY, (), [settled.of(node) for node in tree.body], first)
    return writer


@dataclass
class _Writer:
    """The text so far, which begins on the line ``first``, and what is known of arrays.

    ``mentioned`` are the names that launches mention.
    """

    handles: Mapping[str, str]
    known: Mapping[str, Formals]
    objects: Mapping[str, str]
    mentioned: frozenset[str]
    wrappers: frozenset[str]
    first: int
    text: str = ""
    launches: int = 0
    arrays: dict[str, Made] = field(default_factory=dict)
    allocated: set[str] = field(default_factory=set)
    reshaped: set[str] = field(default_factory=set)
    tuples: dict[str, ast.expr] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)  # of the function, outside of branches and loops
    depth: int = 0

    def function(self, name: str, names: Sequence[str], body: Sequence[ast.stmt], at: int) -> None:
        self.arrays, self.allocated, self.names = {}, set(), set(names)
        self.reshaped, self.tuples = set(), {}
        own = (one if is_name(one) else f"python_{one}" for one in names)
        formals = ", ".join(f"auto {one}" for one in own)
        self._write(f"void {self._spelled(name)}({formals}) {{", at)
        self._all(body)
        self._write("}", 0)

    def _write(self, code: str, line: int) -> None:
        self.text += "\n" * (line - self.first - self.text.count("\n")) or " "
        self.text += code

    def _all(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _within(self, head: str, body: Sequence[ast.stmt], line: int = 0) -> None:
        """What may run more or less often than once."""
        self._write(f"{head} {{", line)
        self.depth += 1
        self._all(body)
        self.depth -= 1
        self._write("}", 0)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[first, *others]):
                plain = [one for one in (first, *others) if isinstance(one, ast.Name)]
                self._assign(first, node.value)
                for other in others:
                    self._assign(other, plain[0] if plain[:1] == [first] else unknown("..."))
            case ast.AnnAssign(value=ast.expr() as value):
                self._assign(node.target, value)
            case ast.AugAssign():
                self._called_in(node.value)
                self._fill(node.target)
                self._rebound(node.target)
                self._write(f"{ast.unparse(node.target)} += {UNREAD};", node.lineno)
            case ast.Expr(value=ast.Call() as call):
                self._call(call)
            case ast.If():
                self._branch(node)
            case ast.For() | ast.AsyncFor() | ast.While():
                self._loop(node)
            case ast.With() | ast.AsyncWith():
                self._all(node.body)
            case ast.Try() | ast.TryStar():
                self._all([*node.body, *node.orelse])
                for handler in node.handlers:
                    self._within(f"if ({UNREAD})", handler.body, handler.lineno)
                self._all(node.finalbody)
            case ast.Match():
                self._choice(node.cases, node.lineno)
            case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
                self._called_in(node)
                if isinstance(node, (ast.Return, ast.Raise)) and self.depth:
                    self._write("return;", node.lineno)
            case ast.Expr() | ast.Assert():
                self._called_in(node)

    def _branch(self, node: ast.If) -> None:
        if "__name__" in ast.unparse(node.test):
            self._all(node.body)
            return
        self._called_in(node.test)
        self._within(f"if ({expression(node.test)})", node.body, node.lineno)
        self._within("else", node.orelse)

    def _choice(self, cases: Sequence[ast.match_case], line: int) -> None:
        """Cases of which one runs at most."""
        if cases:
            self._within(f"if ({UNREAD})", cases[0].body, line)
            self._write("else {", 0)
            self._choice(cases[1:], 0)
            self._write("}", 0)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        own = {name for one in (*node.body, node) for name in bound(one)}
        self._forget(own)
        targets = [] if isinstance(node, ast.While) else list(plain_targets(node.target))
        self.depth += 1
        counters = [one.id for one in targets if isinstance(one, ast.Name) and is_name(one.id)]
        moved = " ".join(f"{self._declared(name, 'auto')} = {UNREAD};" for name in counters)
        self.depth -= 1
        self._within(f"while ({UNREAD}) {{ {moved}", node.body, node.lineno)
        self._write("}", 0)
        if node.orelse:
            self._within(f"if ({UNREAD})", node.orelse)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        value = Extents(self.arrays, self.reshaped).visit(value)
        if isinstance(target, (ast.Tuple, ast.List)):
            self._apart(target, value)
            return
        name = ast.unparse(target)
        if isinstance(value, ast.Call) and launch_in(value, self.handles) is not None:
            self._call(value)
            return
        self._called_in(value)
        if not is_name(name) or name in self.handles:
            self._fill(target)
            return
        line, other = target.lineno, memory_of(value, self.mentioned)
        if self.wrappers and not keeps_axes(value):
            other = None  # a wrapper of C++ asks a view for its axes
        whole = Placed(self.tuples).visit(copy.deepcopy(value))
        array, before = made(whole, self.arrays), self.arrays.get(name)
        array = array if array is not None and name not in array.names else None
        if other is not None and other.id == name:
            self.reshaped |= {name}
            if before is not None:
                self.arrays[name] = array or replace(before, shaped=False)
                self.reshaped -= {name}
            return
        if other is not None and other.id in self.arrays:
            self._allocate(other.id, line)
            array = array or self.arrays[other.id]
        self._rebound(target)
        if name in self.allocated:
            self._write(f"{name} = {UNREAD};", line)
        elif other is not None and is_name(other.id):
            self._write(f"{self._declared(name, 'auto')} = {other.id};", line)
            if array is not None and not self.depth:
                self.arrays[name] = array
                self.allocated.add(name)
            elif not isinstance(value, ast.Name) or other.id in self.reshaped:
                self.reshaped |= {name}
        elif array is not None and (before is None or not self.depth) and name not in self.names:
            self.arrays[name] = array
        elif before is not None and array is not None:
            self._write(f"{self._declared(name, 'auto')} = {UNREAD};", line)
        elif isinstance(value, ast.Tuple) and 1 <= len(value.elts) <= 3:
            self._write(f"{self._declared(name, 'dim3')} = dim3({axes(value.elts)});", line)
            self.tuples |= {name: value} if not self.depth else {}
        else:
            self._write(f"{self._declared(name, 'auto')} = {expression(value)};", line)

    def _declared(self, name: str, kind: str) -> str:
        """A name where it is set: with its type unless all of the function has it already."""
        if name in self.names:
            return name
        self.names |= {name} if not self.depth else set()
        return f"{kind} {name}"

    def _rebound(self, target: ast.AST) -> None:
        """Arrays made with what is another number now have an extent without a name."""
        if isinstance(target, ast.Name):
            self.arrays.pop(target.id, None)
            self.reshaped.discard(target.id)
            self._forget({target.id})

    def _forget(self, names: Collection[str]) -> None:
        """Arrays and tuples that are made with what may be another number."""
        own = set(names)
        self.arrays = {n: array for n, array in self.arrays.items() if not array.names & own}
        self.tuples = {
            n: value
            for n, value in self.tuples.items()
            if not own & {n, *(i.id for i in ast.walk(value) if isinstance(i, ast.Name))}
        }

    def _apart(self, targets: ast.Tuple | ast.List, value: ast.expr) -> None:
        """``rows, cols = 3, 4`` and ``rows, cols = x.shape``."""
        listed = isinstance(value, (ast.Tuple, ast.List))
        stars = [one for one in targets.elts if isinstance(one, ast.Starred)]
        given = [] if stars else value.elts if listed and isinstance(value, ast.Tuple) else []
        own = {inner.id for one in targets.elts for inner in ast.walk(one)
               if isinstance(inner, ast.Name)}  # fmt: skip
        read = {inner.id for one in given[1:] for inner in ast.walk(one)
                if isinstance(inner, ast.Name)}  # fmt: skip
        self._called_in(value)
        for at, target in enumerate(targets.elts):
            one: ast.expr = unknown("...")
            if len(given) == len(targets.elts) and not own & read:
                one = given[at]
            elif isinstance(value, ast.Attribute) and value.attr == "shape" and not stars:
                one = ast.Subscript(value, ast.Constant(at))
            self._assign(target.value if isinstance(target, ast.Starred) else target, one)

    def _called_in(self, node: ast.AST) -> None:
        """The calls of functions of the text within an expression, which may launch."""
        if isinstance(node, _OWN_NAMES) and not (
            isinstance(node, ast.Lambda) and not any(ast.iter_child_nodes(node.args))
        ):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Call) and (name := self._own(inner)) is not None:
                    self._write(f"{name}();", inner.lineno)  # with what is not known
            return
        for child in ast.iter_child_nodes(node):
            self._called_in(child)
        if isinstance(node, ast.Call) and (self._own(node) or handle(node, self.handles)):
            self._call(node)

    def _own(self, call: ast.Call) -> str | None:
        """The function of the text that is called, or may be."""
        name = last(call.func)
        return name if name in self.known or name in self.wrappers else None

    def _given(self, call: ast.Call, name: str) -> tuple[str, list[ast.expr]]:
        """A function of the text as C++ has it, and what is certain that it is called with."""
        one = self.known.get(name)
        if one is not None and one.is_called(call, self.objects):
            return self._spelled(name), one.given(call) or []
        if name not in self.wrappers:
            return name, []
        self.launches += 1
        plain = not call.keywords and not any(isinstance(one, ast.Starred) for one in call.args)
        return name, [with_own_axes(one) for one in call.args] if plain else []

    def _spelled(self, name: str) -> str:
        """A function of Python, beside one of C++ with its name."""
        return f"python_{name}" if name in self.wrappers else name

    def _call(self, call: ast.Call) -> None:
        call = Extents(self.arrays, self.reshaped).visit(call)
        launch = launch_in(call, self.handles)
        if launch is not None:
            self._launched(launch, call.lineno)
            return
        for inner in call.args:
            self._called_in(inner)
        if (name := self._own(call)) is not None:
            called, given = self._given(call, name)
            self._write(f"{called}({', '.join(self._passed(given, call.lineno))});", call.lineno)
        elif last(call.func) in _LEAVES and self.depth:
            self._write("return;", call.lineno)
        for node in ast.walk(call):
            self._fill(node)
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("resize", "setflags"):
            self._rebound(call.func.value)

    def _launched(self, launch: Launch, line: int) -> None:
        self.launches += 1
        shared = f", {expression(launch.shared)}" if launch.shared is not None else ""
        config = f"{extents(launch.grid)}, {extents(launch.block)}{shared}"
        given = ", ".join(self._passed(launch.arguments, line))
        self._write(f"{launch.kernel}<<<{config}>>>({given});", line)

    def _passed(self, given: Sequence[ast.expr], line: int) -> list[str]:
        arguments = [argument(one) for one in given]
        for name in dict.fromkeys(arguments):
            self._allocate(name, line)
        return arguments

    def _allocate(self, name: str, line: int) -> None:
        """The memory of an array that a launch is given first."""
        if name not in self.arrays or name in self.allocated:
            return
        array = self.arrays[name]
        self.allocated.add(name)
        count = " * ".join(f"({expression(extent)})" for extent in array.extents) or "1"
        if new := tensor(array):
            self._write(f"auto {name} = {new};", line)
        else:
            size = f"({count}) * sizeof({array.ctype})"
            self._write(f"{array.ctype}* {name}; cudaMalloc(&{name}, {size});", line)
            if array.zeros:
                self._write(f"cudaMemset({name}, 0, {size});", line)
        if element := drawn(array):
            self._write(f"for (int i = 0; i < {count}; i++) {name}[i] = {element};", line)

    def _fill(self, target: ast.AST) -> None:
        """An array that something else than zeros is written to, or may be."""
        own = isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store)
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if isinstance(target, ast.Name) and target.id in self.arrays:
            filled = replace(self.arrays[target.id], zeros=False, limits=None, counts=False)
            self.arrays[target.id] = filled
            if own:
                self.arrays[target.id] = replace(self.arrays[target.id], shaped=False)
