"""Programs that differ in tuned numbers alone are one structure."""

from __future__ import annotations

from optiml_magic.replay.pool import structure

_TEXT = """\
#pragma optiml tune ROWS in {{1, 2, 4}} = {rows}
#pragma optiml tune COLS in {{1, 2, 4}} = {cols} if ROWS * COLS >= 4
#pragma optiml launch scale grid(1) block(32)
__global__ void scale(float* x) {{ x[threadIdx.x] *= {factor}; }}
"""


def test_other_numbers_are_the_same_structure() -> None:
    # The first values of both names are not legal together.
    texts = [_TEXT.format(rows=r, cols=c, factor="2.0f") for r, c in ((1, 4), (4, 1), (4, 4))]
    assert len({structure(text) for text in texts}) == 1


def test_another_kernel_is_another_structure() -> None:
    one, other = (_TEXT.format(rows=4, cols=1, factor=factor) for factor in ("2.0f", "3.0f"))
    assert structure(one) != structure(other)


def test_what_cannot_be_read_is_its_own() -> None:
    assert structure("#pragma optiml tune") != structure("#pragma optiml tune ")
