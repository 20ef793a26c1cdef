"""What rounds have in common, and what depends on fewer indices than its statement."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.invariant import computed_before
from optiml_magic.kernels.primitives.set_apart import set_apart
from optiml_magic.proposers.rewrites.tabulate_weights import TabulateWeights, short_counted
from tests.ideas import asked

from .running import same
from .shapes import applied, kernel, refused

LINE = """\
__device__ float weight(float v) { if (v < 0.5f) return 1.0f - v; return expf(-v); }
#pragma optiml launch k grid(cdiv(w, 32), h) block(32)
__global__ void k(const float* a, float* out, int s, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= w) return;
    int first = (int)(x * 0.7f);
    float sum = 0.0f;
    for (int j = 0; j < 3; ++j) {
        #pragma unroll 1
        for (int i = first; i < first + 3; ++i) {
            %s
        }
    }
    out[y * w + x] = sum;
}
"""
SHAPES = {"a": ("h + 3", "w"), "out": ("h", "w")}
SIZES = {"w": 37, "h": 5, "s": 3}
AT = "a[(y + j) * w + min(i, w - 1)]"


def test_a_function_of_what_does_not_change_stands_before_its_loop() -> None:
    text = LINE % f"sum += {AT} * weight(j * 0.5f) + weight(j * 0.5f) / (float)s;"
    made = applied(computed_before(kernel(text), 1))
    before, _, inner = made.program.text.partition("#pragma unroll 1")
    assert "const float made = weight(j * 0.5f);" in before
    assert "const float made_2 = weight(j * 0.5f) / (float)s;" in before
    assert "* made + made_2;" in inner
    assert "#pragma unroll 1\n        for (int i" in made.program.text
    same(text, made, SHAPES, SIZES, rounds=True)


@pytest.mark.parametrize(
    "body",
    [
        f"sum += {AT} * weight(i * 0.5f);",  # the counter's
        f"sum += {AT} * weight(sum);",  # changes
        f"sum += {AT} * weight(a[y]);",  # loads
        f"sum += {AT} * (j * 0.5f + 2.0f);",  # cheap: a compiler moves it
        f"sum += {AT} * expf(2.0f);",  # the same in all programs
    ],
)
def test_what_stays_in_the_loop(body: str) -> None:
    found = computed_before(kernel(LINE % body), 1)
    assert refused(found)[0] == "its rounds compute nothing alike that takes long"


def test_weights_at_places_that_the_thread_says_are_tables() -> None:
    text = LINE % f"sum += {AT} * (weight(x - i) * weight(y - j));"
    counted = short_counted(kernel(text))
    assert "for (int k_2 = 0; k_2 < 3; ++k_2)" in counted.program.text
    (idea,), _ = asked(TabulateWeights(), text)
    found = idea.make()
    assert isinstance(found, str)
    assert "made[k_2] = weight(x - (i + k_2));" in found
    assert "const float made_2 = weight(y - j);" in found
    same(text, kernel(found), SHAPES, SIZES, rounds=True)


def test_values_alone_are_an_idea_as_well() -> None:
    text = LINE % f"sum += {AT} / sqrtf((float)s);"
    (idea,), _ = asked(TabulateWeights(), text)
    assert idea.title == "compute what is the same in all rounds of a loop before it"
    found = idea.make()
    assert isinstance(found, str)
    assert found.index("sqrtf") < found.index("for (")
    same(text, kernel(found), SHAPES, SIZES)


def test_long_functions_of_fewer_indices_are_locals_of_their_own() -> None:
    text = LINE % f"sum += {AT} * (sinf(x * 0.1f) * cosf(j * 0.1f) + sinf(x * 0.1f + y));"
    made = applied(set_apart(short_counted(kernel(text))))
    shown = made.program.text
    assert "const float made = sinf(x * 0.1f) * cosf(j * 0.1f);" in shown
    assert "(made + sinf(x * 0.1f + y))" in shown
    same(text, made, SHAPES, SIZES, rounds=True)
