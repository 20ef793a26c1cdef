"""The best edit of every launch as one: which, how likely, what becomes of it, and that it is right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.model.facts import Facts, LaunchFacts
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.view import View
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.proposers.rules import RuleProposer
from optiml_magic.proposers.together import ALONG, NAME, SPELLED, together
from optiml_magic.source.program import Program, parse_program
from tests.ideas import view_of
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

HEAD = "int j = blockIdx.x * blockDim.x + threadIdx.x;"
CHAIN = f"""\
#pragma optiml scratch low f4[cols]
#pragma optiml scratch high f4[cols]
#pragma optiml launch least grid(cdiv(cols, 256)) block(256)
#pragma optiml launch most grid(cdiv(cols, 256)) block(256)
#pragma optiml launch between grid(cdiv(cols, 16), cdiv(rows, 16)) block(16, 16)
__global__ void least(const float* x, float* low, int rows, int cols) {{
    {HEAD}
    if (j >= cols) return;
    float m = x[j];
    for (int i = 0; i < rows; i++) m = fminf(m, x[i * cols + j]);
    low[j] = m;
}}
__global__ void most(const float* x, float* high, int rows, int cols) {{
    {HEAD}
    if (j >= cols) return;
    float m = x[j];
    for (int i = 0; i < rows; i++) m = fmaxf(m, x[i * cols + j]);
    high[j] = m;
}}
__global__ void between(const float* x, const float* low, const float* high, float* out,
                        int rows, int cols) {{
    {HEAD}
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < rows && j < cols) out[i * cols + j] = (x[i * cols + j] - low[j]) / (high[j] - low[j]);
}}
"""
ROWS, COLS = 32768, 512


def facts() -> Facts:
    """Of the chain at sizes at which it is slow."""
    scalars = {"rows": ROWS, "cols": COLS}
    found = [
        LaunchFacts(kernel, line, grid, block, {}, scalars)
        for kernel, line, grid, block in (
            ("least", 3, (COLS // 256, 1, 1), (256, 1, 1)),
            ("most", 4, (COLS // 256, 1, 1), (256, 1, 1)),
            ("between", 5, (COLS // 16, ROWS // 16, 1), (16, 16, 1)),
        )
    ]
    return Facts(tuple(found), {}, 1e-5, 1e-8, "h200")


def ideas(text: str, *, exact: bool = False, known: bool = True) -> list[Idea]:
    found = facts() if known else None
    view = replace(view_of(text), find_facts=lambda: found)
    return [*RuleProposer(exact=exact).propose(view, 16).ideas]


def every(text: str, *, exact: bool = False) -> list[Idea]:
    return [idea for idea in ideas(text, exact=exact) if idea.proposer == NAME]


def test_all_launches_are_edited_at_once_and_first() -> None:
    first, *others = ideas(CHAIN)
    assert first.proposer == NAME
    parts = ["least:", "most:", "between:"]
    assert [part.split(" ")[0] for part in first.title.split("; ")] == [*parts, "between:"]
    assert first.launches == ("least", "most", "between")
    assert first.prior > max(idea.prior for idea in others)
    text = first.make()
    assert isinstance(text, str)
    launched = [launch.kernel for launch in parse_program(text).launches]
    assert launched == ["least_parts", "least", "most_parts", "most", "between"]
    assert "reinterpret_cast<const float4*>" in text
    assert "fast_inverse" in text


def test_the_shapes_alone_are_less_likely_than_with_expressions() -> None:
    first, second = every(CHAIN)
    assert second.title == first.title.rpartition("; between: use")[0]
    assert second.prior < 0.9 * first.prior
    assert "fast_inverse" not in str(second.make())
    (plain,) = every(CHAIN.replace("/ (high", "* (high"))
    assert plain.title == second.title
    assert plain.prior > second.prior


def test_it_is_right() -> None:
    arrays = {"x": Array("f4", ("rows", "cols")), "out": Array("f4", ("rows", "cols"), "zeros")}
    sizes, others = {"rows": 131, "cols": 68}, {"rows": 40, "cols": 21}
    for idea in every(CHAIN):
        text, rounds = idea.make(), bool(idea.arithmetic)
        assert isinstance(text, str)
        stand = Stand(Made("one", CHAIN, arrays, sizes, others, exact=not rounds))
        few = parse_program(text).with_values({"PARTS": 4, "PARTS_2": 2, "ROWS": 2}).text
        found = stand.applied(Offer(NAME, "", few, rounds), CHAIN)
        assert found.sound, f"{found.end}: {found.detail}\n{found.after}"


def test_a_launch_that_takes_little_of_the_time_comes_late() -> None:
    prior = {i.launches: i.prior for i in ideas(CHAIN) if i.proposer == "vectorise_map"}
    untold = {
        i.launches: i.prior for i in ideas(CHAIN, known=False) if i.proposer == "vectorise_map"
    }
    assert prior["between",] < untold["between",] / 5


def test_what_changes_the_arithmetic_says_so_and_is_left_out_where_that_is_forbidden() -> None:
    text = CHAIN.replace("m = fmaxf(m, x[i * cols + j])", "m += x[i * cols + j]")
    spelled, found = every(text)
    assert found.arithmetic == ("the order of additions",)
    assert {*spelled.arithmetic} > {*found.arithmetic}
    (kept,) = every(text, exact=True)
    assert "most: rows" not in kept.title
    assert not kept.arithmetic


def test_what_joins_launches_is_one_of_the_edits() -> None:
    joined = CHAIN[: CHAIN.index("__global__ void least")] + "".join(
        f"__global__ void {name}(const float* {a}, float* {b}, int cols) {{ {HEAD} {stored} }}\n"
        for name, a, b, stored in (
            ("least", "x", "low", "if (j < cols) low[j] = x[j] + 1.0f;"),
            ("most", "low", "high", "if (j < cols) high[j] = low[j] - 2.0f;"),
        )
    ) + CHAIN[CHAIN.index("__global__ void between") :]  # fmt: skip
    ways = {idea.launches for idea in every(joined)}
    assert ("least", "most", "between") in ways
    for idea in every(joined):
        assert isinstance(idea.make(), str)
    joining = max(idea.prior for idea in every(joined) if "fuse" in idea.title)
    assert all(idea.prior < joining for idea in every(joined) if "fuse" not in idea.title)


def test_one_launch_alone_is_its_rules_own() -> None:
    text = CHAIN[CHAIN.index("__global__ void least") : CHAIN.index("__global__ void most")]
    head = "#pragma optiml launch least grid(cdiv(cols, 256)) block(256)\n"
    assert not every(head + text)
    assert {idea.launches for idea in every(2 * head + text)} == {("least", "least_2")}


def test_what_is_told_is_what_is_made() -> None:
    def again(rule: str, program: Program, view: View) -> Iterator[Idea | Refusal]:
        own = next(r for r in REWRITES if r.name == rule)
        for found in own.propose(program, view):
            late = isinstance(found, Idea) and found.launches == ("most",) and refused
            yield Refusal(rule, "not now") if late else found

    view, refused = replace(view_of(CHAIN), find_facts=facts), False
    rules = ("split_reduction", "vectorise_map")
    found = [i for i in ideas(CHAIN, known=False) if i.proposer in rules]
    (idea,) = together(found, view, again)
    assert idea.launches == ("least", "most", "between")
    assert isinstance(idea.make(), str)
    refused = True
    assert "most" in str(idea.make())
    # What refuses by itself is no part of it.
    late = [
        replace(i, make=lambda: Refusal("none", "too late")) if i.launches == ("most",) else i
        for i in found
    ]
    (idea,) = together(late, view, again)
    assert idea.launches == ("least", "between")
    assert "most:" not in idea.title
    assert "most_parts" not in str(idea.make())
    assert not [*together([i for i in late if i.launches != ("between",)], view, again)]


def test_expressions_change_in_the_launch_that_is_told() -> None:
    text = CHAIN.replace("low[j] = m", "low[j] = expf(m)").replace(
        "high[j] = m", "high[j] = logf(m)"
    )
    found = [i for i in ideas(text, known=False) if i.proposer == "fast_functions"]
    assert {i.launches for i in found} == {("least",), ("most",), ("between",)}
    for kept in ("least", "most"):
        some = [replace(i, prior=0.5) for i in found if i.launches in {(kept,), ("between",)}]
        (idea,) = together(some, view_of(text), RuleProposer()._again)
        made = str(idea.make())
        assert ("fast_exp2(" in made, "__logf(" in made) == (kept == "least", kept == "most")


PRICES = """\
#pragma optiml launch price grid(cdiv(n, 256)) block(256)
__global__ void price(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = 0.5 * expf(-a[i]) / b[i];
}
"""


def test_expressions_change_along_with_the_shape_of_their_launch() -> None:
    first, *others = ideas(PRICES, known=False)
    assert first.proposer == ALONG
    assert first.prior > others[0].prior
    (alone,) = (i for i in others if i.title == first.title.partition(";")[0])
    assert [s for s in first.starts if s] == [s for s in alone.starts if s]
    assert alone.prior < 0.9 * first.prior  # nearly always slower: others are tried before
    made = first.make()
    assert isinstance(made, str)
    for now in ("float4", "0.5f * fast_exp2(", "fast_inverse("):
        assert now in made
    plain = PRICES.replace("0.5", "0.5f").replace("/ b[i]", "* b[i]").replace("expf", "fabsf")
    assert ALONG not in [idea.proposer for idea in ideas(plain, known=False)]
    assert ALONG not in [idea.proposer for idea in ideas(PRICES, known=False, exact=True)]


def test_expressions_make_no_unlikely_shape_the_likeliest() -> None:
    view = view_of(PRICES)
    found = [i for i in ideas(PRICES, known=False) if i.proposer in ("vectorise_map", *SPELLED)]
    for chance, both in ((0.4, 0.6), (0.55, 0.75), (0.7, 0.82), (0.9, 0.91)):
        likely = [
            replace(one, prior=chance if one.proposer == "vectorise_map" else 0.81) for one in found
        ]
        made = together(likely, view, lambda *_: ())
        assert next(one for one in made if one.proposer == ALONG).prior == both


BLURRED = """\
#pragma optiml launch blurred grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void blurred(const float* a, float* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    float sum = 0.0f;
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++) sum += expf(-a[(y + i) * w + x + j]);
    out[y * w + x] = sum;
}
"""


def test_expressions_change_along_with_the_second_shape_as_well() -> None:
    found = [idea for idea in ideas(BLURRED, known=False) if idea.proposer == ALONG]
    shapes = [i for i in ideas(BLURRED, known=False) if i.proposer == "share_loads"][:2]
    assert [i.title.partition(";")[0] for i in found] == [i.title for i in shapes]
    assert all(i.prior >= shape.prior for i, shape in zip(found, shapes, strict=True))
    assert all("fast_exp2" in str(i.make()) for i in found)


def test_expressions_and_shape_together_are_right() -> None:
    one = next(idea for idea in ideas(PRICES, known=False) if idea.proposer == ALONG)
    made = one.make()
    assert isinstance(made, str)
    arrays = {name: Array("f4", ("n",)) for name in ("a", "b")} | {
        "c": Array("f4", ("n",), "zeros")
    }
    stand = Stand(Made("one", PRICES, arrays, {"n": 1103}, {"n": 5}, exact=False))
    found = stand.applied(Offer(ALONG, "", made, bool(one.arithmetic)), PRICES)
    assert found.sound, f"{found.end}: {found.detail}\n{found.after}"


STEPS = """\
#pragma optiml scratch y f4[rows * cols]
#pragma optiml scratch z f4[rows * cols]
#pragma optiml launch scaled grid(cdiv(rows * cols, 256)) block(256)
#pragma optiml launch shifted grid(cdiv(rows * cols, 256)) block(256)
#pragma optiml launch sums grid(cdiv(rows, 256)) block(256)
__global__ void scaled(const float* x, float* y, float s, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) y[i] = x[i] * s;
}
__global__ void shifted(const float* y, float* z, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) z[i] = y[i] + 1.0f;
}
__global__ void sums(const float* z, float* out, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float s = 0.0f;
    for (int c = 0; c < cols; c++) s += z[r * cols + c];
    out[r] = s;
}
"""


def test_what_joins_all_launches_comes_before_what_joins_some_and_edits_the_others() -> None:
    found = ideas(STEPS, known=False)
    (whole,) = (i for i in found if len(i.launches) == 3 and i.proposer == "fuse_map_reduce")
    assert all(whole.prior >= i.prior for i in found if i.proposer == NAME)


MEANS = f"""\
#pragma optiml launch means grid(cdiv(cols, 256)) block(256)
__global__ void means(const float* x, const float* weight, float* out, int rows, int cols) {{
    {HEAD}
    if (j >= cols) return;
    float sum = 0.0f;
    for (int i = 0; i < rows; i++) sum += expf(x[i * cols + j]);
    out[j] = sum / weight[j];
}}
"""


def test_all_that_a_launch_became_has_its_expressions_changed() -> None:
    first = ideas(MEANS, known=False)[0]
    assert first.proposer == ALONG
    text = first.make()
    assert isinstance(text, str)
    parts, whole = text.split("__global__")[-2:]
    assert "fast_exp2(x[" in parts
    assert "fast_inverse(weight[j])" in whole


SWEEPS = """\
#pragma optiml scratch one f4[n]
#pragma optiml scratch two f4[n]
#pragma optiml launch near grid(cdiv(n, 256)) block(256) args(a, one, n)
#pragma optiml launch near grid(cdiv(n, 256)) block(256) args(one, two, n)
#pragma optiml launch near grid(cdiv(n, 256)) block(256) args(two, c, n)
__global__ void near(const float* from, float* to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i > 0 ? i - 1 : 0] * 0.5f + from[i];
}
"""


def test_launches_of_one_kernel_are_edited_in_step_before_they_are_alone() -> None:
    found = ideas(SWEEPS, known=False)
    blocks = [idea for idea in found if "tuned block" in idea.title]
    (both, *alone) = blocks
    assert both.proposer == NAME
    assert both.launches == ("near", "near_2", "near_3")
    assert both.title == "near, near_2, near_3: tuned block: BLOCK = 128"
    assert {idea.launches for idea in alone} == {("near",), ("near_2",), ("near_3",)}
    assert all(idea.prior < both.prior for idea in alone)
    text = both.make()
    assert isinstance(text, str)
    assert [str(launch.block[0]) for launch in parse_program(text).launches] == [
        "BLOCK", "BLOCK_2", "BLOCK_3"
    ]  # fmt: skip
    arrays = {"a": Array("f4", ("n",)), "c": Array("f4", ("n",), "zeros")}
    stand = Stand(Made("one", SWEEPS, arrays, {"n": 700}, {"n": 3}))
    tried = stand.applied(Offer(NAME, "", text, False), SWEEPS)
    assert tried.sound, f"{tried.end}: {tried.detail}"


def test_what_is_in_every_launch_is_not_made_again_in_step() -> None:
    text = CHAIN[CHAIN.index("__global__ void least") : CHAIN.index("__global__ void most")]
    head = "#pragma optiml launch least grid(cdiv(cols, 256)) block(256)\n"
    keys = [idea.key.removeprefix(f"{NAME} ").split(" + ") for idea in every(2 * head + text)]
    assert len({frozenset(parts) for parts in keys}) == len(keys)


def test_kernels_that_are_not_copies_are_not_in_step() -> None:
    titles = [idea.title for idea in ideas(CHAIN, known=False)]
    assert not any(title.startswith("least, most:") for title in titles)
