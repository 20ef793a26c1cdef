"""What a compilation was given travels in the text, and the text can be read back."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from optiml_magic import binding
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.errors import UsageError
from optiml_magic.exports.cuda_file import CudaFileExport
from optiml_magic.exports.cupy_module import CupyModuleExport
from optiml_magic.exports.device_text import for_nvcc, for_nvrtc
from optiml_magic.exports.headers import Headers
from optiml_magic.model.build import Build, CompileFailure
from optiml_magic.optimize import evaluate_once
from optiml_magic.settings import resolve
from optiml_magic.source.program import parse_program
from tests.present import sampled
from tests.unit.exports.programs import ALL, H200, build, exportable, task_of, with_scalars


def compiled(text: str, options: CompileOptions = CompileOptions()) -> Build | CompileFailure:  # noqa: B008
    return NvrtcCompiler().compile(text, ("k",), H200, options)


#: A text with its headers, typed and in folders, and how often a part of each is left in it.
NESTED = {
    "kernel.cu": '#include "guarded.cuh"\n#include "once.cuh"\n#include "x.def"\n#include <cuda_fp16.h>\n'
    '#include "x.def"\n__global__ void k(float* p) { p[0] = guarded() + once() + late(); }\n',
    "guarded.cuh": "#ifndef GUARDED // its own\n#define GUARDED\n"
    '#include "once.cuh"\n__device__ inline float guarded() { return 1; }\n#endif\n',
    "once.cuh": '#pragma once\n#if 0\n#include "late.cuh"\n#endif\n#include "late.cuh"\n'
    "__device__ inline float once() { return late(); }\n",
    "late.cuh": '#pragma once\n#include "guarded.cuh"\n__device__ inline float late() { return 3; }\n',
    "x.def": "// no guard: each include counts\n",
}


@pytest.mark.parametrize("typed", [True, False])
def test_headers_are_written_out_once_and_mean_the_same(typed: bool, tmp_path: Path) -> None:
    for name, text in NESTED.items():
        (tmp_path / name).write_text(text)
    given = tuple((n, t) for n, t in NESTED.items() if n != "kernel.cu")
    options = CompileOptions(headers=given) if typed else CompileOptions(include=(str(tmp_path),))
    headers = Headers(options)
    text = headers.written_into(NESTED["kernel.cu"])
    assert headers.missing == []
    assert str(tmp_path) not in text
    assert re.findall(r'#include ["<](.*)[">]', text) == ["cuda_fp16.h"]
    assert text.count("float guarded()") == text.count("float once()") == 1
    assert text.count("no guard") == 2
    one, other = compiled(NESTED["kernel.cu"], options), compiled(text)
    assert isinstance(one, Build), one
    assert isinstance(other, Build), other
    assert one.digest == other.digest


def test_a_library_in_a_folder_is_named_and_not_written_out(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "big.h").write_text("#define BIG 1\n")
    headers = Headers(CompileOptions(include=(str(tmp_path),)))
    text = "#include <lib/big.h>\n#include CHOSEN\n__global__ void k(int* p) {}\n"
    assert headers.written_into(text) == text
    assert headers.missing == ["#include <lib/big.h>", "#include CHOSEN"]


def test_a_header_without_a_guard_cannot_include_itself() -> None:
    headers = Headers(CompileOptions(headers=(("a.h", '#include "a.h"\n'),)))
    with pytest.raises(UsageError, match="includes itself without an end"):
        headers.written_into('#include "a.h"\n')


def test_no_path_of_this_machine_travels(tmp_path: Path) -> None:
    (tmp_path / "mine.cuh").write_text("__device__ inline float one() { return 1; }\n")
    known = exportable("saxpy")
    text = f'#include "{tmp_path}/mine.cuh"\n#include "mine.cuh"\n{known.program.text}'
    options = replace(known.options, include=(str(tmp_path),), std="c++20", fast_math=True)
    what = replace(known, program=parse_program(text), options=options)
    for form in (CudaFileExport(), CupyModuleExport()):
        found = form.render(what)
        assert str(tmp_path) not in found
        assert "// mine.cuh\n" in found
        assert "-std=c++20" in found
        assert "--use_fast_math" in found
    told = replace(what, options=replace(options, arguments=("-ccbin=/opt/gcc/bin/g++",)))
    for form in (CudaFileExport(), CupyModuleExport()):
        with pytest.raises(UsageError, match="an argument of nvcc names a file or folder"):
            form.render(told)
    plain = replace(what, options=replace(options, arguments=("-Xptxas", "-O1")))
    assert "-Xptxas -O1 -c saxpy.cu" in CudaFileExport().render(plain)
    assert "Checked with nvcc -Xptxas -O1, not so here." in CupyModuleExport().render(plain)


@pytest.mark.parametrize("name", sampled(ALL, 4))
def test_an_exported_file_is_the_same_program(name: str) -> None:
    """Its launches, read back, are those of the program, and so is its code."""
    known = exportable(name)
    again = parse_program(CudaFileExport().render(known))
    assert again.tunes == ()
    before = {step.name.partition("<")[0]: step for step in known.steps}
    for launch, kernel in binding.launched(again):
        assert launch.kernel is not None
        step = before[launch.kernel.partition("<")[0]]
        for one, other in zip(
            (*launch.grid, *launch.block),
            (*step.directive.grid, *step.directive.block),
            strict=True,
        ):
            env = dict.fromkeys(one.names | other.names, 480)
            shapes = dict.fromkeys(one.arrays | other.arrays, (60, 40))
            assert one.evaluate(env, shapes) == other.evaluate({**env, **known.fixed}, shapes)
        assert len(kernel.parameters) == len(step.arguments)
    found = NvrtcCompiler().compile(
        again.compiled_text(), tuple(build(name).names), H200, CompileOptions()
    )
    assert isinstance(found, Build), found


@pytest.mark.parametrize("name", sampled(["two passes", "tables", "headers", "transpose_tiled"], 4))
def test_an_exported_file_passes_its_check_again(name: str, tmp_path: Path) -> None:
    path = tmp_path / "exported.cu"
    path.write_text(CudaFileExport().render(exportable(name)))
    settings = resolve({"device": "emulated", "verify_seeds": 1})
    task = with_scalars(task_of(name))
    read = replace(task, kernel=path, headers={}, defines={})
    checked = evaluate_once(read, settings, counters=False)
    assert checked.evaluation.verdict.passed, checked.evaluation.verdict
    beside = evaluate_once(task, settings, program=path.read_text(), counters=False)
    assert beside.evaluation.verdict.passed, beside.evaluation.verdict


def test_short_names_and_tests_of_floats_are_written_out() -> None:
    text = "__global__ void k(uint* p, float* f) { p[0] = std::isnan(f[0]); }\n"
    alone, beside = for_nvrtc(text), for_nvcc(text)
    assert alone.startswith("namespace std { using ::isnan; }\ntypedef unsigned int uint;\n")
    assert "ulong" not in alone
    assert "#include <sys/types.h>\n" in beside
    assert "typedef" not in for_nvrtc("using uint = unsigned;\n" + text)


def test_powers_of_several_types_are_written_out() -> None:
    text = "__global__ void k(float* f) { f[0] = pow(f[1], 1.0 / 3.0) * M_1_PI; }\n"
    alone = for_nvrtc(text)
    assert alone.count("template <") == 4
    assert "#define M_1_PI" in alone
    assert "M_PI " not in alone
    assert "template" not in for_nvrtc(text.replace("pow(", "powf("))
    assert for_nvcc(text) == f"#include <math.h>\n{text}"
