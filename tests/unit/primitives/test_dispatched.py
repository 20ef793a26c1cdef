"""What a step narrows becomes the condition of a launch, and the input kernel its ``else``."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from optiml_magic.kernels.primitives.axes import exchanged
from optiml_magic.kernels.primitives.base import Kernel, in_turn, kernels
from optiml_magic.kernels.primitives.cutting import tuned
from optiml_magic.kernels.primitives.dispatched import dispatched, unverified
from optiml_magic.kernels.primitives.localised import localised
from optiml_magic.kernels.primitives.sized import sized
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.source.program import Program, parse_program
from tests.present import SOAK
from tests.rewriting.offers import Offer, Refused, offers
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of

SCALE = """\
#pragma optiml launch scale grid(cdiv(h, 16), cdiv(w, 4)) block(16, 4)
__device__ float twice(float v) { return 2.0f * v; }
__global__ void scale(const float* a, float* o, int h, int w) {
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    int x = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < h && x < w) o[y * w + x] = twice(a[y * w + x]);
}
"""
LAUNCH = "launch scale "
ARRAYS = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h", "w"), "zeros")}


@pytest.mark.parametrize(
    ("condition", "found"),
    [("h % 4 == 0", "h % 4 == 0"), ("w % 4 == 0", None), ("size(a) >= h", None), ("m > 9", None)],
)
def test_sizes_at_which_a_program_is_never_verified(condition: str, found: str | None) -> None:
    before, sizes = parse_program(SCALE), {"h": 64, "w": 64}
    facts = LaunchFacts("scale", 1, (4, 16, 1), (16, 4, 1), {}, sizes, verified={"h": 7, "w": 8})
    made = before.with_directive(f"#pragma optiml require {condition}")
    beyond = unverified(made, before, facts)
    assert (str(beyond.condition) if beyond else None) == found
    assert unverified(made, made, facts) is unverified(made, before, None) is None


def swapped(text: str, root: str = "", *, more: str = "") -> Program:
    """The axes exchanged in a program that comes of ``root``, where ``more`` holds as well."""
    made = exchanged(kernel_of(text), "x", "y")
    assert isinstance(made, Kernel), made
    program = (
        made.program.with_directive(f"#pragma optiml require {more}") if more else made.program
    )
    return dispatched(program, parse_program(text), parse_program(root or text))


def launches(program: Program) -> list[str]:
    return [str(d).removeprefix("#pragma optiml launch ") for d in program.launches]


def test_the_input_kernel_is_the_else_of_the_faster_one() -> None:
    made = swapped(SCALE)
    assert launches(made) == [
        "scale_fast grid(cdiv(w, 4), cdiv(h, 16)) block(4, 16) if (cdiv(h, 16) <= 65535)",
        "scale grid(cdiv(h, 16), cdiv(w, 4)) block(16, 4) else",
    ]
    assert made.requires == ()
    assert made.text.endswith("\n\n" + SCALE[SCALE.index("__global__") :])
    assert made.text.count("float twice") == 1


def test_both_do_what_the_input_did() -> None:
    made = swapped(SCALE, more="h % 4 == 0")
    assert "if (cdiv(h, 16) <= 65535 && h % 4 == 0)" in launches(made)[0]
    assert end_of(SCALE, made.text, ARRAYS, {"h": 36, "w": 21}, {"h": 5, "w": 9}) == "same"
    wrong = made.text.replace("= twice", "= 2 + twice")
    for text, sizes in (
        (wrong.replace("= 2 + twice", "= twice", 1), {"h": 5, "w": 9}),
        (made.text.replace("= twice", "= 2 + twice", 1), {"h": 36, "w": 21}),
    ):
        assert "wrong" in end_of(SCALE, text, ARRAYS, sizes, sizes)


def test_a_further_step_makes_the_condition_narrower_and_leaves_the_input_kernel() -> None:
    first = swapped(SCALE)
    (fast,) = kernels(first, None)
    assert fast.launch.kernel == "scale_fast"
    second = tuned(fast, {"x": (4, 8), "y": (8, 16)})
    assert isinstance(second, Kernel), second
    made = dispatched(second.program, first, parse_program(SCALE))
    grid = "grid(cdiv(w, BLOCK_X), cdiv(h, BLOCK_Y)) block(BLOCK_X, BLOCK_Y)"
    assert launches(made) == [
        f"scale_fast {grid} if (cdiv(h, 16) <= 65535 && cdiv(h, BLOCK_Y) <= 65535)",
        "scale grid(cdiv(h, 16), cdiv(w, 4)) block(16, 4) else",
    ]
    assert made.text.count("__global__") == 2
    unknown = dispatched(second.program, first, first)  # what runs elsewhere is nobody's word
    assert [str(r.condition) for r in unknown.requires] == ["cdiv(h, BLOCK_Y) <= 65535"]


def test_a_kernel_that_was_rewritten_before_gives_way_to_that_of_the_input() -> None:
    before = SCALE.replace("int y", "const int y")
    made = swapped(before, SCALE)
    fast, slow = made.text.split("\n\n")
    assert "const int y" in fast
    assert slow == SCALE[SCALE.index("__global__") :]


def test_other_launches_run_as_in_the_input_where_it_does_not_hold() -> None:
    more = """\
#pragma optiml launch add grid(cdiv(h * w, 64)) block(64)
__global__ void add(float* o, int h, int w) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < h * w) o[i] += 1.0f;
}
"""
    root = SCALE + more
    before = parse_program(root.replace("+= 1.0f", "= o[i] + 1.0f"))
    kernel = next(k for k in kernels(before, None) if k.launch.kernel == "scale")
    made = exchanged(kernel, "x", "y")
    assert isinstance(made, Kernel), made
    found = dispatched(made.program, before, parse_program(root))
    assert [line.split()[0] for line in launches(found)] == [
        "scale_fast",
        "scale",
        "add_fast",
        "add",
    ]
    end = end_of(root, found.text, ARRAYS, {"h": 36, "w": 21}, {"h": 5, "w": 9})
    assert end == "same"
    untouched = parse_program(root)
    alone = exchanged(next(iter(kernels(untouched, None))), "x", "y")
    assert isinstance(alone, Kernel)
    assert len(dispatched(alone.program, untouched, untouched).launches) == 3


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (SCALE.replace("launch scale ", "launch "), "launch scale grid(cdiv(h, 16), cdiv(w, 4))"),
        (SCALE.replace("__global__", 'extern "C" __global__'), 'extern "C" __global__ void scale('),
        (
            SCALE.replace("__global__", "template <class T>\n__global__").replace("float*", "T*")
            .replace(LAUNCH, "launch scale<float> "),
            "template <class T>\n__global__ void scale(",
        ),
        (
            SCALE.replace("__global__", "namespace one {\n__global__").replace(LAUNCH, "launch one::scale ")
            + "}\n",
            "launch one::scale_fast",
        ),
        (
            "#define KERNEL(name) __global__ void name\n"
            + SCALE.replace("__global__ void scale", "KERNEL(scale)"),
            "KERNEL(scale_fast)",
        ),
        (SCALE.replace("block(16, 4)", "block(16, 4) repeat(3)"), "repeat(3) if (cdiv(h, 16)"),
        (SCALE.replace("float twice", "float scale_fast").replace("twice(a", "scale_fast(a"),
         "scale_fast_2(const float*"),
    ],
)  # fmt: skip
def test_spellings(text: str, kept: str) -> None:
    made = swapped(text)
    assert kept in made.text
    assert len(made.launches) == 2
    assert made.requires == ()
    if "extern" in text or (SOAK and "KERNEL" not in text):
        assert end_of(text, made.text, ARRAYS, {"h": 36, "w": 21}, {"h": 5, "w": 9}) == "same"


@pytest.mark.parametrize(
    ("before", "root"),
    [
        (SCALE, SCALE + "__global__ void other() {}\n#pragma optiml launch other grid(1) block(1)\n"),
        (SCALE, SCALE.replace("scale", "other")),
        (SCALE.replace("return 2.0f * v", "return v + v"), SCALE),
        (SCALE, "#define TWO 2\n" + SCALE),
        (SCALE.replace("    if", "#pragma optiml zero(o)\n    if"), ""),
    ],
)  # fmt: skip
def test_a_requirement_stays_where_two_kernels_do_not_fit(before: str, root: str) -> None:
    made = swapped(before, root)
    assert [str(r.condition) for r in made.requires] == ["cdiv(h, 16) <= 65535"]
    assert len(made.launches) == 1


@pytest.mark.parametrize(
    "text",
    [
        SCALE.replace("int h", "short h"),
        SCALE.replace("int h", "unsigned char h"),
        "typedef unsigned short small;\n" + SCALE.replace("int h", "small h"),
        SCALE.replace("#pragma", "#pragma optiml require h <= 1048560\n#pragma", 1),
        SCALE.replace("#pragma", "#pragma optiml require w > 0 && cdiv(h, 16) <= 65535\n#pragma", 1),
        SCALE.replace("cdiv(w, 4)", "cdiv(h, 16)"),
        SCALE.replace("cdiv(h, 16)", "min(cdiv(h, 16), 4000)"),
    ],
)  # fmt: skip
def test_what_holds_anyway_is_no_condition(text: str) -> None:
    made = swapped(text)
    assert len(made.launches) == 1
    assert len(made.requires) == len(parse_program(text).requires)


@pytest.mark.parametrize(
    "text",
    [
        SCALE.replace("int h", "unsigned h"),
        SCALE.replace("#pragma", "#pragma optiml require h <= 1048561\n#pragma", 1),
        SCALE.replace("cdiv(h, 16)", "h * 2").replace("int h", "unsigned short h"),
        SCALE.replace("cdiv(h, 16)", "cdiv(shape(a, 0), 16)"),
    ],
)
def test_what_may_fail_is_one(text: str) -> None:
    made = swapped(text)
    assert len(made.launches) == 2


@pytest.mark.parametrize("waits", [False, True])
def test_what_the_given_sizes_do_not_meet_is_refused_or_turned(waits: bool) -> None:
    small = SCALE.replace("16", "4")
    if waits:
        small = small.replace("    if", "    if (y < h) x += atomicAdd((int*)&o[y], 0);\n    if", 1)
    stand = Stand(Made("tall", small, ARRAYS, {"h": 270_000, "w": 2}, {"h": 3, "w": 2}))
    found = [*offers(small, small, lambda: stand.facts(small), Random(0), each=99)]
    told = Refused("coalesce_mapping", "`cdiv(h, 4) <= 65535` does not hold for the given sizes")
    assert (told in found) == waits
    turned = [o for o in found if isinstance(o, Offer) and o.rule == "coalesce_mapping"]
    assert bool(turned) != waits


def test_rules_look_at_the_launch_that_runs_at_the_given_sizes() -> None:
    text = swapped(SCALE, more="h % 4 == 0").text
    for height, kernel in ((36, "scale_fast"), (37, "scale")):
        stand = Stand(Made("two", SCALE, ARRAYS, {"h": height, "w": 21}, {"h": 5, "w": 9}))
        (found,) = kernels(parse_program(text), stand.facts(text))
        assert found.launch.kernel == kernel


def test_what_is_required_within_a_kernel_narrows_its_launch_as_well() -> None:
    before = swapped(SCALE)
    (kernel, *_) = kernels(before, None)
    made = sized(kernel, {"w": 48})
    assert isinstance(made, Kernel), made
    after = dispatched(made.program, before, parse_program(SCALE))
    assert launches(after) == [
        "scale_fast grid(cdiv(48, 4), cdiv(h, 16)) block(4, 16) if (cdiv(h, 16) <= 65535 && w == 48)",
        "scale grid(cdiv(h, 16), cdiv(w, 4)) block(16, 4) else",
    ]
    assert "x < 48" in after.text
    assert end_of(SCALE, after.text, ARRAYS, {"h": 33, "w": 48}, {"h": 19, "w": 7}) == "same"


def test_scratch_that_the_input_kernel_asks_for_is_there_again() -> None:
    text = """\
#pragma optiml scratch t f4[m * n]
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, float* t, float* o, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int q = 0; q < m; ++q) t[q * n + i] = a[i] - q;
    o[i] = t[i];
}
"""
    made = in_turn(kernel_of(text), (partial(sized, values={"m": 5}), localised))
    assert isinstance(made, Kernel), made
    assert "scratch" not in made.program.text
    before = parse_program(text)
    found = dispatched(made.program, before, before)
    assert len(found.launches) == 2
    assert [str(s) for s in found.scratch] == ["#pragma optiml scratch t f4[m * n]"]
    arrays = {"a": Array("f4", ("n",)), "o": Array("f4", ("n",), "zeros")}
    assert end_of(text, found.text, arrays, {"n": 50, "m": 5}, {"n": 7, "m": 3}) == "same"
