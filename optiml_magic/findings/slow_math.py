"""Slow arithmetic: divisions, remainders and exact functions that become dozens of instructions.

Machine instructions of one PTX instruction, counted in the code that ptxas makes for sm_80 and
sm_90 and rounded; an exact function is in the PTX already, on the line that calls it. Source: CUDA
C++ Programming Guide, "Arithmetic Instructions" and "Intrinsic Functions"; CUDA C++ Best Practices
Guide, "Division Modulo Operations".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from optiml_magic.findings.base import WORTH, saved, severity
from optiml_magic.findings.code import Code
from optiml_magic.findings.subject import Run, Subject, counted
from optiml_magic.model.counters import KernelCounters
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass
from optiml_magic.ptx.nouns import Immediate, Instruction, Register, Symbol
from optiml_magic.ptx.traits import defined, kind

_PART = 0.35  # of the machine instructions
_TRAFFIC = 0.7  # of the time that memory may take before arithmetic stops to matter
_INTEGER32, _INTEGER64, _FLOAT, _DOUBLE = 22, 90, 10, 25
_METRIC = "smsp__inst_executed.sum"
# Functions that have a fast form or a cheaper way; ``expf`` is nearly as short as ``__expf``.
_EXACT = frozenset(
    {
        "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh",
        "atanh", "atan2", "sincos", "sinpi", "cospi", "pow", "log", "log2", "log10", "log1p",
        "expm1", "exp10", "erf", "erfc", "cbrt", "fmod", "remainder", "hypot", "lgamma", "tgamma",
    }
)  # fmt: skip
_CHEAP = 6  # instructions on a line for each call, what a fast form and its surroundings take


class SlowMath:
    """Fires once for a kernel, on the line that costs most."""

    name = "slow_math"
    classes: frozenset[RooflineClass] = frozenset({"compute", "latency", "mixed", "memory"})
    metrics: tuple[str, ...] = (_METRIC,)

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        if (subject.share("dram") or 0.0) > _TRAFFIC:
            return
        for run, counts in counted(subject):
            if run.code is None:
                continue
            costs = _costs(run, counts) if counts.blocks else _measured(run, counts)
            hidden = sum(cost for cost, _ in costs.values()) if counts.blocks else 0.0
            total = counts.warp_instructions + hidden
            costs = _most(costs, _calls(run, counts, subject))
            slow = sum(cost for cost, _ in costs.values())
            if not costs or slow < _PART * total:
                continue
            line = max(costs, key=lambda at: costs[at][0])
            gain = saved(slow / total * subject.part("issue", "latency", "sfu"))
            if gain >= WORTH:
                yield _finding(subject, line, costs[line][1], slow / total, gain)


def _costs(run: Run, counts: KernelCounters) -> dict[int, tuple[float, str]]:
    """Extra machine instructions by source line, and the kind that costs most there."""
    assert run.code is not None
    executed = {p: b.warp_executions for b in counts.blocks for p in b.ptx_lines}
    found: dict[int, dict[str, float]] = {}
    known = _constants(run.code)
    for instruction in run.code.instructions:
        what, extra = _extra(instruction, known)
        if extra:
            kinds = found.setdefault(instruction.line, {})
            cost = extra * executed.get(instruction.ptx_line, 0)
            kinds[what] = kinds.get(what, 0.0) + cost
    return {
        line: (sum(kinds.values()), max(kinds, key=lambda k: kinds[k]))
        for line, kinds in found.items()
    }


def _measured(run: Run, counts: KernelCounters) -> dict[int, tuple[float, str]]:
    """The same where machine instructions were counted by line: the slow ones' part of each."""
    assert run.code is not None
    every: dict[int, int] = {}
    slow: dict[int, tuple[int, str]] = {}
    known = _constants(run.code)
    for instruction in run.code.instructions:
        what, extra = _extra(instruction, known)
        every[instruction.line] = every.get(instruction.line, 0) + 1 + extra
        if extra:
            before = slow.get(instruction.line, (0, what))[0]
            slow[instruction.line] = before + extra, what
    executed = {x.line: x.warp_instructions for x in counts.lines}
    return {
        line: (executed.get(line, 0) * extra / every[line], what)
        for line, (extra, what) in slow.items()
        if executed.get(line)
    }


def _calls(run: Run, counts: KernelCounters, subject: Subject) -> dict[int, tuple[float, str]]:
    """Instructions of exact functions by source line, where the text calls one."""
    assert run.code is not None
    static = Counter(instruction.line for instruction in run.code.instructions)
    found: dict[int, tuple[float, str]] = {}
    for counted_line in counts.lines:
        line, executed = counted_line.line, counted_line.warp_instructions
        names = [n for n in subject.lines.calls(line) if {n, n.removesuffix("f")} & _EXACT]
        body = static[line] - _CHEAP * len(names)
        if names and body > 0 and executed:
            found[line] = executed * body / static[line], f"call of `{names[0]}`"
    return found


def _most(*costs: dict[int, tuple[float, str]]) -> dict[int, tuple[float, str]]:
    """Of each line what costs most there: a division may be a part of a function."""
    found: dict[int, tuple[float, str]] = {}
    for line, cost in (item for one in costs for item in one.items()):
        found[line] = max(found.get(line, cost), cost)
    return found


def _constants(code: Code) -> frozenset[str]:
    """Registers that hold what ptxas knows: literals, and ``warpSize``."""
    return frozenset(
        r.name
        for i in code.instructions
        if i.base == "mov" and isinstance(i.operands[1], Immediate | Symbol)
        for r in defined(i)
    )


def _extra(instruction: Instruction, known: frozenset[str]) -> tuple[str, int]:
    base, parts = instruction.base, instruction.parts
    if base in ("div", "rem") and kind(instruction) == "int":
        by = instruction.operands[-1]
        if not isinstance(by, Register) or by.name in known:
            return "", 0  # a product and a shift
        name = "division" if base == "div" else "remainder"
        return f"integer {name}", _INTEGER64 if "64" in instruction.type else _INTEGER32
    if base in ("div", "sqrt", "rcp") and "approx" not in parts and "full" not in parts:
        name = {"div": "division", "sqrt": "square root", "rcp": "reciprocal"}[base]
        return f"exact {name}", _DOUBLE if instruction.type == "f64" else _FLOAT
    return "", 0


_ADVICE = {
    "integer": "Step an index along instead of dividing anew, or divide by a constant.",
    "exact": "Divide once and multiply by the reciprocal, or use __fdividef and rsqrtf where the "
    "tolerance allows it.",
    "call": "Replace powers by products, or use the function's fast form (__sinf, __powf, "
    "--fast-math) where the tolerance allows it.",
}
_ONCE = "Compute it once, before the loop whose rounds have it in common."


def _finding(subject: Subject, line: int, what: str, share: float, gain: float) -> Finding:
    target = subject.lines.assigned(line)
    value = f" for `{target}`" if target else ""
    slow = what.split(maxsplit=1)[0]
    rules = ["index_strength"] if slow == "integer" else ["fast_functions", "tabulate_weights"]
    factor = (1.1, 1 / (1.02 - share))
    return Finding(
        tool=SlowMath.name,
        severity=severity(gain),
        cause=f"The {what} on line {line}{value} and its like become about {100 * share:.0f} % of "
        "the machine instructions.",
        evidence=(Evidence("slow_instructions", 100 * share, 100 * _PART, "%", "modelled", line),),
        actions=tuple(
            Action(advice, rule, _METRIC, factor=factor)
            for advice, rule in zip((_ADVICE[slow], _ONCE), rules, strict=False)
        ),
        gain=(1.0, gain),
        reason="each of them takes the issue slots of a dozen additions or more",
    )
