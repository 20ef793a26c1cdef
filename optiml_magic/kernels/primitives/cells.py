"""Shared memory of a block, element by element."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optiml_magic.kernels.editing import lines
from optiml_magic.kernels.expressions import (
    Cast,
    Expr,
    Literal,
    Name,
)
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.called_types import is_number
from optiml_magic.kernels.primitives.exchanges import Exchanges
from optiml_magic.kernels.primitives.shares import (
    IDEMPOTENT,
    IDENTITIES,
    Each,
    Known,
    Made,
    Numbers,
    Same,
    Share,
    Shared,
    Value,
    put,
)
from optiml_magic.kernels.tree import (
    Statement,
    TypeName,
    Variable,
)
from optiml_magic.kernels.types import CType, named

_WORD = 4  # bytes of the numbers that threads are followed by


class Cells(Exchanges):
    """What threads put into shared memory."""

    def _into(self, place: Shared, value: Value) -> Made:
        kind, array, offset = self.of_kind(place), place.array, place.offset
        if array.type.base in self.generic and isinstance(value, Share | Each):
            kind = (value.source.kind if isinstance(value, Share) else value.kind) or kind
        active = np.flatnonzero(self.mask)
        at = offset[active]
        if at.size == 0:
            return ()
        if int(at.min()) < 0:
            raise NotLegal(f"it stores before `{array.name}`")
        alone = len({*at.tolist()}) == 1
        if not self.quiet and not array.array:
            value = self.entire(value)
        if not alone and len({*at.tolist()}) < len(at):
            raise NotLegal(f"several threads store to one element of `{array.name}`")
        if isinstance(value, Same) and not value.key and not self.conditions and alone:
            return self._one(array, int(at[0]), value, kind.name)
        if isinstance(value, Same) and self.conditions:
            value = self._each(value)
        if isinstance(value, Known) and not kind.integral and value.only(self.mask) is not None:
            value = Same(value.form, value.where, key=str(value.only(self.mask)))
        if isinstance(value, Known) and not kind.integral:
            value = self._each(value)
        if isinstance(value, Each):
            if value.kind != kind:
                value = self._converted(value, kind.name, kind)
            value = self.shared_of(value, kind=kind)
        if isinstance(value, Share) and value.source.kind != kind:
            raise NotLegal("what it combines is rounded on the way")
        if isinstance(value, Share) and alone and len(at) > 1:
            raise NotLegal(f"several threads store to one element of `{array.name}`")
        for one in at.tolist():
            self.single.pop((array, one), None)
        self.cells[array] = self._stored(self.cells.get(array), value, at, active)
        return ()

    def _converted(self, value: Each, words: str, kind: CType) -> Each:
        key = (value, words)
        found = self.casts.get(key)
        if found is None:
            found = replace(value, form=Cast(None, words, value.form), kind=kind)
            self.casts[key] = found
        return found

    def _cast(self, variable: Variable, form: Expr) -> Expr:
        kind = self.kind(variable)
        return form if kind.depth else Cast(None, kind.name, form)

    def as_type(self, value: Value, to: TypeName) -> Value:
        """A value in the type that a function says that it takes, or returns."""
        kind = named(to.base, self.types)
        if to.depth or to.base in {"auto", *self.generic} or not is_number(kind):
            return value
        if isinstance(value, Share) and value.source.kind != kind:
            raise NotLegal("what it combines is rounded on the way")
        if isinstance(value, Known) and kind.floating:
            value = self._each(value)
        if isinstance(value, Known) and kind.size != _WORD:
            if not set(value.numbers) <= {*range(128)}:
                raise NotLegal("a number is beyond what is followed")
        elif isinstance(value, Known) and not kind.signed:
            return replace(value, numbers=value.numbers & 0xFFFFFFFF)
        if isinstance(value, Each) and value.kind != kind:
            return self._converted(value, kind.name, kind)
        if isinstance(value, Same) and not isinstance(value.form, Literal):
            own = self.kernel.reading.types.get(value.form)
            if own is not None and own != kind:
                return replace(value, form=Cast(None, kind.name, value.form), key="")
        return value

    def _stored(self, old: Value | None, new: Value, at: Numbers, active: Numbers) -> Value:
        size = max(int(at.max()) + 1, len(old.where) if old is not None else 0)
        where = np.zeros(size, bool)
        where[at] = new.where[active]
        before = np.zeros(size, bool)
        if old is not None:
            before[: len(old.where)] = old.where
            before[at] = False
        if isinstance(new, Known):
            numbers = np.zeros(size, np.int64)
            if isinstance(old, Known):
                numbers[: len(old.numbers)] = old.numbers
                where = where | before
            numbers[at] = new.numbers[active]
            return Known(new.form, where, numbers=numbers)
        parts: list[int | None] = [None] * size
        nothing: frozenset[str] = frozenset()
        if isinstance(new, Same):
            if not isinstance(old, Share):
                if isinstance(old, Same) and old.key == new.key:
                    where = where | before
                return Same(new.form, where, key=new.key)
            source, given = old.source, [0] * self.count
            nothing = frozenset({new.key})
        else:
            assert isinstance(new, Share)
            source, given, nothing = new.source, [*new.parts], new.nothing  # type: ignore[list-item]
        if isinstance(old, Share) and old.source is source:
            for i in np.flatnonzero(before):
                parts[i] = old.parts[i]
            where, nothing = where | before, nothing | old.nothing
        elif isinstance(old, Same | Known) and before.any():
            key = old.key if isinstance(old, Same) else str(old.only(old.where))
            if key and key != "None":
                for i in np.flatnonzero(before):
                    parts[i] = 0
                where, nothing = where | before, nothing | {key}
        for thread, cell in zip(active, at, strict=True):
            parts[int(cell)] = given[int(thread)]
        return Share(new.form, where, source=source, parts=tuple(parts), nothing=nothing)

    def _one(self, array: Variable, at: int, value: Value, words: str) -> Made:
        """One element that is the same for all threads, as a local."""
        if self.quiet:
            raise NotLegal(f"what `{array.name}` holds is not followed")
        home = self.homes.get(array)
        if home is None:
            raise NotLegal(f"what `{array.name}` holds is not followed")
        key = ("cell", array, at)
        name = self.names.get(key)
        if name is None:
            name = (
                array.name
                if not array.array
                else self.kernel.fresh(f"{array.name}_{at}", *self.taken)
            )
            self.names[key] = name
            self.taken.append(name)
            self.scalars.setdefault(home, []).append(f"{words} {name};")
        self.changed(Variable(name, array.type, "local", 0))
        held = self.cells.get(array)
        if held is not None and at < len(held.where):
            where = held.where.copy()
            where[at] = False
            self.cells[array] = replace(held, where=where)
        self.single[array, at] = Same(Name(None, name), np.ones(1, bool))
        return (put(Name(None, name), value.form),)

    def _loaded(self, place: Shared) -> Value:
        at = place.offset[self.mask]
        if at.size and bool((at == at[0]).all()):
            found = self.single.get((place.array, int(at[0])))
            if found is not None:
                return Same(found.form, self.all)
        return super()._loaded(place)

    def of_name(self, expr: Name) -> Value:
        variable = expr.variable
        if variable is not None and variable.storage == "shared" and not variable.array:
            found = self.single.get((variable, 0))
            if found is not None:
                return Same(found.form, self.all)
        return super().of_name(expr)

    def _added(self, place: Shared, value: Value, op: str) -> Made:
        """All threads combine into elements of shared memory."""
        kind = self.of_kind(place)
        if self.conditions or op not in (*IDENTITIES, "min", "max"):
            raise NotLegal("what its threads do together is not followed")
        if isinstance(value, Each):
            if value.kind != kind:
                value = self._converted(value, kind.name, kind)
            value = self.shared_of(value, kind=kind)
        if not isinstance(value, Share) or value.source.kind != kind:
            raise NotLegal("what its threads do together is not followed")
        if value.source.each is not None and not value.source.op:
            self.begin(value.source, op, op if op in IDEMPOTENT else "")
        before = self.mask
        for thread in np.flatnonzero(before):
            self.mask = np.zeros(self.count, bool)
            self.mask[thread] = True
            held = self._loaded(place)
            made = self.combined(held, value, op, "")
            self.single.pop((place.array, int(place.offset[thread])), None)
            self.cells[place.array] = self._stored(
                self.cells.get(place.array), made, place.offset[self.mask], np.array([thread])
            )
        self.mask = before
        self.combines = True
        return ()

    def row(self, array: Variable) -> Statement:
        """A row in shared memory as a local array of one thread."""
        (extent,) = array.extents
        base = array.type.base
        bytes_ = f"({self.kernel.launch.shared}) / sizeof({base})"
        return lines(f"{base} {array.name}[{bytes_ if extent is None else self.words(extent)}];")

    def _each(self, value: Value) -> Each:
        return Each(value.form, value.where, value.locals, value.loads)
