"""Compiles proposals with NVRTC, and runs them on the CPU under AddressSanitizer."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from collections.abc import Callable

import numpy as np
import pytest

from optiml_magic.compilers.nvrtc import _bindings
from optiml_magic.kernels.unit import lift_program
from optiml_magic.model.candidate import Proposal
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.source.program import Program, parse_program
from tests.ideas import asked, made

FLAGS = ["-std=c++20", "-O1", "-w", "-pthread", "-fsanitize=address"]
HEADERS = ("barrier", "cmath", "cstdint", "cstdio", "cstdlib", "thread", "vector")
PRELUDE = r"""
#include "headers.h"
struct Three { unsigned x = 1, y = 1, z = 1; };
thread_local Three threadIdx, blockIdx;
Three blockDim, gridDim;
std::barrier<>* gate;
thread_local long waits;
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
template <class T> T __ldg(const T* p) { return *p; }
template <class A, class B> auto max(A a, B b) { return a > b ? a : b; }
template <class A, class B> auto min(A a, B b) { return a < b ? a : b; }
void __syncthreads() { ++waits; gate->arrive_and_wait(); }
template <class F> void launch(F kernel) {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  for (unsigned z = 0; z < gridDim.z; ++z) for (unsigned y = 0; y < gridDim.y; ++y)
  for (unsigned x = 0; x < gridDim.x; ++x) {
    std::barrier<> here(count); gate = &here;
    std::vector<std::thread> threads; std::vector<long> seen(count);
    for (unsigned t = 0; t < count; ++t) threads.emplace_back([=, &here, &seen] {
      blockIdx = {x, y, z};
      threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
      kernel();
      seen[t] = waits; here.arrive_and_drop();
    });
    for (auto& thread : threads) thread.join();
    for (long s : seen) if (s != seen[0]) {
      std::fprintf(stderr, "divergent barrier\n"); std::exit(3);
    }
  }
}
template <class T> T* load(const char* path, size_t n) {
  T* p = new T[n]; FILE* f = std::fopen(path, "rb");
  if (!f || std::fread(p, sizeof(T), n, f) != n) std::exit(4);
  std::fclose(f); return p;
}
template <class T> void save(const char* path, const T* p, size_t n) {
  FILE* f = std::fopen(path, "wb"); std::fwrite(p, sizeof(T), n, f); std::fclose(f);
}
"""

C_TYPES = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long"}


@pytest.fixture(scope="session")
def compiles() -> Callable[[str], str]:
    """Compiles a program's text with NVRTC to PTX; an AssertionError holds the log."""
    import nvidia

    nvrtc = _bindings()
    roots = [pathlib.Path(p) for p in nvidia.__path__]
    options = [b"--gpu-architecture=compute_80", b"--std=c++17", b"-diag-suppress=161,177"]
    options += [f"-I{x}".encode() for r in roots for x in r.glob("*/include")]

    def compile_text(text: str) -> str:
        source = parse_program(text).compiled_text().encode()
        _, program = nvrtc.nvrtcCreateProgram(source, b"cell.cu", 0, [], [])
        for launch in parse_program(text).launches:
            if launch.kernel and "<" in launch.kernel:
                nvrtc.nvrtcAddNameExpression(program, launch.kernel.encode())
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = bytes(size + 8)  # written to in place: never a cached one-byte object
        nvrtc.nvrtcGetProgramLog(program, log)
        assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, log.decode() + "\n" + text
        _, size = nvrtc.nvrtcGetPTXSize(program)
        ptx = bytes(size + 8)
        nvrtc.nvrtcGetPTX(program, ptx)
        return ptx.decode().rstrip("\0")

    return compile_text


@pytest.fixture(scope="session")
def headers(tmp_path_factory) -> pathlib.Path:
    """A folder with the headers of all programs, compiled once: most of the time of each."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is needed to run kernels on the CPU")
    folder = tmp_path_factory.mktemp("headers")
    (folder / "headers.h").write_text("".join(f"#include <{name}>\n" for name in HEADERS))
    subprocess.run(["g++", *FLAGS, "-x", "c++-header", "headers.h"], cwd=folder, check=True)
    return folder


@pytest.fixture
def runs(tmp_path, headers) -> Callable[..., dict[str, np.ndarray]]:
    """Runs a program's launch for these sizes on the CPU: arrays and scalars by name in, arrays by name out."""

    def run(text: str, **values) -> dict[str, np.ndarray]:
        program = parse_program(text)
        (tmp_path / "k.cpp").write_text(_main(program, values, tmp_path))
        built = subprocess.run(["g++", *FLAGS, f"-I{headers}", "-o", "k", "k.cpp"], cwd=tmp_path,
                               capture_output=True, text=True, check=False)  # fmt: skip
        assert built.returncode == 0, built.stderr[:3000] + text
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.tofile(tmp_path / f"{name}.in")
        done = subprocess.run(["./k"], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                              check=False, env={"ASAN_OPTIONS": "detect_leaks=0"})  # fmt: skip
        assert done.returncode == 0, done.stderr[:3000] + text
        return {
            name: np.fromfile(tmp_path / f"{name}.out", value.dtype).reshape(value.shape)
            for name, value in values.items()
            if isinstance(value, np.ndarray)
        }

    return run


def _main(program: Program, values: dict, folder: pathlib.Path) -> str:
    env = {n: int(v) for n, v in values.items() if isinstance(v, int)} | program.values
    (step,) = program.alternatives
    launch = next(x for x in step if x.condition is None or x.condition.evaluate(env))
    known = lift_program(program).kernels
    (kernel,) = [k for k in known if k.name == (launch.kernel or k.name).partition("<")[0]]
    lines = []
    for name, value in values.items():
        kind = C_TYPES[str(value.dtype)] if isinstance(value, np.ndarray) else ""
        if kind:
            lines.append(f'auto* {name} = load<{kind}>("{name}.in", {value.size});')
        else:
            lines.append(f"auto {name} = {value};")
    for extent, parts in (("gridDim", launch.grid), ("blockDim", launch.block)):
        lines.append(f"{extent} = {{{', '.join(str(p.evaluate(env)) for p in parts)}}};")
    given = ", ".join(v.name for v in kernel.parameters)
    lines.append(f"launch([=] {{ {launch.kernel or kernel.name}({given}); }});")
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            lines.append(f'save("{name}.out", {name}, {value.size});')
    return f"{PRELUDE}\n{program.compiled_text()}\nint main() {{\n" + "\n".join(lines) + "\n}\n"


@pytest.fixture
def propose() -> Callable[..., list[Proposal]]:
    """All proposals of one rule for a text."""

    def of(rule: str, text: str, findings=()) -> list[Proposal]:
        (member,) = [r for r in REWRITES if r.name == rule]
        return made(asked(member, text, findings)[0])

    return of


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
