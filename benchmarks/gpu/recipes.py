"""Rows to lanes against CUB and the copy bandwidth, blocked products against cuBLAS, on a GPU.

    python benchmarks/gpu/recipes.py [rows] [products] [--write]

Every point that a rule offers for a naive kernel is compiled, held against CuPy's answer and timed
with events; beside it, in the same process, the naive kernel and the library. The record has all
samples: ``benchmarks/results/recipes.json``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from optiml_magic.kernels.unit import lift_program
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.facts import ArrayFacts, Facts, LaunchFacts
from optiml_magic.model.idea import Idea
from optiml_magic.model.launch import Dim3
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from optiml_magic.source.expressions import Expression
from optiml_magic.source.program import parse_program

RECORD = Path(__file__).parents[1] / "results" / "recipes.json"
_ELEMENTS = 1 << 26
_LENGTHS = (16, 64, 256, 1024, 4096, 16384, 131072, 1048576)
_SIZES = (512, 1024, 2048, 4096)
_ROUNDS = 15
_ROW = """\
#pragma optiml launch rows_kernel grid(cdiv(rows, 256)) block(256)
__global__ void rows_kernel(const float* a, const float* b, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* mine = a + (size_t)row * cols;
    %s
}
"""
_KINDS = {
    "sum": "float s = 0; for (int c = 0; c < cols; ++c) s += mine[c]; out[row] = s;",
    "max": "float m = mine[0]; for (int c = 1; c < cols; ++c) m = fmaxf(m, mine[c]); out[row] = m;",
    "compare": "float m = mine[0]; for (int c = 1; c < cols; ++c) if (mine[c] > m) m = mine[c]; "
    "out[row] = m;",
    "dot": "float s = 0; for (int c = 0; c < cols; ++c) s += mine[c] * b[(size_t)row * cols + c]; "
    "out[row] = s;",
    "variance": "float s = 0; for (int c = 0; c < cols; ++c) s += mine[c]; float mean = s / cols; "
    "float v = 0; for (int c = 0; c < cols; ++c) { float d = mine[c] - mean; v += d * d; } "
    "out[row] = v / cols;",
}
_PRODUCT = """\
#pragma optiml launch product_kernel grid(cdiv(n, 16), cdiv(n, 16), batch) block(16, 16)
__global__ void product_kernel(const float* a, const float* b, float* out, int n, int batch) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    size_t first = (size_t)blockIdx.z * n * n;
    if (row >= n || col >= n) return;
    float s = 0;
    for (int k = 0; k < n; ++k) s += %s;
    out[first + row * n + col] = %s;
}
"""
_PRODUCTS = {
    "plain": ("a[first + row * n + k] * b[first + k * n + col]", "s"),
    "transposed": ("a[first + k * n + row] * b[first + col * n + k]", "s"),
    "scaled": ("a[first + row * n + k] * b[first + k * n + col]",
               "0.5f * s + 2.0f * out[first + row * n + col]"),
    "batched": ("a[first + row * n + k] * b[first + k * n + col]", "s"),
    "symmetric": ("a[first + row * n + k] * a[first + col * n + k]", "s"),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One naive kernel at one size; ``bytes`` move at least, ``operations`` are needed."""

    family: str
    name: str
    text: str
    scalars: Mapping[str, int]
    nbytes: int = 0
    operations: int = 0


def rows() -> Iterator[Case]:
    for kind, body in _KINDS.items():
        for cols in _LENGTHS:
            reads = 2 if kind == "dot" else 1
            scalars = {"rows": _ELEMENTS // cols, "cols": cols}
            nbytes = 4 * (reads * _ELEMENTS + _ELEMENTS // cols)
            yield Case("rows", kind, _ROW % body, scalars, nbytes)


def products() -> Iterator[Case]:
    for kind, parts in _PRODUCTS.items():
        for n in _SIZES:
            batch = 8 if kind == "batched" else 1
            if n * n * batch > 1 << 24:
                continue
            yield Case(
                "products", kind, _PRODUCT % parts, {"n": n, "batch": batch},
                operations=2 * batch * n**3,
            )  # fmt: skip


def programs(case: Case) -> list[tuple[str, str]]:
    """The naive program, and what the rule offers for it."""
    rule: KernelRule = RowToLanes() if case.family == "rows" else BlockedProduct()
    found = [("naive", case.text)]
    for idea in offers(rule, case.text, facts_of(case.text, case.scalars)):
        for point in idea.starts:
            made = idea.make()
            if isinstance(made, Refusal):
                print(f"{case.family} {case.name} {dict(case.scalars)}: {made}", file=sys.stderr)
                break
            said = ", ".join(f"{name} = {value}" for name, value in point.items())
            found.append((f"{idea.title.split(':')[0]}: {said}",
                          parse_program(made).with_values(point).text))  # fmt: skip
    return found


def facts_of(text: str, scalars: Mapping[str, int]) -> Facts:
    """What is known of a program with one launch, bound to aligned floats and these numbers."""
    program = parse_program(text)
    (launch,) = program.launches
    (kernel,) = lift_program(program).kernels
    names = [p.name for p in kernel.parameters if p.type.depth]
    arrays = {n: ArrayFacts(n, "in", "float32", (1,), 4, 256) for n in names}
    grid, block = _three(launch.grid, scalars), _three(launch.block, scalars)
    known = LaunchFacts(launch.kernel or "", launch.line, grid, block, arrays, scalars)
    return Facts((known,), {}, 1e-5, 1e-5, "h200")


def offers(rule: KernelRule, text: str, facts: Facts) -> Iterator[Idea]:
    """The ideas of a rule for a program of one launch; refusals are shown."""
    candidate = Candidate(0, None, Proposal(text, "", ""))
    step = Step(candidate, Evaluation(0, "", Verdict(Outcome.PASSED, "")))
    for idea in rule.propose(parse_program(text), View(step, step, find_facts=lambda: facts)):
        if isinstance(idea, Refusal):
            print(idea, file=sys.stderr)
        else:
            yield idea


def _three(sizes: Sequence[Expression], env: Mapping[str, int]) -> Dim3:
    x, y, z = (*(size.evaluate(env) for size in sizes), 1, 1)[:3]
    return x, y, z


def module(text: str) -> Any:
    import cupy as cp

    program = parse_program(text)
    name = program.launches[0].kernel
    options = ("--std=c++17",)
    return cp.RawModule(code=program.compiled_text(), options=options, name_expressions=[name])


def compiled(text: str) -> None:
    module(text).compile()


def launcher(case: Case, text: str, arrays: Mapping[str, Any]) -> Callable[[], None]:
    import numpy as np

    program = parse_program(text)
    launch = program.launches[0]
    values = {**program.values, **case.scalars}
    grid = tuple(size.evaluate(values) for size in launch.grid)
    block = tuple(size.evaluate(values) for size in launch.block)
    kernel = module(text).get_function(launch.kernel)
    scalars = [np.int32(value) for value in case.scalars.values()]
    arguments = (arrays["a"], arrays["b"], arrays["out"], *scalars)
    return lambda: kernel(grid, block, arguments)


def timed(run: Callable[[], Any], most: float = 0.4) -> list[float]:
    """Seconds of single runs after a warm-up, by events."""
    import cupy as cp

    first, last = cp.cuda.Event(), cp.cuda.Event()
    found: list[float] = []
    began = time.monotonic()
    run()
    cp.cuda.Device().synchronize()
    while len(found) < _ROUNDS and (len(found) < 3 or time.monotonic() - began < most):
        first.record()
        run()
        last.record()
        last.synchronize()
        found.append(cp.cuda.get_elapsed_time(first, last) / 1e3)
    return found


def measured(case: Case, found: list[tuple[str, str]]) -> dict[str, Any]:
    import cupy as cp

    arrays, answer, library = prepared(case)
    samples: dict[str, list[float]] = {}
    wrong = []
    for title, text in found:
        try:
            start = arrays["start"]
            arrays["out"][...] = start if start is not None else cp.nan
            run = launcher(case, text, arrays)
            run()
            worst = float(cp.max(cp.abs(arrays["out"] - answer)) / cp.max(cp.abs(answer)))
            if not worst < 2e-5:
                wrong.append([title, worst])
                continue
            samples[title] = timed(run)
        except Exception as problem:  # noqa: BLE001  # the other points go on
            wrong.append([title, str(problem)[:300]])
    for name, run in library.items():
        samples[name] = timed(run)
    times = {title: median(times) for title, times in samples.items()}
    ours = {t: s for t, s in times.items() if t not in ("naive", *library)}
    best = min(ours, key=lambda t: ours[t]) if ours else ""
    row = {
        "family": case.family, "kernel": case.name, **case.scalars, "samples": samples,
        "wrong": wrong, "best": best,
    }  # fmt: skip
    if best:
        row["speedup"] = times["naive"] / ours[best] if "naive" in times else None
        if case.nbytes:
            row["GB/s"] = case.nbytes / ours[best] / 1e9
        if case.operations:
            row["TFLOP/s"] = case.operations / ours[best] / 1e12
        for name in library:
            row[f"over {name}"] = times[name] / ours[best]
    return row


def prepared(case: Case) -> tuple[dict[str, Any], Any, dict[str, Callable[[], Any]]]:
    import cupy as cp

    draw = cp.random.default_rng(0)
    if case.family == "rows":
        shape = (case.scalars["rows"], case.scalars["cols"])
        a, b = (draw.random(shape, dtype=cp.float32) - 0.5 for _ in range(2))
        # Long sums of signed numbers end near zero, where no error is small beside them.
        a += 1.0 if case.name in ("sum", "dot") else 0.0
        b += 1.0 if case.name == "dot" else 0.0
        by_name: dict[str, Callable[[], Any]] = {
            "sum": lambda: a.sum(axis=1),
            "max": lambda: a.max(axis=1),
            "compare": lambda: a.max(axis=1),
            "dot": lambda: cp.einsum("rc,rc->r", a, b),
            "variance": lambda: a.var(axis=1),
        }
        run = by_name[case.name]
        exactly: dict[str, Callable[[], Any]] = {
            "sum": lambda: a.sum(axis=1, dtype=cp.float64),
            "dot": lambda: (a * b).sum(axis=1, dtype=cp.float64),
            "variance": lambda: a.var(axis=1, dtype=cp.float64),
        }
        exact = exactly.get(case.name, run)()
        target = cp.empty_like(a)
        library = {"CuPy": run, "copy": lambda: cp.copyto(target, a)}
        if case.name in ("sum", "max"):
            library["CUB"] = by_cub(case.name, a)
        out = cp.empty(shape[0], dtype=cp.float32)
        return {"a": a, "b": b, "out": out, "start": None}, exact, library
    n, batch = case.scalars["n"], case.scalars["batch"]
    a, b, c = (draw.random((batch, n, n), dtype=cp.float32) for _ in range(3))
    left, right = a, b
    if case.name == "transposed":
        left, right = a.transpose(0, 2, 1), b.transpose(0, 2, 1)
    if case.name == "symmetric":
        right = a.transpose(0, 2, 1)
    answer = cp.matmul(left.astype(cp.float64), right.astype(cp.float64))
    start = None
    if case.name == "scaled":
        start, answer = c, 0.5 * answer + 2.0 * c
    arrays = {"a": a, "b": b, "out": cp.empty_like(c), "start": start}
    return arrays, answer, {"cuBLAS": lambda: cp.matmul(left, right)}


def by_cub(name: str, a: Any) -> Callable[[], Any]:
    """CUB's segmented reduction, as CuPy calls it where it is its accelerator."""
    from cupy import _core as core

    def run() -> Any:
        before = core.get_reduction_accelerators()
        core.set_reduction_accelerators(["cub"])
        try:
            return a.sum(axis=1) if name == "sum" else a.max(axis=1)
        finally:
            core.set_reduction_accelerators(before)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["rows", "products"])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", action="store_true", help="the programs, without a GPU")
    parser.add_argument("--out", type=Path, default=RECORD)
    given = parser.parse_args()
    cases = [c for what in given.what for c in {"rows": rows, "products": products}[what]()]
    found = [(case, programs(case)) for case in cases]
    if given.list:
        for case, every in found:
            print(case.family, case.name, dict(case.scalars), [title for title, _ in every])
        return
    texts = list(dict.fromkeys(text for _, every in found for _, text in every))
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(14, multiprocessing.cpu_count())) as pool:
        pool.map(compiled, texts, chunksize=1)
    import cupy as cp

    device = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    record: dict[str, Any] = {
        "date": datetime.now(tz=UTC).date().isoformat(),
        "hardware": device, "python": platform.python_version(),
        "cupy": cp.__version__, "driver": cp.cuda.runtime.driverGetVersion(),
        "command": "python benchmarks/gpu/recipes.py " + " ".join(sys.argv[1:]), "rows": [],
    }  # fmt: skip
    for case, every in found:
        row = measured(case, every)
        record["rows"].append(row)
        shown = {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()
                 if k not in ("samples", "family")}  # fmt: skip
        print(shown, flush=True)
        if given.write:
            given.out.write_text(json.dumps(record, indent=1) + "\n")
        cp.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
