"""What is tried next: one file a policy."""

from __future__ import annotations

from optiml_magic.search.policies.base import Policy
from optiml_magic.search.policies.beam import Beam
from optiml_magic.search.policies.best_of_n import BestOfN
from optiml_magic.search.policies.greedy import Greedy
from optiml_magic.search.policies.puct import Puct
from optiml_magic.search.policies.uniform import Uniform

POLICIES: dict[str, type[Policy]] = {
    "mcts": Puct,
    "greedy": Greedy,
    "beam": Beam,
    "random": Uniform,
    "best-of-n": BestOfN,
}
