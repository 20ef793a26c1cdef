"""What a hostile kernel is."""

from __future__ import annotations

from dataclasses import dataclass, field

from optiml_magic.model.verdict import Outcome

_HEAD = """\
#pragma optiml launch twice grid(cdiv(n, 128)) block(128)
__global__ void twice(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
"""
_TAIL = """
    if (i < n) out[i] = 2.0f * x[i];
}
"""


@dataclass(frozen=True)
class Hostile:
    """A program with the outcomes it may have; ``cuda`` where a card ends it in other ways.

    ``slow`` ones end by a time limit, which costs seconds.
    """

    text: str = field(repr=False)
    ends: tuple[Outcome, ...]
    cuda: tuple[Outcome, ...] = ()
    slow: bool = False

    def outcomes(self, device: str) -> tuple[Outcome, ...]:
        """Those allowed on the device of that name."""
        return self.cuda if self.cuda and device.startswith("cuda") else self.ends


def doubling(statement: str, *, before: str = "", launch: str = "") -> str:
    """The healthy program with a statement at the begin of its body, and lines before it."""
    head = _HEAD if not launch else _HEAD.replace("grid(cdiv(n, 128)) block(128)", launch)
    return f"{before}{head}    {statement}{_TAIL}"
