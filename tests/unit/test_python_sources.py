"""Which strings of a Python text are its kernels, and what they are compiled with."""

from __future__ import annotations

import pytest

from optiml_magic.commands import parsers, tasks
from optiml_magic.commands.python.cell import kernel_in, macros_in
from optiml_magic.errors import UsageError

KERNEL = "r'''__global__ void k(int* y) { y[0] = M; }'''"


@pytest.mark.parametrize(
    "python",
    [
        "code = '#define M 3\\n'\ncode += {}\nk = cp.RawKernel(code, 'k')",
        "k = cp.RawKernel('\\n'.join(['#define M 3', {}]), 'k')",
        "parts = ['#define M 3', {}]\nk = cp.RawKernel('\\n'.join(parts), 'k')",
        "code = {}\ncode = re.sub('M', '7', code)",
        "code = {}\nother = re.sub('M', '7', code)",
        "code = {}\nfor m in sizes:\n    code = fill(code, m)",
        "code = {}\ndef make(c, m):\n    return cp.RawKernel(c.replace('M', m), 'k')\nmake(code, '7')",
        "code = {}\ndef make(c):\n    c += '//'\n    return cp.RawKernel(c, 'k')\nmake(c=code)",
        "code = {}\ndef same(c):\n    return c\nk = cp.RawKernel(same(code) % 4, 'k')",
        "k = cp.RawKernel(f'#define M {m}\\n' + {}, 'k')",
        "k = cp.RawKernel(header() + {}, 'k')",
        "code = {}\nk = cp.RawKernel(f'#define M 4\\n{code}', 'k')",
        "code = {}\nhead = '#define M 4\\n'\nk = cp.RawKernel(head + code, 'k')",
        "code = {}.strip().format(4)",
        "class A:\n    code = {}\n    def k(self):\n        return self.code.replace('M', '4')",
        "code = {}\nk = cp.RawKernel('#define M %s' % code, 'k')",
    ],
)
def test_a_kernel_that_python_makes_up_is_refused(python: str) -> None:
    with pytest.raises(UsageError, match="the kernel is a template") as error:
        kernel_in(python.replace("{}", KERNEL))
    assert "print it" in error.value.fix


@pytest.mark.parametrize(
    "python",
    [
        "code = {}\nprint(len(code), code.count('M'), code)\nk = cp.RawKernel(code, 'k')",
        "code = textwrap.dedent({}).strip()\nk = cp.RawKernel(code, 'k')",
        "'''About a __global__ kernel.'''\nk = cp.RawKernel({}, 'k')",
        "def a():\n    code = {}\ndef b():\n    code = {}",
        "module = load_inline(name='m', cuda_sources=[{}], functions=['f'])",
        "code = {}\ndef make(c, m):\n    return cp.RawKernel(c, m)\nmake(code, 'k')",
    ],
)
def test_a_kernel_that_stays_as_it_is_is_read(python: str) -> None:
    found = kernel_in(python.replace("{}", KERNEL)) or ""
    assert "__global__ void k(int* y) { y[0] = M; }" in found
    assert "About" not in found


def test_text_in_front_of_a_kernel_is_part_of_it() -> None:
    python = f"head = '#define M 3\\n'\ncode = head + {KERNEL} + '// end'\nk = f(code)"
    assert (kernel_in(python) or "").split("\n")[:3] == [
        "#define M 3",
        "__global__ void k(int* y) { y[0] = M; } // end",
        "",
    ]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("options=('-DM=4', '--std=c++17')", {"M": "4"}),
        ("options=['-D M=4', '-DTWO']", {"M": "4", "TWO": "1"}),
        ("options=('-DM=',)", {"M": ""}),
        ("options=(f'-DM={size}',)", {"M": "8"}),
        ("options=flags", {"M": "9"}),
        ("options=None", {}),
        ("extra_cuda_cflags='-O3 -DM=4'", {"M": "4"}),
    ],
)
def test_macros_are_those_that_the_kernel_is_compiled_with(
    options: str, found: dict[str, str]
) -> None:
    python = f"size = 8\nflags = ('-DM=9',)\nk = cp.RawKernel({KERNEL}, 'k', {options})"
    assert macros_in(python) == found
    given = parsers.parse(parsers.cell_parser(), ["check", "-DTWO=2"])
    task = tasks.from_cell("\n" + python, given, {})
    assert task.defines == {**found, "TWO": "2"}


@pytest.mark.parametrize(
    "options",
    ["flags", "('-DM=' + str(m),)", "(f'-DM={m}',)", "(f'-DM={size:02}',)", "given()", "[*more]"],
)
def test_macros_that_are_made_up_are_refused(options: str) -> None:
    python = f"size = 8\nm = 1\nm = 2\nk = cp.RawKernel({KERNEL}, 'k', options={options})"
    with pytest.raises(UsageError, match="is known only when Python runs it"):
        macros_in(python)


def test_macros_that_differ_are_refused() -> None:
    python = f"cp.RawKernel({KERNEL}, 'k', ('-DM=4',))\ncp.RawKernel(code, 'k', ('-DM=5',))"
    with pytest.raises(UsageError, match="`M` is 4 for one kernel and 5 for another"):
        macros_in(python)
