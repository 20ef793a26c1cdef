"""What the tools read of a program and of its PTX."""

from __future__ import annotations

from functools import cache

import pytest

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.findings import TOOLS, Subject, diagnose, wanted
from optiml_magic.findings.code import Code, codes
from optiml_magic.model.build import Build
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.measurement import Bound, Measurement, Metric, RuleResult
from optiml_magic.model.vocabulary import VOCABULARY
from optiml_magic.profilers.roofs import published
from optiml_magic.source.program import parse_program

TEXT = """\
__global__ void k(const float* a, const float* b, float* out, int n) {
    float sum = 0.0f;  // a[0] = b[0]
    for (int i = 0; i < n; ++i)
        sum += a[i] * b[i];
    out[n] = a[n];
    out[0] += sum;
    if (a[0] == b[0]) out[1] = 1.0f;
    out[int(a[1])] = b[int(a[0])];
}
"""


def subject(text: str = TEXT, *, measured: Measurement | None = None) -> Subject:
    build = Build("", b"", {}, {}, (), (), "")
    found = measured or Measurement("h200", "events", 1e-5, 1.01, (), (), ())
    h200 = chip("h200")
    return Subject(h200, published(h200), found, parse_program(text), build, LaunchPlan(()))


@cache
def compiled(body: str) -> Code:
    text = f'extern "C" __global__ void k(const float* x, float* out, int n) {{\n{body}\n}}\n'
    build = NvrtcCompiler().compile(text, ("k",), chip("h200"), CompileOptions())
    assert isinstance(build, Build), build
    return codes(build.ptx)["k"]


@pytest.mark.parametrize(
    ("line", "access", "name"),
    [
        (4, "load", ""),
        (5, "load", "a"),
        (5, "store", "out"),
        (6, "load", "out"),
        (2, "load", ""),
        (8, "store", "out"),
        (99, "load", ""),
    ],
)
def test_an_array_is_named_where_the_line_leaves_no_doubt(line, access, name) -> None:
    assert subject().lines.array(line, access) == name


def test_every_array_of_a_line_is_known() -> None:
    assert subject().lines.arrays(4, "load") == ("a", "b")
    assert subject().lines.arrays(7, "load") == ("a", "b")  # a comparison assigns nothing
    assert subject().lines.arrays(7, "store") == ("out",)


@pytest.mark.parametrize(("line", "name"), [(4, "sum"), (5, "out"), (3, ""), (9, "")])
def test_a_line_assigns_to_a_variable(line, name) -> None:
    assert subject().lines.assigned(line) == name


def test_a_chain_of_products_takes_four_cycles_each() -> None:
    one = compiled(
        "float y = 0, v = x[0];\nfor (int i = 0; i < 1024; ++i)\ny = y * v + 1;\nout[0] = y;"
    )
    (loop,) = one.loops
    assert loop.chain is not None
    products = sum(1 for i in loop.instructions if i.base == "fma")
    assert products >= 1
    assert loop.chain.cycles == 4 * products
    assert loop.chain.slowest.line == 4


def test_independent_chains_are_no_longer_than_one() -> None:
    two = compiled(
        "float y = 0, z = 1, v = x[0];\n#pragma unroll 1\nfor (int i = 0; i < 1024; ++i) {\n"
        "y = y * v + 1;\nz = z * v + 2;\n}\nout[0] = y + z;"
    )
    (loop,) = two.loops
    assert loop.chain is not None
    assert loop.chain.cycles <= 5  # that of the counter may be the longer one
    assert sum(1 for i in loop.instructions if i.base == "fma") == 2


def test_a_walk_through_memory_is_a_chain_of_loads() -> None:
    walk = compiled(
        "int at = 0;\n#pragma unroll 1\nfor (int i = 0; i < n; ++i)\nat = ((const int*)x)[at];\n"
        "out[0] = at;"
    )
    (loop,) = walk.loops
    assert loop.chain is not None
    assert loop.chain.cycles >= 500
    assert loop.chain.slowest.base == "ld"


def test_only_innermost_loops_count() -> None:
    nested = compiled(
        "float y = 0;\n#pragma unroll 1\nfor (int i = 0; i < n; ++i)\n#pragma unroll 1\n"
        "for (int j = 0; j < i; ++j)\ny += x[j];\nout[0] = y;"
    )
    (loop,) = nested.loops
    assert any(i.base == "ld" for i in loop.instructions)
    whole = [i for i in nested.instructions if i.base == "bra"]
    assert len(whole) > 1


def test_pressure_is_where_most_values_are_alive() -> None:
    many = compiled(
        "float v[40];\n#pragma unroll\nfor (int i = 0; i < 40; ++i) v[i] = x[i];\n__syncthreads();\n"
        "float s = 0;\n#pragma unroll\nfor (int i = 0; i < 40; ++i) s += v[i];\n"
        "#pragma unroll\nfor (int i = 0; i < 40; ++i) out[i] = v[i] * s;"
    )
    line, alive = many.pressure
    assert 40 <= alive <= 60
    assert line in (4, 5, 8, 10)


def test_ptx_that_cannot_be_read_is_no_code() -> None:
    assert codes("this is no PTX") == {}


def test_what_the_tools_want_of_ncu_is_known_or_ncus_own() -> None:
    for name in wanted(TOOLS):
        entry = VOCABULARY.get(name)
        assert entry is None or "ncu" in entry.sources, name
    assert len(wanted(TOOLS)) == len(set(wanted(TOOLS)))


def test_without_any_metric_every_tool_is_silent() -> None:
    for kind in ("memory", "compute", "latency", "launch", "mixed"):
        assert diagnose([t for t in TOOLS if t.name != "spills"], kind, subject()) == ()


def test_ncus_rules_become_findings_the_most_promising_first() -> None:
    def rule(name: str, speedup: float | None, scope: str = "global", kind: str = "optimization"):
        return RuleResult(name, f"{name} title", "It waits. Do less.", kind, "k", speedup, scope, 3)

    rules = (
        rule("Small", 1.02), rule("Local", 3.0, "local"), rule("Big", 1.8), rule("Good", 1.2),
        rule("Fine", 2.0, kind="ok"), rule("Silent", None), rule("Last", 1.15),
    )  # fmt: skip
    measured = Measurement("h200", "events", 1e-5, 1.01, (), (), (), rules=rules)
    found = diagnose(TOOLS[-1:], "memory", subject(measured=measured))
    assert [f.evidence[0].metric.split()[0] for f in found] == ["Big", "Good", "Last"]
    assert found[0].severity == "critical"
    assert found[0].gain == (1.0, 1.8)
    assert found[0].line == 3
    assert found[0].cause == "Big title: It waits."
    assert found[0].actions[0].advice == "Do less."


def test_the_share_of_memory_on_a_card_is_of_the_measured_roof() -> None:
    moved = Metric("dram__bytes.sum", 2.4e7, "byte", "ncu")
    measured = Measurement("h200", "events", 1e-5, 1.01, (moved,), (Bound("measured", 1e-5),), ())
    found = subject(measured=measured)
    assert found.share("dram") == pytest.approx(2.4e12 / found.roofs.memory)
    assert found.share("fp64") is None
    assert found.part("dram") == 1.0
