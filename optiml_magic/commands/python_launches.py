"""How Python around a kernel launches it, by CuPy and PyCUDA, written as the host code of C++.

What reads the host code of a pasted program then reads it, too: numbers, sizes of arrays, and which
array is passed on to the next kernel. Nothing is run. What has no counterpart is ``unread()``,
whose value is not known.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from optiml_magic.commands.python_arrays import CTYPES, Extents, Made, made

_HANDLES = frozenset({"RawKernel", "get_function"})
_UNREAD = "unread()"
_BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%", ast.LShift: "<<",
    ast.RShift: ">>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==",
    ast.NotEq: "!=",
}  # fmt: skip
_PLAIN = frozenset({ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.Tuple, *_BINARY})
_PASSED = frozenset({"In", "Out", "InOut"})  # of PyCUDA, around an array
_INTEGERS = frozenset({"int", "int32", "int64", "uint32", "uint64", "intc", "uintc"})
_RESERVED = frozenset({
    "asm", "auto", "bool", "case", "catch", "char", "const", "constexpr", "default", "delete",
    "do", "double", "enum", "explicit", "extern", "float", "friend", "goto", "inline", "int",
    "long", "mutable", "namespace", "new", "operator", "private", "protected", "public",
    "register", "short", "signed", "sizeof", "static", "struct", "switch", "template", "this",
    "throw", "typedef", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
})  # fmt: skip
_FLOATS = {"float": "double", **{n: c for n, c in CTYPES.items() if c in ("float", "double")}}


@dataclass(frozen=True)
class _Launch:
    kernel: str
    grid: ast.expr
    block: ast.expr
    arguments: Sequence[ast.expr]
    shared: ast.expr | None


def as_host_code(tree: ast.Module, first: int) -> str:
    """Functions that launch as the Python does, for the line ``first`` of a text and those behind.

    Lines keep their numbers where they can. Empty where nothing launches.
    """
    writer = _Writer(_handles(tree), first)
    fixed = list(_fixed(tree))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in sorted(functions, key=lambda node: node.lineno):
        names = [one.arg for one in function.args.args if one.arg != "self" and _is_name(one.arg)]
        own = {*names, *(name for name, _ in _set_names(function))}
        known = [node for node in fixed if not own & {name for name, _ in _set_names(node)}]
        writer.function(function.name, names, [*known, *function.body], function.lineno)
    writer.function("as_launched_from_python", (), tree.body, first)
    return writer.text if writer.launches else ""


def _set_names(tree: ast.AST) -> Iterator[tuple[str, ast.Name]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node


def _fixed(tree: ast.Module) -> Iterator[ast.Assign]:
    """What a module sets once to numbers, which its functions may read."""
    times = Counter(name for name, _ in _set_names(tree))
    known: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if times[name] == 1:
                kinds = {type(inner) for inner in ast.walk(value)}
                read = {inner.id for inner in ast.walk(value) if isinstance(inner, ast.Name)}
                if kinds <= _PLAIN and read <= known:
                    known.add(name)
                    yield node


def _handles(tree: ast.Module) -> Mapping[str, str]:
    """The kernels by the names that Python has for them; none for a name that is set otherwise."""
    found: dict[str, str] = {}
    kept: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            for target, value in _pairs(node.targets[0], node.value):
                name, kernel = ast.unparse(target), _kernel(value)
                if kernel and found.setdefault(name, kernel) == kernel:
                    kept[name] += 1
    times = Counter(name for name, _ in _set_names(tree))
    times.update(node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))
    return {name: kernel for name, kernel in found.items() if times[name] <= kept[name]}


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        yield from zip(target.elts, value.elts, strict=False)
    else:
        yield target, value


def _kernel(node: ast.expr) -> str:
    """The name in ``RawKernel(code, "name")`` and ``module.get_function("name")``."""
    if not isinstance(node, ast.Call) or _last(node.func) not in _HANDLES:
        return ""
    named = [word.value for word in node.keywords if word.arg == "name"]
    for one in [*named, *node.args[-1:]]:
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and "(" not in one.value:
            return one.value
    return ""


def _last(function: ast.expr) -> str:
    return ast.unparse(function).rpartition(".")[2]


@dataclass
class _Writer:
    """The text so far, which begins on the line ``first``, and what is known of arrays."""

    handles: Mapping[str, str]
    first: int
    text: str = ""
    launches: int = 0
    arrays: dict[str, Made] = field(default_factory=dict)
    allocated: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)  # of the function, outside of branches and loops
    depth: int = 0

    def function(self, name: str, names: Sequence[str], body: Sequence[ast.stmt], at: int) -> None:
        self.arrays, self.allocated, self.names = {}, set(), set(names)
        formals = ", ".join(f"auto {name}" for name in names)
        self._write(f"void {name}({formals}) {{", at)
        self._all(body)
        self._write("}", 0)

    def _write(self, code: str, line: int) -> None:
        self.text += "\n" * (line - self.first - self.text.count("\n")) or " "
        self.text += code

    def _all(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _within(self, body: Sequence[ast.stmt]) -> None:
        """What may run more or less often than once."""
        self.depth += 1
        self._all(body)
        self.depth -= 1

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target]):
                self._assign(target, node.value)
            case ast.AnnAssign(value=ast.expr() as value):
                self._assign(node.target, value)
            case ast.AugAssign():
                self._fill(node.target)
                self._write(f"{ast.unparse(node.target)} += {_UNREAD};", node.lineno)
            case ast.Expr(value=ast.Call() as call):
                self._call(call)
            case ast.If():
                self._branch(node)
            case ast.For() | ast.While():
                counter = ast.unparse(node.target) if isinstance(node, ast.For) else ""
                moved = f"auto {counter} = {_UNREAD};" if _is_name(counter) else ""
                self._write(f"while ({_UNREAD}) {{ {moved}", node.lineno)
                self._within(node.body)
                self._write("}", 0)
            case ast.With() | ast.Try():
                self._all(node.body)

    def _branch(self, node: ast.If) -> None:
        if "__name__" in ast.unparse(node.test):
            self._all(node.body)
            return
        self._write(f"if ({_expression(node.test)}) {{", node.lineno)
        self._within(node.body)
        self._write("} else {", 0)
        self._within(node.orelse)
        self._write("}", 0)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        value = Extents(self.arrays).visit(value)
        if isinstance(target, ast.Tuple):
            self._apart(target, value)
            return
        name = ast.unparse(target)
        if not _is_name(name) or name in self.handles:
            self._fill(target)
            return
        if isinstance(value, ast.Call) and self._launch(value) is not None:
            self._call(value)
            return
        line = target.lineno
        array, before = made(value, self.arrays), self.arrays.pop(name, None)
        if name in self.allocated:
            self._write(f"{name} = {_UNREAD};", line)
        elif array is not None and (before is None or not self.depth):
            self.arrays[name] = array
        elif before is not None and array is not None:
            self._write(f"{self._declared(name, 'auto')} = {_UNREAD};", line)
        elif isinstance(value, ast.Tuple) and 1 <= len(value.elts) <= 3:
            self._write(f"{self._declared(name, 'dim3')} = dim3({_axes(value.elts)});", line)
        else:
            self._write(f"{self._declared(name, 'auto')} = {_expression(value)};", line)

    def _declared(self, name: str, kind: str) -> str:
        """A name where it is set: with its type unless all of the function has it already."""
        if name in self.names:
            return name
        self.names |= {name} if not self.depth else set()
        return f"{kind} {name}"

    def _apart(self, targets: ast.Tuple, value: ast.expr) -> None:
        """``rows, cols = 3, 4`` and ``rows, cols = x.shape``."""
        for at, target in enumerate(targets.elts):
            if isinstance(value, ast.Tuple) and len(value.elts) == len(targets.elts):
                one: ast.expr = value.elts[at]
            elif isinstance(value, ast.Attribute) and value.attr == "shape":
                one = ast.Subscript(value, ast.Constant(at))
            else:
                one = ast.Name("...")
            self._assign(target, one)

    def _call(self, call: ast.Call) -> None:
        call = Extents(self.arrays).visit(call)
        launch = self._launch(call)
        if launch is None:
            for node in ast.walk(call):
                self._fill(node)
            if isinstance(call.func, (ast.Name, ast.Attribute)) and not call.keywords:
                given = ", ".join(_argument(one) for one in call.args)
                self._write(f"{_last(call.func)}({given});", call.lineno)
            return
        self.launches += 1
        shared = f", {_expression(launch.shared)}" if launch.shared is not None else ""
        config = f"{_extents(launch.grid)}, {_extents(launch.block)}{shared}"
        arguments = [_argument(one) for one in launch.arguments]
        for name in dict.fromkeys(arguments):
            self._allocate(name, call.lineno)
        given = ", ".join(arguments)
        self._write(f"{launch.kernel}<<<{config}>>>({given});", call.lineno)

    def _allocate(self, name: str, line: int) -> None:
        """The memory of an array that a launch is given first."""
        if name not in self.arrays or name in self.allocated:
            return
        array = self.arrays[name]
        self.allocated.add(name)
        count = " * ".join(f"({_expression(extent)})" for extent in array.extents) or "1"
        size = f"({count}) * sizeof({array.ctype})"
        self._write(f"{array.ctype}* {name}; cudaMalloc(&{name}, {size});", line)
        if array.zeros:
            self._write(f"cudaMemset({name}, 0, {size});", line)

    def _fill(self, target: ast.AST) -> None:
        """An array that something else than zeros is written to, or may be."""
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if isinstance(target, ast.Name) and target.id in self.arrays:
            self.arrays[target.id] = replace(self.arrays[target.id], zeros=False)

    def _launch(self, call: ast.Call) -> _Launch | None:
        """One of CuPy's ``kernel(grid, block, (...))`` or PyCUDA's ``kernel(..., block=...)``."""
        kernel = self.handles.get(ast.unparse(call.func)) or _kernel(call.func)
        if not kernel:
            return None
        words = {word.arg: word.value for word in call.keywords if word.arg}
        names = ("grid", "block", "args")
        if "block" in words and "args" not in words and "shared_mem" not in words:
            one: ast.expr = ast.Tuple([ast.Constant(1)])
            grid, block, given = words.get("grid", one), words["block"], call.args
        else:
            parts = {**dict(zip(names, call.args, strict=False)), **words}
            if not all(name in parts for name in names) or not _is_listed(parts["args"]):
                return None
            grid, block, given = parts["grid"], parts["block"], _listed(parts["args"])
        if any(isinstance(one, ast.Starred) for one in given):
            return None
        shared = words.get("shared_mem", words.get("shared"))
        return _Launch(kernel, grid, block, given, shared)


def _is_name(text: str) -> bool:
    """Whether a name of Python is one in C++, too."""
    return text.isidentifier() and text.isascii() and text not in _RESERVED


def _is_listed(node: ast.expr) -> bool:
    return isinstance(node, (ast.Tuple, ast.List))


def _listed(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]


def _extents(node: ast.expr) -> str:
    """A grid or a block; one that is a name is all of it."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return f"dim3({_axes(node.elts)})"
    return _expression(node)


def _axes(axes: Sequence[ast.expr]) -> str:
    return ", ".join(_expression(axis) for axis in axes)


def _argument(node: ast.expr) -> str:
    """What is passed: an array by its name, whatever PyCUDA or CuPy has around it."""
    if isinstance(node, ast.Call) and _last(node.func) in _PASSED and len(node.args) == 1:
        return _argument(node.args[0])
    if isinstance(node, ast.Attribute) and node.attr in ("ptr", "gpudata", "data"):
        return _argument(node.value)
    return _expression(node)


def _expression(node: ast.expr) -> str:
    """An expression of whole numbers in C++."""
    match node:
        case ast.Constant(value=bool() as value):
            return str(value).lower()
        case ast.Constant(value=int() | float() as value):
            return repr(value)
        case ast.Name(id=name) if _is_name(name):
            return name
        case ast.UnaryOp(op=ast.USub(), operand=ast.BinOp(op=ast.FloorDiv()) as inner):
            if isinstance(inner.left, ast.UnaryOp) and isinstance(inner.left.op, ast.USub):
                return _rounded_up(inner.left.operand, inner.right)  # -(-n // b)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return f"(-{_expression(inner)})"
        case ast.BinOp(left=ast.Constant(value=int(base)), op=ast.Pow(),
                       right=ast.Constant(value=int(power))) if 0 <= power < 64:  # fmt: skip
            return str(base**power)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return f"({_expression(left)} {_BINARY[type(op)]} {_expression(right)})"
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return f"((double){_expression(left)} / {_expression(right)})"
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _BINARY:
            return f"({_expression(left)} {_BINARY[type(op)]} {_expression(right)})"
        case ast.IfExp():
            parts = (_expression(part) for part in (node.test, node.body, node.orelse))
            return "({} ? {} : {})".format(*parts)
        case ast.Attribute(value=ast.Name(id=name), attr="size"):
            return f"{name}.numel()"
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"),
                           slice=ast.Constant(value=int(axis))) if axis >= 0:  # fmt: skip
            return f"{name}.size({axis})"
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(axis))) if (
            0 <= axis < 3
        ):
            return f"{name}.{'xyz'[int(axis)]}"  # of what a launch has for its extents
        case ast.Call():
            return _called(node)
    return _UNREAD


def _called(call: ast.Call) -> str:
    name, given = _last(call.func), call.args
    if len(given) == 1 and not call.keywords:
        (one,) = given
        if name == "ceil" and isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div):
            return _rounded_up(one.left, one.right)
        if name in _INTEGERS:
            return f"(int)({_expression(one)})"
        if name in _FLOATS:
            return f"({_FLOATS[name]})({_expression(one)})"
        if name == "len" and isinstance(one, ast.Name):
            return f"{one.id}.size(0)"
    if name in ("min", "max") and len(given) == 2:
        return f"{name}({_expression(given[0])}, {_expression(given[1])})"
    if name == "cdiv" and len(given) == 2:
        return _rounded_up(given[0], given[1])
    return _UNREAD


def _rounded_up(left: ast.expr, right: ast.expr) -> str:
    one, other = _expression(left), _expression(right)
    return f"(({one} + {other} - 1) / {other})"
