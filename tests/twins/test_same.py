"""Twins are read as their originals are; kernels that do something else are not."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.present import SOAK

from .originals import ORIGINALS, Original
from .same import ASPECTS, compared, differences, summary
from .twins import every

WANTED = 0.95
# One in 59: most forms with an original, in about three seconds.
EACH = 1 if SOAK else 59


@pytest.mark.timeout(1800)
def test_twins_are_read_as_their_originals_are() -> None:
    differing: Counter[str] = Counter()
    told = []
    chosen = every()[::EACH]
    for twin in chosen:
        found = differences(twin)
        differing.update([*found, *(("any",) if found else ())])
        told += [f"{twin.name}: {aspect}: {what}" for aspect, what in found.items()]
    for aspect in (*ASPECTS, "any"):
        share = 1 - differing[aspect] / len(chosen)
        assert share >= WANTED, f"{aspect}: {share:.1%} of {len(chosen)}\n" + "\n".join(told)


BY_NAME = {original.name: original for original in ORIGINALS}
CHANGES = [
    ("matmul", "i < k", "i < n", {"accesses", "loops", "reductions"}),
    ("matmul", "i < k", "i <= k", {"accesses", "loops", "reductions"}),
    ("matmul", "row < m && col < n", "row < m", {"accesses", "loops", "guards"}),
    ("matmul", "row * k + i", "i * m + row", {"accesses"}),
    ("matmul", "sum += a", "sum -= a", set()),  # it is still a sum
    ("matmul", "sum += a", "sum = a", {"reductions"}),
    ("matmul", "b[i * n + col]", "a[i * n + col]", {"accesses"}),
    ("matmul_tiled", "tile_a[threadIdx.y][i]", "tile_a[i][threadIdx.y]", {"accesses"}),
    ("matmul_tiled", "tile_a[threadIdx.y][i]", "tile_b[threadIdx.y][i]", {"accesses"}),
    ("matmul_tiled", "        __syncthreads();\n    }", "    }", {"barriers"}),
    ("softmax", "value > largest", "value < largest", {"reductions"}),
    ("softmax", "int col = 0; col < cols; ++col) {\n        total",
     "int col = 1; col < cols; ++col) {\n        total", {"accesses", "loops", "reductions"}),
    ("block_sum", "t == 0", "t == 1", {"accesses", "guards"}),
    ("histogram", "bin >= 0 && ", "", {"accesses", "guards"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "aspects"), CHANGES)
def test_what_is_changed_is_read_otherwise(
    name: str, old: str, new: str, aspects: set[str]
) -> None:
    text = BY_NAME[name].text
    assert text.count(old) == 1
    (ours,), (theirs,) = summary(text), summary(text.replace(old, new))
    assert set(compared(ours, theirs)) == aspects


@pytest.mark.parametrize("original", ORIGINALS, ids=lambda original: original.name)
def test_a_summary_is_that_of_all_that_is_read(original: Original) -> None:
    (found,) = summary(original.text)
    assert not compared(found, found)
    assert found.rows["accesses"]
    assert not [row for row in found.rows["accesses"] if "[?]" in row or "verbatim" in row]
