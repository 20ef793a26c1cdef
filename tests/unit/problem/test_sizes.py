"""Other sizes of a task: which there are, and what is drawn at them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optiml_magic.errors import OracleError
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare
from optiml_magic.problem.sizes import around, grown, kept, large, measured, near, small
from optiml_magic.testing.kernels import known_task

HEAD = "#pragma optiml launch k grid(cdiv(n, 64)) block(64)\n"
COPY = HEAD + "__global__ void k(const float* x, float* out, int n) { out[0] = x[0]; }\n"
X = np.random.default_rng(0).uniform(1, 2, 256).astype(np.float32)


def test_a_function_of_sizes_is_called_with_others() -> None:
    found = prepare(known_task("matmul_naive", m=64, n=64, k=64), seeds=1).sizing
    assert found is not None
    assert found.given == {"m": 64, "n": 64, "k": 64}
    values = found.draw({"m": 3, "n": 5, "k": 7}, 1)
    assert (values["a"].shape, values["b"].shape) == ((3, 7), (7, 5))
    assert [values[name] for name in "mnk"] == [3, 5, 7]


def test_plain_arrays_follow_the_scalar_that_is_their_extent() -> None:
    task = Task(COPY, reference=lambda x: x, inputs={"x": X, "n": 256})
    found = prepare(task, seeds=1).sizing
    assert found is not None
    values = found.draw({"n": 31}, 1)
    assert (values["x"].shape, values["n"]) == ((31,), 31)
    assert values["x"].dtype == np.float32
    assert 1 <= values["x"].min() <= values["x"].max() <= 2


def test_a_size_directive_follows_by_itself() -> None:
    text = "#pragma optiml size n = shape(x, 0)\n" + COPY
    found = prepare(Task(text, reference=lambda x: x, inputs={"x": X}), seeds=1).sizing
    assert found is not None
    assert found.draw({"n": 33}, 1)["n"] == 33


def test_a_function_without_sizes_is_resized_like_plain_arrays() -> None:
    task = Task(COPY, reference=lambda x: x, inputs=lambda _: {"x": X, "n": 256})
    found = prepare(task, seeds=1).sizing
    assert found is not None
    assert found.draw({"n": 31}, 1)["x"].shape == (31,)


def test_where_no_extent_is_a_scalar_the_integers_are_the_sizes() -> None:
    inputs = {"x": X, "n": 100}
    found = prepare(Task(COPY, reference=lambda x: x, inputs=inputs), seeds=1).sizing
    assert found is not None
    values = found.draw({"n": 31}, 1)
    assert (values["x"].shape, values["n"]) == ((256,), 31)


def test_a_scalar_that_counts_the_elements_of_an_array_gives_it_as_many() -> None:
    inputs = {"x": X.reshape(16, 16), "n": 256}
    found = prepare(Task(COPY, reference=lambda x: x, inputs=inputs), seeds=1).sizing
    assert found is not None
    values = found.draw({"n": 31}, 1)
    assert (values["x"].shape, values["n"]) == ((31, 1), 31)


def test_a_count_of_elements_follows_the_extents() -> None:
    text = COPY.replace("int n)", "int n, int rows)")
    inputs = {"x": X.reshape(32, 8), "n": 256, "rows": 32}
    found = prepare(Task(text, reference=lambda x: x, inputs=inputs), seeds=1).sizing
    assert found is not None
    values = found.draw({"rows": 31}, 1)
    assert (values["x"].shape, values["n"]) == ((31, 8), 248)


def test_without_integers_there_are_no_other_sizes() -> None:
    text = COPY.replace(", int n", "").replace("cdiv(n, 64)", "4")
    assert prepare(Task(text, reference=lambda x: x, inputs={"x": X}), seeds=1).sizing is None


def test_sizes_grow_as_far_as_they_are_measured() -> None:
    assert [s for s, _ in grown({"n": 11}, {"n": 1024})] == [{"n": 45}]
    assert [s for s, _ in grown({"h": 9, "w": 7}, {"h": 4096, "w": 20})] == [{"h": 37, "w": 20}]
    assert [s for s, _ in grown({"a": 5, "b": 5, "c": 5}, {"a": 99, "b": 99, "c": 99})] == [
        {"a": 11, "b": 11, "c": 11}
    ]
    assert not [*grown({"n": 11}, {"n": 11})]


@pytest.mark.parametrize("given", [1, 2, 30, 1000])
def test_no_size_is_above_the_given_one(given: int) -> None:
    drawn = [sizes["n"] for sizes, _ in (*small({"n": given}), *large({"n": given}))]
    assert 1 <= min(drawn) <= max(drawn) <= given


def test_several_sizes_differ_from_one_another() -> None:
    given = {"rows": 1024, "cols": 1024}
    assert all(sizes["rows"] != sizes["cols"] for sizes, _ in small(given))


def test_the_large_sizes_are_a_prime_a_half_and_one_that_is_even_but_not_by_four() -> None:
    wanted = [{"n": 4093}, {"n": 2048}, {"n": 4094}]
    assert [sizes for sizes, _ in large({"n": 4096})] == wanted
    assert [[*large({"n": n})][2][0]["n"] for n in (4095, 4094, 7, 6, 2, 1)] == [
        4094, 4090, 6, 2, 1, 1,
    ]  # fmt: skip


@pytest.mark.parametrize(("by", "rest"), [(4, 2), (8, 4), (2, 1), (32, 1)])
def test_each_remainder_that_vectors_leave_is_among_the_small_sizes(by: int, rest: int) -> None:
    drawn = [sizes["n"] for sizes, _ in small({"n": 4096})]
    assert [n for n in drawn if n > by and n % by == rest]


@pytest.mark.parametrize("numbers", [(4,), (4, 1024), (1000,)])
def test_both_sides_of_each_number_are_tried_for_each_size(numbers: tuple[int, ...]) -> None:
    given = {"rows": 4096, "cols": 1024}
    drawn = [sizes for sizes, _ in around(given, numbers)]
    for number in numbers:
        for name, size in given.items():
            tried = {sizes[name] for sizes in drawn}
            assert tried >= {n for n in (number - 1, number, number + 1) if n <= size}
    assert all(sizes["rows"] * sizes["cols"] <= 1 << 18 for sizes in drawn)


def test_sizes_that_a_condition_reads_are_tried_as_they_are_measured() -> None:
    given, measured = {"n": 2, "c": 8, "h": 40, "w": 40}, {"c": 64}
    drawn = [sizes for sizes, _ in around(given, (4, 64), measured)]
    assert drawn[0] == {"n": 2, "c": 64, "h": 40, "w": 40}
    assert {63, 64} <= {sizes["c"] for sizes in drawn} <= {*range(65)}
    assert max(sizes["h"] for sizes in drawn) == 40
    (shrunk, _), *_ = around({"m": 128, "k": 100}, (), {"k": 4096})
    assert shrunk == {"m": 16, "k": 4096}
    huge = {"k": 1 << 24}
    assert [*around({"m": 128, "k": 100}, (64,), huge)] == [*around({"m": 128, "k": 100}, (64,))]


def test_what_a_condition_reads_may_follow_from_two_sizes_beside_those_that_it_asks() -> None:
    given = {"n": 2, "c": 5, "d": 7, "h": 11, "k": 3}
    own = {"n": 8, "c": 64, "d": 24, "h": 40, "k": 3}
    drawn = [sizes for sizes, _ in measured(given, own, {"c": 64})]
    assert {"n": 2, "c": 64, "d": 24, "h": 11, "k": 3} in drawn
    assert any(s == {**own, "n": 1} for s in drawn)
    assert drawn[:2] == [sizes for sizes, _ in measured(given, own)][:2]
    assert len({seed for _, seed in measured(given, own, {"c": 64})}) == len(drawn)
    assert [*measured(given, given)] == []
    huge = {"n": 1 << 30, "m": 1 << 30}
    assert [*measured({"n": 3, "m": 3}, huge)] == []


def test_near_the_given_sizes_one_or_all_give_way() -> None:
    drawn = [sizes for sizes, _ in near({"rows": 1001, "cols": 64}, (4, 4096))]
    assert {"rows": 1000, "cols": 63} in drawn
    assert {"rows": 1000, "cols": 64} in drawn
    assert {"rows": 1001, "cols": 63} in drawn
    assert all(sizes["rows"] <= 1001 and sizes["cols"] <= 64 for sizes in drawn)
    assert {"rows": 1001, "cols": 64} not in drawn


@pytest.mark.parametrize(
    ("given", "smaller", "wanted"),
    [
        ({"n": 4096, "dim": 16}, {"n": 77, "dim": 5}, {"n": 77, "dim": 16}),
        ({"n": 4096, "dim": 128}, {"n": 77, "dim": 5}, {"n": 77, "dim": 5}),
        ({"n": 4096, "dim": 64}, {"n": 77, "dim": 3}, {"n": 77, "dim": 3}),
        ({"a": 32, "b": 32, "c": 32}, {"a": 8, "b": 16, "c": 8}, {"a": 32, "b": 32, "c": 8}),
        ({"n": 9}, {"n": 9}, {"n": 9}),
        ({"q": 32, "kv": 8}, {"q": 4, "kv": 2}, {"q": 32, "kv": 2}),  # heads in whole groups
        ({"all": 4096, "best": 8}, {"all": 5, "best": 2}, {"all": 5, "best": 2}),
        ({"all": 4096, "best": 8}, {"all": 9, "best": 2}, {"all": 9, "best": 8}),
    ],
)
def test_small_sizes_are_verified_as_they_are_measured(
    given: dict[str, int], smaller: dict[str, int], wanted: dict[str, int]
) -> None:
    assert kept(given, smaller) == wanted


def test_a_program_for_one_small_size_is_verified_at_it() -> None:
    text = HEAD + (
        "__global__ void k(const float* x, float* out, int n, int d) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n) out[i] = x[i * d];\n}\n"
    )
    task = Task(
        text, lambda x: x[:, 0],
        lambda rng, n, d: {"x": rng.random((n, d), np.float32), "n": n, "d": d},
        sizes={"n": 5000, "d": 8}, verify_sizes={"n": 70, "d": 3}, outputs={"out": "f4[n]"},
    )  # fmt: skip
    notes = prepare(task, seeds=1).notes
    assert any(
        "verified at n = 70, d = 8 (d as measured, which is small) and below" in note
        for note in notes
    )


GROUPS = HEAD + (
    "__global__ void k(const float* x, float* out, int n, int g) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) out[i] = x[i / (n / (g + 1)) * (n / (g + 1))];\n}\n"
)


def grouped(text: str, *, whole: bool = True) -> Task:
    """Groups of equal length and one more, which reference or inputs may be unable to make."""

    def inputs(rng: np.random.Generator, n: int, g: int) -> dict[str, object]:
        if not whole:
            rng.random(n).reshape(g + 1, -1)
        return {"x": rng.random(n, np.float32), "n": n, "g": g}

    def reference(x: np.ndarray, n: int, g: int) -> np.ndarray:
        parts = x.reshape(g + 1, -1) if whole else x.reshape(-1, n // (g + 1))
        return np.repeat(parts[:, 0], n // (g + 1))

    return Task(text, reference, inputs, sizes={"n": 4125, "g": 32},
                verify_sizes={"n": 45, "g": 4}, outputs={"out": "f4[n]"})  # fmt: skip


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (grouped(GROUPS), "the reference raised ValueError"),
        (grouped(GROUPS, whole=False), "inputs(rng, n, g) raised ValueError"),
        (
            grouped("#pragma optiml require n % (g + 1) == 0\n" + GROUPS),
            "`require n % (g + 1) == 0`",
        ),
    ],
)
def test_sizes_that_the_task_does_not_know_are_verified_as_given(task: Task, reason: str) -> None:
    found = prepare(task, seeds=2)
    assert found.verified == {"n": 45, "g": 4}
    assert [i.values["g"] for i in found.instances] == [32, 4, 4]
    (note,) = (note for note in found.notes if note.startswith("not verified at n = 45, g = 32"))
    assert reason in note
    assert any(
        note.startswith("programs are verified at n = 45, g = 4 and below") for note in found.notes
    )


def test_given_sizes_that_fail_are_told() -> None:
    task = grouped(GROUPS)
    with pytest.raises(OracleError, match=r"into shape \(6,newaxis\)"):
        prepare(replace(task, verify_sizes={"n": 45, "g": 5}), seeds=1)


def test_sizes_that_are_exponents_are_verified_as_asked() -> None:
    """Eleven is small, and so many bits are four million elements."""
    text = """\
#pragma optiml launch flip grid(cdiv(1 << bits, 256)) block(256)
__global__ void flip(const float* x, float* y, int bits, int bit) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 1 << bits) y[i] = x[i ^ 1 << bit];
}
"""

    def inputs(rng: np.random.Generator, bits: int, bit: int) -> dict[str, object]:
        return {"x": rng.standard_normal(1 << bits, np.float32), "bits": bits, "bit": bit}

    def reference(x: np.ndarray, bits: int, bit: int) -> dict[str, np.ndarray]:
        return {"y": x[np.arange(1 << bits) ^ 1 << bit]}

    task = Task(
        text, reference, inputs, sizes={"bits": 12, "bit": 3}, verify_sizes={"bits": 5, "bit": 2},
        outputs={"y": "f4[1 << bits]"},
    )  # fmt: skip
    found = prepare(task, seeds=1)
    assert any("verified at bits = 5, bit = 2" in note for note in found.notes)
