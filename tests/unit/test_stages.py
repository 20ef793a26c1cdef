"""What a stage is given: the inputs that hazards are looked for on, the candidates for ncu."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optiml_magic.evaluation import Evaluator, stages
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import TUNER
from optiml_magic.preparation import Prepared
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task


def test_a_slow_kernel_is_looked_at_on_a_small_set_of_inputs() -> None:
    problem = prepare(known_task("row_sum_naive", rows=512, cols=64), seeds=1)
    with session(resolve({"device": "emulated"})) as members:
        evaluator = Evaluator(problem, members.tools)
        evaluator([Candidate(0, None, Proposal(problem.program.text, "", "test"))])
        context = evaluator._context
        context = replace(context, tools=replace(members.tools, inspect_seconds=3.0))
        prepared = stages.prepare(problem.program.text, context)
        assert isinstance(prepared, Prepared)
        first = prepared.verified[0][0]
        assert context.inspected(prepared, 1e-5)[0] is first
        smaller = context.inspected(prepared, 1e-3)[0]
    sizes = [
        sum(buffer.array.size for buffer in instance.case.buffers)
        for instance in (first, smaller, *(i for i, _ in prepared.verified))
    ]
    assert 8 * sizes[1] <= sizes[0]
    assert sizes[1] == max(size for size in sizes if 8 * size <= sizes[0])


def slow(text: str, rounds: int) -> str:
    """It adds nothing, so many times."""
    waste = f"for (int i = 0; i < {rounds}; ++i) sum += 0.0f * a[i % cols];"
    return text.replace("out[row]", f"{waste} out[row]")


def test_ncu_is_asked_of_what_somebody_builds_on_or_what_promised_something() -> None:
    asked: list[set[int]] = []
    problem = prepare(known_task("row_sum_naive", rows=64, cols=8), seeds=1)
    text = problem.program.text
    sectors = Hypothesis("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "lower")
    with session(resolve({"device": "emulated"})) as members:
        evaluator = Evaluator(problem, members.tools)
        begin = members.tools.levels.begin

        def seen(*given: Any, counted: set[int], **more: Any) -> Any:
            asked.append(counted)
            return begin(*given, counted=counted, **more)

        members.tools.levels.begin = seen  # type: ignore[method-assign]
        evaluator([Candidate(0, None, Proposal(text, "", "test"))])
        evaluator([Candidate(1, 0, Proposal(slow(text, 900), "", "rules", hypothesis=sectors))])
        evaluator([Candidate(2, 0, Proposal(slow(text, 901), "", "rules"))])
        numbers = [Candidate(3, 1, Proposal(slow(text, 1), "", TUNER))]
        numbers += [Candidate(4, 3, Proposal(slow(text, 2), "", TUNER))]
        evaluator(numbers)
        again = Evaluator(problem, members.tools)
        texts = slow(text, 900), text
        again([Candidate(at, None, Proposal(one, "", "test")) for at, one in enumerate(texts)])
    why = "behind, but promised; behind; better; not better; the input kernel, however far behind"
    assert asked == [{0}, {1}, set(), {3}, {0, 1}], why
