from __future__ import annotations

from pathlib import Path

import pytest

import optiml_magic
from optiml_magic.errors import SourceError
from optiml_magic.kernels.launches import infer_launch
from optiml_magic.kernels.unit import lift
from optiml_magic.source.program import parse_program

KERNELS = Path(optiml_magic.__file__).parent / "testing" / "kernels"
HEAD = "__global__ void k(float* out, const float* a, int n, int w, int h, long long big)"
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
XY = "int x = blockIdx.x * blockDim.x + threadIdx.x; int y = blockIdx.y * blockDim.y + threadIdx.y;"


def infer(text: str, tuned: tuple[str, ...] = ()) -> str:
    unit = lift(text)
    (kernel,) = unit.kernels
    return str(infer_launch(unit, kernel, tuned)).removeprefix("#pragma optiml launch ")


@pytest.mark.parametrize(
    ("body", "launch"),
    [
        (f"{INDEX} if (i < n) out[i] = a[i];", "grid(cdiv(n, 256)) block(256)"),
        (
            "int i = threadIdx.x + (blockDim.x * blockIdx.x); if (n > i) { out[i] = a[i]; }",
            "grid(cdiv(n, 256)) block(256)",
        ),
        (
            ("const size_t i = (size_t)blockIdx.x * (size_t)blockDim.x + (threadIdx.x);"
            "if (i >= big) return; out[i] = a[i];"),
            "grid(cdiv(big, 256)) block(256)",
        ),
        (
            ("auto i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;"
            "if (!(i < n)) { return; } out[i] = 1;"),
            "grid(cdiv(n, 256)) block(256)",
        ),
        (
            ("for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < w * h;"
            " i += blockDim.x * gridDim.x) out[i] = 2;"),
            "grid(cdiv(w * h, 256)) block(256)",
        ),
        (
            ("int t = threadIdx.x, b = blockIdx.x, step = gridDim.x * blockDim.x;"
            "int i = b * blockDim.x + t; while (i < n) { out[i] = a[i]; i += step; }"),
            "grid(cdiv(n, 256)) block(256)",
        ),
        (f"{XY} if (x >= w || y >= h) return; out[y * w + x] = 1;",
         "grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)"),
        (f"{XY} if (x < w) if (y < h) out[y * w + x] = 1;",
         "grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)"),
        (
            (f"{XY} int z = blockIdx.z * blockDim.z + threadIdx.z;"
            "if (x < w && y < h && z < n) out[x] = 1;"),
            "grid(cdiv(w, 32), cdiv(h, 4), cdiv(n, 2)) block(32, 4, 2)",
        ),
        ("int i = blockIdx.x * 128 + threadIdx.x; if (i < n) out[i] = 1;",
         "grid(cdiv(n, 128)) block(128)"),
        ("constexpr int B = 64; int i = blockIdx.x * B + threadIdx.x; if (i < n) out[i] = 1;",
         "grid(cdiv(n, 64)) block(64)"),
        (f"{INDEX} int total = w * h; if (i < total) out[i] = 1;",
         "grid(cdiv(w * h, 256)) block(256)"),
        (f"{INDEX} if (i > 0 && i < n - 1) out[i] = 1;", "grid(cdiv(n - 1, 256)) block(256)"),
        (f"{INDEX} if (i <= n - 1) out[i] = 1;", "grid(cdiv(n, 256)) block(256)"),
        (f"{INDEX} if (i <= n) out[i] = 1;", "grid(cdiv(n + 1, 256)) block(256)"),
        (
            ("int row = blockIdx.x; if (row >= h) return;"
            "for (int c = threadIdx.x; c < w; c += blockDim.x) out[row * w + c] = 1;"),
            "grid(h) block(256)",
        ),
        (
            ("if (blockIdx.x >= h) return;"
            "for (int c = threadIdx.x; c < w; c += 64) out[blockIdx.x * w + c] = 1;"),
            "grid(h) block(64)",
        ),
        (f"{INDEX} n = 3; if (i < n) out[i] = 1;", "grid(cdiv(3, 256)) block(256)"),
        (f"{INDEX} i = 2 * i; if (i < n) out[i] = 1;", "grid(cdiv(n, 512)) block(256)"),
        ("int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4; if (i < n) out[i] = 1;",
         "grid(cdiv(n, 1024)) block(256)"),
        (f"__shared__ float s[32]; {INDEX} s[threadIdx.x / 32] = 1; if (i < n) out[i] = 1;",
         "grid(cdiv(n, 256)) block(256)"),
        (f"__shared__ float s[128]; {INDEX} s[threadIdx.x]=3; if (i < n) out[i] = s[threadIdx.x];",
         "grid(cdiv(n, 128)) block(128)"),
    ],
)  # fmt: skip
def test_inferred(body, launch):
    assert infer(f"{HEAD} {{ {body} }}") == f"k {launch}"


@pytest.mark.parametrize(
    ("body", "reason", "paste"),
    [
        (f"{INDEX} out[i] = a[i];", "no bound along x", "grid(BLOCKS) block(THREADS)"),
        (f"{INDEX} if (i < n) out[i] = 1; else out[i] = 0;", "no bound along x", ""),
        (f"{INDEX} if (i < n) out[i] = 1; if (i < w) out[i] = 0;", "bounded differently", ""),
        (f"{INDEX} if (i < (int)a[0]) out[i] = 1;", "no bound along x", ""),
        ("int i = blockIdx.x * blockDim.y + threadIdx.x; if (i < n) out[i] = 1;", "", ""),
        ("int row = blockIdx.x; if (row < h) out[row * w + threadIdx.x] = 1;",
         "the number of threads along x", "grid(h)"),
        (f"extern __shared__ float s[]; {INDEX} if (i < n) out[i] = 1;", "dynamic shared",
         "shared(BYTES)"),
        (("__shared__ float s[128]; int i = blockIdx.x * 256 + threadIdx.x;"
         "s[threadIdx.x] = 1; if (i < n) out[i] = s[threadIdx.x];"),
         "holds 128 and its strides ask for 256", ""),
        (f"__shared__ float s[4]; {INDEX} s[threadIdx.x / 32] = 1; if (i < n) out[i] = 1;",
         "how its block relates to `s`", ""),
        ("int i = blockIdx.x * 2048 + threadIdx.x; if (i < n) out[i] = 1;",
         "beyond its 1024 threads", ""),
        (("int i = blockIdx.x * 64 + threadIdx.x; int j = blockIdx.x * 32 + threadIdx.x;"
         "if (i < n) out[i] = a[j];"), "64 and for 32 threads", ""),
        (f"{INDEX} if (i < n) mystery(out);", "what it does with `out`", ""),
        (f"{INDEX} if (i < n) counter += 1;", "what it does with `counter`", ""),
        (f"{XY} if (x < w) out[x] = 1;", "no bound along y",
         "grid(cdiv(w, THREADS_X), BLOCKS_Y) block(THREADS_X, THREADS_Y)"),
        ("int y = blockIdx.y * blockDim.y + threadIdx.y; if (y < h) out[y] = 1;",
         "skips an axis", ""),
        (f"{INDEX} if (i < n && threadIdx.y == 0) out[i] = 1;", "", ""),
        ("out[0] = 1;", "does not read blockIdx", "grid(BLOCKS) block(THREADS)"),
        (f"{INDEX} if (i < n) a[i];", "no store", ""),
        (f"auto g = cg::this_grid(); {INDEX} if (i < n) out[i] = 1;", "cooperative groups", ""),
    ],
)  # fmt: skip
def test_refused_with_what_is_missing(body, reason, paste):
    text = f"__device__ int counter;\n{HEAD} {{ {body} }}"
    if "threadIdx.y == 0" in body:  # one thread along y is enough, whatever the block
        assert infer(text) == "k grid(cdiv(n, 32), 1) block(32, 8)"
        return
    with pytest.raises(SourceError) as caught:
        infer(text)
    assert reason in caught.value.message
    assert paste in caught.value.fix
    assert caught.value.line == 2
    directive = caught.value.fix[caught.value.fix.index("#pragma") :]
    assert parse_program(directive).launches[0].kernel == "k"


def test_launch_bounds_are_honoured_or_refused():
    body = f"{{ {INDEX} if (i < n) o[i] = 1; }}"
    text = "__global__ void __launch_bounds__({}) k(float* o, int n) " + body
    assert infer(text.replace("{}", "128", 1)) == "k grid(cdiv(n, 128)) block(128)"
    assert infer("#define T 512\n" + text.replace("{}", "T", 1)).endswith("block(256)")
    with pytest.raises(SourceError, match="launch bounds are not a number"):
        infer(text.replace("{}", "Q", 1))
    with pytest.raises(SourceError, match="a block of 256 is beyond its 128 threads"):
        infer(text.replace("{}", "128", 1).replace("blockDim.x", "256"))


def test_constants_templates_and_tuned_names():
    text = "constexpr int N = 1 << 20;\n#define B 64\n__global__ void k(float* o)"
    text += " { int i = blockIdx.x * B + threadIdx.x; if (i < N) o[i] = 1; }"
    assert infer(text) == "k grid(cdiv(1048576, 64)) block(64)"
    text = "template <class T> __global__ void k(T* o, int n) { int i = blockIdx.x * TILE"
    text += " + threadIdx.x; if (i < n) o[i] = 1; }"
    with pytest.raises(SourceError, match="template arguments are not known"):
        infer(text, ("TILE",))
    assert infer(text.replace("class T", "class T = int"), ("TILE",)) == (
        "k<> grid(cdiv(n, TILE)) block(TILE)"
    )


@pytest.mark.parametrize(
    ("name", "launch"),
    [
        ("saxpy", "saxpy grid(cdiv(n, 256)) block(256)"),
        ("row_sum_naive", "row_sum grid(cdiv(rows, 256)) block(256)"),
        ("transpose_naive", "transpose grid(cdiv(cols, 32), cdiv(rows, 8)) block(32, 8)"),
        ("matmul_naive", "matmul grid(cdiv(m, 32), cdiv(n, 8)) block(32, 8)"),
        ("transpose_tiled",
         "transpose grid(cdiv(cols, TILE), cdiv(rows, TILE)) block(TILE, TILE)"),
        ("matmul_tiled", "matmul grid(cdiv(n, TILE), cdiv(m, TILE)) block(TILE, TILE)"),
        ("softmax", "softmax grid(size(out) / cols) block(32)"),
        ("row_sum", "row_sum grid(size(out)) block(256)"),
        ("histogram", None),
    ],
)  # fmt: skip
def test_known_kernels(name, launch):
    text = (KERNELS / f"{name}.cu").read_text()
    if launch is None:
        with pytest.raises(SourceError, match="no bound along x"):
            infer(text)
    else:
        assert infer(text, ("TILE",)) == launch


@pytest.mark.parametrize(
    ("body", "grid"),
    [
        ("int r = blockIdx.x; for (int c = threadIdx.x; c < w; c += 32) out[r * w + c] = 1;",
         "size(out) / w"),
        ("int r = blockIdx.x; float s = 0; for (int c = 0; c < w; ++c) s += a[r * w + c]; out[r] = s;",
         "size(out)"),
        (("int r = blockIdx.x, b = blockIdx.y; for (int c = threadIdx.x; c < w; c += 32)"
         " out[(b * h + r) * w + c] = 1;"), "h, size(out) / (w * h)"),
        (f"{XY} int b = blockIdx.z; if (x < w && y < h) out[(b * h + y) * w + x] = 1;",
         "cdiv(w, 32), cdiv(h, 4), size(out) / (w * h)"),
        (("int i = blockIdx.x * blockDim.x + threadIdx.x, head = blockIdx.y;"
         "if (i < n) for (int d = 0; d < w; ++d) out[(i * h + head) * w + d] = 1;"),
         "cdiv(n, 32), h"),
        ("out[blockIdx.x * 256 + threadIdx.x] = 1;", "size(out) / 256"),
    ],
)  # fmt: skip
def test_blocks_without_a_guard_share_the_output_out(body, grid):
    assert f"grid({grid}) " in infer(f"{HEAD} {{ {body} }}")


def test_an_axis_that_only_blocks_know_has_one_thread():
    text = """__global__ void bt(const float* src, float* out, int batch, int rows, int cols) {
    int b = blockIdx.z; int c = blockIdx.x*16+threadIdx.x; int r = blockIdx.y*16+threadIdx.y;
    if (b >= batch || r >= rows || c >= cols) return;
    out[(b*cols+c)*rows+r] = src[(b*rows+r)*cols+c];
}
"""
    assert infer(text) == ("bt grid(cdiv(cols, 16), cdiv(rows, 16), batch) block(16, 16, 1)")
