"""From the text of a cell to a program that runs: host code dropped, a launch given or inferred."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from optiml_magic.errors import BindingError, SourceError, UsageError
from optiml_magic.kernels.flat_rows import flat_rows
from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.kernels.launches import infer_launch
from optiml_magic.kernels.signature import split_name
from optiml_magic.kernels.unit import lift
from optiml_magic.kernels.unpacked import unpacked
from optiml_magic.kernels.warp_steps import warp_steps
from optiml_magic.source.lexer import lex
from optiml_magic.source.notes import Note
from optiml_magic.source.program import Program, parse_program


@dataclass(frozen=True)
class PreparedProgram:
    """A program with at least one launch; ``notes`` tell what was dropped or inferred."""

    program: Program
    launch: Literal["given", "inferred"]
    notes: tuple[Note, ...]


def without_kernel(line: int | None = None) -> SourceError:
    """The error of a text without a kernel."""
    return SourceError(
        "there is no kernel here",
        fix="write a `__global__ void name(...)` function; one in a header is not seen",
        line=line,
    )


def with_launches(
    text: str,
    defines: Mapping[str, int] | None = None,
    lacks: Callable[[str], bool] = lambda _: False,
    *,
    searched: bool = False,
) -> PreparedProgram:
    """The program of a cell; ``defines`` are integer macros from outside of it.

    ``lacks`` tells of the name of a header whether the task is without it. Where a faster one is
    ``searched`` for, lanes that ran in step wait for each other: a race would end the search.

    Raises SourceError where no launch is given and none is certain.
    """
    apart, structs = unpacked(text)
    dropped, notes = drop_host_code(apart, defines, lacks)
    dropped, rows = flat_rows(dropped, defines)
    dropped, steps = warp_steps(dropped) if searched else (dropped, ())
    notes += structs + rows + steps
    _require_own_types(dropped)
    program = parse_program(dropped)
    for given in program.argv:
        raise SourceError(
            "argv(...) is for a program with a `main` that launches",
            fix="remove it, or paste the `main`",
            line=given.line,
        )
    if program.launches:
        _require_all(program, notes)
        return PreparedProgram(program, "given", notes)
    tuned = [tune.name for tune in program.tunes]
    outside = {k: v for k, v in (defines or {}).items() if k not in tuned}
    unit = lift(dropped, {**outside, **program.macros}, foreign=True)
    if not unit.kernels:
        raise without_kernel()
    first, *others = unit.kernels
    if others and _unread(notes):
        _require_all(program, notes)
    if others:
        names = ", ".join(kernel.name for kernel in unit.kernels)
        raise SourceError(
            f"there are {len(unit.kernels)} kernels ({names}) and no launch",
            fix=f"write launches in order: #pragma optiml launch {first.name} grid(...) block(...)",
            line=first.line,
        )
    try:
        launch = infer_launch(unit, first, tuned)
    except SourceError as unclear:
        unread = [note for note in notes if note.kind == "unread_launch"][:1]
        reasons = "; ".join([*(note.text for note in unread), unclear.message])
        fix = _asked(notes) or (unread[0].fix if unread and unread[0].fix else unclear.fix)
        raise SourceError(reasons, fix=fix, line=unclear.line) from None
    note = Note("inferred_launch", f"launch inferred: {launch}")
    return PreparedProgram(program.with_launches([launch]), "inferred", (*notes, note))


def _require_own_types(text: str) -> None:
    """Raise UsageError where device code has a type of PyTorch's headers.

    No SourceError, for which the compiler's own words would be told.
    """
    code = lex(text).code
    found = re.search(r"\b(?P<space>torch|at|c10)::\w+", code)
    if found is None or f"namespace {found['space']}" in code:
        return
    fix = "write a type of CUDA's in its place, such as float or __half"
    if "Accessor" in found[0]:
        fix = "let the kernel take x.data_ptr<float>() as `const float* x`, and its sizes"
    raise UsageError(
        f"`{found[0]}` is of PyTorch's headers, which device code cannot include here",
        fix=fix,
        line=code[: found.start()].count("\n") + 1,
    )


def _unread(notes: Sequence[Note]) -> list[Note]:
    return [note for note in notes if note.kind == "unread_launch" and note.fix]


def _require_all(program: Program, notes: Sequence[Note]) -> None:
    """Raise SourceError where another kernel's launch could not be read: the program has a gap."""
    known = {split_name(launch.kernel)[0] for launch in program.launches if launch.kernel}
    missing = [note for note in _unread(notes) if split_name(note.name)[0] not in known]
    if missing:
        written = [str(launch) for launch in program.launches]
        for more, note in enumerate(missing):
            written.insert(note.place + more, note.fix.rpartition(": ")[2])
        raise SourceError(
            "; ".join(_by_reason(missing)),
            fix=_asked(notes)
            or "write all launches in their order, with your own sizes for the words in capitals: "
            + "; ".join(dict.fromkeys(written)),
        )


def _asked(notes: Sequence[Note]) -> str:
    """How to say what a program is run with, where its launches need that."""
    lines = [note.fix for note in notes if note.kind == "argv"]
    said = "say what the program is run with, your numbers for the words in capitals"
    return f"{said}: {lines[0]}" if lines else ""


def _by_reason(missing: Sequence[Note]) -> Iterator[str]:
    """What could not be read, with all launches of one reason together."""
    for why in dict.fromkeys(note.why for note in missing):
        alike = [note for note in missing if note.why == why]
        if not alike[1:]:
            yield alike[0].text
            continue
        *others, last = [f"`{note.name}` (line {note.line})" for note in alike]
        yield (
            f"the launches of {', '.join(others)} and {last} are not expressible with their "
            f"parameters{why}; write their launch directives"
        )


@contextmanager
def explained(notes: Sequence[Note]) -> Iterator[None]:
    """A BindingError about a member that a struct is passed by says so in its fix.

    One about what the command line may give says how to.
    """
    try:
        yield
    except BindingError as error:
        names = re.findall(r"`(\w+)`", error.message)
        sized = {note.name: note.value for note in notes if note.kind == "allocated" and note.value}
        lacks = re.search(r"\bno (?:array|value)", error.message)
        if lacks and names and sized.keys() >= {*names}:
            has = "they" if names[1:] else f"it has {sized[names[0]]} elements and"
            error.fix += (
                f"; {has} may hold indices, and no single loop of the host's code fills them in"
            )
        elif lacks and (run := _asked(notes)):
            error.fix = f"{run}; or {error.fix}"
        for note in notes:
            members = note.text.rpartition(" is passed as ")[2].split(", ")
            if note.kind == "unpacked" and any(name in members for name in names):
                define = f"define `{names[0]}`" if len(names) == 1 else error.fix
                error.fix = f"{define}: {note}" if len(names) == 1 else f"{define}; {note}"
        raise
