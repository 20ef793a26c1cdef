"""Which barriers of a text stand in a branch."""

from __future__ import annotations

import pytest

from optiml_magic.source.barriers import in_branches


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("__syncthreads();", ()),
        ("for (;;) __syncthreads();", ()),
        ("if (c) return; __syncthreads();", ()),
        ("if (c) {\n __syncthreads(); }", (3,)),
        ("if (c) x(); else __syncthreads();", (2,)),
        ("if (__syncthreads_or(c)) x();", ()),
        ("if (c)\n for (;;)\n {\n block.sync(); }", (5,)),
        ("switch (c) { case 1: __syncthreads_count(1); }", (2,)),
        ('if (c) asm volatile("bar.sync 1;");', (2,)),
        ("c ? __syncthreads() : x();", (2,)),
        ("if (c) v = __shfl_sync(~0u, v, 0); __syncwarp(); __syncthreads();", ()),
        ("if (c) { x(); } cg::sync(block); if (d) cg::sync(block);", (2,)),
    ],
)
def test_lines_of_barriers_in_branches(body: str, lines: tuple[int, ...]) -> None:
    assert in_branches(f"__global__ void k(int c) {{\n{body}\n}}\n") == lines


def test_a_text_that_is_no_program_has_none() -> None:
    assert in_branches("if (__syncthreads") == ()
    assert in_branches("\ud800 __syncthreads();") == ()
