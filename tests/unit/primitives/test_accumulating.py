"""Elements that a loop loads and stores in every round, in registers meanwhile."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.accumulating import in_register
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

HEAD = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* x, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
"""
ARRAYS = {"a": Array("f4", ("n", "m")), "x": Array("f4", ("m",)), "out": Array("f4", ("n",))}


def program(body: str) -> str:
    return f"{HEAD}    {body}\n}}\n"


@pytest.mark.parametrize(
    ("body", "now"),
    sampled([
        ("out[i] = 0;\n    for (int j = 0; j < m; j++) out[i] += a[i * m + j] * x[j];",
         ("float out_value = 0;\n"
         "    for (int j = 0; j < m; j++) out_value += a[i * m + j] * x[j];\n"
         "    out[i] = out_value;")),
        ("for (int j = 0; j < m; j++) out[i] += a[i * m + j];",
         ("if (0 < m) {\n        float out_value = out[i];\n"
         "        for (int j = 0; j < m; j++) out_value += a[i * m + j];\n"
         "        out[i] = out_value;\n    }")),
        ("for (int j = 0; j < 3; j++) out[i] = fmaxf(out[i], x[i % m] * j);",
         ("float out_value = out[i];\n"
         "    for (int j = 0; j < 3; j++) out_value = fmaxf(out_value, x[i % m] * j);\n"
         "    out[i] = out_value;")),
        ("for (int j = 2; j < m; j++) if (x[j] > 0) out[i] += x[j];\n    out[i] *= 0.5f;",
         ("float out_value = out[i];\n"
         "    for (int j = 2; j < m; j++) if (x[j] > 0) out_value += x[j];\n"
         "    out[i] = out_value;\n    out[i] *= 0.5f;")),
        ("float* o = out + i;\n    *o = x[0];\n    for (int j = 1; j < m; j++) *o -= x[j];",
         ("float* o = out + i;\n    float out_value = x[0];\n"
         "    for (int j = 1; j < m; j++) out_value -= x[j];\n    *o = out_value;")),
        (("out[i] = 1;\n    for (int j = 0; j < m; j++)\n"
         "        for (int l = j; l < m; l++) out[i] += x[j] * x[l];"),
         ("float out_value = 1;\n    for (int j = 0; j < m; j++)\n"
         "        for (int l = j; l < m; l++) out_value += x[j] * x[l];\n    out[i] = out_value;")),
        (("int j = 0;\n    while (j < m) {\n        out[i] += x[j];\n"
         "        if (x[j] < -1.0f) break;\n        ++j;\n    }"),
         "if (0 < m) {\n        float out_value = out[i];"),
    ], 3),
)  # fmt: skip
def test_kept(body: str, now: str) -> None:
    text = program(body)
    after = written(in_register(kernel_of(text)))
    assert now in after
    assert end_of(text, after, ARRAYS, {"n": 70, "m": 7}, {"n": 3, "m": 1}) == "same"


def test_an_element_of_shared_memory_is_kept_up_to_the_next_barrier() -> None:
    text = program(
        "__shared__ float own[64];\n    int t = threadIdx.x;\n    own[t] = 1;\n"
        "    for (int j = 0; j < m; j++) own[t] += a[i * m + j];\n    __syncthreads();\n"
        "    out[i] = own[t] + own[t ^ 1] * (i + 1 < n && t % 2 == 0);"
    )
    after = written(in_register(kernel_of(text)))
    assert "own_value += a[i * m + j]" in after
    assert end_of(text, after, ARRAYS, {"n": 64, "m": 7}, {"n": 64, "m": 1}) == "same"
    waiting = text.replace("own[t] += a[i * m + j];", "{ own[t] += x[j]; __syncthreads(); }")
    assert "wait for each other in the loop" in refused(in_register(kernel_of(waiting)))


def test_a_loop_for_each_of_several_elements() -> None:
    text = program(
        "for (int r = 0; r < 2; r++) {\n        out[2 * i + r] = 0;\n"
        "        for (int j = 0; j < m; j++) out[2 * i + r] += x[j] * r;\n    }"
    )
    after = written(in_register(kernel_of(text)))
    assert "float out_value = 0;\n        for" in after
    arrays = ARRAYS | {"out": Array("f4", ("2 * n",))}
    assert end_of(text, after, arrays, {"n": 70, "m": 7}, {"n": 3, "m": 1}) == "same"


@pytest.mark.parametrize(
    ("head", "at"),
    [
        ("", "i"),
        ("int t = i;\n    for (; t < n; t += 64 * gridDim.x)", "t"),
        ("int at = (int)x[0];\n    at = at * n + i;\n    if (at == i)", "at"),
    ],
)
def test_members_of_one_structure_are_kept_apart(head: str, at: str) -> None:
    text = "struct P { float u, v; };\n" + program(
        f"{head} for (int j = 0; j < m; j++) {{ float w = x[j] * q[{at}].u;\n"
        f"    out[{at}].u += w; out[{at}].v -= w * w; }}"
    ).replace("const float* a", "const P* q").replace("float* out", "P* out")
    after = written(in_register(kernel_of(text)))
    assert "out_value += w; out_value_2 -= w * w;" in after
    pair = Array("u:f4 v:f4", ("n",))
    arrays = {"q": pair, "x": Array("f4", ("m",), "zeros"), "out": pair}
    assert end_of(text, after, arrays, {"n": 70, "m": 7}, {"n": 3, "m": 1}) == "same"


@pytest.mark.parametrize(("step", "kept"), [(2, True), (1, False)])
def test_rows_of_a_few_numbers_have_elements_apart(step: int, kept: bool) -> None:
    text = program(
        f"for (int j = 0; j < m; j++) {{ out[{step} * i] += x[j]; out[{step} * i + 1] -= x[j]; }}"
    )
    made = in_register(kernel_of(text))
    if not kept:
        assert "the loop touches other elements" in refused(made)
        return
    after = written(made)
    assert "out_value += x[j]; out_value_2 -= x[j];" in after
    arrays = ARRAYS | {"out": Array("f4", ("2 * n",))}
    assert end_of(text, after, arrays, {"n": 70, "m": 7}, {"n": 3, "m": 1}) == "same"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("for (int j = 1; j < m; j++) out[i] += out[i - j];",
         "the loop touches other elements of the array, line 5"),
        ("for (int j = 1; j < m; j++) out[i + j] = x[j];", "no loop stores to one element"),
        ("for (int j = 1; j < m; j++) if (x[j] > 0) out[i] += x[j];",
         "whether a round stores to the element is not known, line 5"),
        ("for (int j = 0; j < m; j++) { out[i] += x[j]; if (out[i] > 9) return; }",
         "the kernel may end in the loop, line 5"),
        ("for (int j = 0; j < m; j++) { out[i] += x[j]; __syncthreads(); }",
         "threads wait for each other in the loop, line 5"),
        ("for (int j = 0; j < m; j++) { out[i] += x[j]; atomicAdd(&out[n + j], 1.0f); }",
         "the loop touches other elements of the array, line 5"),
        ("for (int j = 0; j < m; j++) { out[i] += x[j]; __threadfence(); }",
         "threads tell each other something in the loop, line 5"),
        ("for (int j = 0; j < m; j++) { int at = i; out[at] += x[j]; }",
         "where the element is changes in the loop, line 5"),
        ("out[i] = 0; for (int j = 0; j < m; j++) out[(int)x[0]] += x[j];",
         "its rounds touch different elements, line 5"),
    ],
)  # fmt: skip
def test_refused(body: str, why: str) -> None:
    assert why in refused(in_register(kernel_of(program(body))))


@pytest.mark.parametrize(
    ("loops", "kept"),
    [
        ("for (int l = 0; l < r; l++) out[i * m + r] -= a[r * m + l] * out[i * m + l];", True),
        ("for (int l = r + 1; l < m; l++) out[i * m + r] -= a[l] * out[i * m + l];", True),
        ("for (int l = r; l < m; l++) out[i * m + r] -= a[l] * out[i * m + l];", False),
        ("for (int l = 0; l < r; l++) out[i * m + r] -= a[l] * out[i * m + r - l];", False),
        ("for (int l = 0; l < r; l++) out[i * m + r] -= a[l] * out[i * m + m - 1 - l];", False),
    ],
)
def test_elements_before_and_behind_it_are_others(loops: str, kept: bool) -> None:
    text = program(f"for (int r = m - 1; r >= 0; r--) {{ {loops} out[i * m + r] *= 0.5f; }}")
    found = in_register(kernel_of(text))
    if not kept:
        assert "the loop touches other elements of the array" in refused(found)
        return
    arrays = {
        "a": Array("f4", ("m * m",)),
        "x": Array("f4", ("m",)),
        "out": Array("f4", ("n * m",)),
    }
    after = written(found)
    assert "out_value -=" in after
    same = end_of(text, after, arrays, {"n": 70, "m": 5}, {"n": 3, "m": 1}, rounds=True)
    assert same == "same"


@pytest.mark.parametrize(
    ("loops", "kept"),
    [
        ("for (int l = 0; l < r; l++) out[r * n + i] -= a[r * m + l] * out[l * n + i];", True),
        ("for (int l = r + 1; l < m; l++) out[r * n + i] -= a[l] * out[l * n + i];", True),
        ("for (int l = m - 1; l > r; l--) out[i + n * r] -= a[l] * out[n * l + i];", True),
        ("for (int l = r; l < m; l++) out[r * n + i] -= a[l] * out[l * n + i];", False),
        ("for (int l = 0; l < m; l++) out[r * n + i] -= a[l] * out[l * n + i];", False),
        ("for (int l = 0; l < r; l++) out[r * n + i] -= a[l] * out[l * n + i + 1];", False),
        ("for (int l = 0; l < r; l++) out[r * n + i] -= a[l] * out[l * n];", False),
        ("for (int l = 0; l < r; l++) out[r * n + i] -= a[l] * out[l * m + i];", False),
        ("for (int l = 0; l < r; l++) out[r * n + i] -= a[l] * out[(r - l) * n + i];", False),
        ("for (int l = 0; l < r; l++) out[r * n + i] -= a[l] * out[l * n + n - 1 - i];", False),
        ("for (int l = 0; l < r; l++) out[r * n + 2 * i] -= a[l] * out[l * n + 2 * i];", False),
        ("for (int l = 0; l < r; l++) out[r * 64 + i] -= a[l] * out[l * 64 + i];", False),
    ],
)
def test_elements_above_and_below_it_are_others(loops: str, kept: bool) -> None:
    text = program(f"for (int r = m - 1; r >= 0; r--) {{ {loops} out[r * n + i] *= 0.5f; }}")
    found = in_register(kernel_of(text))
    if not kept:
        assert "the loop touches other elements of the array" in refused(found)
        return
    arrays = {
        "a": Array("f4", ("m * m",)),
        "x": Array("f4", ("m",)),
        "out": Array("f4", ("n * m",)),
    }
    after = written(found)
    assert "out_value -=" in after
    same = end_of(text, after, arrays, {"n": 70, "m": 5}, {"n": 3, "m": 1}, rounds=True)
    assert same == "same"


@pytest.mark.parametrize("guard", ["i >= n + 1", "i >= m", "false"])
def test_a_column_that_the_guard_does_not_keep_apart_is_no_column(guard: str) -> None:
    body = "for (int r = 0; r < m; r++) "
    body += "for (int l = 0; l < r; l++) out[r * n + i] -= a[l] * out[l * n + i];"
    text = program(body).replace("i >= n", guard)
    assert "the loop touches other elements of the array" in refused(in_register(kernel_of(text)))


def test_a_width_that_changes_is_no_width() -> None:
    body = "n /= 2; for (int r = 0; r < m; r++) "
    body += "for (int l = 0; l < r; l++) out[r * n + i] -= a[l] * out[l * n + i];"
    found = refused(in_register(kernel_of(program(body))))
    assert "the loop touches other elements of the array" in found
