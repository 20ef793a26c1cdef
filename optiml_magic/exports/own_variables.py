"""The variables that a program keeps for itself: how a run begins with the module's own values.

A kernel sets them back on the device, so that it goes into the stream, and into a graph, like all
else, and no one has to know their sizes and lowered names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from optiml_magic.errors import UsageError
from optiml_magic.kernels.unit import Unit
from optiml_magic.kernels.variables import DeviceVariable, device_variables, function_statics

_RESTORE = """\
template <typename T>
__device__ void {name}(T& variable, const T& start) {{
    for (size_t i = threadIdx.x; i < sizeof(T); i += blockDim.x) {{
        ((unsigned char*)&variable)[i] = ((const unsigned char*)&start)[i];
    }}
}}
"""
_CLEAR = """\
template <typename T>
__device__ void {name}(T& variable) {{
    for (size_t i = threadIdx.x; i < sizeof(T); i += blockDim.x) ((unsigned char*)&variable)[i] = 0;
}}
"""


def own_variables(unit: Unit, filled: Iterable[str]) -> tuple[DeviceVariable, ...]:
    """What kernels of a text may change beside those ``filled`` for every run.

    Raises UsageError for a static variable of a function, which nothing outside can reach.
    """
    for name in function_statics(unit):
        raise UsageError(
            f"`{name}` keeps its value from one launch to the next, and nothing outside of its "
            "function can set it back",
            fix=f"declare it outside: __device__ ... {name}",
        )
    known = set(filled)
    return tuple(
        v
        for v in device_variables(unit, pointers=True)
        if v.space == "device" and not v.const and v.name not in known
    )


def setting_back(
    variables: Iterable[DeviceVariable], kernel: str, fresh: Callable[[str], str]
) -> Iterator[str]:
    """Pieces of C++ that end with ``kernel``, which one block runs before everything else."""
    own = tuple(variables)
    restore, clear = fresh("restore"), fresh("clear")
    starts = {v.name: fresh(f"{v.bare_name}_start") for v in own if v.initialised}
    yield "// What a run begins with: the module's own values.\n"
    for variable in own:
        if variable.initialised:
            value = f"{starts[variable.name]} {variable.initialiser}"
            yield f"__device__ const decltype(::{variable.name}) {value};\n"
    if starts:
        yield _RESTORE.format(name=restore)
    if len(starts) < len(own):
        yield _CLEAR.format(name=clear)
    body = [
        f"    {restore}(::{v.name}, {starts[v.name]});"
        if v.initialised
        else f"    {clear}(::{v.name});"
        for v in own
    ]
    yield "\n".join([f"__global__ void {kernel}() {{", *body, "}", ""])


def in_namespace(
    variables: Iterable[DeviceVariable], kernel: str, fresh: Callable[[str], str]
) -> str:
    """The same in a namespace, that of ``kernel``, which sees what the program's own see."""
    own = tuple(variables)
    space, _, name = kernel.partition("::")
    usings = "".join(f"using namespace ::{n};\n" for n in namespaces(v.name for v in own))
    return f"\nnamespace {space} {{\n{usings}{''.join(setting_back(own, name, fresh))}}}\n"


def namespaces(names: Iterable[str]) -> tuple[str, ...]:
    """Those that names of a program stand in, each once."""
    return tuple(dict.fromkeys(n.rpartition("::")[0] for n in names if "::" in n))
