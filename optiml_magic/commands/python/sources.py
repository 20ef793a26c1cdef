"""The strings of a Python text that are the text of its kernels, and macros they are given."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from optiml_magic.commands.python.expressions import last
from optiml_magic.commands.python.names import bound
from optiml_magic.errors import UsageError

_KERNEL = "__global__"
_TRIMS = frozenset({"strip", "lstrip", "rstrip", "encode", "expandtabs", "dedent"})
_ASKS = frozenset({"count", "find", "index", "startswith", "endswith", "splitlines"})
_FILLS = frozenset({"sub", "subn", "Template", "format", "join"})
_OPTIONS = frozenset({"options", "extra_cuda_cflags"})
_COMPILES = frozenset({"RawKernel", "RawModule", "SourceModule", "load_inline", "load"})
_MACRO = re.compile(r"-D\s*(?P<name>[A-Za-z_]\w*)(?:=(?P<value>.*))?", re.DOTALL)
_PRINT = "print it, and paste only that text below %%optiml"


def kernel_strings(tree: ast.Module) -> list[ast.Constant]:
    """The strings that are kernels, or are put in front of one or behind it, in their order.

    Raises UsageError where such a string is made up when the text runs.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and _KERNEL in ast.unparse(node):
            raise UsageError(
                "the kernel is an f-string: its text is known only when Python runs it",
                fix=_PRINT,
                line=node.lineno,
            )
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    spoken = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    kernels = [node for node in strings if _text(node, _KERNEL)]
    kernels = [node for node in kernels if node not in spoken] or kernels
    trace = _Trace(tree)
    for node in kernels:
        trace.follow(node)
    return sorted({*kernels, *trace.pieces}, key=lambda node: (node.lineno, node.col_offset))


def _text(node: ast.AST, word: str = "") -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and word in node.value


@dataclass
class _Trace:
    """Where the text of a kernel goes, until something takes it that compiles it."""

    tree: ast.Module
    pieces: list[ast.Constant] = field(default_factory=list)

    def __post_init__(self) -> None:
        walked = list(ast.walk(self.tree))
        self._parents = {child: node for node in walked for child in ast.iter_child_nodes(node)}
        self._times = Counter(bound(self.tree))
        self._set: dict[str, list[ast.expr]] = {}
        self._functions = {n.name: n for n in walked if isinstance(n, ast.FunctionDef)}
        self._seen: set[ast.AST] = set()
        for node in walked:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._set.setdefault(ast.unparse(target), []).append(node.value)

    def follow(self, node: ast.AST) -> None:
        """Each use of a node that holds the text of a kernel."""
        if node in self._seen:
            return
        self._seen.add(node)
        parent = self._parents.get(node)
        match parent:
            case ast.Assign(targets=targets, value=value) if value is node:
                for target in targets:
                    self._named(target)
            case ast.AnnAssign(target=target):
                self._named(target)
            case ast.Call() if node in parent.args:
                self._given(parent, parent.args.index(node), "")
            case ast.keyword():
                call = self._parents[parent]
                if isinstance(call, ast.Call):
                    self._given(call, -1, parent.arg or "")
            case ast.Attribute(attr=attr) if attr in _TRIMS:
                self.follow(self._parents[parent])
            case ast.Attribute(attr=attr) if attr not in _ASKS and self._is_called(parent):
                raise _filled_in(parent)
            case ast.BinOp(op=ast.Add()):
                self._put_together(parent)
            case ast.BinOp() | ast.AugAssign() | ast.FormattedValue() | ast.JoinedStr():
                raise _filled_in(parent)
            case ast.Tuple() | ast.List():
                self.follow(parent)
            case ast.Return():
                self._returned(parent)

    def _is_called(self, node: ast.AST) -> bool:
        parent = self._parents.get(node)
        return isinstance(parent, ast.Call) and parent.func is node

    def _named(self, target: ast.expr) -> None:
        name = ast.unparse(target)
        others = [one for one in self._set.get(name, []) if not _text(one)]
        if isinstance(target, ast.Name) and self._times[name] > len(self._set.get(name, [])):
            raise _filled_in(target)
        if len(self._set.get(name, [])) > 1 and others:
            raise _filled_in(others[0])
        member = name.rpartition(".")[2]
        of_class = isinstance(self._parents[self._parents[target]], ast.ClassDef)
        for node in ast.walk(self.tree):
            match node:
                case ast.Name(id=own, ctx=ast.Load()) if own == name:
                    self.follow(node)
                case ast.Attribute(attr=own, ctx=ast.Load()) if own == member and (
                    of_class or isinstance(target, ast.Attribute)
                ):
                    self.follow(node)

    def _given(self, call: ast.Call, at: int, word: str) -> None:
        """What a function does with it that is called with it."""
        name = last(call.func)
        function = self._functions.get(name)
        if name in _FILLS:
            raise _filled_in(call)
        if name in _TRIMS:
            self.follow(call)
        if function is None:
            return
        formals = [*function.args.posonlyargs, *function.args.args]
        method = isinstance(call.func, ast.Attribute)
        formals = formals[1:] if method and formals[:1] and formals[0].arg == "self" else formals
        names = {one.arg for one in [*formals, *function.args.kwonlyargs]}
        own = word if word in names else formals[at].arg if 0 <= at < len(formals) else ""
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id == own:
                if not isinstance(node.ctx, ast.Load):
                    raise _filled_in(node)
                self.follow(node)

    def _returned(self, node: ast.AST) -> None:
        function: ast.AST | None = node
        while function is not None and not isinstance(function, ast.FunctionDef):
            function = self._parents.get(function)
        for call in ast.walk(self.tree):
            if not isinstance(call, ast.Call) or function is None:
                continue
            if last(call.func) == function.name:
                self.follow(call)

    def _put_together(self, node: ast.BinOp) -> None:
        """``header + kernel`` of plain strings that stand in this order in the text."""
        whole: ast.AST = node
        while isinstance(self._parents.get(whole), ast.BinOp):
            whole = self._parents[whole]
        parts = list(self._parts(whole))
        places = [(part.lineno, part.col_offset) for part in parts if part is not None]
        if len(places) < len(parts) or places != sorted(places):
            raise _filled_in(node)
        self.pieces += [part for part in parts if part is not None]
        self.follow(whole)

    def _parts(self, node: ast.AST) -> Iterator[ast.Constant | None]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield from self._parts(node.left)
            yield from self._parts(node.right)
            return
        if isinstance(node, ast.Name):
            (node, *others) = self._set.get(node.id, [node])
            node = ast.Name("") if others else node
        yield node if isinstance(node, ast.Constant) and _text(node) else None


def _filled_in(node: ast.AST) -> UsageError:
    return UsageError(
        "the kernel is a template: its text is known only when Python fills it in",
        fix=_PRINT,
        line=getattr(node, "lineno", None),
    )


def macros(tree: ast.Module) -> dict[str, str]:
    """The macros of ``options=("-DN=4",)`` and the like, where they are plain text or numbers.

    Raises UsageError where one is known only when the text runs.
    """
    values = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    times = Counter(bound(tree))
    once = {name: value for name, value in values.items() if times[name] == 1}
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or last(node.func) not in _COMPILES:
            continue
        given = [word.value for word in node.keywords if word.arg in _OPTIONS]
        given += node.args[2:3] if last(node.func) == "RawKernel" else []
        for options in given:
            for name, value in _macros(options, once, node.lineno):
                if found.setdefault(name, value) != value:
                    raise UsageError(
                        f"`{name}` is {found[name]} for one kernel and {value} for another",
                        fix="paste the kernels one at a time",
                        line=node.lineno,
                    )
    return found


def _macros(
    options: ast.expr, once: Mapping[str, ast.expr], line: int
) -> Iterator[tuple[str, str]]:
    if isinstance(options, ast.Name) and options.id in once:
        options = once[options.id]
    listed = isinstance(options, (ast.Tuple, ast.List))
    words = options.elts if isinstance(options, (ast.Tuple, ast.List)) else [options]
    texts = [_filled(word, once) for word in words]
    if None in texts:
        told = ast.unparse(words[texts.index(None)])
        raise UsageError(
            f"the option `{told}` of the compiler is known only when Python runs it",
            fix="write it as plain text, such as '-DN=4'",
            line=line,
        )
    whole = [text for text in texts if text is not None]
    for text in whole if listed else (part for one in whole for part in one.split()):
        if (macro := _MACRO.fullmatch(text.strip())) is not None:
            yield macro["name"], macro["value"] if macro["value"] is not None else "1"


def _filled(word: ast.expr, once: Mapping[str, ast.expr]) -> str | None:
    """A plain string, or an f-string of names for plain numbers."""
    match word:
        case ast.Constant(value=None):
            return ""
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=int(number)):
            return str(number)
        case ast.Name(id=name) if isinstance(once.get(name), ast.Constant):
            return _filled(once[name], {})
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            return _filled(value, once)
        case ast.JoinedStr(values=values):
            parts = [_filled(value, once) for value in values]
            return None if None in parts else "".join(part or "" for part in parts)
    return None
