"""What is read of Python that launches a kernel by CuPy or PyCUDA, and what is not."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from optiml_magic.commands import parsers, tasks
from optiml_magic.commands.python.cell import kernel_in
from optiml_magic.commands.python.launches import as_host_code
from optiml_magic.errors import OptimlError, UsageError
from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.problem import Problem, prepare

SCALE = """\
import cupy as cp
import numpy as np
k = cp.RawKernel(r'''
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
''', 'scale')
"""
CUDA = """\
import numpy as np
import pycuda.driver as drv
mod = SourceModule('''
__global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
''')
f = mod.get_function("scale")
"""


def launches(python: str) -> list[str]:
    text, _ = drop_host_code(kernel_in(python) or "")
    return [line for line in text.splitlines() if line.startswith("#pragma optiml launch")]


def told(python: str, kind: str) -> dict[str, object]:
    _, notes = drop_host_code(kernel_in(python) or "")
    return {note.name: note.extent or note.value for note in notes if note.kind == kind}


def problem(python: str, **given: object) -> Problem:
    options = parsers.parse(parsers.cell_parser(), ["check"])
    return prepare(tasks.from_cell("\n" + python, options, given), seeds=1)


@pytest.mark.parametrize(
    ("python", "launch"),
    [
        ("n = 1000\nk(((n + 127) // 128,), (128,), (x, y, 2.0, n))", "grid(cdiv(n, 128)) block(128)"),
        ("n = 1000\nt = 128\nk((-(-n // t),), (t,), (x, y, 2.0, n))", "grid(cdiv(n, 128)) block(128)"),
        ("n = 10\nk((math.ceil(n / 64),), (64,), (x, y, 2.0, n))", "grid(cdiv(n, 64)) block(64)"),
        ("n = 10\nk((int(np.ceil(n / 64)), 1), (64, 1), (x, y, 2.0, n))",
         "grid(cdiv(n, 64)) block(64)"),
        ("n: int = 10\nb = (8, 8)\ng = (n // b[0], n // b[1])\nk(g, b, (x, y, 2.0, n))",
         "grid(n / 8, n / 8) block(8, 8)"),
        ("n = 10\nk(grid=(n,), block=(32,), args=(x, y, 2.0, n), shared_mem=n * 4)",
         "grid(n) block(32) shared(n * 4)"),
        ("n = 10\nk((n,), (32,), [x, y, np.float32(2), np.int32(n)])", "grid(n) block(32)"),
        ("n = 10\nif __name__ == '__main__':\n    with stream:\n        k((n,), (32,), (x, y, 2.0, n))",
         "grid(n) block(32)"),
        ("n = 10\nt = (32, 1, 1)\ndef run():\n    k((n,), t, (x, y, 2.0, n))", "grid(n) block(32)"),
        ("def run(x, n):\n    k((n,), (32,), (x, y, 2.0, n))\nrun(x, 99)", "grid(n) block(32)"),
    ],
)  # fmt: skip
def test_a_launch_of_cupy_is_read(python: str, launch: str) -> None:
    assert launches(SCALE + python) == [f"#pragma optiml launch scale {launch}"]


@pytest.mark.parametrize(
    ("python", "launch"),
    [
        ("n = 400\nf(drv.In(x), drv.Out(y), np.float32(2), np.int32(n), block=(n, 1, 1))",
         "grid(1) block(n)"),
        ("n = 400\nf(x_gpu, y_gpu, np.float32(2), np.int32(n), block=(64, 1, 1), grid=(n // 64, 1))",
         "grid(n / 64) block(64)"),
        ("n = 400\nf(x, drv.InOut(y), np.float32(2), n, block=(64, 2, 1), grid=(n, 3, 2), shared=99)",
         "grid(n, 3, 2) block(64, 2) shared(99)"),
        ("n = 400\nmod.get_function('scale')(x, y, np.float32(2), n, block=(n, 1, 1))",
         "grid(1) block(n)"),
    ],
)  # fmt: skip
def test_a_launch_of_pycuda_is_read(python: str, launch: str) -> None:
    assert launches(CUDA + python) == [f"#pragma optiml launch scale {launch}"]


@pytest.mark.parametrize(
    "python",
    [
        "n = 10\nn = n * 2\nk((n // 2,), (32,), (x, y, 2.0, 5))",
        "g = 10\nfor i in range(3):\n    g += 1\n    k((g,), (32,), (x, y, 2.0, 5))",
        "g = 10\nif big:\n    g = 20\nk((g,), (32,), (x, y, 2.0, 5))",
        "if big:\n    g = 10\nelse:\n    g = 20\nk((g,), (32,), (x, y, 2.0, 5))",
        "def run(g):\n    g = g * 2\n    k((g,), (32,), (x, y, 2.0, 5))\nrun(4)",
        "g = 10\ndef run():\n    g = cached()\n    k((g,), (32,), (x, y, 2.0, 5))",
        "g = 10\ndef run():\n    k((g,), (32,), (x, y, 2.0, 5))\ng = 4\nrun()",
        "g = (4, 2)\ng = other\nk(g, (32,), (x, y, 2.0, 5))",
        "for g in range(3):\n    k((g,), (32,), (x, y, 2.0, 5))",
        "g = config['blocks']\nk((g,), (32,), (x, y, 2.0, 5))",
        "g = some(10)\nk((g,), (32,), (x, y, 2.0, 5))",
        "g = sizes[1]\nk((g,), (32,), (x, y, 2.0, 5))",
        "k((10 / 3,), (32,), (x, y, 2.0, 5))",
        "k((2 ** n,), (32,), (x, y, 2.0, 5))",
        "k((4,), (32,), (*arrays, 2.0, 5))",
        "k((4,), (32,), arguments)",
        "k((4,), (32,), (x, y, 2.0))",
        "k2 = k\nk2((4,), (32,), (x, y, 2.0, 5))",
        "k[4, 32](x, y, 2.0, 5)",
        "template = 4\nk((template,), (32,), (x, y, 2.0, 5))",
    ],
)
def test_what_may_be_something_else_is_not_known(python: str) -> None:
    assert not launches(SCALE + python)


@pytest.mark.parametrize(
    "again",
    [
        "k = module.get_function('other')\nk((4,), (32,), (x, y, 2.0, 5))",
        "k = tuned(k)\nk((4,), (32,), (x, y, 2.0, 5))",
        "for k in kernels:\n    k((4,), (32,), (x, y, 2.0, 5))",
        "def run(k):\n    k((4,), (32,), (x, y, 2.0, 5))",
    ],
)
def test_a_name_for_more_than_a_kernel_is_that_of_none(again: str) -> None:
    assert not launches(SCALE + again)


@pytest.mark.parametrize(
    ("python", "found"),
    [
        ("x = cp.zeros(n, dtype=cp.float32)", {"x": "n"}),
        ("x = cp.random.rand(n).astype(cp.float32)", {"x": "n"}),
        ("x = cp.arange(n, dtype='float32')", {"x": "n"}),
        ("x = np.ones((n, 4), np.float32)", {"x": "n * 4"}),
        ("h = np.zeros(n, np.float32)\nx = cp.asarray(h)", {"x": "n"}),
        ("h = np.random.randn(n)\nh = h.astype(np.float32)\nx = drv.mem_alloc(h.nbytes)", {"x": "n"}),
        ("x = gpuarray.to_gpu(np.random.randn(n).astype(np.float32))", {"x": "n"}),
        ("x = cp.zeros(n)", {}),  # float64, and the kernel takes float
        ("x = cp.zeros(n, dtype=kind)", {}),
        ("x = load('file')", {}),
        ("if big:\n    x = cp.zeros(n, 'float32')\nelse:\n    x = cp.zeros(n * 2, 'float32')", {}),
        ("x = cp.zeros(n, 'float32')\nx = load('file')", {}),
        ("x = cp.zeros(n, 'float32')\nx = cp.zeros(n * 3, 'float32')", {"x": "n * 3"}),
    ],
)  # fmt: skip
def test_arrays_have_the_size_that_they_are_made_with(
    python: str, found: dict[str, object]
) -> None:
    launch = "k((n,), (32,), (x, y, 2.0, n))"
    assert told(f"{SCALE}n = 64\n{python}\n{launch}", "allocated") == found


@pytest.mark.parametrize(
    ("python", "starts"),
    [
        ("", True),
        ("y[3] = 1", False),
        ("y += 1", False),
        ("y.fill(2)", False),
        ("fill(y)", False),
        ("y[:] = x", False),
    ],
)
def test_what_is_made_of_zeros_holds_them_until_it_is_filled(python: str, starts: bool) -> None:
    made = f"n = 64\ny = cp.zeros(n, dtype=cp.float32)\n{python}\n"
    text, _ = drop_host_code(kernel_in(f"{SCALE}{made}k((n,), (32,), (x, y, 2.0, n))") or "")
    assert ("#pragma optiml init(y) = 0" in text) == starts


def test_a_script_needs_no_array_of_the_notebook() -> None:
    script = (
        "n = 1000\nx = cp.random.rand(n, dtype=cp.float32)\ny = cp.empty_like(x)\n"
        "k(((x.size + 255) // 256,), (256,), (x, y, np.float32(2), x.size))\n"
    )
    found = problem(SCALE + script)
    values = found.instances[0].values
    assert (values["n"], values["a"], values["x"].size) == (1000, 2.0, 1000)
    assert any("(line 13)" in note for note in found.notes)  # that of the cell, under its own


def test_arrays_of_the_notebook_are_taken_by_the_names_that_python_has() -> None:
    data = np.arange(50, dtype=np.float32)
    found = problem(f"{SCALE}k((2,), (32,), (data, out, 2.0, data.size))", data=data)
    assert found.instances[0].values["x"].tolist() == data.tolist()
    assert found.instances[0].values["n"] == 50


def test_a_buffer_that_goes_from_one_kernel_to_the_next_stays_one() -> None:
    both = SCALE.replace("''', 'scale')", "''', 'scale')\nk2 = k")
    text = both.replace("k2 = k", "").replace(
        "extern",
        'extern "C" __global__ void last(const float* p, float* q) { q[0] = p[0]; }\nextern',
    )
    text += "k2 = module.get_function('last')\nn = 64\n"
    text += "k((2,), (32,), (x, y, 2.0, n))\nk2((1,), (1,), (y, z))\n"
    assert launches(text) == [
        "#pragma optiml launch scale grid(2) block(32)",
        "#pragma optiml launch last grid(1) block(1) args(y, q)",
    ]


@pytest.mark.parametrize(
    "python",
    [
        "code = '''__global__ void k(int* y) { y[0] = %(N)s; }''' % {'N': ask()}",
        "code = '''__global__ void k(int* y) {{ y[0] = {}; }}'''.format(n)",
        "code = '''__global__ void k(int* y) { y[0] = N; }'''\ncode = code.replace('N', '4')",
        "t = '''__global__ void k(int* y) { y[0] = %d; }'''\ncode, other = t % 4, t % 5",
        "m = 4\nfor m in sizes: pass\nt = '''__global__ void k(int* y) { y[0] = %d; }''' % m",
        "code = Template('''__global__ void k(int* y) { y[0] = $n; }''').substitute(n=4)",
    ],
)
def test_a_kernel_that_python_fills_in_is_refused(python: str) -> None:
    with pytest.raises(UsageError, match="the kernel is a template") as error:
        kernel_in(python)
    assert "print it" in error.value.fix


@pytest.mark.parametrize(
    "python",
    [
        "code = '''\n__global__ void k(int* y) { y[0] = %(N)s; }''' % {'N': 4}",
        "code = '''\n__global__ void k(int* y) {{ y[0] = {}; }}'''.format(4)",
        "t = '''\n__global__ void k(int* y) { y[0] = %d; }'''\nm = 4\ncode = t % m",
        "m = 2\ncode = f'''\n__global__ void k(int* y) {{ y[0] = {m * 2}; }}'''",
        "t = '''\n__global__ void k(int* y) { y[0] = N; }'''\nn = 4\ncode = t.replace('N', str(n))",
    ],
)
def test_a_kernel_that_plain_numbers_fill_in_is_read(python: str) -> None:
    found = (kernel_in(f"{python}\nk = cp.RawKernel(code, 'k')") or "").split("\n")
    at = next(line for line, text in enumerate(python.split("\n")) if "__global__" in text)
    assert found[at] == "__global__ void k(int* y) { y[0] = 4; }"
    assert sum("__global__" in line for line in found) == 1


PICKS = """\
k = cp.RawKernel(r'''
extern "C" __global__ void pick(const float* x, const int* at, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[at[i]];
}
''', 'pick')
n = 500
x = cp.random.rand(40, dtype=cp.float32)
y = cp.empty(n, dtype=cp.float32)
"""


@pytest.mark.parametrize(
    ("made", "least", "most"),
    [
        ("cp.random.randint(0, 40, n, dtype=cp.int32)", 0, 39),
        ("cp.random.randint(10, high=30, size=(n,)).astype(cp.int32)", 10, 29),
        ("cp.array(rng.integers(0, 40, size=n, dtype=np.int32))", 0, 39),
        ("np.arange(n, dtype=np.int32)", 0, 499),
        ("cp.arange(2, 2002, 4, dtype=cp.int32)", 2, 1998),
        ("cp.arange(5, n + 5, dtype=cp.int32)", 5, 504),
    ],
)
def test_indices_are_drawn_within_the_limits_of_the_text(made: str, least: int, most: int) -> None:
    launch = "k((2,), (256,), (x, at, y, n))"
    found = problem(f"{PICKS}at = {made}\n{launch}\n").instances[0].values["at"]
    assert least <= found.min() < least + 5
    assert most - 5 < found.max() <= most


@pytest.mark.parametrize(
    "made", ["cp.random.randint(0, ask(), n, dtype=cp.int32)", "cp.empty(n, dtype=cp.int32)"]
)
def test_indices_without_limits_are_asked_for(made: str) -> None:
    with pytest.raises(OptimlError, match="no array named `at`"):
        problem(f"{PICKS}at = {made}\nk((2,), (256,), (x, at, y, n))\n")


def test_indices_that_are_set_otherwise_are_asked_for() -> None:
    made = "at = cp.arange(n, dtype=cp.int32)\nat[:] = ask()\n"
    with pytest.raises(OptimlError, match="no array named `at`"):
        problem(f"{PICKS}{made}k((2,), (256,), (x, at, y, n))\n")


def test_an_unread_launch_says_what_is_missing() -> None:
    script = "g = best(x)\nk((g,), (32,), (x, y, 2.0, 5))"
    body = SCALE.replace("if (i < n) ", "").replace("int i = ", "int i = n + ")
    with pytest.raises(OptimlError, match="`g` is not known") as error:
        problem(body + script)
    assert "#pragma optiml launch scale grid(BLOCKS) block(32)" in error.value.fix


def test_python_without_a_launch_has_no_host_code() -> None:
    assert as_host_code(ast.parse("x = 1\nprint(x)"), 1) == ""
