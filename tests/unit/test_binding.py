from __future__ import annotations

import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.binding import Interface, check_values, interface, pack, plan
from optiml_magic.chips import chip
from optiml_magic.errors import BindingError, SourceError, UsageError
from optiml_magic.kernels.signature import kernels
from optiml_magic.model.build import Build
from optiml_magic.model.launch import BufferArgument, ScalarArgument
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare
from optiml_magic.source.program import Program, parse_program

F4 = np.ones(8, np.float32)
ADD = """\
#pragma optiml launch add grid(cdiv(n, 4)) block(4)
__global__ void add(const float* x, float* out, int n) { out[n] = x[n]; }
"""


def bound(text: str, **values: object) -> Interface:
    return interface(parse_program(text), Task(text), values)


def built(names: dict[str, str]) -> Build:
    return Build("", b"", names, {}, (), (), "")


def planned(program: Program, **values: object):  # type: ignore[no-untyped-def]
    found = interface(program, Task(program.text), values)
    names = {x.kernel or kernels(program.text)[0].name: "lowered" for x in program.launches}
    shapes = {b.name: (8,) for b in found.buffers}
    return plan(program, found, built(names), values, shapes, chip("h200"))


@pytest.mark.parametrize(
    ("parameter", "body", "values", "role"),
    [
        ("const float* p", "out[0] = p[0];", {"p": F4}, "input"),
        ("float* p", "out[0] = p[0];", {"p": F4}, "input"),
        ("float* p", "p[0] = 1;", {}, "output"),
        ("float* p", "p[0] = 1;", {"p": F4}, "output"),
        ("float* p", "p[0] += 1;", {"p": F4}, "inout"),
        ("int* p", "atomicAdd(&p[0], 1);", {"p": np.ones(2, np.int32)}, "inout"),
    ],
)
def test_roles_come_from_the_code_and_never_from_the_namespace(
    parameter: str, body: str, values: dict[str, object], role: str
) -> None:
    text = f"#pragma optiml launch grid(1) block(1)\n__global__ void k({parameter}, float* out) {{ {body} }}"
    assert bound(text, out=F4, **values).buffers[0].role == role


STEP = "__global__ void step(const float* from, float* to) { to[0] = from[0]; }\n"
MORE = "__global__ void more(float* to) { to[0] += 1; }\n"


def test_what_an_earlier_launch_wrote_may_be_read_and_written() -> None:
    text = (
        "#pragma optiml launch step grid(1) block(1)\n#pragma optiml launch more grid(1) block(1)\n"
    )
    roles = {b.name: b.role for b in bound(text + STEP + MORE, **{"from": F4}).buffers}
    assert roles == {"from": "input", "to": "output"}
    later = "".join(reversed(text.splitlines(keepends=True)))
    with pytest.raises(BindingError, match="`to` is read and written"):
        bound(later + STEP + MORE, **{"from": F4})


def test_buffers_that_are_swapped_share_their_roles() -> None:
    swap = "launch step grid(1) block(1) repeat(2) swap(from, to)\n"
    roles = {b.name: b.role for b in bound(f"#pragma optiml {swap}{STEP}", **{"from": F4}).buffers}
    assert roles == {"from": "inout", "to": "output"}
    text = f"#pragma optiml scratch to f4[8]\n#pragma optiml {swap}{STEP}"
    roles = {b.name: b.role for b in bound(text, **{"from": F4}).buffers}
    assert roles == {"from": "inout"}


def test_only_buffers_of_the_round_are_swapped() -> None:
    text = f"#pragma optiml launch step grid(1) block(1) repeat(2) swap(from, too)\n{STEP}"
    with pytest.raises(SourceError, match="`too` is swapped, and no launch") as error:
        bound(text, **{"from": F4})
    assert error.value.fix == "did you mean `to`?"


def test_a_zeroed_accumulator_is_an_output() -> None:
    text = (
        "#pragma optiml zero(p)\n#pragma optiml launch grid(1) block(1)\n"
        "__global__ void k(int* p) { atomicAdd(&p[0], 1); }"
    )
    assert bound(text).buffers[0].role == "output"


def test_a_buffer_between_two_launches_is_scratch_and_no_part_of_the_interface() -> None:
    text = (
        "#pragma optiml scratch part f4[n]\n"
        "#pragma optiml launch one grid(1) block(1)\n#pragma optiml launch two grid(1) block(1)\n"
        "__global__ void one(const float* x, float* part, int n) { part[n] = x[n]; }\n"
        "__global__ void two(const float* part, float* out, int n) { out[n] = part[n]; }"
    )
    found = bound(text, x=F4, n=4)
    assert [(b.name, b.role) for b in found.buffers] == [("x", "input"), ("out", "output")]
    result = planned(parse_program(text), x=F4, n=4)
    assert [s.elements for s in result.scratch] == [4]
    assert (
        result.launches[0].arguments[1] == result.launches[1].arguments[0] == BufferArgument("part")
    )


def test_scalars_are_packed_by_the_type_of_their_parameter() -> None:
    result = planned(parse_program(ADD), x=F4, n=7)
    assert result.launches[0].grid == (2, 1, 1)
    assert result.launches[0].arguments[2] == ScalarArgument("07000000")


@given(value=st.integers(-(2**70), 2**70))
def test_an_integer_is_packed_exactly_or_refused(value: int) -> None:
    (kernel,) = kernels("__global__ void k(unsigned char a, int b, unsigned long long c) {}")
    for parameter, code in zip(kernel.parameters, "BiQ", strict=True):
        try:
            wanted = struct.pack(f"<{code}", value)
        except struct.error:
            with pytest.raises(BindingError, match="cannot hold"):
                pack(parameter, value)
        else:
            assert pack(parameter, value) == wanted


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "no array named `x`"),
        ({"x": [1.0]}, "`x` is a list"),
        ({"x": np.ones(8)}, r"`x` holds float64, and the kernel's pointer is to float32"),
        ({"x": np.ones((4, 4), np.float32).T}, "`x` is not contiguous"),
        ({"x": F4}, "no value for the parameter `n`"),
    ],
)
def test_what_does_not_fit_names_the_parameter_its_line_and_the_fix(
    values: dict[str, object], message: str
) -> None:
    with pytest.raises(BindingError, match=message) as raised:
        check_values(bound(ADD), values)
    assert raised.value.fix
    if "n" not in message[-3:]:
        assert raised.value.line == 2


@pytest.mark.parametrize(
    ("change", "values", "message"),
    [
        (("int n)", "int n, float* y)"), {"n": 4}, "a buffer `y` that the task does not have"),
        (("cdiv(n, 4)", "m"), {"n": 4}, "m"),
        (("cdiv(n, 4)", "n - 4"), {"n": 4}, "grid.x is 0"),
        (("block(4)", "block(32, 64)"), {"n": 4}, "a block of 32 x 64 x 1"),
        (("#pragma", "#pragma optiml require n % 8 == 0\n#pragma"), {"n": 4}, "does not hold"),
        (("int n)", "int n, float2 v)"), {"n": 4, "v": 1.0}, "`v` is a `float2`"),
        (("block(4)", "block(4) args(x, out)"), {"n": 4}, "takes 3 arguments, the launch gives 2"),
        (("#pragma", "#pragma optiml zero(y)\n#pragma"), {"n": 4}, "there is no buffer `y`"),
        (
            ("#pragma", "#pragma optiml scratch y f4[n]\n#pragma optiml init(y) = -1\n#pragma"),
            {"n": 4},
            "`y` is scratch, which `init` does not set",
        ),
    ],
)
def test_a_plan_that_cannot_be_is_a_usage_error(
    change: tuple[str, str], values: dict[str, object], message: str
) -> None:
    program = parse_program(ADD.replace(*change, 1))
    found = bound(ADD, x=F4)
    with pytest.raises(UsageError, match=message):
        plan(program, found, built({"add": "add"}), values, {"x": (8,), "out": (8,)}, chip("h200"))


def test_read_and_written_with_nothing_to_start_from_is_asked_for() -> None:
    with pytest.raises(BindingError, match="read and written") as raised:
        bound("#pragma optiml launch grid(1) block(1)\n__global__ void k(int* p) { p[0] += 1; }")
    assert "--out p" in raised.value.fix


def test_all_that_lacks_is_asked_for_at_once() -> None:
    text = (
        "#pragma optiml launch grid(1) block(1)\n"
        "__global__ void k(int* p, float* q, const float* x, int n) { p[n] += 1; q[n] += x[n]; }"
    )
    with pytest.raises(BindingError, match="`p` and `q` are read and written") as raised:
        bound(text)
    assert "there are no arrays to start from; no array named `x`, and no value" in str(
        raised.value
    )
    lines = ["p = np.ones(SIZE, np.int32)", "x = np.ones(SIZE, np.float32)", "n = NUMBER"]
    assert all(line in raised.value.fix for line in lines)
    assert "#pragma optiml zero(p); #pragma optiml zero(q)" in raised.value.fix


def test_an_output_that_is_only_added_to_needs_a_first_value() -> None:
    text = (
        "#pragma optiml launch k grid(1) block(32)\n"
        "__global__ void k(const float* x, float* sum) { atomicAdd(sum, x[threadIdx.x]); }"
    )
    task = Task(text, outputs={"sum": "f4[1]"})
    with pytest.raises(BindingError, match="`sum` is added to") as raised:
        interface(parse_program(text), task, {"x": F4})
    assert raised.value.fix == "define `sum`, or clear it: #pragma optiml zero(sum)"
    cleared = parse_program(f"#pragma optiml zero(sum)\n{text}")
    assert interface(cleared, task, {"x": F4}).named("output")
    both = text.replace("{ atomicAdd", "{ *sum = 0; atomicAdd")
    assert interface(parse_program(both), task, {"x": F4}).named("output")


def test_repeat_writes_the_rounds_out_and_swaps_the_buffers() -> None:
    text = (
        "#pragma optiml repeat(3) swap(a, b)\n#pragma optiml launch grid(1) block(1)\n"
        "__global__ void step(float* a, float* b) { b[0] = a[0]; a[1] = b[1]; }"
    )
    result = planned(parse_program(text), a=F4, b=F4)
    first = [launch.arguments[0] for launch in result.launches]
    assert first == [BufferArgument("a"), BufferArgument("b"), BufferArgument("a")]


def test_template_instances_bind_their_own_types() -> None:
    text = (
        "#pragma optiml launch fill<double> grid(1) block(1)\n"
        "template <typename T> __global__ void fill(T* out, T value) { out[0] = value; }"
    )
    result = planned(parse_program(text), value=1.5)
    assert result.launches[0].arguments[1] == ScalarArgument(struct.pack("<d", 1.5).hex())


def test_no_kernel_is_said_in_a_sentence() -> None:
    with pytest.raises(SourceError, match="no kernel"):
        bound("int x;")


def test_a_grid_without_blocks_names_the_scalar() -> None:
    with pytest.raises(BindingError, match=r"grid.x is 0, from `cdiv\(n, 4\)` with n = 0"):
        planned(parse_program(ADD), x=F4, n=0)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"x": [1.0]}, "np.asarray(x, np.float32)"),
        ({"x": np.ones(8)}, "np.asarray(x, np.float32)"),
        ({"n": 8}, "define `x` as a float32 array"),
    ],
)
def test_fixes_spell_dtypes_as_numpy_does(values: dict[str, object], told: str) -> None:
    with pytest.raises(BindingError) as raised:
        check_values(bound(ADD), values)
    assert told in raised.value.fix
    assert "<f4" not in str(raised.value)


VALUES = """
struct S { float x; };
__global__ void k(float4 v, S s, __nv_bfloat16 b, half h, bool t, cuFloatComplex z, double d) {}
"""
S = np.dtype([("x", "f4")])


@pytest.mark.parametrize(
    ("name", "value", "raw"),
    [
        ("v", np.arange(4, dtype=np.float32), struct.pack("<4f", 0, 1, 2, 3)),
        ("v", np.array([(1, 2, 3, 4)], "f4,f4,f4,f4")[0], struct.pack("<4f", 1, 2, 3, 4)),
        ("s", np.array([(1.5,)], S)[0], struct.pack("<f", 1.5)),
        ("b", 1.5, b"\xc0\x3f"),
        ("b", ml_dtypes.bfloat16(1.5), b"\xc0\x3f"),
        ("h", 1.5, struct.pack("<e", 1.5)),
        ("t", True, b"\1"),
        ("z", 1 + 2j, struct.pack("<2f", 1, 2)),
        ("d", np.inf, struct.pack("<d", np.inf)),
    ],
)
def test_values_are_packed_by_type(name: str, value: object, raw: bytes) -> None:
    (kernel,) = kernels(VALUES)
    assert pack(kernel.parameter(name), value) == raw


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("v", np.arange(3, dtype=np.float32), "`v` is a `float4`, 4 x float32"),
        ("v", np.arange(4), "`v` is a `float4`"),
        ("v", np.array([(1, 2)], "f4,f4")[0], "`v` is a `float4`"),
        ("v", 1.0, "`v` is a `float4`"),
        ("s", 1.0, "`s` is a `S`, and was given a float"),
        ("b", 1e39, "which a bfloat16 cannot hold"),
        ("h", 1e6, "which a float16 cannot hold"),
        ("t", 2, "which a bool cannot hold"),
        ("h", 1j, "`h` is complex, and the kernel wants a float16"),
        ("z", "1", "`z` is a complex64, and was given a str"),
    ],
)
def test_values_that_do_not_fit_are_refused(name: str, value: object, message: str) -> None:
    (kernel,) = kernels(VALUES)
    with pytest.raises(BindingError, match=message):
        pack(kernel.parameter(name), value)


PASSED = """\
#pragma optiml tune PARTS in {2, 4} = 4
#pragma optiml launch add grid(cdiv(n, PARTS)) block(PARTS) args(x, out, PARTS, min(n, sm_count), n)
__global__ void add(const float* x, float* out, int parts, int most, int n) { out[n] = x[n] * parts; }
"""


def test_tuned_names_and_the_multiprocessors_are_no_scalars_of_the_task() -> None:
    found = bound(PASSED, x=F4, n=8)
    assert found.scalars == ("n",)
    check_values(found, {"x": F4, "n": 8})
    with pytest.raises(BindingError, match="no value for the parameter `n`"):
        check_values(found, {"x": F4})


def test_a_tuned_name_has_its_own_value_whatever_else_is_called_so() -> None:
    (launch,) = planned(parse_program(PASSED), x=F4, n=8, PARTS=7).launches
    assert [a for a in launch.arguments if isinstance(a, ScalarArgument)] == [
        ScalarArgument(struct.pack("<i", value).hex()) for value in (4, 8, 8)
    ]


SIZED = """\
#pragma optiml launch k grid(1) block(8)
__global__ void k(const float* x, float* out, float* part, int n) {
    part[threadIdx.x] = x[n]; out[threadIdx.x] = part[threadIdx.x];
}
"""
PART = "#pragma optiml scratch part f4[n]\n"


@pytest.mark.parametrize(
    ("directive", "message", "fix"),
    [
        ("scratch x f4[n]", "`x` is scratch here, and an array of the task", "rename the scratch"),
        ("scratch out f4[n]", "`out` is scratch here", "remove the directive"),
        (
            "tune n in {1, 2} = 1",
            "`n` is tuned here, and a parameter",
            "leave `n` out of the task's",
        ),
    ],
)
def test_a_directive_takes_no_name_of_the_task(directive: str, message: str, fix: str) -> None:
    values = {"x": F4, "out": F4, "n": 8}
    found, text = bound(PART + SIZED, **values), f"{PART}#pragma optiml {directive}\n{SIZED}"
    shapes = {"x": (8,), "out": (8,)}
    with pytest.raises(SourceError, match=message) as given:
        bound(text, **values)
    with pytest.raises(SourceError, match=message) as candidate:
        plan(parse_program(text), found, built({"k": "k"}), values, shapes, chip("h200"))
    for error in (given.value, candidate.value):
        assert error.line == 2
        assert fix in error.fix


def test_an_output_that_is_scratch_leaves_nothing_to_check() -> None:
    with pytest.raises(BindingError, match="writes only to scratch") as raised:
        bound(f"#pragma optiml scratch out f4[n]\n{ADD}", x=F4, n=8)
    assert raised.value.line == 1


def test_scratch_and_tuned_names_of_a_program_s_own_are_no_names_of_the_task() -> None:
    text = f"{PART}#pragma optiml tune n in {{1, 2}} = 2\n{SIZED}"
    result = planned(parse_program(text), x=F4, part=3)  # a number is no array to start from
    assert [(s.name, s.elements) for s in result.scratch] == [("part", 2)]
    assert result.launches[0].arguments[-1] == ScalarArgument(struct.pack("<i", 2).hex())
    declared = Task(text, outputs={"part": "f4[8]"})
    with pytest.raises(SourceError, match="`part` is scratch here"):
        interface(parse_program(text), declared, {"x": F4})


def test_a_pointer_with_its_pitch_is_refused_with_what_to_take() -> None:
    text = "__global__ void k(cudaPitchedPtr p, int n) { ((float*)p.ptr)[n] = 1; }\n"
    with pytest.raises(BindingError, match="a pointer with its pitch") as error:
        prepare(Task(f"#pragma optiml launch k grid(1) block(1)\n{text}", inputs={"n": 3}), seeds=1)
    assert "size_t pitch" in error.value.fix
