"""From the text of a cell to a program that runs: host code dropped, a launch given or inferred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from optiml_magic.errors import SourceError
from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.kernels.launches import infer_launch
from optiml_magic.kernels.signature import kernels
from optiml_magic.kernels.unit import lift
from optiml_magic.source.notes import Note
from optiml_magic.source.program import Program, parse_program
from optiml_magic.source.syntax import parse


@dataclass(frozen=True)
class PreparedProgram:
    """A program with at least one launch; ``notes`` tell what was dropped or inferred."""

    program: Program
    launch: Literal["given", "inferred"]
    notes: tuple[Note, ...]


def with_launches(text: str, defines: Mapping[str, int] | None = None) -> PreparedProgram:
    """The program of a cell; ``defines`` are integer macros from outside of it.

    Raises SourceError where no launch is given and none is certain.
    """
    dropped, notes = drop_host_code(text, defines)
    program = parse_program(dropped)
    if program.launches:
        return PreparedProgram(program, "given", notes)
    syntax = parse(dropped)
    known = kernels(lift(dropped, {**(defines or {}), **program.macros}, foreign=True))
    if not known:
        raise SourceError(
            "there is no kernel here",
            fix="write a `__global__ void name(...)` function; one in a header is not seen",
        )
    if len(known) > 1:
        names = ", ".join(kernel.name for kernel in known)
        raise SourceError(
            f"there are {len(known)} kernels ({names}) and no launch",
            fix="say what runs, in order: "
            f"#pragma optiml launch {known[0].name} grid(...) block(...)",
            line=known[0].line,
        )
    try:
        launch = infer_launch(known[0], syntax, [tune.name for tune in program.tunes], defines)
    except SourceError as unclear:
        unread = [note.text for note in notes if note.kind == "unread_launch"]
        reasons = "; ".join([*unread, unclear.message])
        raise SourceError(reasons, fix=unclear.fix, line=unclear.line) from None
    note = Note("inferred_launch", f"launch inferred: {launch}")
    return PreparedProgram(program.with_launches([launch]), "inferred", (*notes, note))
