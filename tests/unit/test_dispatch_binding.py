"""Which launch of a dispatch runs, and what the others have to say before they do."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.binding import Interface, interface, plan, planned
from optiml_magic.chips import chip
from optiml_magic.errors import BindingError, RequirementError, SourceError
from optiml_magic.kernels.signature import kernels
from optiml_magic.model.build import Build
from optiml_magic.model.launch import BufferArgument, LaunchPlan
from optiml_magic.model.task import Task
from optiml_magic.source.program import parse_program

H200 = chip("h200")
KERNELS = """
__global__ void fast(const float4* x, float4* out, int quads) { out[quads] = x[quads]; }
__global__ void half(const float* x, float* out, int n) { out[n] = x[n]; }
__global__ void slow(const float* x, float* out, int n) { out[n] = x[n]; }
"""
CHAIN = """\
#pragma optiml tune LEAST in {8, 64} = 64
#pragma optiml launch fast grid(n / LEAST) block(64) args(x, out, n / 4) if (n % 4 == 0 && n >= LEAST)
#pragma optiml launch half grid(cdiv(n, 64 / (1 - n % 2))) block(32) else if (n % 2 == 0)
#pragma optiml launch slow grid(cdiv(n, 32)) block(32) else
"""


def bound(text: str, n: int, *, least: int | None = None) -> tuple[LaunchPlan, list[int]]:
    """The plan at this size, and the lines of the launches that run."""
    program = parse_program(text)
    program = program.with_values({"LEAST": least}) if least else program
    values = {"x": np.ones(n, np.float32), "n": n, "steps": 3}
    found = interface(program, Task(text, outputs={"out": ""}), values)
    names = {kernel.name: kernel.name for kernel in kernels(text)}
    shapes = {buffer.name: (n,) for buffer in found.buffers}
    made = plan(program, found, Build("", b"", names, {}, (), (), ""), values, shapes, H200)
    return made, [d.line for d in planned(program, found, values, shapes, H200)]


@pytest.mark.parametrize(
    ("n", "kernel", "line"),
    [(64, "fast", 2), (100, "fast", 2), (60, "half", 3), (66, "half", 3), (65, "slow", 4)],
)
def test_the_first_launch_whose_condition_holds_runs_alone(n: int, kernel: str, line: int) -> None:
    made, lines = bound(CHAIN + KERNELS, n)
    assert [launch.kernel for launch in made.launches] == [kernel]
    assert lines == [line]


def test_tuned_names_and_shapes_decide_too() -> None:
    assert bound(CHAIN + KERNELS, 60, least=8)[0].launches[0].kernel == "fast"
    shaped = CHAIN.replace("n % 4 == 0", "shape(x, 0) % 4 == 0 && size(out) < 99")
    assert bound(shaped + KERNELS, 64)[0].launches[0].kernel == "fast"
    assert bound(shaped + KERNELS, 100)[0].launches[0].kernel == "half"


def test_extents_of_a_launch_that_does_not_run_may_be_anything() -> None:
    assert bound(CHAIN + KERNELS, 3)[0].launches[0].grid == (1, 1, 1)  # n / LEAST is 0
    with pytest.raises(BindingError, match=r"grid\.x is 0") as caught:
        bound(CHAIN.replace("n >= LEAST", "n > 1") + KERNELS, 4)
    assert caught.value.line == 2


def test_a_condition_that_nobody_can_evaluate_is_an_error_at_its_line() -> None:
    for condition, message in (
        ("m % 4 == 0", "unknown name `m`"),
        ("n / (n - n)", "division by zero"),
        ("shape(y, 0) == 4", "unknown array `y`"),
        ("n << 64", "a shift by 64"),
    ):
        with pytest.raises(SourceError, match=message) as caught:
            bound(CHAIN.replace("n % 4 == 0", condition) + KERNELS, 64)
        assert caught.value.line == 2


ROUNDS = """\
#pragma optiml launch slow grid(1) block(32)
#pragma optiml repeat(steps) swap(x, out)
#pragma optiml launch half grid(1) block(32) if (n % 2 == 0)
#pragma optiml launch slow grid(1) block(32) else
#pragma optiml launch slow grid(2) block(32)
"""


@pytest.mark.parametrize(("n", "kernel", "line"), [(8, "half", 3), (9, "slow", 4)])
def test_in_a_round_the_same_one_runs_each_time_with_its_buffers_swapped(
    n: int, kernel: str, line: int
) -> None:
    made, lines = bound(ROUNDS + KERNELS, n)
    assert [launch.kernel for launch in made.launches] == ["slow", *3 * [kernel, "slow"]]
    assert lines == [1, *3 * [line, 5]]
    first = [launch.arguments[0] for launch in made.launches]
    assert first == [BufferArgument(b) for b in ("x", "x", "x", "out", "out", "x", "x")]


def roles(text: str, **given: object) -> dict[str, str]:
    found: Interface = interface(parse_program(text), Task(text), given)
    return {buffer.name: buffer.role for buffer in found.buffers}


ADDS = """
__global__ void writes(const float* x, float* out, float* more) { out[0] = x[0]; more[0] = 1; }
__global__ void adds(const float* x, float* out) { out[0] += x[0]; }
__global__ void reads(const float* more, float* last) { last[0] = more[0]; }
"""


def test_what_one_launch_of_a_dispatch_writes_another_has_not() -> None:
    ones = np.ones(8, np.float32)
    given = {"x": ones, "out": ones, "n": 8}
    chain = (
        "#pragma optiml launch {} grid(1) block(1) if (n > 4)\n"
        "#pragma optiml launch {} grid(1) block(1) else\n"
    )
    for one, other in (("writes", "adds"), ("adds", "writes")):
        found = roles(chain.format(one, other) + ADDS, **given)
        assert found == {"x": "input", "out": "inout", "more": "output"}
    after = chain.format("writes", "adds") + "#pragma optiml launch reads grid(1) block(1)\n"
    assert roles(after + ADDS, **given, more=ones)["more"] == "output"


def test_an_odd_size_is_taken_where_some_launch_takes_single_elements() -> None:
    found = interface(parse_program(CHAIN + KERNELS), Task(CHAIN), {"x": np.ones(7, np.float32)})
    assert {buffer.name: buffer.lanes for buffer in found.buffers} == {"x": 1, "out": 1}


def test_the_size_of_scratch_decides_and_is_required_like_any_other() -> None:
    text = "#pragma optiml scratch some f4[n / 2]\n#pragma optiml require size(some) <= 40\n"
    shaped = text + CHAIN.replace("n % 4 == 0", "size(some) > 33") + KERNELS
    assert bound(shaped, 80)[0].launches[0].kernel == "fast"
    assert bound(shaped, 66)[0].launches[0].kernel == "half"
    with pytest.raises(RequirementError, match="does not hold"):
        bound(shaped, 84)
