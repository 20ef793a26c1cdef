"""Whatever a rule makes of a random kernel leaves behind what the kernel does."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.present import examples, sampled

from .drawing import FORMS, made, programs, spelled
from .dresses import DRESSES, dressed
from .families import FAMILIES
from .offers import Offer
from .trying import IllMadeError, Stand, Trial, tried
from .worst import TRAPS, WORST
from .writing import Array, Made

MAKERS = list(dict.fromkeys(maker for family in FAMILIES.values() for maker in family))


def sound(trial: Trial) -> None:
    for wrong in trial.unsound:
        pytest.fail(
            f"{wrong.rule} ({wrong.title}): {wrong.end}: {wrong.detail}\n{trial.made}\n"
            f"{wrong.before}\n// becomes\n{wrong.after}"
        )


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@settings(
    max_examples=1000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(programs(), st.randoms(use_true_random=False))
def test_what_the_rules_make_of_a_random_kernel_is_right(one: Made, rng: Random) -> None:
    sound(tried(one, rng, each=1))


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_what_the_rules_make_of_a_kernel_in_odd_dresses_is_right() -> None:
    ran = 0
    for seed in range(300):
        rng = Random(seed)
        one = dressed(rng, made(rng))
        try:
            sound(tried(one, rng, each=1))
            ran += 1
        except IllMadeError:
            pass  # two dresses that do not go together
    assert ran > 250


DRESSED = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f, t = 1.0f;
    int far = i * 4;
    for (int k = 0; k < 5; k++) {
        s += a[i] * k;
        t = fmaxf(t, s);
        if (s > 2.0f) { s -= 1.0f; } else { t -= 1.0f; }
        if (t > 3.0f) t = 0.0f;
    }
    out[i] = s + t * (far % 7);
}
"""


@pytest.mark.parametrize("dress", DRESSES, ids=lambda dress: dress.__name__)
def test_a_kernel_in_a_dress_does_the_same(dress) -> None:
    arrays = {"a": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
    plain = Made("dressed", DRESSED, arrays, {"n": 65}, {"n": 3})
    for seed in range(examples(2, 40)):
        text = dress(Random(seed), plain.text)
        assert text is not None
        assert text != plain.text
        end = Stand(plain).applied(Offer("dressed", "", text), plain.text)
        assert end.sound, f"{end.detail}\n{text}"


@pytest.mark.parametrize("one", sampled(WORST, 3), ids=lambda one: one.family)
def test_what_a_rule_got_wrong_once_is_right(one: Made) -> None:
    sound(tried(one, Random(0), each=1))


@pytest.mark.parametrize("one", sampled(TRAPS), ids=lambda one: one.family)
def test_what_the_rules_make_of_a_trap_is_right(one: Made) -> None:
    sound(tried(one, Random(0), each=1))


@pytest.mark.parametrize("maker", sampled(MAKERS), ids=lambda maker: maker.__name__)
def test_a_kernel_that_is_drawn_runs_cleanly(maker) -> None:
    for seed in range(examples(1, 60)):
        Stand(maker(Random(seed))).run()


def test_what_is_drawn_is_the_same_each_time_and_differs_by_seed() -> None:
    texts = [made(Random(seed)).text for seed in range(40)]
    assert texts == [made(Random(seed)).text for seed in range(40)]
    assert len(set(texts)) > 36


def test_names_follow_a_form_that_changes_them() -> None:
    one = Made(
        "copy",
        "#pragma optiml launch k grid(cdiv(n, 32)) block(32)\n"
        "__global__ void k(const float* a, float* out, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) out[i] = a[i];\n}\n",
        {"a": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")},
        {"n": 5},
        {"n": 40},
    )
    for form in ("renamed", "names_exchanged", "renamed"):  # the third is left out
        one = spelled(one, [f.name for f in FORMS].index(form))
    assert one.forms == ("renamed", "names_exchanged")
    assert "v1" in one.renamed.values()
    Stand(one).run()


@pytest.mark.parametrize(
    "forms",
    [
        ("ldg_loads", "load_helpers"),
        ("output_references", "named_loads"),
        ("name_references", "const_names", "casts", "static_casts"),
        ("index_helpers",),
    ],
)
def test_a_form_of_a_form_compiles(forms: tuple[str, ...]) -> None:
    """An address is no load, a reference no copy, and a local may have the name of a helper."""
    arrays = {"a": Array("f4", ("n", "n")), "out": Array("f4", ("n",), "zeros")}
    body = "float at = a[i * n + 0]; int k = n; k += 1; if (i < n) out[i] = at * k;"
    text = (
        "#pragma optiml launch k grid(1) block(64)\n"
        "__global__ void k(const float* a, float* out, int n) {\n"
        f"    int i = min(threadIdx.x, n - 1);\n    {body}\n}}\n"
    )
    one = Made("forms", text, arrays, {"n": 64}, {"n": 64})
    for form in forms:
        one = spelled(one, [f.name for f in FORMS].index(form))
    assert one.forms[:1] == forms[:1]  # a later one may find nothing left
    Stand(one).run()


TILED = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, float* out, int n) {
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? a[i] : 0.0f;
    __syncthreads();
    if (i < n) out[i] = tile[31 - threadIdx.x] * 2.0f;
}
"""


@pytest.fixture(scope="module")
def stand() -> Stand:
    arrays = {"a": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
    return Stand(Made("tiled", TILED, arrays, {"n": 64}, {"n": 37}))


def test_the_rules_are_told_the_first_sizes(stand: Stand) -> None:
    (launch,) = stand.facts(TILED).launches
    assert launch.scalars["n"] == 64
    assert launch.arrays["a"].shape == (64,)


@pytest.mark.parametrize(
    ("old", "new", "end", "detail"),
    [
        ("* 2.0f", "+ tile[31 - threadIdx.x]", "same", ""),
        ("__syncthreads();", "", "hazard", "race"),
        ("block(32)\n", "block(32)\n#pragma optiml require n > 40\n", "narrowed", "n > 40"),
        ("31 - threadIdx.x", "threadIdx.x", "wrong", "differ"),
        ("if (i < n) out", "if (i < n - 1) out", "wrong", "1 of 64 differ (forward, n = 64)"),
        ("i < n ? a[i] : 0.0f", "a[i]", "fault", "n = 37"),
        ("if (i < n) out", "if (i < 64) out", "fault", "n = 37"),
        ("tile[64]", "tile[8]", "fault", "tile"),
        ("31 - threadIdx.x", "63 - threadIdx.x", "hazard", "uninitialised"),
        ("2.0f", "2.0g", "does not compile", "g"),
        ("launch k", "launch other", "does not fit", "other"),
        (
            "out[i] = tile[31 - threadIdx.x] * 2.0f",
            "out[i] = blockIdx.x > 0 ? 0.0f : tile[31 - threadIdx.x] * 2.0f",
            "wrong",
            "of 64 differ",
        ),
    ],
)
def test_a_wrong_application_is_told(
    stand: Stand, old: str, new: str, end: str, detail: str
) -> None:
    assert old in TILED
    found = stand.applied(Offer("planted", "", TILED.replace(old, new)), TILED)
    assert found.end == end, found
    assert detail in found.detail
    assert found.sound == (end in ("same", "narrowed"))


def test_a_race_between_blocks_is_told_by_their_order(stand: Stand) -> None:
    text = TILED.replace(
        "out[i] = tile", "out[i] = out[i > 31 ? i : i + 32 < n ? i + 32 : i] * 0.0f + tile"
    )
    found = stand.applied(Offer("planted", "", text), TILED)
    assert not found.sound


def test_an_exact_kernel_is_compared_exactly(stand: Stand) -> None:
    text = TILED.replace("* 2.0f", "* 2.0000002f")
    assert stand.applied(Offer("planted", "", text), TILED).end == "wrong"
    rough = Stand(replace(stand.made, exact=False))
    assert rough.applied(Offer("planted", "", text), TILED).end == "inexact"
    assert rough.applied(Offer("planted", "", text, rounds=True), TILED).end == "same"
    far = text.replace("2.0000002f", "2.01f")
    assert rough.applied(Offer("planted", "", far, rounds=True), TILED).end == "wrong"
