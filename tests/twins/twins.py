"""Every original in every spelling that fits it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from .forms import FORMS, Form
from .originals import ORIGINALS, Original


@dataclass(frozen=True)
class Twin:
    """A kernel program that does what its original does, spelled otherwise.

    Attributes:
        form: the spelling's name; several that were applied one after the other joined by ``+``.
        renamed: the names that differ, from the original's to the twin's.
    """

    original: Original
    form: str
    text: str
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.original.name}-{self.form}"

    @property
    def values(self) -> dict[str, Any]:
        """The values of the original under the names of the twin."""
        return {self.renamed.get(name, name): v for name, v in self.original.values.items()}

    @property
    def inout(self) -> tuple[str, ...]:
        """Those of the original's arrays that are read and written, under the names of the twin.

        They are said, since a macro that has ``.x`` in it hides what is done with an array ``x``.
        """
        return tuple(self.renamed.get(name, name) for name in self.original.inout)


def twins(originals: Iterable[Original] = ORIGINALS) -> Iterator[Twin]:
    """All twins, those of one original after another."""
    for original in originals:
        for form in FORMS:
            found = _twin(original, form)
            if found is not None:
                yield found


#: Spellings that are common together, each applied to what the one before it made.
MIXTURES = (
    ("index_macros", "while_loops", "renamed"),
    ("thread_helpers", "early_returns", "outer_counters", "typedefs"),
    ("early_returns", "declared_first", "compound_spelled_out", "airy"),
    ("nested_ifs", "split_conditions", "mirrored", "compact"),
    ("template_parameters", "thread_names", "const_names", "breaking_loops"),
    ("pointer_walks", "restricted", "increments", "names_exchanged"),
    ("named_indices", "static_casts", "ldg_loads", "braced"),
    ("flattened_block", "swapped_operands", "negated", "parameter_copies"),
    ("folded_block", "inlined_names", "named_loads", "output_references"),
    ("called_bodies", "pointer_bases", "while_loops", "literal_macros"),
    ("shifted_counters", "size_t_indices", "named_conditions", "renamed"),
    ("dereferenced", "ternaries", "not_equal", "joined_declarations"),
)


def mixtures(originals: Iterable[Original] = ORIGINALS) -> Iterator[Twin]:
    """Twins of several forms at once; those of a mixture that do not fit an original are left out."""
    known = {form.name: form for form in FORMS}
    for original in originals:
        for mixture in MIXTURES:
            made = Twin(original, "", original.text)
            for name in mixture:
                made = _with(made, known[name])
            if "+" in made.form:
                yield made


def of(original: Original) -> tuple[Twin, ...]:
    """The twins and mixtures of one original."""
    return (*twins([original]), *mixtures([original]))


@cache
def every() -> tuple[Twin, ...]:
    """All twins and mixtures, made once: it takes seconds."""
    return (*twins(), *mixtures())


def _with(twin: Twin, form: Form) -> Twin:
    """The twin in one more form, or as it was where that does not fit."""
    text = form.apply(twin.text)
    if text is None or text == twin.text:
        return twin
    again = form.renaming(twin.text)
    renamed = again if not twin.renamed else {old: again[new] for old, new in twin.renamed.items()}
    name = f"{twin.form}+{form.name}" if twin.form else form.name
    return Twin(twin.original, name, text, renamed or twin.renamed)


def _twin(original: Original, form: Form) -> Twin | None:
    made = _with(Twin(original, "", original.text), form)
    return made if made.form else None
