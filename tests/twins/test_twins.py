"""Every twin compiles and leaves behind what its original does, bit by bit."""

from __future__ import annotations

from collections import Counter

import pytest

from optiml_magic.source.syntax import parse
from tests.present import SOAK, sampled

from .forms import FORMS
from .originals import ORIGINALS, Original
from .running import outputs
from .tokens import printed
from .twins import every, of


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("original", sampled(ORIGINALS, 6), ids=lambda o: o.name)
def test_a_twin_leaves_behind_what_its_original_does(original: Original) -> None:
    group = sampled(of(original), 24)  # few, since each is compiled and run
    wanted, *found = outputs([original, *group])
    for twin, got in zip(group, found, strict=True):
        assert got.keys() == {twin.renamed.get(name, name) for name in wanted}, twin.name
        for name, array in wanted.items():
            other = got[twin.renamed.get(name, name)]
            assert other.dtype == array.dtype, twin.name
            assert other.tobytes() == array.tobytes(), f"{twin.name}: {name}\n{twin.text}"


@pytest.mark.parametrize("original", sampled(ORIGINALS), ids=lambda o: o.name)
def test_an_original_writes_something_and_not_everywhere_the_same(original: Original) -> None:
    (found,) = outputs([original])
    for name, array in found.items():
        assert array.size == 1 or len(set(array.reshape(-1).tolist())) > 1, name


def test_there_are_enough_of_them() -> None:
    assert len(ORIGINALS) >= 30
    assert len(every()) >= 300
    of_forms = Counter(twin.form for twin in every())
    of_originals = Counter(twin.original.name for twin in every())
    assert min(of_forms[form.name] for form in FORMS) >= 5
    assert min(of_originals[original.name] for original in ORIGINALS) >= 10


def test_no_two_twins_are_the_same() -> None:
    names = [twin.name for twin in every()]
    assert len(set(names)) == len(names)
    assert not [t.name for t in every() if t.text == t.original.text]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_form_is_the_same_every_time_and_leaves_a_tree_without_errors(form) -> None:
    for original in ORIGINALS if SOAK else ORIGINALS[:: len(ORIGINALS) // 6]:
        text = form.apply(original.text)
        assert text == form.apply(original.text)
        if text is not None:
            assert not parse(text).root.has_error, f"{original.name}\n{text}"
            assert text.count("#pragma optiml") == original.text.count("#pragma optiml")


def test_a_form_leaves_alone_what_it_would_break() -> None:
    by_name = {form.name: form.apply for form in FORMS}
    barrier = (
        "__global__ void f(float* a, int n) {\n    int i = threadIdx.x;\n"
        "    if (i >= n) return;\n    __syncthreads();\n    a[i] = 0.0f;\n}\n"
    )
    assert by_name["nested_ifs"](barrier) is None
    skipping = (
        "__global__ void f(float* a, int n) {\n    for (int k = 0; k < n; ++k) {\n"
        "        if (a[k] > 0.0f) continue;\n        a[k] = 1.0f;\n    }\n}\n"
    )
    for form in ("while_loops", "pointer_walks"):
        assert by_name[form](skipping) is None, form
    stepping = (
        "__global__ void f(float* a, int n) {\n    for (int k = 0; k < n; k += 2) a[k] = 1.0f;\n}\n"
    )
    for form in ("not_equal", "pointer_walks", "shifted_counters"):
        assert by_name[form](stepping) is None, form
    stores = "__global__ void f(float* a, float x) {\n    if (x > a[0]) a[0] = x;\n}\n"
    assert by_name["ternaries"](stores) is None


def test_a_comparison_stays_one_sign_where_it_could_end_a_template() -> None:
    text = "__global__ void f(int x, int y, int w) { if (x < w - 1 && y >= 1) return; }"
    assert "y >= 1" in printed(text, lambda before, _: " " if before else "")
