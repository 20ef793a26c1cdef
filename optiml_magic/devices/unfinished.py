"""Launches that may leave their outputs unfinished where counts alone are wanted."""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.model.launch import BufferArgument, Launch
from optiml_magic.ptx.faults import UnsupportedPtx
from optiml_magic.ptx.nouns import PtxModule
from optiml_magic.ptx.parser import parse
from optiml_magic.ptx.steering import steering


def unfinished(ptx: str, launches: Sequence[Launch]) -> tuple[bool, ...]:
    """Whether what each launch leaves behind says nothing of what the launches after it do.

    Values that only go through arithmetic may be any: the instructions, the branches and the
    addresses of the later launches, so all of their counts, are the same.
    """
    last = [True]
    if len(launches) == 1:
        return (True,)
    try:
        module = parse(ptx)
    except UnsupportedPtx:
        return (*(False for _ in launches[1:]), True)
    known = {name: steering(module, name) for name in {launch.kernel for launch in launches}}
    deciding = set[str]()  # values in the launches behind
    for before, after in zip(reversed(launches[:-1]), reversed(launches), strict=False):
        first, second = known[before.kernel], known[after.kernel]
        if first is None or second is None or not last[-1]:
            last.append(False)
            continue
        deciding |= _named(module, after, second.by)
        last.append(deciding.isdisjoint(_named(module, before, first.written)))
    return tuple(reversed(last))


def _named(module: PtxModule, launch: Launch, names: frozenset[str]) -> set[str]:
    """Parameters as what a launch passes; variables keep their names."""
    parameters = [p.name for p in module.functions[launch.kernel].params]
    buffers = {
        name: argument.buffer
        for name, argument in zip(parameters, launch.arguments, strict=True)
        if isinstance(argument, BufferArgument)
    }
    return {buffers.get(name, name) for name in names}
