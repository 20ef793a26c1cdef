"""References that a model wrote: what they may hold, before anything of them runs."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from optiml_magic.synthesis.refusals import Refused
from optiml_magic.synthesis.tracing import traced
from optiml_magic.synthesis.written import functions

SOFTMAX = '''\
import numpy as np

def shifted(x):
    return np.exp(x - x.max(axis=1, keepdims=True))

def reference(x):
    """The softmax of each row."""
    e = shifted(x)
    for k in range(2):
        e = e / e.sum(axis=1, keepdims=True)
    return np.where(np.isnan(e), 0.0, e)

def inputs(rng, rows, cols):
    return {"x": rng.standard_normal((rows, cols)).astype(np.float32)}
'''


def test_formulas_of_arrays_are_functions_that_can_be_read_called_and_traced() -> None:
    made = functions(SOFTMAX, "reference", "inputs")
    assert isinstance(made, dict)
    values = made["inputs"](np.random.default_rng(0), rows=3, cols=5)
    found = made["reference"](**values)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-6)
    assert inspect.getsource(made["reference"]).startswith("def reference(x):")
    assert not isinstance(traced(made["reference"], values, {"rows": 3, "cols": 5}), Refused)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("open('/etc/passwd')", "`open`"),
        ("__import__('os')", "`__import__`"),
        ("getattr(x, 'T')", "`getattr`"),
        ("globals()", "`globals`"),
        ("x.__class__.__mro__", "`.__"),
        ("x.tofile('/tmp/x')", "`.tofile`"),
        ("x.dump('/tmp/x')", "`.dump`"),
        ("np.load('x')", "`.load`"),
        ("np.fromfile('x')", "`.fromfile`"),
        ("np.lib", "`.lib`"),
        ("np.ctypeslib", "`.ctypeslib`"),
        ("np.random.default_rng(0)", "`.default_rng`"),
        ("'{0.real}'.format(x)", "`.format`"),
        ("(lambda: x)()", "`Lambda`"),
        ("(y := x)", "`NamedExpr`"),
        ("f'{x}'", "`JoinedStr`"),
        ("b'x'", "bytes"),
        ("_x", "`_x`"),
        ("other", "`other`"),
    ],
)
def test_what_reaches_further_is_refused_with_its_line(body: str, said: str) -> None:
    found = functions(f"def reference(x):\n    return {body}\n", "reference")
    assert isinstance(found, Refused)
    assert said in found.reason
    assert found.line == 2


@pytest.mark.parametrize(
    "text",
    [
        "import os\ndef reference(x):\n    return x\n",
        "from numpy import *\ndef reference(x):\n    return x\n",
        "import numpy.ctypeslib\ndef reference(x):\n    return x\n",
        "def reference(x):\n    while True:\n        pass\n",
        "def reference(x):\n    global np\n    return x\n",
        "def reference(x):\n    try:\n        return x\n    finally:\n        pass\n",
        "class reference: pass\n",
        "@staticmethod\ndef reference(x):\n    return x\n",
        "def other(x):\n    return x\n",
        "reference = 3\n",
        "def reference(x:\n",
        "\0",
        "",
        "x" * 30_000,
        "def reference(x, _y=0):\n    return x\n",
    ],
)
def test_what_is_no_text_of_functions_is_refused(text: str) -> None:
    assert isinstance(functions(text, "reference"), Refused)
