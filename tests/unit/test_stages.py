"""What a stage is given: the inputs that hazards are looked for on."""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.evaluation import Evaluator, stages
from optiml_magic.model.candidate import Candidate, Proposal
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
