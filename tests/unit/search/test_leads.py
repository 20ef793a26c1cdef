"""What the tree remembers of its way down changes nothing but the time that it takes."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.search.landscapes import LANDSCAPES
from optiml_magic.search.loop import Budget
from optiml_magic.search.policies.base import Arm
from optiml_magic.search.policies.puct import Puct
from optiml_magic.search.search import TreeSearch
from tests.present import examples
from tests.unit.search import toy


@dataclass(frozen=True)
class Forgetful(Puct):
    """Weighs every arm on its way anew."""

    def choose(self, tree: TreeSearch) -> Arm | None:
        for node in (tree.base, *tree.nodes):
            node.lead = None
        return super().choose(tree)


@settings(max_examples=examples(12, 2000))
@given(
    name=st.sampled_from(sorted(LANDSCAPES)),
    seed=st.integers(0, 2**16),
    batch=st.integers(1, 5),
    ahead=st.integers(0, 2),
    exploration=st.sampled_from([0.0, 0.1, 0.7]),
)
def test_the_same_is_asked_where_nothing_is_remembered(
    name: str, seed: int, batch: int, ahead: int, exploration: float
) -> None:
    def asked(policy: Puct) -> list[tuple[int, int | None, str]]:
        problem = LANDSCAPES[name](seed)
        tree = TreeSearch(problem.root, problem.expand, problem.spaces, policy=policy, seed=seed)
        steps = toy.run(tree, problem.evaluate, Budget(60), batch=batch, ahead=ahead).steps
        return [(s.candidate.number, s.candidate.parent, s.candidate.text) for s in steps]

    assert asked(Puct(exploration=exploration)) == asked(Forgetful(exploration=exploration))
