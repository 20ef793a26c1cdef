from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from optiml_magic.chips import CHIPS, chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.cached import CachedCompiler
from optiml_magic.compilers.nvrtc import NvrtcCompiler, _digest
from optiml_magic.model.build import Build, CompileFailure
from tests.present import sampled

SCALE = """\
template <typename T, int N> __global__ void scale(T* out) {
    __shared__ T tile[N];
    tile[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[N - 1 - threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def nvrtc() -> NvrtcCompiler:
    return NvrtcCompiler()


def build(compiler: NvrtcCompiler, text: str, *kernels: str, name: str = "h200") -> Build:
    made = compiler.compile(text, kernels, chip(name), CompileOptions())
    assert isinstance(made, Build), made
    return made


def failure(compiler: NvrtcCompiler, text: str) -> CompileFailure:
    made = compiler.compile(text, ("k",), chip("h200"), CompileOptions())
    assert isinstance(made, CompileFailure)
    return made


def test_template_instances_have_their_own_names_and_resources(nvrtc: NvrtcCompiler) -> None:
    made = build(nvrtc, SCALE, "scale<float, 32>", "scale<double, 64>")
    small, large = (
        made.resources[made.names[n]] for n in ("scale<float, 32>", "scale<double, 64>")
    )
    reserved = large.shared_bytes - small.shared_bytes
    assert reserved == 64 * 8 - 32 * 4
    assert small.registers > 0
    assert made.cubin[:4] == b"\x7fELF"
    assert ".target sm_90" in made.ptx


@pytest.mark.parametrize("name", CHIPS)
def test_every_chip_that_is_named_can_be_compiled_for(nvrtc: NvrtcCompiler, name: str) -> None:
    made = build(nvrtc, SCALE, "scale<float, 32>", name=name)
    assert f".target {chip(name).architecture}" in made.ptx


@pytest.mark.parametrize(
    "header",
    sampled(["stdint.h", "cstdint", "math.h", "float.h", "stdio.h", "cuda_fp16.h", "cuda_bf16.h", "mma.h",
     "cooperative_groups.h", "cuda/std/cstdint", "cuda_runtime.h", "limits", "type_traits", "stddef.h", "cstddef",
     "stdbool.h"], 5),
)  # fmt: skip
def test_headers_that_kernels_ask_for(nvrtc: NvrtcCompiler, header: str) -> None:
    text = f"#include <{header}>\n__global__ void k(uint64_t* p) {{ p[0] = UINT_MAX; }}"
    build(nvrtc, text, "k")


def test_headers_of_the_host_are_empty(nvrtc: NvrtcCompiler) -> None:
    names = ("vector", "chrono", "stdexcept", "sys/time.h", "unistd.h", "cuda.h", "getopt.h")
    own = "".join(f"#include <{name}>\n" for name in names) + "#define TWO 2\n"
    text = '#include "own.h"\n__global__ void k(int* p) { p[0] = TWO; }'
    options = CompileOptions(headers=(("own.h", own),))
    assert isinstance(nvrtc.compile(text, ("k",), chip("h200"), options), Build)


@pytest.mark.parametrize("header", ["", "#include <cuda.h>\n", "#include <cuda_runtime.h>\n"])
def test_the_release_of_cuda_is_known_without_a_header(nvrtc: NvrtcCompiler, header: str) -> None:
    text = f"{header}#if CUDART_VERSION < 9000 || CUDA_VERSION < 9000\n#error old\n#endif\n"
    assert not build(nvrtc, text + "__global__ void k(int* p) { p[0] = 1; }", "k").warnings


def test_names_that_need_no_include(nvrtc: NvrtcCompiler) -> None:
    text = "__global__ void k(float* p, uint32_t n) { p[n] = n ? INFINITY : FLT_MAX; }"
    build(nvrtc, text, "k")


LIMITS = """\
#include <optiml_std.h>
#include <cuda/std/limits>
#include <cuda/std/type_traits>
namespace other = cuda::std;
template <class T> constexpr bool like() {
    using A = std::numeric_limits<T>; using B = other::numeric_limits<T>;
    return A::min() == B::min() && A::max() == B::max() && A::lowest() == B::lowest() && A::digits == B::digits
        && A::is_signed == B::is_signed && A::is_integer == B::is_integer && A::has_infinity == B::has_infinity
        && std::is_integral<T>::value == other::is_integral<T>::value
        && other::is_same<std::common_type_t<T, short>, other::common_type_t<T, short>>::value;
}
template <class... T> constexpr bool all() { return (like<T>() && ...); }
static_assert(all<char, signed char, unsigned char, short, unsigned short, int, unsigned, long, unsigned long,
                  long long, unsigned long long, float, double>(), "");
template <class T> constexpr bool real() {
    using A = std::numeric_limits<T>; using B = other::numeric_limits<T>;
    return A::epsilon() == B::epsilon() && A::denorm_min() == B::denorm_min() && A::infinity() == B::infinity()
        && A::quiet_NaN() != A::quiet_NaN() && std::is_floating_point<const T>::value;
}
static_assert(real<float>() && real<double>(), "");
static_assert(std::is_same<std::conditional_t<true, std::remove_reference_t<const int&>, char>, const int>::value, "");
static_assert(std::min(3, 2) == 2 && std::max(3, 2) == 3 && std::clamp(7, 0, 5) == 5, "");
__global__ void k(float* p) { std::swap(p[0], p[1]); }
"""  # fmt: skip


def test_brief_headers_say_what_those_of_the_toolkit_say(nvrtc: NvrtcCompiler) -> None:
    build(nvrtc, LIMITS, "k")


@pytest.mark.parametrize(
    "line",
    ["p[0] = std::max(p[1], 0.f);",
     "p[0] = std::numeric_limits<float>::lowest();",
     "std::common_type<int, float>::type v = std::forward<int>(n); p[0] = v;",
     "std::pair<int, int> v{n, 1}; p[v.second] = std::min(v.first, 3);",
     "p[0] = std::max({p[1], p[2], 0.f});",
     "std::uint32_t v = UINT32_C(1) << n; std::size_t w = SIZE_MAX; p[v % 4] = w + INT16_MIN + UINT8_MAX;"],
)  # fmt: skip
def test_names_of_std_are_there_whatever_brought_them_in(nvrtc: NvrtcCompiler, line: str) -> None:
    lists = "pair" in line or "({" in line
    header = "#include <utility>\n#include <algorithm>\n" if lists else ""
    build(nvrtc, f"{header}__global__ void k(float* p, int n) {{ {line} }}", "k")


def test_limits_of_half_are_those_of_the_toolkit(nvrtc: NvrtcCompiler) -> None:
    text = "#include <cuda_fp16.h>\n#include <limits>\n__global__ void k(half* p) "
    made = build(nvrtc, text + "{ p[0] = std::numeric_limits<half>::lowest(); }", "k")
    assert "0xFBFF" in made.ptx or "64513" in made.ptx or "-1025" in made.ptx


def test_a_short_name_may_be_another_type_of_the_text(nvrtc: NvrtcCompiler) -> None:
    text = "typedef unsigned long long ulong;\nstruct ushort { int x; };\n"
    build(nvrtc, text + "__global__ void k(ulong* p, ushort s, uint n) { p[n] = s.x; }", "k")


def test_a_typed_header_may_declare_a_short_name(nvrtc: NvrtcCompiler) -> None:
    text = '#include "own.h"\n__global__ void k(ulong* p) { p[0] = 1; }'
    options = CompileOptions(headers=(("own.h", "using ulong = unsigned long long;\n"),))
    assert isinstance(nvrtc.compile(text, ("k",), chip("h200"), options), Build)


def test_errors_stand_on_the_lines_of_the_text(nvrtc: NvrtcCompiler) -> None:
    errors = failure(nvrtc, "__global__ void k(float* p) {\n    p[0] = q;\n    int y\n}\n").errors
    assert [(e.line, e.severity) for e in errors] == [(2, "error"), (3, "error")]
    assert "q" in errors[0].message
    assert [e.undefined for e in errors] == ["q", ""]


def test_a_brace_left_open_is_named_by_its_line(nvrtc: NvrtcCompiler) -> None:
    (error,) = failure(nvrtc, "int x;\n__global__ void k(float* p) {\n    p[0] = 1;\n").errors
    assert error.line == 2
    assert 'expected a "}"' in error.message


def test_a_kernel_called_as_a_function_of_the_headers_is_named_by_its_line(
    nvrtc: NvrtcCompiler,
) -> None:
    text = "// a norm\n__global__ void\nnorm(float* x) { x[0] = 0.0f; }\n"
    found = nvrtc.compile(text, ("norm",), chip("h200"), CompileOptions())
    assert isinstance(found, CompileFailure)
    (error,) = found.errors
    assert (error.line, error.message) == (
        3, "CUDA's headers have a function `norm` as well; rename the kernel"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("head", "asked", "told"),
    [
        ("", "k<float>", "`k` is not a template, and the launch asks for `k<float>`"),
        ("template <class T> ", "k<flt>", "`k<flt>`"),
        ("template <class T, int N> ", "k", "`k`"),
    ],
)
def test_what_a_launch_asks_for_stands_in_the_message(
    nvrtc: NvrtcCompiler, head: str, asked: str, told: str
) -> None:
    text = f"{head}__global__ void k(float* p) {{ p[0] = 1; }}"
    found = nvrtc.compile(text, (asked,), chip("h200"), CompileOptions())
    assert isinstance(found, CompileFailure)
    assert told in found.errors[0].message
    assert "__nv_name_map" not in found.errors[0].message


def test_an_error_in_a_header_names_the_header(nvrtc: NvrtcCompiler) -> None:
    (error, *_) = failure(nvrtc, "#include <thrust/sort.h>\n__global__ void k() {}\n").errors
    assert error.line == 0
    assert re.search(r"\(in \w+\.(?:cuh|h):\d+\)$", error.message)


def test_the_header_of_all_of_cub_is_what_device_code_uses_of_it(nvrtc: NvrtcCompiler) -> None:
    found = nvrtc.compile(
        "#include <cub/cub.cuh>\n"
        "__global__ void total(const float* x, float* out) {\n"
        "    using Warp = cub::WarpReduce<float>;\n"
        "    __shared__ typename Warp::TempStorage room;\n"
        "    float all = Warp(room).Sum(x[threadIdx.x]);\n"
        "    if (threadIdx.x == 0) *out = all;\n"
        "}\n",
        ("total",), chip("h200"), CompileOptions(),
    )  # fmt: skip
    assert isinstance(found, Build)


def test_line_information_does_not_change_the_machine_code(nvrtc: NvrtcCompiler) -> None:
    """The sections that hold code are equal with and without -lineinfo."""
    kernels = ("scale<float, 32>",)
    flags = ["--gpu-architecture=sm_90", "--std=c++17", "-default-device"]
    with_lines = nvrtc._run(SCALE, kernels, [*flags, "-lineinfo"])
    without = nvrtc._run(SCALE, kernels, flags)
    assert not isinstance(with_lines, CompileFailure)
    assert not isinstance(without, CompileFailure)
    assert _code(with_lines[1]) == _code(without[1])
    assert with_lines[1] != without[1]


def test_the_digest_ignores_comments_and_sees_code(nvrtc: NvrtcCompiler) -> None:
    kernel = "__global__ void k(int* p) { p[0] = 1; }"
    first = build(nvrtc, kernel, "k").digest
    assert build(nvrtc, "// a comment\n\n" + kernel + "\n", "k").digest == first
    assert build(nvrtc, kernel.replace("1", "2"), "k").digest != first


def test_the_digest_is_that_of_ptx_without_line_information(nvrtc: NvrtcCompiler) -> None:
    text = (
        "__constant__ float c[4];\n__device__ float half(float x) {\n  return x / 2 + c[1];\n}\n"
        "__global__ void k(float* p) {\n  __shared__ float s[32];\n  s[threadIdx.x] = half(p[0]);\n"
        "  __syncthreads();\n  if (p[1] > 0) p[threadIdx.x] = s[31 - threadIdx.x];\n}\n"
    )
    real, virtual = ["--gpu-architecture=sm_90", "-lineinfo"], ["--gpu-architecture=compute_90"]
    noted, plain = (nvrtc._run(text, ("k",), flags) for flags in (real, virtual))
    assert not isinstance(noted, CompileFailure)
    assert not isinstance(plain, CompileFailure)
    assert ".debug_str" in noted[0]
    assert ".loc" not in plain[0]
    assert _digest(noted[0]) == _digest(plain[0])


def test_the_cache_gives_back_what_was_made(nvrtc: NvrtcCompiler, tmp_path: Path) -> None:
    class Counting(NvrtcCompiler):
        compiled = 0

        def _run(self, *arguments):  # type: ignore[no-untyped-def]
            Counting.compiled += 1
            return super()._run(*arguments)

    cached = CachedCompiler(Counting(), tmp_path)
    first = build(cached, SCALE, "scale<float, 32>")  # type: ignore[arg-type]
    made = Counting.compiled
    assert build(cached, SCALE, "scale<float, 32>") == first  # type: ignore[arg-type]
    assert Counting.compiled == made
    build(cached, SCALE + "// more", "scale<float, 32>")  # type: ignore[arg-type]
    assert Counting.compiled > made


@pytest.mark.parametrize("ending", [".json", ".ptx", ".cubin"])
def test_a_broken_entry_is_compiled_again(
    nvrtc: NvrtcCompiler, tmp_path: Path, ending: str
) -> None:
    cached = CachedCompiler(nvrtc, tmp_path)
    first = build(cached, SCALE, "scale<float, 32>")  # type: ignore[arg-type]
    (entry,) = tmp_path.rglob(f"*{ending}")
    entry.unlink()
    assert build(cached, SCALE, "scale<float, 32>") == first  # type: ignore[arg-type]
    assert entry.exists()


def test_no_nvrtc_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    """In an interpreter where the bindings cannot be imported."""
    program = (
        "import sys; sys.modules['cuda'] = None\n"
        "from optiml_magic.compilers.nvrtc import NvrtcCompiler\n"
        "from optiml_magic.errors import MachineError\n"
        "try: NvrtcCompiler()\n"
        "except MachineError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ),
        check=True, cwd=tmp_path,
    )  # fmt: skip
    assert "NVRTC cannot be loaded here" in done.stdout
    assert "fix: pip install cuda-bindings" in done.stdout


def _code(cubin: bytes) -> dict[str, bytes]:
    """The ELF sections that the GPU executes or reads, by name."""
    import struct

    offset = struct.unpack_from("<Q", cubin, 0x28)[0]
    size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, offset + size * i) for i in range(count)]
    names = headers[names_at][4]
    found = {}
    for name, _, _, _, start, length in headers:
        text = cubin[names + name : cubin.index(b"\0", names + name)].decode()
        if text.startswith((".text.", ".nv.constant")):
            found[text] = cubin[start : start + length]
    assert any(name.startswith(".text.") for name in found)
    return found


def test_the_digest_is_that_of_another_process() -> None:
    """A text with no name of external linkage: NVRTC spells its kernel with the process's number."""
    program = (
        "from optiml_magic.chips import chip\n"
        "from optiml_magic.compilers.base import CompileOptions\n"
        "from optiml_magic.compilers.hosted import HostedCompiler\n"  # NVRTC may die of this text
        "compiler = HostedCompiler('nvrtc')\n"
        "text = 'namespace { __global__ void k(int* p) { p[0] = %d; } }'\n"
        "for number in (1, 2):\n"
        "    made = compiler.compile(text % number, ('k',), chip('h200'), CompileOptions())\n"
        "    print(made.names['k'], made.digest)\n"
    )
    command = [sys.executable, "-c", program]
    told = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert told[0][0] != told[1][0]
    assert told[0][1::2] == told[1][1::2]
    assert told[0][1] != told[0][3]


@pytest.mark.parametrize(
    "value",
    [
        "pow(x, 1.0 / 3.0)", "pow(x, 2)", "pow(i, 2)", "pow(2, i)", "pow(1.5, x)", "pow(2.0f, i)",
        "fmax(x, 1.0)", "fmin(i, 3)", "fmin(i, 2u)", "std::fmax(i, x)", "fmod(x, 2)", "sqrt(i)",
        "atan2(i, x)", "std::exp(i) + log(i + 1)", "sqrt(i * 2ull)", "fmax(1.0, fmin(x, 2))",
        "std::sqrt(x) + std::abs(x) + std::pow(x, 2.0f)", "std::fmax(x, 1.0f) * M_1_PI * M_SQRT1_2",
    ],
)  # fmt: skip
def test_functions_that_nvcc_takes_with_arguments_of_several_types(
    value: str, nvrtc: NvrtcCompiler
) -> None:
    text = f"__global__ void k(float x, int i, double* out) {{ out[0] = {value}; }}"
    build = nvrtc.compile(text, ("k",), chip("h200"), CompileOptions())
    assert isinstance(build, Build), build


def test_floats_alone_take_the_functions_of_floats(nvrtc: NvrtcCompiler) -> None:
    text = (
        "__global__ void k(float x, float* y) {"
        " y[0] = fmax(x, 1.0f) + fmin(x, y[1]) + sqrt(x) + exp(x) + std::log(x); }"
    )
    build = nvrtc.compile(text, ("k",), chip("h200"), CompileOptions())
    assert isinstance(build, Build)
    assert ".f64" not in build.ptx


def test_a_class_that_becomes_a_float_takes_the_float_function(nvrtc: NvrtcCompiler) -> None:
    text = (
        "struct Half { float v; __device__ operator float() const { return v; } };\n"
        "__global__ void k(Half x, float y, float* out) { out[0] = pow((float)x, y); }"
    )
    build = nvrtc.compile(text, ("k",), chip("h200"), CompileOptions())
    assert isinstance(build, Build)
    assert ".f64" not in build.ptx


def test_which_variables_the_code_refers_to(nvrtc: NvrtcCompiler) -> None:
    text = """\
constexpr int N = 32;
const float SCALE = 0.5f;
const float w[3] = {1, 2, 3};
__constant__ float c[4];
__constant__ float unused[2];
__device__ int seen;
__device__ int* where = &seen;
__global__ void k(float* a) { a[0] = SCALE * N * w[threadIdx.x] * c[threadIdx.x] + *where; }
"""
    found = {v.name: (v.nbytes, v.space, v.referred) for v in build(nvrtc, text, "k").variables}
    assert found == {
        "N": (4, "device", False),
        "SCALE": (4, "device", False),
        "w": (12, "device", True),
        "c": (16, "constant", True),
        "unused": (8, "constant", False),
        "seen": (4, "device", True),
        "where": (8, "device", True),
    }


def test_what_the_assembler_refuses_is_said_without_the_rest_of_its_log(
    nvrtc: NvrtcCompiler,
) -> None:
    text = "__global__ void k(float* x) { __shared__ float s[99999]; s[threadIdx.x] = *x; *x = s[0]; }\n"
    found = nvrtc.compile(text, ("k",), chip("h200"), CompileOptions())
    assert isinstance(found, CompileFailure)
    (error,) = found.errors
    assert error.message.startswith("ptxas: Entry function")
    assert "too much shared data" in error.message
    assert "\n" not in error.message
