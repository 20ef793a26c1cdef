"""The launch of a kernel that has no launch directive, from its index expressions and guards.

It is certain or it is an error: every store must stand under guards that bound every axis of the
grid, so that further blocks do nothing, and all that is known of a block's size must agree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.source.definitions import definitions
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.formals import declared, formals, text_of
from optiml_magic.source.guards import Bound, guards_of, stores
from optiml_magic.source.indices import AXES, Index, Indices, axes_used
from optiml_magic.source.syntax import line_of, walk
from optiml_magic.source.values import Values, constants, device_variables, tidy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tree_sitter import Node

    from optiml_magic.kernels.signature import Kernel
    from optiml_magic.source.expressions import Expression
    from optiml_magic.source.syntax import Syntax

_BLOCKS = {1: (256,), 2: (32, 8), 3: (32, 4, 2)}
_MAX_THREADS = 1024


def infer_launch(
    kernel: Kernel,
    syntax: Syntax,
    tuned: Collection[str] = (),
    defines: Mapping[str, int] | None = None,
) -> LaunchDirective:
    """The launch of ``kernel``, or a SourceError whose fix is a directive to paste.

    ``tuned`` are the names of tune directives, which may stand in its expressions;
    ``defines`` are integer macros from outside of the text.
    """
    node = next((n for n in syntax.kernels() if n.start_byte == kernel.start_byte), None)
    body = node.child_by_field_name("body") if node is not None else None
    if node is None or body is None:
        raise SourceError(f"`{kernel.name}` is not in this text", fix="Pass its own syntax tree.")
    return _Inference(kernel, node, body, syntax, tuned, defines or {}).launch()


class _Inference:
    def __init__(
        self,
        kernel: Kernel,
        node: Node,
        body: Node,
        syntax: Syntax,
        tuned: Collection[str],
        defines: Mapping[str, int],
    ) -> None:
        self.kernel = kernel
        self.body = body
        self.formals = formals(node)
        scalars = [p.name for p in kernel.parameters if not p.pointer and p.dtype]
        known, functions = {**defines, **constants(syntax)}, definitions(syntax)
        self.constants = {k: v for k, v in known.items() if k not in tuned}
        self.values = Values(body, [*scalars, *tuned], self.constants, functions=functions)
        self.indices = Indices(body, self.values)
        self.device_variables = device_variables(syntax)
        self.axes = axes_used(body)
        self.rank = max(self.axes, default=-1) + 1
        self.fixed: dict[int, str] = {}
        self.grid_axes = axes_used(body, ("blockIdx", "gridDim"))
        self.leading: dict[int, Index] = {}
        self.extents: dict[int, str] = {}

    def launch(self) -> LaunchDirective:
        self.refuse_unsupported()
        self.bound_grid()
        block = self.block()
        grid = tuple(self.grid_axis(axis, block) for axis in range(self.rank))
        return LaunchDirective(self.spelled, grid, block)

    @property
    def spelled(self) -> str:
        return self.kernel.name + ("<>" if self.kernel.template_parameters else "")

    def refuse_unsupported(self) -> None:
        kernel = self.kernel
        if kernel.dynamic_shared:
            raise self.error("its dynamic shared memory has a size that only the launch gives")
        if any(p.default is None for p in kernel.template_parameters):
            raise self.error("its template arguments are not known")
        source = text_of(self.body)
        if "cooperative_groups" in source or "cg::" in source or "this_grid" in source:
            raise self.error("it uses cooperative groups")
        if self.body.has_error:
            raise self.error("its code could not be read to the end")
        if not self.grid_axes:
            raise self.error("it does not read blockIdx")
        unclear = [p.name for p in kernel.parameters if p.pointer and not p.certain]
        named = {text_of(node) for node in walk(self.body) if node.type == "identifier"}
        for name in [*unclear, *sorted(named & self.device_variables)]:
            raise self.error(f"what it does with `{name}` could not be followed")

    def bound_grid(self) -> None:
        """Read what bounds each grid axis in every store, and the block sizes that are fixed."""
        for axis in self.axes - axes_used(self.body, ("threadIdx", "blockDim")):
            self.fixed[axis] = "1"  # no thread knows its place there: more would only repeat
        for index in self.indices.found.values():
            self.fix_block(index)
        if set(range(self.rank)) != self.axes:
            raise self.error("it skips an axis")
        guarded = [(store, self.guards(store)) for store in stores(self.body, self.formals)]
        if not guarded:
            raise self.error("no store to a parameter was found")
        for axis in sorted(self.grid_axes):
            self.bound_axis(axis, guarded)
        for store, guards in guarded:
            self.check_threads(store, guards)

    def guards(self, store: Node) -> list[Bound]:
        found = list(guards_of(store, self.body, self.indices, self.values))
        for index, _ in found:
            self.fix_block(index)
        return found

    def bound_axis(self, axis: int, guarded: list[tuple[Node, list[Bound]]]) -> None:
        """Find one bound that holds at every store: blocks beyond it then do nothing."""
        common: dict[tuple[Index, str], None] | None = None
        for store, guards in guarded:
            here = {(replace(i, steps=False), str(tidy(e))): None for i, e in reversed(guards)
                    if e is not None and i.grid == axis}  # fmt: skip
            if not here:
                raise self.error(
                    f"the store on line {line_of(store)} has no bound along {AXES[axis]} in terms "
                    "of the scalar parameters"
                )
            common = here if common is None else {k: None for k in common if k in here}
        if not common:
            raise self.error(f"its stores are bounded differently along {AXES[axis]}")
        self.leading[axis], self.extents[axis] = next(iter(common))

    def check_threads(self, store: Node, guards: list[Bound]) -> None:
        """Where a block's size is free, a store must not depend on how many threads there are."""
        for axis in sorted(self.axes - self.fixed.keys()):
            if axis in self.leading and self.leading[axis].thread == axis:
                continue
            if not any(index.thread == axis and index.steps for index, _ in guards):
                raise self.error(
                    f"the number of threads along {AXES[axis]} that the store on line "
                    f"{line_of(store)} asks for is not known"
                )

    def fix_block(self, index: Index) -> None:
        if index.thread is None or index.stride is None:
            return
        text = str(parse_expression(index.stride))
        if self.fixed.setdefault(index.thread, text) != text:
            raise self.error(
                f"its strides ask for {self.fixed[index.thread]} and for {text} threads along "
                f"{AXES[index.thread]}"
            )

    def block(self) -> tuple[Expression, ...]:
        """Fixed sizes as they are, the others by default, within the kernel's launch bounds."""
        defaults = list(_BLOCKS[self.rank])
        self.check_shared(defaults)
        texts = [self.fixed.get(axis, str(defaults[axis])) for axis in range(self.rank)]
        limit = self.thread_limit()
        count = 1
        for text in texts:
            try:
                count *= parse_expression(text).evaluate({})
            except SourceError:  # a tuned name: what its values make of it is checked at launch
                if limit < _MAX_THREADS:
                    raise self.error("its launch bounds and its tuned block may differ") from None
                count = 1
                break
        if count > limit and not self.fixed and self.rank == 1 and limit >= 32:
            texts = [str(limit // 32 * 32)]
        elif not 1 <= count <= limit:
            raise self.error(f"a block of {' x '.join(texts)} is beyond its {limit} threads")
        return tuple(map(parse_expression, texts))

    def thread_limit(self) -> int:
        if self.kernel.launch_bounds is None:
            return _MAX_THREADS
        try:
            limit = parse_expression(self.kernel.launch_bounds).evaluate(self.constants)
        except SourceError:
            raise self.error("its launch bounds are no number") from None
        return min(limit, _MAX_THREADS)

    def check_shared(self, defaults: list[int]) -> None:
        """Let shared arrays that threads index directly bound the block; refuse other uses."""
        extents = self.shared_extents()
        for node in walk(self.body):
            if node.type != "subscript_expression":
                continue
            base, subscripts = _subscripts(node)
            if base not in extents:
                continue
            for subscript, extent in zip(subscripts, extents[base], strict=False):
                index = self.indices.of(subscript)
                if index is None or index.grid is not None or index.steps:
                    if _mentions_free_thread(subscript, self.indices, self.fixed):
                        raise self.error(f"how its block relates to `{base}` is not clear")
                elif index.thread is not None:
                    self.fit_shared(base, index.thread, extent, defaults)

    def fit_shared(
        self, name: str, axis: int, extent: Expression | None, defaults: list[int]
    ) -> None:
        if extent is None:
            raise self.error(f"the extent of `{name}` is not known")
        fixed = self.fixed.get(axis)
        try:
            count = extent.evaluate({})
            wanted = parse_expression(fixed).evaluate({}) if fixed else None
        except SourceError:
            if fixed is None:
                raise self.error(f"the extent of `{name}` is tuned, its block is not") from None
            return  # both tuned: `tile[TILE][TILE + 1]` beside a stride of TILE
        if wanted is not None and wanted > count:
            raise self.error(f"`{name}` holds {count} and its strides ask for {wanted} threads")
        if wanted is None:
            defaults[axis] = min(defaults[axis], count)

    def shared_extents(self) -> dict[str, list[Expression | None]]:
        found: dict[str, list[Expression | None]] = {}
        for node in walk(self.body):
            if node.type != "declaration" or "__shared__" not in text_of(node).split("[")[0]:
                continue
            for child in node.children_by_field_name("declarator"):
                sizes: list[Expression | None] = []
                inner: Node | None = child
                while inner is not None and inner.type == "array_declarator":
                    size = inner.child_by_field_name("size")
                    sizes.append(self.values.expression(size) if size is not None else None)
                    inner = inner.child_by_field_name("declarator")
                found[declared(child).name] = sizes[::-1]
        return found

    def grid_axis(self, axis: int, block: tuple[Expression, ...]) -> Expression:
        if axis not in self.leading:
            return parse_expression("1")
        index, extent = self.leading[axis], self.extents[axis]
        if index.thread is None:
            return parse_expression(extent)
        return parse_expression(f"cdiv({extent}, {index.stride or block[axis]})")

    def error(self, reason: str) -> SourceError:
        """The refusal, with a directive that is filled in as far as the code goes."""
        rank = max(self.rank, 1)
        block = [self.fixed.get(axis, str(_BLOCKS[rank][axis])) for axis in range(rank)]
        scalars = [p.name for p in self.kernel.parameters if not p.pointer]
        grid = []
        for axis in range(rank):
            rows = [i for i in self.indices.found.values() if i.grid == axis and i.thread is None]
            extent = self.extents.get(axis) or (scalars[axis] if axis < len(scalars) else "BLOCKS")
            grid.append(extent if rows else f"cdiv({extent}, {block[axis]})")
        if self.rank == 0:
            grid, block = ["1"], ["1"]
        shared = " shared(BYTES)" if self.kernel.dynamic_shared else ""
        names = ", ".join(p.name for p in self.kernel.template_parameters)
        name = self.kernel.name + (f"<{names}>" if names else "")
        return SourceError(
            f"the launch of `{self.kernel.name}` cannot be inferred: {reason}",
            fix=f"Check and paste above it: #pragma optiml launch {name} "
            f"grid({', '.join(grid)}) block({', '.join(block)}){shared}",
            line=self.kernel.line,
        )


def _subscripts(node: Node) -> tuple[str, list[Node]]:
    """``a[i][j]`` as its base and its subscripts in order."""
    found: list[Node] = []
    current: Node | None = node
    while current is not None and current.type == "subscript_expression":
        indices = current.child_by_field_name("indices")
        first = indices.named_child(0) if indices is not None else None
        if first is not None:
            found.insert(0, first)
        current = current.child_by_field_name("argument")
    return text_of(current), found


def _mentions_free_thread(node: Node, indices: Indices, fixed: dict[int, str]) -> bool:
    """Whether a subscript depends on an axis of the block whose size is still to be chosen."""
    for part in walk(node):
        index = indices.of(part) if part.type in ("identifier", "field_expression") else None
        if index is not None and index.thread is not None and index.thread not in fixed:
            return True
    return False
