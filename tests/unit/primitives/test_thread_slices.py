"""The part of scratch that a thread alone asks for, as a local array."""

from __future__ import annotations

from contextlib import suppress

import pytest

from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.thread_slices import in_local_arrays, parts_at
from optiml_magic.model.facts import ArrayFacts, Facts, LaunchFacts
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

EDIT = """\
#pragma optiml scratch work f4[n * 12]
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, float* work, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float* from = work + i * 12;
    float* to = from + 6;
    for (int j = 0; j < 6; ++j) from[j] = j;
    for (int k = 1; k < 5; ++k) {
        to[0] = k;
        for (int j = 1; j < 6; ++j) to[j] = fminf(from[j] + a[i], to[j - 1] + from[j - 1]);
        float* other = from; from = to; to = other;
    }
    out[i] = from[5];
}
"""
PLACES = """\
#pragma optiml scratch work f4[n * 12]
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, float* work, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        for (int j = 0; j < 12; j += 2) work[i * 12 + j] = work[12 * i + 1 + j] = a[i] * j;
        for (int j = 1; j < 12; ++j) if (a[i] > 0.5f) work[i * 12 + j] += work[i * 12 + j - 1];
        out[i] = work[i * 12 + 11];
    }
}
"""


def kernel(text: str, n: int = 70, role: str = "scratch") -> Kernel:
    arrays = {
        name: ArrayFacts(name, own, "<f4", (count,), count * 4, 256)  # type: ignore[arg-type]
        for name, count, own in (("a", n, "in"), ("work", n * 12, role), ("out", n, "out"))
    }
    launch = LaunchFacts("k", 1, (-(-n // 32), 1, 1), (32, 1, 1), arrays, {"n": n})
    return kernel_of(text, Facts((launch,), {}, 1e-5, 1e-8, "h200"))


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (EDIT, "", ""),
        (EDIT, "work + i * 12", "&work[i * 12]"),
        (EDIT, "from[j] = j;", "work[i * 12 + j] = j;"),
        (EDIT, "i * 12", "(size_t)i * 12"),
        (PLACES, "", ""),
        (PLACES, "j += 2", "j = j + 2"),
        (PLACES, "a[i] * j;", "a[i] * j; if (a[i] < 0) return;"),
    ],
)
def test_it_does_the_same(text: str, old: str, new: str) -> None:
    text = text.replace(old, new) if old else text
    made = in_local_arrays(kernel(text))
    after = written(made)
    assert "    float work_own[12];\n" in after
    assert "require n ==" not in after
    arrays = {"a": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
    assert end_of(text, after, arrays, {"n": 70}, {"n": 31}) in ("same", "narrowed")


@pytest.mark.parametrize(
    ("text", "old", "new", "reason"),
    [
        (EDIT, "j < 6; ++j) from", "j < 5; ++j) from", "what was in `work` before is asked for"),
        (EDIT, "i * 12", "i * 11", "threads share parts of `work`"),
        (EDIT, "work + i * 12", "work + n - n + i * 12", "leads beside a thread's part"),
        (EDIT, "j < 6; ++j) to[j]", "j < (int)a[i]; ++j) to[j]", "which of its elements"),
        (PLACES, "    }\n}", "    }\n    work[i] = 0.0f;\n}", "do not all lie by the place"),
        (PLACES, "j += 2)", "j += a[i] < 0 ? 1 : 2)", "which of its elements"),
        (PLACES, "a[i] * j;", "a[i] * j; if (a[i] < 0) break;", "a way out of a `switch`"),
        (PLACES, "j += 2", "j += 3", "what was in `work` before is asked for"),
    ],
)
def test_what_is_not_certain_is_refused(text: str, old: str, new: str, reason: str) -> None:
    made = in_local_arrays(one := kernel(text.replace(old, new)))
    words = refused(made)
    with suppress(NotLegal):
        words += " ".join(r.reason for r in parts_at(one, (("n", 70),)).refused)
    assert reason in words


def test_what_others_ask_for_stays() -> None:
    assert "no thread has a part of scratch" in refused(in_local_arrays(kernel(EDIT, role="out")))
    again = EDIT.replace("block(32)", "block(32) repeat(3)")
    assert "no thread has a part of scratch" in refused(in_local_arrays(kernel(again)))
