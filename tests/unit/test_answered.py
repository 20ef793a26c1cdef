"""The finding that an edit answered is one whose subject it changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.answered import answered, launches_at
from optiml_magic.model.finding import Answered, Evidence, Finding
from optiml_magic.source.program import parse_program

TEXT = """\
#pragma optiml launch first grid(n) block(256)
#pragma optiml launch second grid(n) block(256)
__device__ float twice(float x) { return 2 * x; }
__global__ void first(const float* a, float* out, int n) {
    int i = blockIdx.x;
    for (int j = 0; j < n; j++) {
        out[i] += a[i * n + j];
    }
    out[i] = twice(out[i]);
}
__global__ void second(float* out, int n) {
    int i = blockIdx.x; // the row
    out[i * n] = 1.0f;
    printf("done // %d", i);
}
"""


def finding(line: int, tool: str = "far") -> Finding:
    evidence = (Evidence("sectors", 32.0, 6.0, "sector", "emulated", line),)
    return Finding(tool, "warning", f"far apart in {line}", evidence, (), (1.0, 2.0))


LOOP, END, OTHER, WHOLE = finding(7), finding(9), finding(13), finding(0)


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (("out[i] += a[i * n + j]", "out[i] += a[j * n + i]"), 7),
        (("twice(out[i])", "out[i] * 2"), 9),
        (("int j = 0; j < n; j++", "int j = threadIdx.x; j < n; j += 32"), 7),  # around it
        (("out[i * n] = 1.0f", "out[i] = 1.0f"), 13),
        (("launch second grid(n)", "launch second grid(cdiv(n, 2))"), 13),
        (("launch first grid(n)", "launch first grid(cdiv(n, 2))"), 7),
        (("done // %d", "done %d"), 13),
        (("    out[i * n] = 1.0f;\n", ""), 13),
        (("    out[i * n]", "    if (i < n)\n    out[i * n]"), 13),
        (("return 2 * x", "return x + x"), None),
        (("// the row", "// the column"), None),
        (("    out[i * n]", "        out[i *  n]"), None),
        (("__device__", "\n// a helper\n\n__device__"), None),
        (("__device__", "#define ROWS 4\n__device__"), None),
    ],
)
def test_it_is_the_one_whose_line_or_kernel_the_edit_changed(
    edit: tuple[str, str], line: int | None
) -> None:
    assert edit[0] in TEXT
    after = TEXT.replace(*edit)
    found = answered("far", [LOOP, END, OTHER], TEXT, after)
    wanted = None if line is None else Answered("far", line, f"far apart in {line}")
    assert found == wanted
    assert answered("near", [LOOP, END, OTHER], TEXT, after) is None
    assert answered("", [LOOP], TEXT, after) is None


def test_one_about_no_line_is_answered_by_any_edit_of_code_and_comes_after_lines() -> None:
    edited = TEXT.replace("1.0f", "2.0f")
    assert answered("far", [WHOLE], TEXT, edited) == Answered("far", 0, "far apart in 0")
    assert answered("far", [WHOLE, OTHER], TEXT, edited) == Answered("far", 13, "far apart in 13")
    assert answered("far", [WHOLE], TEXT, TEXT.replace("// the row", "")) is None


def test_the_only_kernel_of_a_launch_without_a_name() -> None:
    text = TEXT[TEXT.index("__global__ void second") :]
    before = f"#pragma optiml launch grid(n) block(256)\n{text}"
    after = before.replace("block(256)", "block(128)")
    assert answered("far", [finding(4)], before, after) == Answered("far", 4, "far apart in 4")


@pytest.mark.parametrize(
    ("line", "launches"),
    [(0, {}), (1, {0}), (2, {1}), (3, {}), (4, {0}), (7, {0}), (13, {1}), (99, {})],
)
def test_which_launches_a_line_is_about(line: int, launches: set[int]) -> None:
    assert launches_at(line, parse_program(TEXT)) == {*launches}


def test_all_launches_of_a_kernel_or_one_of_them() -> None:
    program = parse_program("#pragma optiml launch second grid(1) block(n)\n" + TEXT)
    assert launches_at(14, program) == {0, 2}
    assert launches_at(3, program) == {2}


def test_two_names_for_a_place() -> None:
    assert str(Answered("far", 7, "")) == "far on line 7"
    assert str(Answered("far", 0, "")) == "far"


@given(st.text('{}();\n/*"# ax', max_size=80), st.text('{}();\n/*"# ax', max_size=80))
def test_any_two_texts_have_an_answer(before: str, after: str) -> None:
    found = answered("far", [finding(2), WHOLE], before, after)
    assert found is None or before != after
