"""P24, pull: what many threads add to an element, one thread of its own adds up.

``for (i) atomicAdd(&dw[o * n + i], dy[b * m + o] * x[b * n + i])`` by a thread for each ``b`` and
``o`` pushes to every element as often as there are ``b``. Where no data say which element that is,
the element can as well pull: a thread for each ``o`` and ``i`` goes through all ``b``, which is a
product or a sum along columns as others write them.

Source of the words: Besta and others, "To Push or To Pull", HPDC 2017.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.primitives.base import (
    Kernel,
    NotLegal,
    Refused,
    primitive,
    where_legal,
)
from optiml_magic.kernels.primitives.beforehand import works
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.grids import needed, said_alike
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.parameters import kernel_beside, with_parameters
from optiml_magic.kernels.primitives.pulls import Pull
from optiml_magic.kernels.primitives.released import released
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.kernels.primitives.updates import updated
from optiml_magic.kernels.primitives.works import Finder
from optiml_magic.kernels.tree import Blank, Block, Declare, Loop, Statement, Variable, walk
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import Directive, LaunchDirective, ScratchDirective
from optiml_magic.source.expressions import parse_expression

_ORDER = "the order of additions"


@primitive
def pulled(kernel: Kernel) -> Kernel:
    """The kernel that has a thread for each element which its threads updated.

    What else the kernel does, and finds for it, and updates of other elements have launches of
    their own before it.
    """
    if not any(a.mode == "atomic" and a.loops for a in kernel.reading.accesses):
        raise NotLegal("no rounds of a loop update elements by atomic operations")
    for step in (released, unstrided, in_full):
        kernel = where_legal(step, kernel)
    kernel = kernel.settled()
    try:
        return _pulled(kernel)
    except NotLegal:
        apart = unravelled(kernel)  # one long axis may have a digit for each element
        if isinstance(apart, Refused):
            raise
        return _pulled(apart)


def _pulled(kernel: Kernel) -> Kernel:
    finder, _ = works(kernel)
    if kernel.function.launch_bounds:
        raise NotLegal("its launch bounds say how many threads a block has")
    found = dict[object, Pull]()
    refused = list[NotLegal]()
    for whole in updated(kernel):
        if isinstance(whole, Refused):
            refused.append(NotLegal(whole.reason, whole.line))
            continue
        for update in whole.updates:
            try:
                pull = Pull(kernel, finder, [(whole, update)])
                key = pull.loops, pull.own
                if key in found:
                    pull = Pull(kernel, finder, [*found[key].updates, *pull.updates])
            except NotLegal as reason:
                refused.append(reason)
            else:
                found[key] = pull
    pulls = [pull for pull in found.values() if pull.turns]
    if not pulls:
        raise refused[0] if refused else NotLegal("no rounds of a loop say which element it is")
    # What has fewer elements would have fewer threads, each of them with more to add up.
    most = max(len(pull.own) for pull in pulls)
    return _Launches(kernel, finder, [p for p in pulls if len(p.own) == most]).kernel()


class _Launches:
    """The first of these in the place of the kernel, the others and what is left before it."""

    def __init__(self, kernel: Kernel, finder: Finder, pulls: Sequence[Pull]) -> None:
        self.old, self.finder, self.pulls = kernel, finder, pulls
        self.taken: list[str] = []
        self.saved = {v: pull for pull in pulls for v in pull.saved}
        self.scratch = {v: self._fresh(f"{v.name}_found") for v in self.saved}
        for pull in pulls:
            pull.scratch = self.scratch
        spelled = kernel.launch.kernel or kernel.function.name
        plain, opening, given = spelled.partition("<")
        scope, colons, self.name = plain.rpartition("::")
        self.before, self.behind = f"{scope}{colons}", f"{opening}{given}"

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def kernel(self) -> Kernel:
        first, *others = self.pulls
        directives: dict[str, Directive] = {str(d): d for d in self._scratch()}
        directives |= {str(d): d for pull in self.pulls for d in pull.asked}
        helpers = list[str]()
        left = self._left()
        if left is not None:
            name = self._fresh(f"{self.name}_items")
            directives[name] = self._launch(name, self.old.launch)
            helpers.append(self._helper(name, self.old.show_inside(left), "{kind}* {name}"))
        for pull in others:
            name = self._fresh(f"{self.name}_{pull.updates[0][0].array}")
            directives[name] = self._launch(name, pull.launch)
            helpers.append(self._helper(name, pull.body, "const {kind}* {name}"))
        made = self.old.rewritten(
            Block(None, 0, (lines(first.body),)),
            launch=self._launch(self.name, first.launch),
            directives=directives.values(), helpers=helpers,
        )  # fmt: skip
        if self.saved:
            made = with_parameters(made, self._parameters("const {kind}* {name}"))
        exact = all(whole.exact for pull in self.pulls for whole, _ in pull.updates)
        return with_grid(
            replace(made, arithmetic=(*made.arithmetic, *(() if exact else (_ORDER,))))
        )

    def _launch(self, name: str, launch: LaunchDirective) -> LaunchDirective:
        args = launch.args
        if args is not None:
            args = (*args, *map(parse_expression, self.scratch.values()))
        spelled = launch.kernel if name == self.name else f"{self.before}{name}{self.behind}"
        return replace(launch, kernel=spelled, args=args)

    def _parameters(self, form: str) -> Iterator[str]:
        for variable, name in self.scratch.items():
            yield form.format(kind=declared_type(self.old, variable), name=name)

    def _helper(self, name: str, body: str, form: str) -> str:
        return kernel_beside(self.old, name, body, self._parameters(form))

    def _scratch(self) -> Iterator[ScratchDirective]:
        for variable, pull in self.saved.items():
            kind = named(declared_type(self.old, variable), self.old.unit.aliases)
            count = parse_expression(pull.size(pull.saved[variable]))
            if not said_alike(self.old, count.names):
                raise NotLegal("its launch has other names for the sizes")
            yield ScratchDirective(self.scratch[variable], kind.dtype, count)

    def _left(self) -> Block | None:
        """What else the kernel does; it leaves what the others ask for. None for nothing."""
        gone: set[Statement] = {u.statement for pull in self.pulls for _, u in pull.updates}
        stays = [
            a for a in self.finder.effects.accesses(self.old.function.body)
            if a.mode != "load" and a.own not in _inside(self.finder, gone)
        ]  # fmt: skip
        if not stays and not self.saved:
            return None
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(gone)
        for loop in walk(self.old.function.body):
            if isinstance(loop, Loop) and self._is_done(loop, gone):
                swaps[loop] = None
        for statement in walk(self.old.function.body):
            if isinstance(statement, Declare):
                kept = [lines(self._save(v)) for v in statement.variables if v in self.saved]
                if kept:
                    swaps[statement] = (statement, *kept)
        return edited(self.old.function.body, swaps)

    def _is_done(self, loop: Loop, gone: set[Statement]) -> bool:
        """Whether a loop does nothing but what others do now."""
        inner = [s for s in walk(loop.body) if not isinstance(s, Block | Blank)]
        found = [s for s in inner if isinstance(s, Declare) and self.saved.keys() & {*s.variables}]
        return not found and all(s in gone or isinstance(s, Loop | Declare) for s in inner)

    def _save(self, variable: Variable) -> str:
        pull = self.saved[variable]
        called = dict(pull.called)
        tests = list[str]()
        for axis in self.finder.launched:
            if pull.variable(axis) is None:
                called[axis] = f"(blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis})"
            if needed(self.old, axis, loads=True) is not None:
                tests.append(f"{called[axis]} < {pull.sizes[axis]}")
        store = f"{self.scratch[variable]}[{pull.place(variable, called)}] = {variable.name};"
        return f"if ({' && '.join(tests)}) {store}" if tests else store


def _inside(finder: Finder, statements: set[Statement]) -> set[object]:
    return {e for statement in statements for e in finder.effects.inside(statement)}
