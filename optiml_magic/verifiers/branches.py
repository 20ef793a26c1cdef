"""The launches of dispatches: which ones inputs reach, and which are the input kernel's own.

A launch that no inputs reach is verified by nobody. It may stand only where it is the input
kernel's, code and extents, in a program that is the input program wherever it runs; or that is
right when it runs all the same, beside whatever else the program launches. So may the last of a
dispatch, which asks for nothing, whatever it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from optiml_magic.binding import launched
from optiml_magic.binding.interface import pairs
from optiml_magic.kernels.signature import Kernel
from optiml_magic.model.build import Build
from optiml_magic.ptx.faults import UnsupportedPtx
from optiml_magic.ptx.parser import parse
from optiml_magic.ptx.same import same_kernel
from optiml_magic.source.directives import LaunchDirective, grouped
from optiml_magic.source.expressions import Binary, Call, Choice, Expression, Node, Unary
from optiml_magic.source.program import Program, parse_program

_Launched = tuple[LaunchDirective, Kernel]


def dispatches(program: Program) -> tuple[tuple[LaunchDirective, ...], ...]:
    """The launches of each dispatch of a program."""
    return tuple(step for step in program.alternatives if len(step) > 1)


def unreached(
    program: Program, ran: Sequence[Sequence[LaunchDirective]]
) -> tuple[LaunchDirective, ...]:
    """The launches of dispatches that ran on none of the inputs; ``ran`` has those of each."""
    places = {launch.start for run in ran for launch in run}
    every = (launch for step in dispatches(program) for launch in step)
    return tuple(launch for launch in every if launch.start not in places)


def only_where(program: Program, root: Program) -> tuple[str, ...]:
    """The conditions on sizes that a program requires and the input program ``root`` does not."""
    conditions = [d.condition.substituted(program.values) for d in program.requires]
    known = [d.condition.substituted(root.values) for d in root.requires]
    return tuple(str(c) for c in conditions if (c.names or c.arrays) and c not in known)


def compared(program: Program) -> tuple[int, ...]:
    """The numbers above 1 that conditions compare with or divide by, the smallest first."""
    found = {
        number
        for step in dispatches(program)
        for launch in step
        if launch.condition is not None
        for number in _numbers(launch.condition.substituted(program.values).tree)
    }
    return tuple(sorted(number for number in found if number > 1))


def conditional(program: Program) -> frozenset[str]:
    """The sizes that conditions read."""
    conditions = (x.condition for step in dispatches(program) for x in step if x.condition)
    return frozenset(name for condition in conditions for name in condition.names)


def fixed(program: Program, root: Program, sizes: Mapping[str, int]) -> frozenset[str]:
    """Those of these sizes that the code, unlike the input kernel's, compares with their value."""
    asks = {name: re.compile(rf"\b{name} == {size}\b") for name, size in sizes.items()}
    return frozenset(
        name for name, ask in asks.items()
        if ask.search(program.text) and not ask.search(root.text)
    )  # fmt: skip


def _numbers(node: Node) -> Iterator[int]:
    """The constant parts of an expression, as large as they are constant."""
    expression = Expression(node, "")
    if not expression.names and not expression.arrays:
        yield expression.evaluate({})
        return
    match node:
        case Unary(_, operand):
            yield from _numbers(operand)
        case Binary(_, left, right):
            yield from (*_numbers(left), *_numbers(right))
        case Choice(condition, then, otherwise):
            for part in (condition, then, otherwise):
                yield from _numbers(part)
        case Call(function, parts) if function not in ("size", "shape"):
            for part in parts:
                yield from _numbers(part)
        case _:
            return


def own(
    missing: Sequence[LaunchDirective],
    program: Program,
    build: Build,
    root: Program,
    root_build: Build,
    defines: Mapping[str, str],
    *,
    whole: bool = True,
) -> bool:
    """Whether the program is the input program ``root`` wherever one of these launches runs.

    Not ``whole``, only whether each of these launches is one of ``root``.
    """
    if program == root:
        return True
    steps = grouped(launched(program, defines), lambda pair: pair[0])
    originals = grouped(launched(root, defines), lambda pair: pair[0])
    if not _same_start(program, root) or (whole and len(steps) != len(originals)):
        return False
    unseen = {x.start for x in missing}
    if whole:
        both = zip(steps, originals, strict=True)
        kept = [_kept(step, original, program, root) for step, original in both]
    else:
        asked = (step for step in steps if any(x.start in unseen for x, _ in step))
        kept = [
            next((found for one in originals if (found := _kept(step, one, program, root))), [])
            for step in asked
        ]
    if not all(kept) or unseen - {x.start for step in kept for x, _ in step}:
        return False
    try:
        code, original = parse(build.ptx), parse(root_build.ptx)
    except UnsupportedPtx:
        return False
    names = {build.names[x.kernel or kernel.name] for step in kept for x, kernel in step}
    return all(same_kernel(code, original, name) for name in names)


def forced(missing: Sequence[LaunchDirective], program: Program) -> Program | None:
    """The program in which these launches run at any size; None where two are of one dispatch."""
    unseen = {launch.start for launch in missing}
    text = program.text
    for step in reversed(dispatches(program)):
        chosen = [launch for launch in step if launch.start in unseen]
        if len(chosen) > 1:
            return None
        for launch in reversed(step if chosen else ()):
            plain = replace(launch, condition=None, otherwise=False)
            plain = replace(plain, repeat=step[0].repeat, line=step[0].line)
            said = str(plain) if launch in chosen else ""
            text = text[: launch.start] + said + text[launch.end :]
    return parse_program(text)


def _kept(
    step: list[_Launched], originals: list[_Launched], program: Program, root: Program
) -> list[_Launched]:
    """The launches of a step that do what the step of the input program does there."""
    if len(originals) > 1:
        same = [_bare(*x, program) for x in step] == [_bare(*x, root) for x in originals]
        conditions = [x.condition for x, _ in step] == [x.condition for x, _ in originals]
        return step if same and conditions else []
    wanted = _bare(*originals[0], root)
    return [pair for pair in step if _bare(*pair, program) == wanted]


def _bare(launch: LaunchDirective, kernel: Kernel, program: Program) -> tuple[object, ...]:
    """What a launch says of its kernel, with tuned names replaced by their values."""
    values = program.values
    passed = [expression.substituted(values) for _, expression in pairs(launch, kernel)]
    extents = [[e.substituted(values) for e in axes] for axes in (launch.grid, launch.block)]
    shared = launch.shared and launch.shared.substituted(values)
    name = launch.kernel or kernel.name
    return (name, *extents, shared, passed, launch.repeat)


def _same_start(program: Program, root: Program) -> bool:
    """Whether buffers hold the same before the launches; further scratch is nobody's here."""
    known = {directive.name for directive in root.scratch}
    more = {directive.name for directive in program.scratch} - known
    zeros = {zero.buffer for zero in program.zeros} - more
    counts = {d.name: (d.dtype, d.count.substituted(program.values)) for d in program.scratch}
    wanted = {d.name: (d.dtype, d.count.substituted(root.values)) for d in root.scratch}
    return zeros == {zero.buffer for zero in root.zeros} and all(
        counts.get(name) == size for name, size in wanted.items()
    )
