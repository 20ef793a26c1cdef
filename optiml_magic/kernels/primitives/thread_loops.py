"""Loops over threads: a thread does what several of its block did, from one barrier to the next.

What stands between two barriers is done for one of them after the other; what all do alike, and
what holds barriers, is done once. A local that lives beyond a barrier has an element for each of
them; what only says where a thread stands is found anew. A block of one warp waits as a warp.
Source: Stratton, Stone and Hwu, "MCUDA: An Efficient Implementation of CUDA Kernels for Multi-core
CPUs", LCPC 2008, which makes one thread of a whole block.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Expr, Literal, Name, builtin, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import names
from optiml_magic.kernels.primitives.own_elements import Held
from optiml_magic.kernels.primitives.places import is_wide
from optiml_magic.kernels.primitives.waits import Run, Waits
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.source.directives import TuneDirective
from optiml_magic.source.expressions import parse_expression

WARP = 32


@primitive
def warp_for_block(kernel: Kernel) -> Kernel:
    """One warp does what a block did."""
    axis = folded(kernel)
    beside = math.prod(_block(kernel)) // extent(kernel)
    if WARP % beside or extent(kernel) % (WARP // beside):
        raise NotLegal("its blocks do not become whole warps")
    return _Looping(kernel, axis, WARP // beside).kernel()


@primitive
def registers_for_shared(kernel: Kernel) -> Kernel:
    """One warp does what a row of threads did, and holds their elements of shared arrays.

    Each lane takes neighbours and has theirs in registers; lanes beside it get those at its ends by
    shuffles. What lies beyond the elements of the threads stays in shared memory.
    """
    return _Looping(kernel, folded(kernel), WARP, held=True).kernel()


@primitive
def fewer_threads(kernel: Kernel, extents: Sequence[int]) -> Kernel:
    """Blocks have a tuned number of threads along the folded axis, which begins as the greatest."""
    return _Looping(kernel, folded(kernel), max(extents), tuple(extents)).kernel()


def folded(kernel: Kernel) -> str:
    """The axis whose threads are taken in turn: the last one that blocks have threads along."""
    return "y" if _block(kernel)[1] > 1 else "x"


def extent(kernel: Kernel) -> int:
    """How many threads blocks have along the folded axis."""
    return _block(kernel)["xy".index(folded(kernel))]


def _block(kernel: Kernel) -> tuple[int, int]:
    width, height, depth = kernel.block
    if width is None or height is None or depth != 1:
        raise NotLegal("how many threads its blocks have is not a number, or they are cubes")
    return width, height


@dataclass(frozen=True)
class _Names:
    """What the new text says: ``extent`` along the axis, of the ``width`` that there were."""

    thread: str
    item: str
    extent: str
    width: int

    @property
    def each(self) -> str:
        """How many threads one takes."""
        return str(self.width // int(self.extent)) if self.extent.isdigit() else (
            f"{self.width} / {self.extent}"
        )  # fmt: skip


class _Looping:
    def __init__(
        self,
        kernel: Kernel,
        axis: str,
        threads: int,
        extents: tuple[int, ...] = (),
        *,
        held: bool = False,
    ) -> None:
        self.old = old = kernel.settled()
        self.axis = axis
        self.threads = threads
        self.extents = extents
        self.waits = Waits(old, axis)
        self.effects = self.waits.effects
        self.beside = math.prod(_block(old)) // extent(old)
        name = old.fresh("THREADS") if extents else str(threads)
        self.names = _Names(old.fresh("thread"), old.fresh("item"), name, extent(old))
        self.held = Held(old, extent(old) // threads, self.names.item) if held else None
        together = [s for s in self.waits.together if isinstance(s, Loop)]
        self.quiet = {s for s in together if self.held is not None and self.held.quiet(s)}

    def kernel(self) -> Kernel:
        own, at = self.names.extent, "xyz".index(self.axis)
        block = [*self.old.launch.block]
        block[at] = parse_expression(own)
        tunes = [TuneDirective(own, self.extents, self.threads)] if self.extents else []
        bounds = f"{own} * {self.beside}" if self.beside > 1 else own
        return self.old.rewritten(
            self._block(self.waits.body),
            launch=replace(self.old.launch, block=tuple(block)),
            directives=tunes,
            bounds=bounds if self.old.function.launch_bounds else "",
        )

    # -- what is done once

    def _block(self, block: Block) -> Block:
        made: list[Statement] = []
        for part in self.waits.parts(block):
            made += self._run(part) if isinstance(part, Run) else self._once(part)
        return Block(None, block.line, tuple(made))

    def _once(self, statement: Statement) -> list[Statement]:
        waits = self.waits
        if statement in waits.barriers:
            if any(s in self.quiet for s in waits.around(statement)):
                return []
            warp = not self.extents and self.threads * self.beside == WARP
            return [lines("__syncwarp();")] if warp else [statement]
        if not isinstance(statement, Declare):
            for expr in statement.expressions:
                if waits.varies(expr, waits.once):
                    raise NotLegal("what decides on a barrier is a thread's own", statement.line)
        match statement:
            case Declare() if self.held is not None:
                kept = [lines(words) for words in self.held.declared(statement)]
                return [edited(statement, self._swaps(statement.expressions, once=True)), *kept]
            case Block():
                return [self._block(statement)]
            case If(then=then, other=other):
                test = edited(statement.test, self._swaps([statement.test], once=True))
                parts = self._body(then), None if other is None else self._body(other)
                return [If(None, statement.line, test, *parts, statement.before)]
            case Loop(body=body, before=before):
                head = (*statement.expressions, *(before.expressions if before else ()))
                empty = replace(statement, body=Block(None, 0, ()))
                made = edited(empty, self._swaps(head, once=True))
                loop = replace(made, body=self._body(body), span=None)
                outermost = not any(s in self.quiet for s in waits.around(statement)[:-1])
                fence = [lines("__syncwarp();")] if statement in self.quiet and outermost else []
                return [*fence, loop, *fence]
        return [edited(statement, self._swaps(statement.expressions, once=True))]

    def _body(self, statement: Statement) -> Block:
        if isinstance(statement, Block):
            return self._block(statement)
        together = statement in self.waits.together or self.waits.is_once(statement)
        made = self._once(statement) if together else self._run(Run((statement,)))
        return Block(None, statement.line, tuple(made))

    # -- what each does for itself

    def _run(self, run: Run) -> list[Statement]:
        before = [self._declared(v) for s in run.statements if isinstance(s, Declare)
                  for v in s.variables if v in self.waits.lasting]  # fmt: skip
        own = [words for statement in run.statements if (words := self._own(statement))]
        if not own:
            return [lines("\n".join(before))] if before else []
        words = "\n".join([*self._places(run), *own])
        item, thread = self.names.item, self.names.thread
        if thread in words:
            first = f"threadIdx.{self.axis} + {item} * {self.names.extent}"
            first = first.removesuffix(" * 1")
            if self.held is not None:  # neighbours, so that most of what they ask for is the lane's
                first = f"threadIdx.{self.axis} * {self.names.each} + {item}"
            words = f"const unsigned {thread} = {first};\n{words}"
        head = f"for (int {item} = 0; {item} < {self.names.each}; ++{item}) {{"
        fetched = self.held.fetched(run.statements) if self.held is not None else []
        whole = [*fetched, "#pragma unroll", head, words, "}"]
        whole = ["{", *whole, "}"] if any(f.startswith("const") for f in fetched) else whole
        return [lines("\n".join([*before, *whole]))]

    def _own(self, statement: Statement) -> str:
        """A statement as one of the threads does it; lasting locals are declared before."""
        if isinstance(statement, Declare):
            (variable,) = statement.variables
            if variable in self.waits.places:
                return ""
            if variable in self.waits.lasting:
                begun = variable.value is not None or variable.opening == "{"
                if variable.array or not begun:
                    return ""
                value = "{}" if variable.value is None else self._spelled(variable.value)
                return f"{variable.name}[{self.names.item}] = {value};"
        return self._shown(statement)

    def _places(self, run: Run) -> list[str]:
        """Where the thread stands that is taken: those of its locals that are asked for."""
        asked = {v for s in run.statements for v in self.effects.mentions(s)}
        for variable in reversed(self.waits.places):
            if variable in asked and variable.value is not None:
                asked |= names([variable.value])
        places = self.waits.places.items()
        return [self._shown(self.waits.single(s, v)) for v, s in places if v in asked]

    def _declared(self, variable: Variable) -> str:
        """An element of a local for each of the threads."""
        kind, zeros = variable.type, ""
        if kind.reference or kind.base == "auto":
            raise NotLegal(f"what `{variable.name}` is, is not known", variable.line)
        given = [e for e in (variable.value, *variable.initial) if e is not None]
        if variable.array and (given or variable.opening == "{"):
            if any(not isinstance(e, Literal) or e.value for e in given):
                raise NotLegal(f"what `{variable.name}` begins with is not zero", variable.line)
            zeros = " = {}"
        elif variable.initial:
            raise NotLegal(f"how `{variable.name}` begins is not followed", variable.line)
        const = "const " if kind.const and kind.depth else ""
        extents = "".join(f"[{self._spelled(e)}]" for e in variable.extents if e is not None)
        whole = f"{variable.name}[{self.names.each}]{extents}"
        return f"{const}{kind.base}{'*' * kind.depth} {whole}{zeros};"

    def _shown(self, statement: Statement) -> str:
        swaps = self._swaps(expressions(statement))
        for leave in (s for s in walk(statement) if isinstance(s, Leave) and s.kind == "return"):
            if any(isinstance(s, Loop) for s in self.waits.around(leave)):
                raise NotLegal("the kernel is left within a loop", leave.line)
            swaps[leave] = lines("continue;")
        return self.old.show(statement, swaps).strip()

    def _spelled(self, expr: Expr) -> str:
        shown = self.old.show(Evaluate(None, 0, expr), self._swaps([expr]))
        return shown.strip().removesuffix(";")

    def _swaps(self, given: Iterable[Expr], *, once: bool = False) -> dict[Node, Node]:
        swaps: dict[Node, Node] = {}
        given = tuple(given)
        for part in (part for expr in given for part in every(expr)):
            place = builtin(part)
            if place == f"threadIdx.{self.axis}":
                swaps[part] = text(self.names.thread)
            elif self.waits.is_index(part):
                first = f"blockIdx.{self.axis} * {self.names.width}"
                words = f"(int)({first} + {self.names.thread})"
                if is_wide(self.old, part):
                    words = f"((long long){first} + {self.names.thread})"
                swaps[part] = text(words)
            elif place == f"blockDim.{self.axis}":
                swaps[part] = text(f"{self.names.width}u")
            elif isinstance(part, Name) and part.variable in self.waits.lasting:
                swaps[part] = text(f"{part.name}[{self.names.item}]")
        if self.held is None:
            return swaps
        return swaps | self.held.loads(given, swaps, once=once) | self.held.stores(given)
