"""Three programs whose numbers are tuned: naive kernels, and what our rules make of them.

Each space has at least 200 points that can run. One is a product by the rule for it, with tiles
beyond those that the rule offers; one has two launches that two rules rewrote, one after the
other, so that their numbers hardly touch each other; one is a stencil whose author left the numbers
open in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.facts import ArrayFacts, Facts, LaunchFacts, Role
from optiml_magic.model.launch import Dim3
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.space import Point, Space
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.proposers.spaces import space_of
from optiml_magic.source.expressions import Expression
from optiml_magic.source.program import parse_program

_PRODUCT = """\
#pragma optiml launch product grid(cdiv(n, 16), cdiv(n, 16)) block(16, 16)
__global__ void product(const float* a, const float* b, float* out, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n || col >= n) return;
    float s = 0;
    for (int k = 0; k < n; ++k) s += a[row * n + k] * b[k * n + col];
    out[row * n + col] = s;
}
"""
_ROWS = """\
#pragma optiml scratch across float[rows * cols]
#pragma optiml launch turned grid(cdiv(cols, 32), cdiv(rows, 8)) block(32, 8)
#pragma optiml launch softmax grid(cdiv(cols, 256)) block(256)
__global__ void turned(const float* a, float* across, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < rows && c < cols) across[c * rows + r] = 0.125f * a[r * cols + c];
}
__global__ void softmax(const float* across, float* out, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cols) return;
    float most = across[c * rows];
    for (int r = 1; r < rows; ++r) most = fmaxf(most, across[c * rows + r]);
    float sum = 0.0f;
    for (int r = 0; r < rows; ++r) sum += expf(across[c * rows + r] - most);
    for (int r = 0; r < rows; ++r) out[c * rows + r] = expf(across[c * rows + r] - most) / sum;
}
"""
_STENCIL = """\
#pragma optiml tune WIDE in {16, 32, 64, 128, 256} = 32
#pragma optiml tune HIGH in {1, 2, 4, 8, 16} = 4 if WIDE * HIGH >= 32 && WIDE * HIGH <= 1024
#pragma optiml tune DEEP in {1, 2, 4, 8, 16, 32} = 1
#pragma optiml tune AHEAD in {1, 2, 4} = 1 if AHEAD <= DEEP
#pragma optiml launch heat grid(cdiv(n, WIDE), cdiv(n, HIGH), cdiv(n, DEEP)) block(WIDE, HIGH)
__global__ void heat(const float* a, float* out, int n) {
    int x = blockIdx.x * WIDE + threadIdx.x, y = blockIdx.y * HIGH + threadIdx.y;
    if (x >= n || y >= n) return;
    int west = x > 0 ? -1 : 0, east = x < n - 1 ? 1 : 0;
    int up = y > 0 ? -n : 0, down = y < n - 1 ? n : 0;
    int first = blockIdx.z * DEEP, last = min(n, first + DEEP), at = (first * n + y) * n + x;
    float here = a[at], below = first > 0 ? a[at - n * n] : here;
#pragma unroll AHEAD
    for (int z = first; z < last; ++z, at += n * n) {
        float above = z < n - 1 ? a[at + n * n] : here;
        float around = a[at + west] + a[at + east] + a[at + up] + a[at + down] + below + above;
        out[at] = 0.4f * here + 0.1f * around;
        below = here;
        here = above;
    }
}
"""


@dataclass(frozen=True)
class Subject:
    """A program, which rules rewrite it in turn, and its arrays; numbers of elements by sizes.

    ``arrays`` maps a parameter to its role and shape; ``wider`` gives tuned names more values than
    the rules do. ``small`` are sizes for the emulated device.
    """

    name: str
    text: str
    sizes: Mapping[str, int]
    small: Mapping[str, int]
    arrays: Mapping[str, tuple[Role, Callable[[Mapping[str, int]], tuple[int, ...]]]]
    reference: Callable[[Any, Mapping[str, Any], Mapping[str, int]], Any]
    rules: tuple[str, ...] = ()
    wider: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def facts(self, text: str, sizes: Mapping[str, int] | None = None) -> Facts:
        """What a bound program would know of its launches."""
        sizes = sizes or self.sizes
        program, known = parse_program(text), []
        for launch in program.launches:
            env = {**program.values, **sizes}
            grid, block = _three(launch.grid, env), _three(launch.block, env)
            arrays = {n: _array(n, *self._shape(n, sizes)) for n in self.arrays}
            known.append(
                LaunchFacts(launch.kernel or "", launch.line, grid, block, arrays, dict(sizes))
            )
        return Facts(tuple(known), {}, 1e-5, 1e-5, "h200")

    def _shape(self, name: str, sizes: Mapping[str, int]) -> tuple[Role, tuple[int, ...]]:
        role, shape = self.arrays[name]
        return role, shape(sizes)

    def rewritten(self) -> tuple[str, tuple[Point, ...]]:
        """The program whose numbers are tuned, and where the last rule would begin."""
        root = _step(self.text)
        text, starts = self.text, tuple[Point, ...]()
        for name in self.rules:
            rule = next(r for r in REWRITES if r.name == name)
            view = View(_step(text), root, find_facts=partial(self.facts, text))
            ideas = [i for i in rule.propose(parse_program(text), view)
                     if not isinstance(i, Refusal)]  # fmt: skip
            made = ideas[0].make()
            assert isinstance(made, str), made
            text, starts = made, ideas[0].starts
        return self._widened(text), starts

    def _widened(self, text: str) -> str:
        for name, values in self.wider.items():
            written = ", ".join(map(str, values))
            text, count = re.subn(rf"(tune {name} in )\{{[^}}]*\}}", rf"\1{{{written}}}", text)
            assert count == 1, name
        return text

    def space(self) -> tuple[Space, tuple[Point, ...]]:
        """As the search would see it, with the points that it would begin with."""
        text, starts = self.rewritten()
        found = space_of(lambda _: self.facts(text), _step(text))
        assert found is not None
        return found, starts


def points(space: Space) -> Iterator[Point]:
    """Those that can run, as far as arithmetic tells."""
    for values in product(*space.values.values()):
        point = dict(zip(space.values, values, strict=True))
        if space.promise(point) > 0:
            yield point


def _step(text: str) -> Step:
    return Step(
        Candidate(0, None, Proposal(text, "", "")), Evaluation(0, "", Verdict(Outcome.PASSED, ""))
    )


def _three(sizes: Sequence[Expression], env: Mapping[str, int]) -> Dim3:
    x, y, z = (*(size.evaluate(env) for size in sizes), 1, 1)[:3]
    return x, y, z


def _array(name: str, role: Role, shape: tuple[int, ...]) -> ArrayFacts:
    count = 1
    for extent in shape:
        count *= extent
    return ArrayFacts(name, role, "float32", shape, 4 * count, 256)


def _product(xp: Any, given: Mapping[str, Any], _: Mapping[str, int]) -> Any:
    return xp.matmul(given["a"].astype(xp.float64), given["b"].astype(xp.float64))


def _softmax(xp: Any, given: Mapping[str, Any], _: Mapping[str, int]) -> Any:
    turned = (0.125 * given["a"].T).astype(xp.float64)
    parts = xp.exp(turned - turned.max(axis=1, keepdims=True))
    return parts / parts.sum(axis=1, keepdims=True)


def _heat(xp: Any, given: Mapping[str, Any], _: Mapping[str, int]) -> Any:
    a = xp.pad(given["a"], 1, mode="edge")
    inner = slice(1, -1)
    around = a[:-2, inner, inner] + a[2:, inner, inner] + a[inner, :-2, inner]
    around += a[inner, 2:, inner] + a[inner, inner, :-2] + a[inner, inner, 2:]
    return 0.4 * given["a"] + 0.1 * around


def _square(sizes: Mapping[str, int]) -> tuple[int, ...]:
    return sizes["n"], sizes["n"]


def _cube(sizes: Mapping[str, int]) -> tuple[int, ...]:
    return sizes["n"], sizes["n"], sizes["n"]


def _as_given(sizes: Mapping[str, int]) -> tuple[int, ...]:
    return sizes["rows"], sizes["cols"]


def _across(sizes: Mapping[str, int]) -> tuple[int, ...]:
    return sizes["cols"], sizes["rows"]


SUBJECTS = (
    Subject(
        "product", _PRODUCT, {"n": 1024}, {"n": 64},
        {"a": ("in", _square), "b": ("in", _square), "out": ("out", _square)}, _product,
        ("blocked_product",),
        {
            "BM": (16, 32, 64, 128, 256), "BN": (16, 32, 64, 128, 256), "TM": (4, 8, 16),
            "TN": (4, 8),
        },
    ),
    Subject(
        "turned softmax", _ROWS, {"rows": 4096, "cols": 8192}, {"rows": 96, "cols": 64},
        {"a": ("in", _as_given), "across": ("scratch", _across), "out": ("out", _across)}, _softmax,
        ("transpose_tile", "row_to_lanes"),
    ),
    Subject(
        "heat", _STENCIL, {"n": 512}, {"n": 40},
        {"a": ("in", _cube), "out": ("out", _cube)}, _heat,
    ),
)  # fmt: skip
