"""Which variables an exported program sets back before it runs."""

from __future__ import annotations

import pytest

from optiml_magic.errors import UsageError
from optiml_magic.exports.own_variables import own_variables
from optiml_magic.kernels.unit import lift

TEXT = """\
#define STATE static __device__
#define START { 1, 2, 3 }
#define COUNTER(name) __device__ int name = 4
STATE int first[3] = START;
COUNTER(second);
#if 0
__device__ int never;
#endif
__global__ void k() {
BODY
}
"""


def test_variables_are_seen_through_macros_and_conditionals() -> None:
    own = own_variables(lift(TEXT.replace("BODY", "#if 0\nstatic int kept;\n#endif")), ())
    assert [(v.name, v.initialiser) for v in own] == [("first", "= { 1, 2, 3 }"), ("second", "= 4")]
    assert [v.name for v in own_variables(lift(TEXT), ["second"])] == ["first"]


def test_a_static_of_a_function_is_seen_through_a_macro() -> None:
    with pytest.raises(UsageError, match="`kept` keeps its value"):
        own_variables(lift(TEXT.replace("BODY", "STATE int kept;")), ())
