"""Which primitives an application used is seen, and nothing is left of the looking."""

from __future__ import annotations

from optiml_magic.kernels.primitives import lanes
from optiml_magic.kernels.primitives.base import Kernel, kernels
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from optiml_magic.source.program import parse_program

from .steps import PRIMITIVES, noted

ROWS = """\
#pragma optiml launch k grid(cdiv(rows, 32)) block(32)
__global__ void k(const float* a, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float s = 0.0f;
    int j = 0;
    while (j < cols) {
        s += a[row * cols + j];
        j += 1;
    }
    out[row] = s;
}
"""
PRODUCT = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
__global__ void k(const float* a, const float* b, float* c, int m, int n, int p) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m || j >= n) return;
    float s = 0.0f;
    int k = 0;
    while (k < p) {
        s += a[i * p + k] * b[k * n + j];
        k += 1;
    }
    c[i * n + j] = s;
}
"""


def steps(rule, text: str) -> tuple[str, ...]:
    with noted() as notes:
        (kernel,) = kernels(parse_program(text), None)
        site = next(s for s in rule.sites(kernel) if isinstance(s, Site))
        before = len(notes.steps)
        assert isinstance(site.apply(), Kernel)
        return notes.since(before)


def of_rule(rule, text: str) -> tuple[str, ...]:
    """The steps of the first idea, those that come before the sites among them."""
    root = Step(
        Candidate(0, None, Proposal(text, "", "")), Evaluation(0, "", Verdict(Outcome.PASSED, ""))
    )
    with noted() as notes:
        ideas = rule.propose(parse_program(text), View(root, root))
        idea = next(i for i in ideas if not isinstance(i, Refusal))
        before = len(notes.steps)
        assert isinstance(idea.make(), str)
        return notes.since(before)


def test_steps_and_their_parts_are_named_once_in_their_order() -> None:
    own = ("counted", "vectors", "places", "combine", "lanes", "batched")
    assert steps(RowToLanes(), ROWS) == own


def test_what_was_done_while_sites_were_looked_for_counts() -> None:
    assert steps(BlockedProduct(), PRODUCT) == ("counted", "places", "blocked")


def test_what_came_before_the_sites_counts() -> None:
    text = ROWS.replace("float s = 0.0f;", "float sum = 0.0f;\n    float& s = sum;")
    text = text.replace("block(32)", "block(8, 4)")
    place = "blockIdx.x * 32 + threadIdx.y * 8 + threadIdx.x"
    text = text.replace("blockIdx.x * blockDim.x + threadIdx.x", place)
    assert of_rule(RowToLanes(), text)[:2] == ("shaped", "direct")


def test_what_is_selected_counts() -> None:
    text = ROWS.replace("int j = 0;", "int j = 0, at = 0;").replace("= s;", "= at;")
    better = "if (a[row * cols + j] > s) { s = a[row * cols + j]; at = j; }"
    assert "selections" in of_rule(RowToLanes(), text.replace("s += a[row * cols + j];", better))


def test_nothing_is_left_behind() -> None:
    share, before = lanes.share, RowToLanes.before
    with noted() as notes:
        assert lanes.share is not share
        assert RowToLanes.before != before
    assert lanes.share is share
    assert RowToLanes.before is before
    assert notes.since(0) == ()


def test_every_primitive_is_known() -> None:
    assert {"counted", "lanes", "places", "combine", "blocked", "staged"} <= set(PRIMITIVES)
    assert {"selections", "cooperating", "warps"} <= set(PRIMITIVES)
    assert "base" not in PRIMITIVES
