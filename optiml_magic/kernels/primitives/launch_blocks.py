"""Where the blocks of a launch stand: what holds for all of them, or is asked of its sizes."""

from __future__ import annotations

from collections.abc import Mapping

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.grids import form_of
from optiml_magic.kernels.primitives.lane_values import PLACES, By
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_MOST = 2**31 - 1
#: What a comparison with 0 is where the least or the greatest number says so.
_ANSWERS: Mapping[str, tuple[tuple[bool, bool, str], ...]] = {
    "<": ((True, True, "<"), (False, False, ">=")),
    "<=": ((True, True, "<="), (False, False, ">")),
    ">": ((True, False, ">"), (False, True, "<=")),
    ">=": ((True, False, ">="), (False, True, "<")),
    "==": ((False, True, "<"), (False, False, ">")),
    "!=": ((True, True, "<"), (True, False, ">")),
}
_HOLDS = {
    "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__,
}  # fmt: skip


class LaunchBlocks:
    """``conditions`` are what was asked of the launch so far."""

    def __init__(self, kernel: Kernel, sizes: Mapping[str, int], *, asking: bool = True) -> None:
        self.asking = asking
        values = {**kernel.program.values, **sizes}
        self.numbers, self.extents = dict[str, int | None](), dict[str, str]()
        facts, grid = kernel.facts, kernel.launch.grid
        self.measured = dict[str, int]()
        for at, axis in enumerate("xyz"):
            size, name = grid[at] if at < len(grid) else None, f"blockIdx.{axis}"
            known = size is not None and size.names <= values.keys() and not size.arrays
            number = size.evaluate(values) if size is not None and known else 1
            self.numbers[name] = number if known or size is None else None
            self.extents[name] = str(size) if size is not None else "1"
            self.measured[name] = facts.grid[at] if facts is not None else number
        given = facts.scalars if facts is not None else {}
        self.scalars = {n: v for n, v in given.items() if isinstance(v, int)}
        self.conditions = dict[str, None]()
        self.reach = dict.fromkeys(PLACES, 0)  # by how much their places are multiplied at most

    def decided(self, op: str, by: By, least: int, most: int) -> bool | None:
        """Whether ``op`` holds between a sum and 0, or never does; the launch is asked for it.

        Of sizes alone nothing is asked: rounds that they bound may be any.
        """
        if not any(name in PLACES for name, _ in by):
            return None
        for answer, greatest, relation in _ANSWERS[op]:
            begin = most if greatest else least
            moving = [(n, f) for n, f in by if n not in PLACES or (f > 0) == greatest]
            if any(n not in PLACES and n not in self.scalars for n, _ in moving):
                return None
            end = begin + sum(f * self._end(n) for n, f in moving)
            if not _HOLDS[relation](end, 0):
                continue
            terms = [(f"({self._said(n)})", f) for n, f in moving] + [("", begin)]
            sides = [
                " + ".join(_times(words, sign * f) for words, f in terms if sign * f > 0) or "0"
                for sign in (1, -1)
            ]
            forms = [form_of(parse_expression(side).tree) for side in sides]
            apart = forms[0] - forms[1] if forms[0] is not None and forms[1] is not None else None
            if apart is None or apart.value is None:
                if not self.asking:
                    return None
                self.conditions[f"{sides[0]} {relation} {sides[1]}"] = None
            return answer
        return None

    def _end(self, name: str) -> int:
        return self.measured[name] - 1 if name in PLACES else self.scalars[name]

    def _said(self, name: str) -> str:
        return f"({self.extents[name]}) - 1" if name in PLACES else name

    def multiplied(self, by: By) -> None:
        for name, factor in by:
            if name in PLACES:
                self.reach[name] = max(self.reach[name], abs(factor))

    def apart(self, by: By, count: int) -> bool:
        """Whether parts of so many elements, which begin by the place of a block, are apart."""
        factors, free = dict(by), count
        if not factors.keys() <= PLACES:
            return False
        axes = sorted((factors.get(n, 0), n) for n in PLACES if self.numbers[n] != 1)
        for at, (factor, name) in enumerate(axes):
            blocks = self.numbers[name]
            if factor < free or (blocks is None and at + 1 < len(axes)):
                return False
            free = factor * (blocks or 1)
        return True

    def asked(self) -> list[RequireDirective]:
        """All conditions, and that no place of a block goes beyond 31 bits."""
        found = [*self.conditions]
        for name, factor in self.reach.items():
            blocks = self.numbers[name]
            if factor and (blocks is None or blocks * factor > _MOST):
                found.append(f"({self.extents[name]}) * {factor} <= {_MOST}")
        return [RequireDirective(parse_expression(words)) for words in found]

    def there(self, by: By, most: int, size: str) -> RequireDirective:
        """Ask for an array that holds the last element of the last block."""
        words = [f"(({self.extents[name]}) - 1) * {factor}" for name, factor in by]
        end = " + ".join([*words, str(most + 1)])
        return RequireDirective(parse_expression(f"{size} >= {end}"))


def _times(words: str, factor: int) -> str:
    return str(factor) if not words else words if factor == 1 else f"{words} * {factor}"
