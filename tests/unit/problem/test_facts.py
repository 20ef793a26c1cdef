"""What is known of a program's arguments once it is bound."""

from __future__ import annotations

import numpy as np

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.model.facts import Facts
from optiml_magic.model.task import Task
from optiml_magic.preparation import Bound, compiled
from optiml_magic.problem import prepare
from optiml_magic.problem.facts import FactFinder
from optiml_magic.problem.problem import Problem
from optiml_magic.problem.references import References

TEXT = """
#pragma optiml scratch part f4[cdiv(n, 64)]
#pragma optiml launch first grid(cdiv(n, 64)) block(64) args(x, x, part, n)
#pragma optiml launch second grid(1) block(32) args(part, out, n, scale)
__global__ void first(const float* a, const float* b, float* o, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n && threadIdx.x == 0) o[blockIdx.x] = a[i] + b[i];
}
__global__ void second(const float* p, float* out, int n, float scale) {
    if (threadIdx.x == 0) out[0] = scale * p[0];
}
"""


def facts_of(problem: Problem) -> Facts:
    bound = compiled(
        problem.program, problem.interface, NvrtcCompiler(), CompileOptions(), chip("h200")
    )
    assert isinstance(bound, Bound)
    instance = problem.instances[0]
    plan = bound.plan(instance.values, instance.shapes)
    return FactFinder(problem, chip("h200"))(problem.program, plan)


def test_sizes_roles_ranges_and_aliases_of_every_launch():
    x = np.linspace(-2, 3, 130, dtype=np.float32)
    inputs = {"x": x, "n": 130, "scale": np.float32(0.5)}
    problem = prepare(Task(TEXT, inputs=inputs, outputs={"out": "f4[1]"}), seeds=1)
    first, second = facts_of(problem).launches
    assert (first.line, second.line) == (3, 4)
    assert (first.kernel, first.grid, first.block) == ("first", (3, 1, 1), (64, 1, 1))
    assert first.aliased("a", "b")
    assert not first.aliased("a", "o")
    assert (first.arrays["a"].role, first.arrays["a"].shape) == ("in", (130,))
    assert (first.arrays["a"].least, first.arrays["a"].greatest) == (-2.0, 3.0)
    assert (first.arrays["o"].role, first.arrays["o"].nbytes) == ("scratch", 12)
    assert first.scalars == {"n": 130}
    assert second.scalars == {"n": 130, "scale": 0.5}
    assert second.arrays["out"].role == "out"
    assert second.fixed["blockDim.x"] == 32


def test_macros_from_outside_decide_what_the_text_leaves_open():
    text = (
        "#ifdef DOUBLE\n#define REAL double\n#define SQRT sqrt\n"
        "#else\n#define REAL float\n#define SQRT sqrtf\n#endif\n"
        "#pragma optiml launch k grid(cdiv(n, 64)) block(64)\n"
        "__global__ void k(const REAL* x, REAL* out, int n) {\n"
        "    int i = blockIdx.x * 64 + threadIdx.x;\n    if (i < n) out[i] = SQRT(x[i]);\n}\n"
    )
    for defines, size in ({}, 4), ({"DOUBLE": ""}, 8):
        x = np.ones(70, f"f{size}")
        task = Task(text, lambda x: np.sqrt(x), {"x": x, "n": 70}, defines=defines)
        problem = prepare(task, seeds=1)
        facts = facts_of(problem)
        (kernel,) = kernels(problem.program, facts)
        assert facts.defines == defines
        assert {access.element.size for access in kernel.reading.accesses} == {size}
    (kernel,) = kernels(problem.program, None)
    assert kernel.reading.unclear


def test_the_tolerance_is_that_of_the_sizes_that_are_verified(monkeypatch):
    monkeypatch.setattr(References, "time", lambda *_: 170.0)
    text = (
        "#pragma optiml launch k grid(cdiv(n, 64)) block(64)\n"
        "__global__ void k(const float* x, float* out, int n) {\n"
        "    int i = blockIdx.x * 64 + threadIdx.x;\n    if (i < n) out[i] = 2.0f * x[i];\n}\n"
    )
    inputs = {"x": np.linspace(1, 2, 1 << 16, dtype=np.float32), "n": 1 << 16}
    problem = prepare(Task(text, lambda x: 2 * x, inputs), seeds=1, seconds=10.0)
    assert not problem.instances[0].verified
    facts = facts_of(problem)
    assert facts.rtol > 0
    assert facts.launches[0].scalars == {"n": 1 << 16}


def test_whole_numbers_are_exact_where_the_task_has_no_tolerance():
    text = (
        "#pragma optiml launch k grid(cdiv(n, 64)) block(64)\n"
        "__global__ void k(const int* x, int* out, float* half, int n) {\n"
        "    int i = blockIdx.x * 64 + threadIdx.x;\n"
        "    if (i < n) { out[i] = 2 * x[i]; half[i] = 0.5f * x[i]; }\n}\n"
    )
    inputs = {"x": np.arange(100, dtype=np.int32), "n": 100}
    for atol, exact in ((None, ["out"]), (1.0, [])):
        task = Task(text, inputs=inputs, outputs={"out": "i4[n]", "half": "f4[n]"}, atol=atol)
        (launch,) = facts_of(prepare(task, seeds=1)).launches
        assert [name for name, array in launch.arrays.items() if array.exact] == exact


def test_how_many_whole_numbers_in_a_row_are_the_same():
    text = """
#pragma optiml launch k grid(1) block(32)
__global__ void k(const int* a, const int* b, const float* c, int* out) {
    out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x] + (int)c[threadIdx.x];
}
"""
    inputs = {
        "a": np.repeat(np.arange(8, dtype=np.int32), 4), "b": np.arange(32, dtype=np.int32),
        "c": np.zeros(32, np.float32),
    }  # fmt: skip
    problem = prepare(Task(text, inputs=inputs, outputs={"out": "i4[32]"}), seeds=1)
    (launch,) = facts_of(problem).launches
    assert {name: one.alike for name, one in launch.arrays.items()} == {
        "a": 4.0, "b": 1.0, "c": None, "out": None,
    }  # fmt: skip
