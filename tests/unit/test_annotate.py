"""What became of each line of a kernel, joined from its PTX, its cubin and its counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optiml_magic.annotate import annotate
from optiml_magic.compilers import sass
from optiml_magic.compilers.sass import RememberedCode
from optiml_magic.errors import KernelFailed, SourceError
from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once
from optiml_magic.reports import annotation_html, annotation_text
from optiml_magic.reports.annotation import AnnotatedLine, Annotation
from optiml_magic.settings import Settings, resolve
from optiml_magic.testing.kernels import known_task
from tests.present import sampled
from tests.unit.test_reports import EVIL, _Reader

needs_nvdisasm = pytest.mark.skipif(sass.nvdisasm() is None, reason="nvdisasm is not installed")
SCALE = """\
__global__ void scale(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i];
}
"""
X = np.arange(1000, dtype=np.float32)


def settings() -> Settings:
    return resolve({"device": "emulated:h200"})


def scaled(kernel: str = SCALE, **others: Any) -> Task:
    given: dict[str, Any] = {"inputs": {"x": X, "n": 1000}, "reference": lambda x: 3 * x}
    return Task(kernel=kernel, **{**given, **others})


def facts(annotation: Annotation) -> dict[str, str]:
    return dict(annotation.facts)


def line_with(annotation: Annotation, text: str) -> AnnotatedLine:
    (found,) = [line for line in annotation.lines if text in line.source]
    return found


@needs_nvdisasm
def test_nothing_of_code_or_counts_is_lost_between_the_lines(own_caches: Path) -> None:
    task = known_task("matmul_tiled", m=64, n=64, k=64)
    found = annotate(task, settings())
    measured = evaluate_once(task, settings()).evaluation.measurement
    assert measured is not None
    (counters,) = measured.kernels
    instructions = [i for line in found.lines for i in line.instructions]
    assert sum(i.executed or 0 for i in instructions) == counters.warp_instructions
    for line in found.lines:
        counted = next((c for c in counters.lines if c.line == line.number), None)
        executed = sum(i.executed or 0 for i in line.instructions)
        assert executed == (counted.warp_instructions if counted else 0)
        assert (line.counts.instructions if line.counts else 0) == executed
    (cubin,) = (own_caches / "compiled").glob("*/*.cubin")
    code = sass.disassemble(cubin.read_bytes())
    assert code is not None
    machine = Counter(text for i in instructions for text in i.machine)
    assert machine == Counter(i.text for kernel in code.values() for i in kernel)
    assert sum(line.counts.share for line in found.lines if line.counts) == pytest.approx(
        1, abs=0.01
    )


def test_a_strided_store_is_the_hottest_line_by_sectors() -> None:
    found = annotate(known_task("transpose_naive", rows=64, cols=64), settings())
    line = line_with(found, "out[col * rows + row]")
    assert line.counts is not None
    assert line.counts.sector_share == 1.0 == line.heat
    assert line.counts.sectors / line.counts.requests == (4 + 32) / 2
    assert "global store: 32 sectors a request, 4 would do" in line.counts.accesses
    assert any("ld.global" in i.text for i in line.instructions)
    shown = annotation_text.render(found)
    assert f"18 of 4             {line.source}" in shown
    (finding,) = line.findings
    assert finding.tool == "uncoalesced_access"
    assert f"[{finding.severity}] uncoalesced_access: {finding.cause}" in shown
    page = annotation_html.fragment(found)
    assert "\u25c0 uncoalesced access</span></summary>" in page
    assert finding.actions[0].advice in page
    assert not any(f.line for f in found.findings)
    assert facts(found)["counts"] == "emulated, summed over 1 launch"
    assert facts(found)["check"].startswith("passed: 4096 output elements right")


def test_conflicts_and_lanes_of_a_line_are_those_of_the_device() -> None:
    kernel = """\
#pragma optiml launch grid(1) block(64)
__global__ void column(const float* x, float* out, int n) {
    __shared__ float tile[32][32];
    for (int row = threadIdx.x / 32; row < 32; row += 2) tile[row][threadIdx.x % 32] = x[row];
    __syncthreads();
    float first = tile[threadIdx.x % 32][threadIdx.x / 32];
    if (threadIdx.x % 32 < 8) out[threadIdx.x] = first;
}
"""
    found = annotate(
        Task(kernel, inputs={"x": X, "n": 1000}, outputs={"out": "f4[64]"}), settings()
    )
    column = line_with(found, "float first").counts
    assert column is not None
    assert (column.conflicts, column.shared_requests) == (2 * 7, 2)  # of 8 lanes
    assert column.conflict_share == 1.0
    store = line_with(found, "out[threadIdx.x] =").counts
    assert store is not None
    assert store.lanes < 32
    assert facts(found)["check"] == "none: there is no reference to compare with"


@pytest.mark.slow
def test_a_wrong_kernel_is_counted_and_called_wrong() -> None:
    found = annotate(scaled(SCALE.replace("3.0f", "2.0f")), settings())
    assert facts(found)["check"].startswith("wrong: 999 of 1000 elements of `out` are wrong")
    assert line_with(found, "out[i]").counts is not None


def test_a_kernel_that_faults_is_shown_without_counts() -> None:
    launch = "#pragma optiml launch grid(cdiv(n, 256)) block(256)\n"
    found = annotate(scaled(launch + SCALE.replace("if (i < n) ", "")), settings())
    assert facts(found)["check"].startswith("out_of_bounds: line 4: ")
    assert facts(found)["counts"] == "nothing was counted, since the run failed"
    assert not found.counted
    line = line_with(found, "out[i]")
    assert any(i.text.startswith("st.global.f32") for i in line.instructions)
    assert [i.executed for i in line.instructions] == [None] * len(line.instructions)


@pytest.mark.parametrize(
    ("task", "why"),
    sampled(
        [
            (Task(SCALE), "`x`"),
            (Task(SCALE + SCALE.replace("scale", "again")), "there are 2 kernels"),
            (scaled("#pragma optiml require n > 5000\n" + SCALE), "does not hold for these sizes"),
            (scaled(outputs={"out": "f4[n"}, reference=None), "out"),
        ],
        4,
    ),
    ids=sampled(["no inputs", "no launch", "sizes", "outputs"], 4),
)
def test_what_cannot_run_is_compiled_and_the_reason_said(task: Task, why: str) -> None:
    found = annotate(task, settings())
    assert not found.counted
    assert facts(found)["counts"].startswith("nothing was counted, since nothing can be run: ")
    assert why in facts(found)["counts"]
    ptx = [i.text for line in found.lines for i in line.instructions]
    assert any(text.startswith("mul.f32") for text in ptx)
    shown = annotation_text.render(found)
    assert "line  PTX  SASS  source" in shown


@pytest.mark.slow
def test_a_template_without_a_launch_says_that_it_has_no_code() -> None:
    template = "template <int N> " + SCALE.replace("scale", "times").replace("3.0f", "N")
    found = annotate(Task(SCALE + template), settings())
    assert ("note", "times is a template that no launch instantiates") in found.facts
    launched = f"#pragma optiml launch times<4> grid(cdiv(n, 64)) block(64)\n{template}"
    found = annotate(Task(launched), settings())
    assert line_with(found, "out[i]").instructions
    assert "_Z5timesILi4EEvPKfPfi" in found.kernels


@pytest.mark.slow
def test_two_copies_of_a_template_are_told_apart() -> None:
    template = "template <int N> " + SCALE.replace("3.0f", "N")
    launches = "".join(
        f"#pragma optiml launch scale<{n}> grid(cdiv(n, 64)) block(64)\n" for n in (2, 3)
    )
    found = annotate(scaled(launches + template), settings())
    line = line_with(found, "out[i]")
    assert {found.kernels[i.kernel] for i in line.instructions} == {"scale<2>", "scale<3>"}
    page = annotation_html.fragment(found)
    assert "scale&lt;2&gt;:" in page
    assert facts(found)["counts"] == "emulated, summed over 2 launches"


def test_lines_are_counted_as_a_compiler_does() -> None:
    odd = "// one \u2028 two \x0c three \x0b\r\n"
    found = annotate(scaled(odd + SCALE.replace("\n", "\r\n")), settings())
    line = line_with(found, "out[i]")
    assert line.number == 4
    assert any("st.global" in i.text for i in line.instructions)
    assert not any("\r" in line.source for line in found.lines)


def test_what_does_not_compile_is_an_error_on_its_line() -> None:
    with pytest.raises(KernelFailed, match="compile_error") as raised:
        annotate(scaled(SCALE.replace("3.0f", "three")), settings())
    assert raised.value.line == 3
    with pytest.raises(KernelFailed, match="compile_error"):
        annotate(Task(SCALE.replace("3.0f", "three")), settings())
    with pytest.raises(SourceError, match="there is no kernel here"):
        annotate(Task("int three = 3;"), settings())


def test_the_page_is_whole_static_and_escaped() -> None:
    kernel = f"// {EVIL}\n" + SCALE.replace("scale", "s_cale")
    found = annotate(scaled(kernel, name=EVIL), settings())
    found = replace(found, facts=(*found.facts, (EVIL, EVIL)))
    reader = _Reader()
    reader.feed(annotation_html.page([found], EVIL))
    assert reader.open == []
    assert not {"script", "link", "img", "iframe", "style", "a"} & set(reader.tags)
    assert reader.attributes <= {
        "style", "lang", "charset", "http-equiv", "content", "name", "scope",
    }  # fmt: skip
    assert reader.text.count(EVIL) == 6
    assert "\x1b" not in annotation_text.render(replace(found, name="\x1b[2J"))


@pytest.mark.usefixtures("own_caches")
def test_without_nvdisasm_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sass, "nvdisasm", lambda: None)
    found = annotate(scaled(), settings())
    assert facts(found)["code"].endswith("; no machine code, since nvdisasm is not installed")
    assert not found.weighted
    assert not any(i.machine for line in found.lines for i in line.instructions)
    assert line_with(found, "out[i]").counts is not None


@needs_nvdisasm
@pytest.mark.slow
def test_machine_code_is_remembered_and_a_broken_entry_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_caches: Path
) -> None:
    annotate(scaled(), settings())
    (cubin,) = (own_caches / "compiled").glob("*/*.cubin")
    remembered = RememberedCode(tmp_path / "code")
    first = remembered(cubin.read_bytes())
    (entry,) = (tmp_path / "code").iterdir()
    entry.write_text(entry.read_text()[:100])
    assert remembered(cubin.read_bytes()) == first
    monkeypatch.setattr(sass, "disassemble", None)
    assert remembered(cubin.read_bytes()) == first
    assert first is not None
    assert {"LDG.E", "STG.E", "EXIT"} <= {i.opcode for i in first["_Z5scalePKfPfi"]}


@pytest.mark.slow
def test_an_annotation_ends_with_its_text() -> None:
    """Assembly can name any line."""
    far = SCALE.replace("    if", '    asm volatile(".loc 1 999999999 0");\n    if')
    found = annotate(scaled(far), settings())
    assert [line.number for line in found.lines] == list(range(1, far.count("\n") + 1))
    with pytest.raises(SourceError, match="line 1: a line directive"):
        annotate(scaled("#line 999999999\n" + SCALE), settings())


def test_a_launch_that_does_not_run_is_told_and_has_no_counts() -> None:
    launch = "#pragma optiml launch scale grid(cdiv(n, 64)) block(64)"
    other = SCALE.replace("scale(", "odd(").replace("3.0f *", "3 *")
    text = f"{launch} if (n % 2 == 0)\n{launch.replace('scale', 'odd')} else\n{SCALE}{other}"
    found = annotate(scaled(text), settings())
    assert ("note", "the launch on line 2 does not run on these inputs") in found.facts
    ran, idle = line_with(found, "3.0f *"), line_with(found, "3 *")
    assert ran.counts is not None
    assert idle.counts is None
    assert idle.instructions
