"""Structs, by value and in arrays: laid out as the compiler says, or an error that says how."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optiml_magic.errors import BindingError
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import evaluate_once, optimize, run_once
from optiml_magic.problem import prepare
from optiml_magic.settings import resolve
from tests.present import sampled

MOVE = """\
struct Particle { char alive; float x; double v; int id[2]; };
struct Step { float dt; double drag; };
#pragma optiml launch move grid(cdiv(n, 64)) block(64)
__global__ void move(const Particle* p, Particle* out, Step s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle q = p[i];
    q.x += s.dt * (float)q.v;
    q.v *= s.drag;
    q.id[1] = q.id[0] + 1;
    out[i] = q;
}
"""
FIELDS = [("alive", "i1"), ("x", "f4"), ("v", "f8"), ("id", "i4", 2)]
PARTICLE = np.dtype(FIELDS, align=True)
STEP = np.dtype([("dt", "f4"), ("drag", "f8")], align=True)


def particles(dtype: np.dtype = PARTICLE) -> np.ndarray:
    rng = np.random.default_rng(3)
    p = np.zeros(200, dtype)
    p["alive"], p["id"] = 1, rng.integers(0, 99, (200, 2))
    p["x"], p["v"] = rng.uniform(-1, 1, (2, 200))
    return p


def moved(p: np.ndarray, s: np.void) -> np.ndarray:
    q = p.copy()
    q["x"] += s["dt"] * p["v"]
    q["v"] *= s["drag"]
    q["id"][:, 1] = p["id"][:, 0] + 1
    return q


def task(text: str = MOVE, **inputs: object) -> Task:
    step = np.array([(0.5, 0.75)], STEP)[0]
    given = {"p": particles(), "s": step, "n": 200, **inputs}
    return Task(text, reference=moved, inputs=given)


@pytest.mark.parametrize("macros", ["", "".join(f"#define {c} 8\n" for c in "ABCFIJKLMNRST")])
def test_structs_by_value_and_in_arrays(macros: str) -> None:
    verdict = evaluate_once(
        task(macros + MOVE), resolve({"device": "emulated"}), counters=False
    ).evaluation.verdict
    assert verdict.passed, verdict
    assert verdict.checks[0].elements == 200


@pytest.mark.parametrize(
    ("change", "wanted"),
    sampled(
        [
            (("q.v *= s.drag;", ""), "wanted (1, "),
            (("q.id[0] + 1", "q.id[0]"), "wanted (1, "),
            (("out[i] = q;", "out[i].x = q.x;"), "of 200 elements of `out` are wrong"),
            (("q.x += s.dt", "q.x += 1.001f * s.dt"), "elements of `out` are wrong"),
        ],
        3,
    ),
)
def test_one_wrong_field_makes_an_element_wrong(change: tuple[str, str], wanted: str) -> None:
    verdict = evaluate_once(
        task(), resolve({"device": "emulated"}), program=MOVE.replace(*change), counters=False
    ).evaluation.verdict
    assert verdict.outcome is Outcome.WRONG, verdict
    assert wanted in verdict.summary


@pytest.mark.slow
def test_without_a_reference_the_kernel_is_the_oracle_of_its_structs() -> None:
    alone = Task(MOVE, inputs={**task().inputs, "out": particles()})
    settings = resolve({"device": "emulated"})
    assert evaluate_once(alone, settings, counters=False).evaluation.verdict.passed
    lazy = MOVE.replace("q.v *= s.drag;", "")
    found = evaluate_once(alone, settings, program=lazy, counters=False).evaluation.verdict
    assert found.outcome is Outcome.WRONG


@pytest.mark.slow
def test_a_result_on_structs_can_be_called() -> None:
    result = optimize(task(), resolve({"device": "emulated", "budget": 2}))
    p, s = particles(), np.array([(0.25, 0.5)], STEP)[0]
    out = result.best(p, s, 200)
    assert out.dtype == PARTICLE
    assert np.allclose(out["x"], moved(p, s)["x"], rtol=1e-6)
    with pytest.raises(BindingError, match="which the task gave as struct"):
        result.best(p, s["dt"], 200)


REORDERED = np.dtype([("x", "f4"), ("alive", "i1"), ("v", "f8"), ("id", "i4", 2)], align=True)
RENAMED = np.dtype([("live", "i1"), *FIELDS[1:]], align=True)
FLOATING = np.dtype([*FIELDS[:3], ("id", "f4", 2)], align=True)
SHORT = np.dtype([("alive", "i1"), ("x", "i4"), *FIELDS[2:]], align=True)


@pytest.mark.parametrize(
    ("dtype", "message"),
    sampled(
        [
            (np.dtype(FIELDS), "24 bytes for the compiler, and 21 in the array"),
            (REORDERED, "`x` begins at byte 4 for the compiler, and at 0 in the array"),
            (RENAMED, 'has no member "live"'),
            (SHORT, "`x` is a floating point number in the code"),
        ],
        2,
    ),
)
def test_a_layout_that_differs_is_an_error_and_never_garbage(dtype: np.dtype, message: str) -> None:
    given = particles(PARTICLE)
    p = np.zeros(200, dtype)
    for old, new in zip(PARTICLE.names, PARTICLE.names, strict=True):
        if new in dtype.names:
            p[new] = given[old]
    alone = Task(MOVE, inputs={**task().inputs, "p": p, "out": p})
    verdict = evaluate_once(
        alone, resolve({"device": "emulated"}), counters=False
    ).evaluation.verdict
    assert verdict.outcome is Outcome.INVALID
    assert message in verdict.summary
    assert "its struct is `Particle`" in verdict.summary
    assert "align=True" in verdict.fix


def test_the_layout_of_a_struct_by_value_is_checked_too() -> None:
    packed = np.array([(0.5, 0.75)], np.dtype([("dt", "f4"), ("drag", "f8")]))[0]
    verdict = evaluate_once(
        task(s=packed), resolve({"device": "emulated"}), counters=False
    ).evaluation.verdict
    assert verdict.outcome is Outcome.INVALID
    assert "`Step`: it has 16 bytes for the compiler, and 12 in the array" in verdict.summary
    assert 'np.dtype([("dt", "float32"), ("drag", "float64")], align=True)' in verdict.fix
    assert verdict.line == 4


def test_members_that_are_no_numbers_are_refused() -> None:
    for odd in (">f4", "O"):
        p = np.zeros(4, [("alive", "i1"), ("x", odd)])
        with pytest.raises(BindingError, match="a member that is not a number"):
            prepare(task(p=p), seeds=1)


def test_namespaces_templates_and_anonymous_structs_are_followed() -> None:
    text = """\
namespace geo { typedef struct { float x, y; } Point; }
#pragma optiml launch geo::flip<geo::Point> grid(1) block(64)
namespace geo {
template <typename T> __global__ void flip(const T* p, T* out, int n) {
    int i = threadIdx.x;
    if (i < n) { T q; q.x = p[i].y; q.y = p[i].x; out[i] = q; }
}
}
"""
    p = np.zeros(40, [("x", "f4"), ("y", "f4")])
    p["x"], p["y"] = np.arange(40), -np.arange(40)
    found = run_once(
        Task(text, inputs={"p": p, "n": 40, "out": p}), resolve({"device": "emulated"})
    )
    assert np.array_equal(found["out"]["x"], p["y"])
    assert np.array_equal(found["out"]["y"], p["x"])


HEAD = "#pragma optiml launch k grid(1) block(1)\n"


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("__global__ void k(float** x, float* out) { out[0] = x[0][0]; }", "pointer to pointers", 2),
        ("__global__ void k(float x[][4], float* out) { float (*y)[4] = x; out[0] = y[0][0]; }", "or to rows", 2),
        ("__global__ void k(const float& x, float* out) { out[0] = x; }", "`x` is a reference", 2),
        ("__global__ void k(cudaTextureObject_t x, float* out) { out[0] = 1; }", "a texture", 2),
        ("struct View { int n;\n float* p; };\n__global__ void k(View x, float* out) { out[0] = x.p[0]; }",
         "x_n = NUMBER; `View x` of `k` is passed as x_n, x_p", 4),
        ("struct View { int n[2];\n float* p; };\n__global__ void k(View x, float* out) { out[0] = x.p[0]; }",
         "the member `p` of `View` is a pointer", 3),
        ("__global__ void k(const void* x, float* out) { out[0] = 1; }", "`void`, for which there is no", 2),
        ("struct P { float x; };\n__global__ void k(const P* x, P* out) { out[0] = x[0]; }",
         'np.dtype([("x", "float32")], align=True)', 3),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_one_sentence_with_its_line(
    text: str, message: str, line: int
) -> None:
    with pytest.raises(BindingError) as raised:
        prepare(Task(HEAD + text, inputs={"x": np.ones(4, np.float32)}), seeds=1)
    assert message in str(raised.value)
    assert raised.value.line == line
    assert raised.value.fix


MATRIX = """\
typedef struct { int width; int height; float* elements; } Matrix;
#define BLOCK_SIZE 16
__global__ void MatMulKernel(const Matrix, const Matrix, Matrix);
#pragma optiml launch MatMulKernel grid(N / BLOCK_SIZE, a_height / BLOCK_SIZE) block(BLOCK_SIZE, BLOCK_SIZE)
"""
PLAIN = """\
__global__ void MatMulKernel(Matrix a, Matrix b, Matrix c)
{
    float Cvalue = 0;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    for (int e = 0; e < a.width; ++e)
        Cvalue += a.elements[row * a.width + e] * b.elements[e * b.width + col];
    c.elements[row * c.width + col] = Cvalue;
}
"""
SHARED = """\
__device__ float GetElement(const Matrix m, int row, int col)
{
    return m.elements[row * m.width + col];
}
__device__ void SetElement(Matrix m, int row, int col, float value)
{
    m.elements[row * m.width + col] = value;
}
__device__ Matrix GetSubMatrix(Matrix m, int row, int col)
{
    Matrix sub;
    sub.width = m.width;
    sub.height = BLOCK_SIZE;
    sub.elements = &m.elements[m.width * BLOCK_SIZE * row + BLOCK_SIZE * col];
    return sub;
}
__global__ void MatMulKernel(Matrix a, Matrix b, Matrix c)
{
    Matrix csub = GetSubMatrix(c, blockIdx.y, blockIdx.x);
    float Cvalue = 0;
    int row = threadIdx.y, col = threadIdx.x;
    for (int m = 0; m < (a.width / BLOCK_SIZE); ++m) {
        Matrix asub = GetSubMatrix(a, blockIdx.y, m);
        Matrix bsub = GetSubMatrix(b, m, blockIdx.x);
        __shared__ float As[BLOCK_SIZE][BLOCK_SIZE], Bs[BLOCK_SIZE][BLOCK_SIZE];
        As[row][col] = GetElement(asub, row, col);
        Bs[row][col] = GetElement(bsub, row, col);
        __syncthreads();
        for (int e = 0; e < BLOCK_SIZE; ++e) Cvalue += As[row][e] * Bs[e][col];
        __syncthreads();
    }
    SetElement(csub, row, col, Cvalue);
}
"""


@pytest.mark.parametrize("kernel", [PLAIN, SHARED])
def test_matrices_by_value_become_tiles_though_the_launch_alone_knows_how_wide_they_are(
    kernel: str,
) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.random((64, 48), np.float32), rng.random((48, 96), np.float32)
    given = {"a_elements": a, "b_elements": b, "a_width": 48, "a_height": 64, "b_width": 96,
             "b_height": 48, "c_width": 96, "c_height": 64, "N": 96}  # fmt: skip
    known = Task(
        MATRIX + kernel,
        reference=lambda a_elements, b_elements: {"c_elements": a_elements @ b_elements},
        inputs=given,
        outputs={"c_elements": "f4[64, 96]"},
    )
    result = optimize(known, resolve({"device": "emulated", "llm": "none", "budget": 2}))
    assert next(n for n in result.summary.notes if "is passed as" in n).startswith("`Matrix a`")
    assert "blocked_product" in {s.candidate.proposal.proposer for s in result.trajectory.steps}
    assert all(s.evaluation.verdict.passed for s in result.trajectory.steps)


def test_a_struct_that_is_only_stored_is_laid_out_as_the_text_says() -> None:
    text = """\
struct Hit { short motif; float2 place; };
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, Hit* hits, bool* large, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    hits[i].motif = (short)i;
    hits[i].place = make_float2(x[i], 2.0f * x[i]);
    large[i] = x[i] > 0.5f;
}
"""
    wanted = np.dtype([("motif", "i2"), ("place", "f8", 2)])

    def reference(x: np.ndarray, n: int) -> dict[str, np.ndarray]:
        hits = np.zeros(n, wanted)
        hits["motif"], hits["place"] = np.arange(n), np.stack([x, 2.0 * x], axis=1)
        return {"hits": hits, "large": x > 0.5}

    x = np.random.default_rng(0).random(300, dtype=np.float32)
    one = Task(text, reference, {"x": x, "n": 300}, outputs={"large": "?[n]"})
    verdict = evaluate_once(one, resolve({"device": "emulated"}), counters=False).evaluation.verdict
    assert verdict.passed, verdict


def test_a_double_that_is_off_as_floats_are_says_so() -> None:
    text = """\
#pragma optiml launch k grid(1) block(64)
__global__ void k(const float* x, double* out, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = x[i] * 1.1f;
}
"""
    x = np.random.default_rng(0).random(64, dtype=np.float32)
    one = Task(text, lambda x, n: {"out": x.astype(np.float64) * 1.1}, {"x": x, "n": 64})
    settings = resolve({"device": "emulated"})
    verdict = evaluate_once(one, settings, counters=False).evaluation.verdict
    assert verdict.outcome is Outcome.WRONG
    assert "give rtol=1e-05" in verdict.summary
    again = evaluate_once(replace(one, rtol=1e-5), settings, counters=False).evaluation.verdict
    assert again.passed, again
