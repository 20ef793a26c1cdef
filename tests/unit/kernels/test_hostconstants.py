"""Whole numbers that the host copies to constants of the device are numbers of the text."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.kernels.read import read
from optiml_magic.kernels.unit import lift

DEVICE = """\
__constant__ int width;
__constant__ unsigned rows, cols;
__constant__ float scale;
__global__ void k(const float* a, float* out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < width) out[x] = scale * a[rows * width + x];
}
"""
LAUNCH = "k<<<(w + 31) / 32, 32>>>(a, out); }\n"
COPY = "cudaMemcpyToSymbol(width, &w, sizeof(int));"


def dropped(host: str) -> tuple[str, list[str]]:
    text, notes = drop_host_code(
        f"{DEVICE}int main() {{ int w = 96; float *a, *out; {host} {LAUNCH}"
    )
    return text, [note.text for note in notes]


@pytest.mark.parametrize(
    "copy",
    [
        COPY,
        "cudaMemcpyToSymbol(width, (void*)&w, sizeof(w), 0, cudaMemcpyHostToDevice);",
        "cudaMemcpyToSymbol<int>(width, (&w), 4);",
    ],
)
def test_a_constant_is_the_number_that_is_copied_there(copy: str) -> None:
    text, notes = dropped(copy)
    assert "__constant__ const int width = 96;" in text
    assert "#pragma optiml launch k grid(cdiv(96, 32)) block(32)" in text
    assert "`width` is 96, as line 8 copies it" in notes
    assert not any("`width` has" in note for note in notes)
    unit = lift(text)
    (store,) = read(unit, unit.kernels[0]).of("out")
    assert "95 - 1*blockDim.x*blockIdx.x - 1*threadIdx.x >= 0" in {str(c) for c in store.guard}


@pytest.mark.parametrize(
    "host",
    [
        f"if (a) {COPY}",
        f"for (int i = 0; i < 2; ++i) {COPY}",
        f"{COPY} w = 7; {COPY}",
        "cudaMemcpyToSymbol(width, a, sizeof(int));",
        "cudaMemcpyToSymbol(width, &w, 2);",
        "cudaMemcpyToSymbol(width, &w, 4, 4);",
        "long v = 5000000000; cudaMemcpyToSymbol(width, &v, 4);",
        f"{COPY} void* p; cudaGetSymbolAddress(&p, width);",
        "cudaMemcpyFromSymbol(&w, width, sizeof(int));",
        "cudaMemcpyToSymbol(scale, &w, sizeof(float));",
    ],
)  # fmt: skip
def test_others_stay_as_they_are(host: str) -> None:
    assert "__constant__ int width;" in dropped(host)[0]


def test_a_function_that_copies_what_it_is_given_must_be_called_once() -> None:
    sets = f"void set(int v) {{ {COPY.replace('&w', '&v')} }}\n"
    for calls, known in (("set(96);", True), ("set(96); set(7);", False)):
        text, _ = drop_host_code(
            f"{DEVICE}{sets}int main() {{ float *a, *out; {calls} k<<<3, 32>>>(a, out); }}\n"
        )
        assert ("int width = 96;" in text) == known


def test_constants_that_are_declared_together_are_known_together() -> None:
    one, both = (f"int h = 4; cudaMemcpyToSymbol(rows, &h, 4);{more}"
                 for more in ("", "cudaMemcpyToSymbol(cols, &w, 4);"))  # fmt: skip
    assert "__constant__ unsigned rows, cols;" in dropped(one)[0]
    assert "__constant__ const unsigned rows = 4, cols = 96;" in dropped(both)[0]


STRUCT = """\
struct Params { int nx; unsigned ny; float dt; double eps; };
__constant__ Params p;
__global__ void k(const float* a, float* out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < p.nx) out[x * p.ny] = p.dt * a[x];
}
"""
SET = "Params h; h.nx = 96; h.ny = 2 * 96; h.dt = 0.1; h.eps = 1e-3;"


def test_a_struct_of_numbers_is_what_is_copied_there() -> None:
    copy = "cudaMemcpyToSymbol(p, &h, sizeof(Params));"
    host = f"int main() {{ float *a, *out; {SET} {copy} k<<<h.nx / 32, 32>>>(a, out); }}\n"
    text, notes = drop_host_code(STRUCT + host)
    assert "__constant__ const Params p = {96, 192, 0.1f, 0.001};" in text
    assert "#pragma optiml launch k grid(96 / 32) block(32)" in text
    assert "`p` is {96, 192, 0.1f, 0.001}, as line 7 copies it" in [note.text for note in notes]
    unit = lift(text)
    (store,) = read(unit, unit.kernels[0]).of("out")
    assert str(store.index) == "192*blockDim.x*blockIdx.x + 192*threadIdx.x"
    assert [a.array for a in read(unit, unit.kernels[0]).accesses] == ["a", "out"]


@pytest.mark.parametrize(
    "change",
    [
        ("h.eps = 1e-3;", ""),
        ("h.nx = 96;", "h.nx = 96; if (a) h.nx = 7;"),
        ("h.nx = 96;", "h.nx = 96; fill(&h);"),
        ("double eps;", "double eps; float more[2];"),
        ("double eps;", "double eps; Params() {}"),
        ("= 0.1;", "= a[0];"),
    ],
)
def test_a_struct_that_is_not_known_stays(change: tuple[str, str]) -> None:
    copy = "cudaMemcpyToSymbol(p, &h, sizeof(Params));"
    host = f"int main() {{ float *a, *out; {SET} {copy} k<<<3, 32>>>(a, out); }}\n"
    assert "__constant__ Params p;" in drop_host_code((STRUCT + host).replace(*change))[0]


def test_a_constant_with_a_number_of_its_own_that_may_not_change_is_that_number() -> None:
    for words, known in (("__constant__ const int", True), ("__constant__ int", False)):
        unit = lift(f"{words} n = 8;\n__global__ void k(float* o) {{ o[n * threadIdx.x] = 1; }}\n")
        (store,) = read(unit, unit.kernels[0]).of("o")
        assert (str(store.index) == "8*threadIdx.x") == known
