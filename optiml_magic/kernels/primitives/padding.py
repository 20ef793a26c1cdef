"""P19, tests of borders that stay: items near a border are taken together as well.

Where an image is small, many of its threads are near a border. What all items of a thread test
alike, such as whether a row is there, stands around their loads; what each tests for itself, such
as a column, stays around its sum. Elements beside those of the items are loaded where a test of
theirs holds; those of the items themselves are there for all items, which a thread compares.
"""

from __future__ import annotations

from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.indices import COUNTER, Element, Undecided, factor
from optiml_magic.kernels.primitives.interior import Interior
from optiml_magic.kernels.primitives.scopes import Scopes
from optiml_magic.kernels.primitives.windows import Border, Round
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import If, walk


class Padding:
    """The tests of borders that stay: around all items, in ``scopes``, and ``own`` ones of each.

    The latter are sums over items and the counters of loops, none of which is below 0. Some are
    ``certain`` to hold where other words do, which a compiler knows once loops are unrolled.
    """

    def __init__(self, effects: Effects, interior: Interior, scopes: Scopes) -> None:
        self.effects = effects
        self.interior = interior
        self.scopes = scopes
        self.own: dict[If, tuple[Polynomial, ...]] = {}
        self.certain: dict[Expr, str] = {}

    def stays(self, branch: If, condition: Condition) -> bool:
        """Whether a test does, of a branch that does nothing but load and compute."""
        forms = self._forms(branch, condition)
        several = [along for along in self.interior.along if along.several]
        axes = [{along.axis for along in several if along.moves(form)} for form in forms]
        if forms and not any(axes) and not self._within(branch):
            self.scopes.around.add(branch)
        elif forms and all(found == {"x"} for found in axes):
            self.own[branch] = forms
        else:
            return False
        return True

    def tell(self, expr: Expr, words: str) -> None:
        """When the tests hold that each item makes for itself before it comes to an expression."""
        for branch in self.own:
            if expr in self.effects.inside(branch):
                self.certain.setdefault(branch.test, words)

    def borders(
        self, access: Access, at: Element, rounds: tuple[Round, ...], item: str, apart: int
    ) -> tuple[Border, ...]:
        """What an item tests of an element, as sums over where that is in its row."""
        within, found = at.steps.get((), Polynomial()), list[Border]()
        moving = {item, *(f"{COUNTER}{turn.name}" for turn in rounds)}
        for branch, forms in self.own.items():
            for form in forms if access.own in self.effects.inside(branch) else ():
                by, left = divmod(factor(form, item), apart)
                rest = form - Polynomial.constant(by) * within
                if left or not by or rest.symbols & moving:
                    raise NotLegal("a test is not of where its element is in a row", branch.line)
                found.append(Border(by, rest))
        return tuple(found)

    def _forms(self, branch: If, condition: Condition) -> tuple[Polynomial, ...]:
        """The sums that a branch compares with 0; none where it does more than that."""
        if not self.scopes.loads_alone(branch):
            return ()
        interior, found = self.interior, list[Polynomial]()
        for part in condition.conjuncts():
            if not isinstance(part, Compare) or part.op != ">=":
                return ()
            if not interior.symbols.inside(part.form) & interior.moving.builtins:
                return ()
            try:
                with interior.attempt():
                    form = interior.by_counters(interior.placed(interior.plain(part.form)))
                    interior.moving.check_settled(form)
            except (Undecided, Unspelled):
                return ()
            found.append(form)
        return tuple(found)

    def _within(self, branch: If) -> bool:
        """Whether a branch is in one that each item takes for itself."""
        return any(branch in set(walk(outer)) for outer in self.own)
