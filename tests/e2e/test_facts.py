"""What proposers can ask of a step: the facts of its program, in a resumed run as well."""

from __future__ import annotations

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task


def test_facts_are_those_of_the_task_whether_measured_now_or_before() -> None:
    task = known_task("transpose_naive", rows=96, cols=64)
    problem = prepare(task, seeds=1)
    root = Candidate(0, None, Proposal(problem.program.text, "the input kernel", "user"))
    with session(resolve({"device": "emulated:h200"}), task=task) as members:
        evaluator = Evaluator(problem, members.tools)
        (evaluation,) = evaluator([root])
        facts = evaluator.facts(root)
        assert facts is not None
        assert evaluator.facts(root) is facts
        resumed = Evaluator(problem, members.tools)
        resumed.remember(root, evaluation)
        assert resumed.facts(root) == facts
        broken = Candidate(1, 0, Proposal(root.text.replace("out[", "nowhere["), "", "test"))
        assert resumed.facts(broken) is None
    (launch,) = facts.launches
    assert launch.scalars == {"rows": 96, "cols": 64}
    assert {array.shape for array in launch.arrays.values()} == {(96, 64), (64, 96)}
    assert facts.chip == "h200"
