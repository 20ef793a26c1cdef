"""The contract suite of compilers; a test subclasses it and gives the fixture ``compiler``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions, Compiler
from optiml_magic.errors import UsageError
from optiml_magic.model.build import Build, CompileFailure

_SCALE = """\
#pragma optiml launch scale<float, 32> grid(1) block(32)
template <typename T, int N> __global__ void scale(T* out) {
    __shared__ T tile[N];
    tile[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[N - 1 - threadIdx.x];
}
__global__ void put(float* out) { out[0] = 1; }
__global__ void put(double* out) { out[0] = 2; }
static __global__ void hidden(int* out) { out[0] = 3; }
namespace inner { __global__ void put(int* out) { out[0] = 4; } }
namespace { __global__ void nameless(int* out) { out[0] = 5; } }
extern "C" __global__ void plain(int* out) { out[0] = 6; }
"""
_SHORT = """\
static_assert(sizeof(uint) == 4 && sizeof(ushort) == 2 && sizeof(ulong) == 8, "their sizes");
__global__ void k(uint* p, const ushort* q, const ulong* r, const float* f, const double* d) {
    p[0] = std::isinf(f[0]) + std::isnan(f[1]) + std::isfinite(f[2]) + q[0] + (uint)r[0];
    p[1] = std::isinf(d[0]) + std::isnan(d[1]) + std::isfinite(d[2]);
}
"""
_DECLARATIONS = (  # what can stand together does: each text is compiled
    "",
    """typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;
#include <cmath>
using namespace std;
""",
    "#define uint unsigned int\n#include <stdint.h>\ntypedef uint64_t ulong;\n",
    """using uint = unsigned;
#include <stdlib.h>
#include <sys/types.h>
#include <cuda/std/cmath>
#include <limits>
""",
)
_K = "__global__ void k(int* p) { p[0] = %s; }\n"


class CompilerContract:
    """What every compiler must do; the fixture ``compiler`` gives one."""

    options = CompileOptions()

    def build(
        self, compiler: Compiler, text: str, *kernels: str, options: CompileOptions | None = None
    ) -> Build:
        """The text compiled for ``sm_90``."""
        made = compiler.compile(text, kernels, chip("h200"), options or self.options)
        assert isinstance(made, Build), made
        return made

    def refused(
        self, compiler: Compiler, text: str, options: CompileOptions | None = None
    ) -> CompileFailure:
        """What is said of a text that does not compile; its kernel is ``k``."""
        made = compiler.compile(text, ("k",), chip("h200"), options or self.options)
        assert isinstance(made, CompileFailure)
        assert all(error.severity == "error" for error in made.errors)
        return made

    def test_the_version_names_a_release(self, compiler: Compiler) -> None:
        assert compiler.major >= 12
        assert f" {compiler.major}." in compiler.version

    def test_every_kind_of_name_has_its_lowered_name_and_resources(
        self, compiler: Compiler
    ) -> None:
        names = (
            "scale<float, 32>", "scale<double, 60 + 4>", "inner::put", "hidden", "nameless",
            "plain", "static_cast<void (*)(double*)>(put)",
        )  # fmt: skip
        made = self.build(compiler, _SCALE, *names)
        assert tuple(made.names) == names
        assert len(set(made.names.values())) == len(names)
        assert made.names["plain"] == "plain"
        assert made.names[names[-1]] == "_Z3putPd"
        for lowered in made.names.values():
            assert made.resources[lowered].registers > 0
            assert f".entry {lowered}(" in made.ptx
            assert lowered.encode() in made.cubin
        small, large = (made.resources[made.names[name]].shared_bytes for name in names[:2])
        assert large - small == 64 * 8 - 32 * 4
        assert made.cubin[:4] == b"\x7fELF"
        assert ".target sm_90" in made.ptx
        assert "optiml_name" not in made.ptx
        assert b"optiml_name" not in made.cubin

    def test_a_kernel_that_is_not_there_is_an_error_without_a_line(
        self, compiler: Compiler
    ) -> None:
        (error, *_) = self.refused(compiler, "__global__ void j(int* p) { p[0] = 1; }").errors
        assert error.line == 0, error
        assert '"k"' in error.message

    def test_directives_are_no_warnings_and_real_ones_stand_on_their_line(
        self, compiler: Compiler
    ) -> None:
        text = "#pragma optiml launch k grid(1) block(1)\n" + _K % "1 / 0"
        (warning,) = self.build(compiler, text, "k").warnings
        assert (warning.line, "division by zero" in warning.message) == (2, True)

    def test_errors_stand_on_the_lines_of_the_text(self, compiler: Compiler) -> None:
        text = "__global__ void k(float* p) {\n    p[0] = q;\n    int y\n}\n"
        errors = self.refused(compiler, text).errors
        assert [error.line for error in errors] == [2, 3]
        assert "q" in errors[0].message
        assert [error.undefined for error in errors] == ["q", ""]

    def test_a_brace_left_open_is_named_by_its_line(self, compiler: Compiler) -> None:
        text = "int x;\n__global__ void k(float* p) {\n    p[0] = 1;\n"
        (error,) = self.refused(compiler, text).errors
        assert error.line == 2
        assert 'expected a "}"' in error.message

    def test_a_header_that_is_nowhere_is_named_on_its_line(self, compiler: Compiler) -> None:
        (error,) = self.refused(compiler, '\n#include "nowhere.cuh"\n' + _K % "1").errors
        assert error.line == 2
        assert "nowhere.cuh" in error.message

    def test_what_the_assembler_refuses_is_an_error(self, compiler: Compiler) -> None:
        (error, *_) = self.refused(compiler, '__global__ void k(int*) { asm("bogus;"); }').errors
        assert "bogus" in error.message

    def test_the_digest_ignores_comments_and_sees_code(self, compiler: Compiler) -> None:
        text = "namespace { __global__ void k(int* p) { p[0] = 1; } }\n"
        first = self.build(compiler, text, "k")
        again = self.build(compiler, "// a comment\n\n" + text, "k")
        assert again.digest == first.digest
        assert self.build(compiler, text.replace("1", "2"), "k").digest != first.digest

    def test_typed_headers_reach_each_other_by_quotes_and_brackets(
        self, compiler: Compiler
    ) -> None:
        headers = (
            ("deep/two.cuh", "#pragma once\n__device__ inline int two() { return 2; }\n"),
            ("util.cuh", "#include <deep/two.cuh>\n__device__ inline int f() { return two(); }\n"),
        )  # fmt: skip
        options = replace(self.options, headers=headers)
        for spelled in ('"util.cuh"', "<util.cuh>"):
            self.build(compiler, f"#include {spelled}\n" + _K % "f()", "k", options=options)

    def test_a_folder_whose_name_holds_spaces_and_commas(
        self, compiler: Compiler, tmp_path: Path
    ) -> None:
        folder = tmp_path / "my, own 'headers'"
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "a.cuh").write_text('#include "b.cuh"\n')
        (folder / "sub" / "b.cuh").write_text("__device__ inline int f() { return 7; }\n")
        options = replace(self.options, include=(str(folder),))
        for spelled in ('"sub/a.cuh"', "<sub/a.cuh>"):
            made = self.build(compiler, f"#include {spelled}\n" + _K % "f()", "k", options=options)
            assert str(tmp_path) not in made.cubin.decode("latin-1") or "nvrtc" in compiler.version

    def test_an_error_in_a_header_names_its_line(self, compiler: Compiler, tmp_path: Path) -> None:
        bad = "\n\nint f() { return zz; }\n"
        (tmp_path / "disk.cuh").write_text(bad)
        options = replace(
            self.options, include=(str(tmp_path),), headers=(("deep/typed.cuh", bad),)
        )
        for name in ("deep/typed.cuh", "disk.cuh"):
            text = f'#include "{name}"\n' + _K % "1"
            (error,) = self.refused(compiler, text, options).errors
            assert error.line == 0
            assert "zz" in error.message
            assert f"{name.rsplit('/', maxsplit=1)[-1]}:3" in error.message

    def test_macros_reach_the_text_as_they_are(self, compiler: Compiler) -> None:
        values = (("A", "(1 + 2)"), ("B", '"a b; $HOME"'), ("C", ""), ("D", "4, 5"))
        text = "__constant__ int d[2] = {D};\nstatic_assert(A == 3 C && sizeof(B) == 11, B);\n"
        options = replace(self.options, defines=values)
        self.build(compiler, text + _K % "d[A - 2]", "k", options=options)

    def test_short_names_and_tests_of_floats_are_known(self, compiler: Compiler) -> None:
        for before in _DECLARATIONS:
            self.build(compiler, before + _SHORT, "k")

    def test_a_macro_may_take_a_short_name(self, compiler: Compiler) -> None:
        defines = (("uint", "unsigned int"), ("ushort", "unsigned short"))
        self.build(compiler, _SHORT, "k", options=replace(self.options, defines=defines))

    def test_the_standard_and_fast_math(self, compiler: Compiler) -> None:
        text = (
            "__global__ void k(float* p) {\n"
            "    p[0] = __sinf(p[1]) + sinf(p[2]) + (__cplusplus - 201402L);\n}\n"
        )
        slow = self.build(compiler, text, "k", options=replace(self.options, std="c++14"))
        fast = self.build(compiler, text, "k", options=replace(self.options, fast_math=True))
        newer = self.build(compiler, text, "k", options=replace(self.options, std="c++20"))
        assert slow.ptx.count("sin.approx") == 1
        assert fast.ptx.count("sin.approx.ftz") == 2
        assert len({slow.digest, fast.digest, newer.digest}) == 3

    def test_a_standard_that_it_does_not_know_is_a_short_error(self, compiler: Compiler) -> None:
        try:
            self.refused(compiler, _K % "1", replace(self.options, std="c++99"))
        except UsageError as error:
            told = str(error)
        assert "std" in told
        assert len(told.splitlines()) <= 3
