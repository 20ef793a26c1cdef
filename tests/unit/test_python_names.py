"""A number, an array or a kernel that Python has under a name is the one at the launch, or none."""

from __future__ import annotations

import pytest

from optiml_magic.commands.python.cell import kernel_in
from optiml_magic.kernels.hostcode import drop_host_code

SCALE = """\
import cupy as cp
import numpy as np
code = r'''
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
extern "C" __global__ void last(const float* p, float* q, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m) q[i] = p[i];
}
'''
k = cp.RawKernel(code, 'scale')
k2 = cp.RawKernel(code, 'last')
"""
LAUNCH = "k((4,), (32,), (x, y, 2.0, n))"


def launches(python: str) -> list[str]:
    text, _ = drop_host_code(kernel_in(SCALE + python) or "")
    return [line for line in text.splitlines() if line.startswith("#pragma optiml launch")]


def told(python: str, kind: str) -> dict[str, object]:
    _, notes = drop_host_code(kernel_in(SCALE + python) or "")
    return {n.name: n.extent or n.value for n in notes if n.kind == kind and n.name != "a"}


@pytest.mark.parametrize(
    "between",
    [
        "if (n := 5) > 3:\n    pass",
        "print(n := 5)",
        "with open('f') as n:\n    pass",
        "for i, n in enumerate(sizes):\n    pass",
        "for i in range(3):\n    pass\nelse:\n    n = 5",
        "while more():\n    n += 1",
        "try:\n    import other\nexcept ImportError:\n    n = 5",
        "try:\n    pass\nfinally:\n    n = 5",
        "try:\n    pass\nexcept ValueError as n:\n    pass",
        "match mode:\n    case 1:\n        n = 5",
        "match mode:\n    case n:\n        pass",
        "other = n = 5",
        "[n, m] = 5, 6",
        "(n, m), q = (5, 6), 7",
        "n, *rest = 5, 6, 7",
        "n, m = m, n",
        "n: int = 5",
        "del n",
        "from sizes import n",
        "import sizes as n",
        "def n(): pass",
        "def change():\n    global n\n    n = 5\nchange()",
    ],
)
def test_a_number_that_is_bound_again_is_not_known(between: str) -> None:
    assert told(f"n = 100\n{between}\n{LAUNCH}", "literal") in ({}, {"n": 5})
    made = f"n = 100\nx = cp.zeros(n, cp.float32)\n{between}\n{LAUNCH}"
    assert told(made, "allocated").get("x") in (None, "n")


@pytest.mark.parametrize("between", ["n = 500", "n += 4", "if big:\n    n = 5", "a = n = 5"])
def test_an_array_has_the_size_of_when_it_was_made(between: str) -> None:
    made = f"n = 100\nx = cp.zeros(n, cp.float32)\n{between}\n{LAUNCH}"
    assert "x" not in told(made, "allocated")


def test_a_name_of_a_comprehension_is_another_one() -> None:
    assert told(f"n = 100\nz = [n for n in range(5)]\n{LAUNCH}", "literal") == {"n": 100}


@pytest.mark.parametrize(
    ("python", "n"),
    [
        ("def run(x, y, n=5):\n    {}\nrun(x, y)", 5),
        ("def run(x, y, n=5):\n    {}\nrun(x, y, 7)", 7),
        ("def run(x, y, *, n=5):\n    {}\nn = 7\nrun(x, y)", 5),
        ("def run(x, y, /, n):\n    {}\nrun(x, y, 3)", 3),
        ("def run(x, y, n):\n    {}\nrun(x, y, n=77)\nrun(x, y, 5)", 77),
        ("def run(x, y, n):\n    {}\nz = run(x, y, 7)", 7),
        ("def run(x, y, n):\n    {}\nprint(run(x, y, 7))", 7),
        ("def run(x, y, n):\n    {}\ndef all(m):\n    return run(x, y, m)\nall(9)", 9),
        ("class A:\n    def run(self, x, y, n):\n        {}\nA().run(x, y, 33)", 33),
        ("class A:\n    def run(self, x, y, n):\n        {}\nb = A()\nb.run(x, y, 33)", 33),
        ("n = 4\ndef old(x, y):\n    n = 9\n    {}\n{}", 4),
        ("n = 4\ntime(lambda: {})", 4),
        ("def run(x, y, n=m):\n    {}\nrun(x, y)", None),
        ("def run(x, *y, n):\n    {}\nrun(1, 2, 3)", None),
        ("def run(x, y, n):\n    {}\nrun(*both, 3)", None),
        ("def run(x, y, n):\n    {}\nrun(x, y, **more)\nrun(x, y, 4)", None),
        ("def run(x, y, n):\n    {}\nother.run(x, y, 3)", None),
        ("def run(x, y, n):\n    {}\ntime(lambda n: run(x, y, n))\nrun(x, y, 4)", None),
        ("def run(x, y, n):\n    {}\n[run(x, y, n) for n in s]\nrun(x, y, 4)", None),
        ("class A:\n    def run(self, n):\n        {}\nother.run(33)", None),
        ("class A:\n    @staticmethod\n    def run(s, n):\n        {}\nA.run(1, 33)", None),
        ("class A:\n def run(self, n):\n  {}\nclass B:\n def run(self, n): pass\nB().run(3)", None),
        ("n = 4\nclass A:\n    n = 5\n    def run(self):\n        n = self.n\n        {}", None),
    ],
)  # fmt: skip
def test_functions_have_what_they_are_called_with(python: str, n: int | None) -> None:
    found = told(python.replace("{}", LAUNCH), "literal")
    assert found == ({} if n is None else {"n": n})


@pytest.mark.parametrize(
    ("python", "grid"),
    [
        ("def up(a, b):\n    return (a + b - 1) // b\ng = up(n, 32)", "cdiv(n, 32)"),
        ("def cdiv(a, b):\n    'Down.'\n    return a // b\ng = cdiv(n, 32)", "n / 32"),
        ("up = lambda a, b=32: (a + b - 1) // b\ng = up(n)", "cdiv(n, 32)"),
        ("T = 32\ndef up(a):\n    return a // T\ng = up(a=n)", "n / 32"),
        ("def half(a):\n    return a // 2\ndef up(a):\n    return half(a + 2)\ng = up(n)",
         "(n + 2) / 2"),
        ("def cdiv(a, b):\n    c = a // b\n    return c\ng = cdiv(n, 32)", None),
        ("def up(a):\n    return up(a)\ng = up(n)", None),
        ("def up(a):\n    return a // size\ng = up(n)", None),
        ("def up(a):\n    return a\ndef up(a):\n    return a + 1\ng = up(n)", None),
        ("@cached\ndef up(a):\n    return a\ng = up(n)", None),
        ("def min(a, b):\n    global c\n    return a\ng = min(n, 1)", None),
        ("cdiv = other.floor\ng = cdiv(n, 32)", None),
        ("g = x.max(n, 4)", None),
    ],
)  # fmt: skip
def test_functions_of_one_expression_are_what_they_return(python: str, grid: str | None) -> None:
    found = launches(f"n = 320\n{python}\nk((g,), (32,), (x, y, 2.0, n))")
    assert found == (
        [] if grid is None else [f"#pragma optiml launch scale grid({grid}) block(32)"]
    )


@pytest.mark.parametrize(
    ("passed", "again", "argument"),
    [
        ("y.reshape(-1)", "y", "y"),
        ("y", "y.ravel()", "y"),
        ("y", "y.T", "y"),
        ("y[:]", "y.data.ptr", "y"),
        ("y", "cp.ascontiguousarray(y.T)", "p"),
        ("y", "y.astype(cp.float32)", "p"),
        ("y", "y[5:]", "p"),
        ("y.T.ravel()", "y.T.ravel()", "y"),
    ],
)
def test_a_view_is_the_array_that_it_is_of(passed: str, again: str, argument: str) -> None:
    made = "n = 100\nx = cp.ones(n, cp.float32)\ny = cp.ones(n, cp.float32)\n"
    python = f"k((4,), (32,), (x, {passed}, 2.0, n))\nk2((4,), (32,), ({again}, z, n))"
    assert f"args({argument}, q, n)" in launches(made + python)[1]


@pytest.mark.parametrize(
    ("view", "argument"),
    [
        ("y.reshape(10, 10)", "y"),
        ("cp.asarray(y)", "y"),
        ("y", "y"),
        ("y.copy()", "p"),
        ("cp.array(y)", "p"),
        ("cp.asarray(y, dtype=cp.float64)", "p"),
    ],
)
def test_a_view_with_a_name_is_the_array_that_it_is_of(view: str, argument: str) -> None:
    made = "n = 100\nx = cp.ones(n, cp.float32)\ny = cp.ones(n, cp.float32)\n"
    python = f"w = {view}\nk((4,), (32,), (x, w, 2.0, n))\nk2((4,), (32,), (y, z, n))"
    assert f"args({argument}, q, n)" in launches(made + python)[1]


def test_copies_of_one_array_are_two() -> None:
    copies = "h = np.ones(9, np.float32)\nx = cp.asarray(h)\ny = cp.asarray(h)\n"
    assert launches(f"{copies}n = 9\n{LAUNCH}") == ["#pragma optiml launch scale grid(4) block(32)"]


@pytest.mark.parametrize(
    ("made", "n"),
    [
        ("x = cp.ones((10, 4), cp.float32).reshape(-1)", 40),
        ("x = cp.ones((10, 4), cp.float32)\nx = x.ravel()", 40),
        ("x = cp.ones((10, 4), cp.float32).reshape(4, 10)", 4),
        ("x = cp.ones((10, 4), cp.float32)\nx = x.reshape(2, -1)", None),
        ("x = cp.ones((10, 4), cp.float32).T", None),
        ("x = load()\nx = x.T", None),
        ("x = load()\nw = x.T\nx = w", None),
        ("x = cp.ones((10, 4), cp.float32)\nx.shape = (5, 8)", None),
        ("s = (10, 4)\nx = cp.ones(s, cp.float32)", 10),
        ("s = (10, 4)\nx = cp.ones(s, cp.float32)\ns = (4, 10)", 10),
        ("m = 10\ns = (m, 4)\nm = 5\nx = cp.ones(s, cp.float32)", None),
        ("s = (10, 4)\nif big:\n    s = (4, 10)\nx = cp.ones(s, cp.float32)", None),
        ("x = torch.ones(10, 4)", 10),
        ("x = torch.ones((10, 4), device='cuda')", 10),
    ],
)
def test_axes_are_those_that_an_array_has_at_last(made: str, n: int | None) -> None:
    python = f"{made}\nn = x.shape[0]\nk((4,), (32,), (x, y, 2.0, n))"
    assert told(python, "literal") == ({} if n is None else {"n": n})
    assert "#pragma optiml size" not in drop_host_code(kernel_in(SCALE + python) or "")[0]


def test_a_rest_has_the_sign_that_python_gives_it() -> None:
    assert told(f"n = (5 - 8) % 7\n{LAUNCH}", "literal") == {"n": 4}


@pytest.mark.parametrize(
    "again",
    [
        "class A:\n h = cp.RawKernel(code, 'scale')\nclass B:\n h = cp.RawKernel(code, 'last')\nh{}",
        "self.h = cp.RawKernel(code, 'scale')\nself.h = cp.RawKernel(code, 'last')\nself.h{}",
        "ks['a'] = cp.RawKernel(code, 'scale')\nks['a'] = cp.RawKernel(code, 'last')\nks['a']{}",
        "from other import k\nk((4,), (32,), (x, y, 2.0, 5))",
    ],
)
def test_a_handle_of_two_kernels_launches_none(again: str) -> None:
    assert not launches(again.replace("{}", "((4,), (32,), (x, y, 5))"))


def test_a_prepared_kernel_is_launched() -> None:
    assert launches("k.prepare('PPfi')\nk.prepared_call((4, 1), (32, 1, 1), x, y, 2.0, 5)") == [
        "#pragma optiml launch scale grid(4) block(32)"
    ]


@pytest.mark.parametrize(
    "python",
    ["k(*everything)", "k((4,), (32,), arguments)", "k((4,), (32,), (*arrays, 5))",
     "k(x, y, 2.0, n, **extents)", "k.prepared_call(extents)"],
)  # fmt: skip
def test_a_launch_that_cannot_be_read_is_said_to_be_one(python: str) -> None:
    _, notes = drop_host_code(kernel_in(SCALE + python) or "")
    assert [note.name for note in notes if note.kind == "unread_launch"] == ["scale"]


def test_an_array_that_had_the_name_before_is_another_one() -> None:
    made = "n = 9\nx = cp.ones(n, cp.float32)\ny = x\nx = cp.ones(n, cp.float32)\n"
    assert launches(made + LAUNCH) == ["#pragma optiml launch scale grid(4) block(32)"]


def test_what_is_computed_of_an_array_is_another_one() -> None:
    made = "n = 9\nx = cp.ones(n, cp.float32)\ny = x + 1\n"
    assert launches(made + LAUNCH) == ["#pragma optiml launch scale grid(4) block(32)"]
