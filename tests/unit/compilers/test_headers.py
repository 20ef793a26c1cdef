"""Editing a header is seen: by the scan, by the cache, by nvcc and NVRTC alike."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.cached import CachedCompiler
from optiml_magic.compilers.headers import fingerprint
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.compilers.options import options_of
from optiml_magic.errors import UsageError
from optiml_magic.model.build import Build
from optiml_magic.model.task import Task
from optiml_magic.settings import resolve
from tests.present import sampled

pytestmark = pytest.mark.usefixtures("own_caches")  # it looks at what is compiled anew

KERNEL = "__global__ void k(int* p) { p[0] = f(); }\n"
F = "__device__ inline int f() { return %d; }\n"

# How a text may reach a header h.cuh; each must be seen.
SPELLINGS = {
    "quotes": '#include "h.cuh"',
    "brackets": "#include <h.cuh>",
    "spaces": '  #  include  "h.cuh"',
    "no space": '#include"h.cuh"',
    "comments": '/* a */ # /* b */ include /* c */ "h.cuh" // d',
    "a comment over lines": '#include /* \n */ "h.cuh"',
    "splices": '#inc\\\nlude \\\n"h.cuh"',
    "windows": '#include "h.cuh"\r',
    "a digraph": '%:include "h.cuh"',
    "dots": '#include "./h.cuh"',
    "branch": '#ifdef __CUDACC__\n#include "h.cuh"\n#endif',
}


@pytest.fixture(scope="module")
def nvrtc() -> NvrtcCompiler:
    return NvrtcCompiler()


def made(compiler: CachedCompiler, text: str, options: CompileOptions) -> str:
    build = compiler.compile(text, ("k",), chip("h200"), options)
    assert isinstance(build, Build), build
    (value,) = re.findall(r"(?:mov|st\.global)\.\w+\s+\S+ (\d+);", build.ptx)
    return str(value)


@pytest.mark.parametrize("spelling", sampled(SPELLINGS, 3))
def test_an_edited_header_is_compiled_anew(
    nvrtc: NvrtcCompiler, tmp_path: Path, spelling: str
) -> None:
    cached = CachedCompiler(nvrtc, tmp_path / "cache")
    options = CompileOptions(include=(str(tmp_path),))
    text = SPELLINGS[spelling] + "\n" + KERNEL
    for number in (41, 42, 41):
        (tmp_path / "h.cuh").write_text(F % number)
        assert made(cached, text, options) == str(number)
    if spelling != "dots":  # what is typed has the very name that an include gives
        for number in (51, 52, 51):
            typed = CompileOptions(headers=(("h.cuh", F % number),))
            assert made(cached, text, typed) == str(number)


def test_a_header_behind_others_is_seen(nvrtc: NvrtcCompiler, tmp_path: Path) -> None:
    """The text includes a typed one, that one in a folder, and that one beside and above it."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "one.cuh").write_text('#include "two.cuh"\n')
    (tmp_path / "sub" / "two.cuh").write_text('#pragma once\n#include "../three.cuh"\n')
    options = CompileOptions(
        include=(str(tmp_path),), headers=(("typed.cuh", "#include <sub/one.cuh>\n"),)
    )
    cached = CachedCompiler(nvrtc, tmp_path / "cache")
    for number in (7, 8, 7):
        (tmp_path / "three.cuh").write_text(F % number)
        assert made(cached, '#include "typed.cuh"\n' + KERNEL, options) == str(number)


def test_a_typed_header_finds_what_lies_in_the_working_directory(
    nvrtc: NvrtcCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVRTC's rule, not ours; so it has to be seen."""
    monkeypatch.chdir(tmp_path)
    options = CompileOptions(headers=(("typed.cuh", '#include "beside.cuh"\n'),))
    cached = CachedCompiler(nvrtc, tmp_path / "cache")
    for number in (7, 8):
        (tmp_path / "beside.cuh").write_text(F % number)
        assert made(cached, '#include "typed.cuh"\n' + KERNEL, options) == str(number)


def test_a_header_that_appears_in_an_earlier_folder_is_seen(tmp_path: Path) -> None:
    early, late = tmp_path / "early", tmp_path / "late"
    early.mkdir()
    late.mkdir()
    (late / "h.cuh").write_text(F % 1)
    options = CompileOptions(include=(str(early), str(late)))
    before = fingerprint('#include "h.cuh"', options)
    (early / "h.cuh").write_text(F % 1)
    assert fingerprint('#include "h.cuh"', options) != before


def test_an_include_of_a_macro_is_never_remembered(nvrtc: NvrtcCompiler, tmp_path: Path) -> None:
    options = CompileOptions(include=(str(tmp_path),), defines=(("H", '"h.cuh"'),))
    cached = CachedCompiler(nvrtc, tmp_path / "cache")
    assert fingerprint("#include H\n", options) is None
    for number in (3, 4):
        (tmp_path / "h.cuh").write_text(F % number)
        assert made(cached, "#include H\n" + KERNEL, options) == str(number)
    assert not (tmp_path / "cache").exists()


def test_has_include_is_seen(tmp_path: Path) -> None:
    options = CompileOptions(include=(str(tmp_path),))
    text = '#if __has_include("h.cuh")\nint x;\n#endif\n'
    before = fingerprint(text, options)
    (tmp_path / "h.cuh").write_text("")
    assert fingerprint(text, options) != before


def test_headers_that_are_not_reached_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "h.cuh").write_text(F % 1)
    empty = fingerprint(KERNEL, CompileOptions())
    options = CompileOptions(include=(str(tmp_path),), headers=(("typed.cuh", F % 2),))
    assert fingerprint(KERNEL, options) == empty
    assert fingerprint("#include <cuda_fp16.h>\n" + KERNEL, options) == empty


def test_headers_that_include_each_other_end(tmp_path: Path) -> None:
    options = CompileOptions(
        include=(str(tmp_path),),
        headers=(("a.cuh", '#include "b.cuh"\n'), ("b.cuh", '#include "a.cuh"\n')),
    )
    assert fingerprint('#include "a.cuh"', options)


@given(st.lists(st.sampled_from(["h", "g", "k"]), min_size=1, max_size=4), st.integers(0, 3))
def test_any_header_of_a_chain_counts(chain: list[str], at: int) -> None:
    """Typed headers that include the next one: a change of the last reached one changes the key."""
    order = list(dict.fromkeys(chain))
    headers = {
        name: "".join(f'#include "{other}"\n' for other in order[i + 1 : i + 2])
        for i, name in enumerate(order)
    }
    changed = order[at % len(order)]
    options = CompileOptions(headers=tuple(headers.items()))
    edited = replace(options, headers=tuple({**headers, changed: headers[changed] + "//"}.items()))
    text = f'#include "{order[0]}"\n'
    assert fingerprint(text, options) == fingerprint(text, options)
    assert fingerprint(text, options) != fingerprint(text, edited)


def test_the_options_of_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inc").mkdir()
    (tmp_path / "k.cu").write_text(KERNEL)
    task = Task(
        tmp_path / "k.cu", include=("inc",), defines={"B": "2", "A": ""}, headers={"u.cuh": F}
    )
    options = options_of(task, resolve({"std": "c++20", "fast_math": True}))
    assert options == CompileOptions(
        std="c++20",
        fast_math=True,
        defines=(("A", ""), ("B", "2")),
        include=(str(tmp_path), str(tmp_path / "inc")),
        headers=(("u.cuh", F),),
    )


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        (Task("", include=("nowhere",)), {}, "there is no folder"),
        (Task("", defines={"1A": "1"}), {}, "a macro cannot be called that"),
        (Task("", defines={"F(x)": "x"}), {}, "a macro cannot be called that"),
        (Task("", headers={"../h.cuh": ""}), {}, "is not a name for a header"),
        (Task("", headers={"/h.cuh": ""}), {}, "is not a name for a header"),
        (Task(""), {"compiler": "nvcc", "nvcc_args": "-O3 'open"}, "No closing quotation"),
        (Task(""), {"compiler": "nvcc", "nvcc_args": "-I/usr/include"}, "cannot hold -I"),
        (Task(""), {"compiler": "nvcc", "nvcc_args": "-include x.h"}, "cannot hold -include"),
        (Task(""), {"compiler": "nvcc", "nvcc_args": "-arch=sm_80"}, "cannot hold -arch"),
        (Task(""), {"compiler": "nvcc", "nvcc_args": "-Xcompiler=-O2,-I/x"}, "cannot hold -Xcom"),
        (Task(""), {"compiler": "nvcc", "nvcc_args": "-Xcompiler @f"}, "cannot hold @f"),
    ],
)
def test_options_that_cannot_be(task: Task, settings: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        options_of(task, resolve(settings))
    assert raised.value.fix


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"std": "c++99"}, "std is 'c\\+\\+99'"),
        ({"compiler": "clang"}, "compiler is 'clang'"),
        ({"nvcc_args": "-O1"}, "--nvcc-args works only with nvcc"),
    ],
)
def test_settings_that_cannot_be(values: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve(values)


def test_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"STD": "c++20", "FAST_MATH": "0", "COMPILER": "nvcc"}.items():
        monkeypatch.setenv(f"OPTIML_{name}", value)
    settings = resolve()
    assert (settings.std, settings.fast_math, settings.compiler) == ("c++20", False, "nvcc")
    monkeypatch.setenv("OPTIML_FAST_MATH", "perhaps")
    with pytest.raises(UsageError, match="is not a bool"):
        resolve()


def test_integers_among_the_defines() -> None:
    given = {"A": "0x10", "B": "010u", "C": "(-3)", "D": "1'000", "E": "16ULL", "F": "0"}
    others = {"G": "1.5", "H": "", "I": "float", "J": "1 + 1", "K": "09"}
    found = Task("", defines={**given, **others}).constants
    assert found == {"A": 16, "B": 8, "C": -3, "D": 1000, "E": 16, "F": 0}
