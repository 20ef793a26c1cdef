"""No tensor cores where a product exists: sums of products in narrow types, done lane by lane.

Only for half, bfloat16 and double, whose tensor cores keep the precision that the task asks for.
Source: CUDA C++ Programming Guide, "Warp Matrix Functions".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import saved
from optiml_magic.findings.code import Loop
from optiml_magic.findings.subject import Run, Subject, of_name
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass
from optiml_magic.ptx.nouns import Instruction
from optiml_magic.ptx.traits import defined, used

_NARROW = ("__half", "half", "__nv_bfloat16", "bfloat16", "nv_bfloat16")
_REUSE = 16.0  # times that each element of the arrays is multiplied: a product of matrices
_METRIC = "sm__inst_executed_pipe_tensor.sum"
_MATRIX = frozenset({"mma", "wmma", "wgmma", "tcgen05", "dmma"})


class TensorCores:
    """Fires once for a kernel, on the sum of products."""

    name = "tensor_cores"
    classes: frozenset[RooflineClass] = frozenset({"compute", "latency", "mixed", "memory"})
    metrics: tuple[str, ...] = (_METRIC,)

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        if subject.chip.capability < (7, 0) or not _two_matrices(subject):
            return
        for run in subject.runs:
            found = _accumulation(run)
            reuse = _reuse(subject, run, found)
            if found is not None and reuse is not None and reuse >= _REUSE:
                yield _finding(subject, found, reuse)
                return


def _two_matrices(subject: Subject) -> bool:
    narrow = [
        p
        for p in subject.parameters.values()
        if p.pointer and p.reads and any(name == p.ctype.removesuffix("2") for name in _NARROW)
    ]
    return len(narrow) >= 2


def _accumulation(run: Run) -> Instruction | None:
    """A multiply-add onto its own result, both factors loaded in the loop.

    That no tensor core is used is seen in the code: ncu counts half-precision arithmetic in their
    pipe as well, and with it a register set to zero by HFMA2.MMA.
    """
    if run.code is None:
        return None
    if any(i.base in _MATRIX for i in run.code.instructions):
        return None
    return next((i for loop in run.code.loops if (i := _product(loop)) is not None), None)


def _product(loop: Loop) -> Instruction | None:
    loaded: set[str] = set()
    for instruction in loop.instructions:
        names = {r.name for r in used(instruction)}
        if instruction.base == "ld":
            loaded |= {r.name for r in defined(instruction)}
        elif instruction.base in ("fma", "mad") and len(instruction.operands) == 4:
            factors = [{r.name for r in used(_only(instruction, at))} & loaded for at in (1, 2)]
            if all(factors):
                return instruction
        elif instruction.base in ("cvt", "mov", "prmt", "shl", "and", "mul") and names & loaded:
            loaded |= {r.name for r in defined(instruction)}
            if instruction.base == "mul" and len(names & loaded) == 2:
                return instruction
    return None


def _only(instruction: Instruction, at: int) -> Instruction:
    return Instruction("mov.b32", (instruction.operands[0], instruction.operands[at]), 0)


def _reuse(subject: Subject, run: Run, found: Instruction | None) -> float | None:
    """Products over elements, by the counts; by the threads where nobody counted."""
    if found is None:
        return None
    elements = sum(subject.buffers.values()) / 2
    if run.counts is None or not run.counts.flops or not elements:
        return None
    products = sum(run.counts.flops.values()) / 2
    return products / elements


def _finding(subject: Subject, found: Instruction, reuse: float) -> Finding:
    line = found.line
    where = of_name(line, subject.lines.assigned(line))
    return Finding(
        tool=TensorCores.name,
        severity="warning",
        cause=f"The sum of products on {where} multiplies each "
        f"element {reuse:.0f} times, lane by lane: a matrix product without tensor cores.",
        evidence=(
            Evidence("products_per_element", reuse, _REUSE, "product/element",
                     subject.counted_by, line),
        ),
        actions=(
            Action("Multiply tiles of 16 x 16 with nvcuda::wmma, sums in float.",
                   metric=_METRIC, direction="higher"),
        ),
        gain=(1.5, min(8.0, 2 * saved(subject.share("issue") or 0.5))),
        reason="a tensor core does the products of a whole tile in the slot of one instruction",
    )  # fmt: skip
