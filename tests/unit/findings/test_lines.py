"""What stands on the lines of kernels that are written as people write them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.findings import Subject
from optiml_magic.findings.lines import Lines
from optiml_magic.model.launch import Launch, LaunchPlan

from .test_subject import subject

TEXT = """\
#define AT(p, i) ((p)[i])
#define SCALE(v) (2.0f * sinf(v))
struct P { float x, mass; };
__device__ float pick(const float* p, int i) {
    return p[i];
}
__global__ void k(const float* a, const float* b, const int* at, float* out, int* bins, P* all) {
    __shared__ float tile[32][33];
    int i = threadIdx.x;
    float s = 0.0f; float t = AT(a, i); tile[i][0] = b[3 * i];
    __syncthreads();
    float u = a[i]
        + b[2 * i]
        * cosf(tile[0][i]);
    float w = pick(a,
                   i + 1);
    for (int j = 0; j < 9; ++j) { s += a[at[j] + i]; t = w; }
    out[i] =
        SCALE(s + t)
        + u + w;
    atomicAdd(
        &bins[at[i]], 1);
    all[i].mass = all[i].x;
    float* row = out + 32 * i; row[3] = 1.0f;
}
"""


@pytest.fixture(scope="module")
def lines() -> Lines:
    return subject(TEXT).lines


@pytest.mark.parametrize(
    ("line", "access", "names"),
    [
        (10, "load", ("a", "b")),
        (10, "store", ("tile",)),
        (12, "load", ("a",)),
        (13, "load", ("b",)),
        (14, "load", ("tile",)),
        (5, "load", ("a",)),
        (15, "load", ("a",)),
        (17, "load", ("at", "a")),
        (18, "store", ("out",)),
        (20, "store", ("out",)),
        (21, "atomic", ("bins",)),
        (22, "atomic", ("bins",)),
        (22, "load", ("at",)),
        (23, "store", ("all",)),
        (24, "store", ("out",)),
        (11, "load", ()),
        (99, "load", ()),
    ],
)
def test_a_line_has_the_accesses_that_begin_there(lines: Lines, line, access, names) -> None:
    assert lines.arrays(line, access) == names


def test_an_array_in_another_memory_is_left_out(lines: Lines) -> None:
    assert lines.array(10, "store", "shared") == "tile"
    assert lines.arrays(10, "store", "global") == ()
    assert lines.arrays(14, "load", "global") == ("a", "b")  # of the statement over it


@pytest.mark.parametrize(
    ("line", "name"),
    [(10, ""), (12, "u"), (14, "u"), (16, "w"), (17, "s"), (20, "out"), (24, "row")],
)
def test_what_a_statement_assigns_to(lines: Lines, line: int, name: str) -> None:
    assert lines.assigned(line) == name


def test_calls_are_those_of_the_line_through_macros_but_not_of_the_text(lines: Lines) -> None:
    assert lines.calls(14) == ("cosf",)
    assert lines.calls(19) == ("sinf",)
    assert lines.calls(15) == ()  # `pick` is in the text
    assert lines.calls(2) == ()  # nothing happens where a macro is defined


def test_the_first_of_its_kind(lines: Lines) -> None:
    assert lines.first_barrier == 11
    assert lines.first("atomic", "global") == 21
    assert lines.first("atomic", "shared") == 0


def test_how_far_apart_lanes_are(lines: Lines) -> None:
    def apart(line: int, name: str) -> list[int | None]:
        sites = lines.sites(line, "load")
        return [site.apart for site in sites if site.access.array == name]

    assert apart(10, "a") == [1]
    assert apart(10, "b") == [3]
    assert apart(13, "b") == [2]
    assert apart(17, "at") == [0]
    assert apart(17, "a") == [1]
    assert [site.apart for site in lines.sites(24, "store")] == [32]


def test_what_an_index_is_made_of(lines: Lines) -> None:
    gathers = {s.access.array: s.gathers for s in lines.sites(17, "load")}
    assert gathers == {"at": False, "a": True}
    assert [s.gathers for s in lines.sites(21, "atomic")] == [True]
    assert [s.of_struct for s in lines.sites(23, "load")] == [True]
    assert [s.of_struct for s in lines.sites(23, "store")] == [True]
    (load, _) = lines.sites(17, "load")
    assert load.loop is not None
    assert load.loop.line == 17


@pytest.mark.parametrize(
    ("body", "access", "names"),
    [
        ("struct { float v[4]; } own; own.v[n] = x[n];", "store", ("own",)),
        ("struct S { const float* p; __device__ float at(int i) { return p[i]; } };", "load", ("p",)),
        ("struct S { float* p; __device__ void at(int i) { p[i] += 1; } };", "load", ("p",)),
        ("struct S { int* p; __device__ void at(int i) { atomicAdd(p + i, 1); } };", "atomic", ()),
        ("struct S { int* p; __device__ void at(int i) { atomicAdd(&p[i], 1); } };", "atomic",
         ("p",)),
    ],
)  # fmt: skip
def test_where_no_reading_came_the_text_is_asked(body: str, access, names) -> None:
    text = f"{body}\n__global__ void k(const float* x, float* out, int n) {{ out[n] = x[n]; }}\n"
    if not body.startswith("struct S"):
        text = f"__global__ void k(const float* x, float* out, int n) {{\n{body}\n}}\n"
    line = 1 if body.startswith("struct S") else 2
    assert subject(text).lines.arrays(line, access, "local") == names


def test_a_type_is_spelled_where_it_is_used_and_not_in_a_comment() -> None:
    def spells(text: str) -> bool:
        return subject(f"{text}\n__global__ void k() {{}}\n").lines.spells("double", "double2")

    assert spells("#define REAL double\n__device__ REAL half(float x) { return x; }")
    assert spells("typedef double2 pair;")
    assert spells("template <typename T> struct V {}; struct W : V<double> {};")
    assert not spells("#define REAL double")
    assert not spells("#if 0\ndouble x;\n#endif")
    assert not spells('// double\n__device__ const char* what = "double"; struct double4x {};')


KERNELS = """\
#pragma optiml tune WIDE in {8, 16} = 16
template <typename T, int N> __global__ void first(const T* a, T* out) {
    out[threadIdx.x] = a[N * threadIdx.x];
#if WIDE > 8
    out[WIDE] = a[0];
#endif
}
namespace here {
__global__ void second(float* b) { b[WIDE * threadIdx.x] = 0; }
}
"""


def launching(*kernels: str) -> Subject:
    found = subject(KERNELS)
    names = {f"first<float, {n}>": f"_Z5first{n}" for n in (2, 4)}
    launches = tuple(Launch(k, (1, 1, 1), (32, 1, 1), 0, ()) for k in kernels)
    build = replace(found.build, names={**names, "here::second": "_ZN4here6secondEPf"})
    return replace(found, plan=LaunchPlan(launches), build=build)


def test_a_kernel_is_read_as_each_launch_instantiates_it() -> None:
    twice = launching("_Z5first2", "_Z5first4", "_Z5first2")
    assert len(twice.readings) == 2
    assert [s.apart for s in twice.lines.sites(3, "load")] == [2, 4]
    assert [s.access.element.name for s in twice.lines.sites(3, "store")] == ["float"] * 2
    assert twice.lines.array(5, "store") == "out"


def test_only_kernels_that_are_launched_count() -> None:
    found = launching("_ZN4here6secondEPf")
    assert [reading.function.name for reading in found.readings] == ["here::second"]
    assert found.lines.array(9, "store", "global") == "b"
    assert len(subject(KERNELS).readings) == 2
