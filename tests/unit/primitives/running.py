"""What a primitive made, run beside what it was made of."""

from __future__ import annotations

from collections.abc import Mapping

from optiml_magic.kernels.primitives.base import Kernel, Refused
from tests.present import drawn
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .shapes import applied

Shapes = Mapping[str, tuple[str, ...]]


def same(
    text: str,
    made: Kernel | Refused,
    shapes: Shapes,
    sizes: Mapping[str, int],
    values: Mapping[str, int] | None = None,
    *,
    rounds: bool = False,
    given: str = "numbers",
) -> None:
    """Fail where a result differs, races or leaves its arrays, with its tuned ``values``.

    It may differ by rounding where it ``rounds``.

    The last array is what the kernel writes; an array of another type than float has its name in
    front of its extents: ``("u1", "n")``. The others are of what is ``given``.
    """
    program = applied(made).program
    text_of = (program.with_values(values) if values else program).text
    arrays = {}
    for at, (name, shape) in enumerate(shapes.items()):
        typed = shape[0] in ("f8", "u1", "i1", "u2", "i2", "i4", "f2")
        content = "zeros" if at == len(shapes) - 1 else given
        arrays[name] = Array(shape[0] if typed else "f4", shape[typed:], content)
    others = {n: max(1, s // 3) for n, s in sizes.items()}
    stand = Stand(Made("one", text, arrays, sizes, others, exact=not rounds))
    found = stand.applied(Offer("one", "", text_of, rounds), text)
    assert found.sound, f"{found.end}: {found.detail}\n{found.after}"


def same_of_many(
    text: str,
    made: Kernel | Refused,
    shapes: Shapes,
    sizes: Mapping[str, int],
    values: Mapping[str, int] | None = None,
    *,
    rounds: bool = False,
) -> None:
    """``same`` for one case in five, and for all of them in make soak.

    For where many cases are alike, and what they become is long and so slow to compile.
    """
    if drawn(f"{text} {sorted(sizes.items())} {sorted((values or {}).items())}"):
        same(text, made, shapes, sizes, values, rounds=rounds)
