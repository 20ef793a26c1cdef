"""The static mix: what stands in the machine code of a build, counted without running it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from optiml_magic.model.build import MachineInstruction
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.measurement import Metric, Missing
from optiml_magic.profilers import opcodes

Code = Mapping[str, Sequence[MachineInstruction]]
Disassemble = Callable[[bytes], Code | None]

_NAMED = {
    "LDL": "code__local_loads",
    "STL": "code__local_stores",
    "LDG": "code__global_loads",
    "STG": "code__global_stores",
}
_WIDEST = {"LDG": "code__global_load_bytes", "STG": "code__global_store_bytes"}
NO_NVDISASM = Missing("code__instructions", "nvdisasm is not installed: no machine code to read")


def code_metrics(code: Code, plan: LaunchPlan) -> list[Metric]:
    """The mix of the kernels that a plan launches, each once however often it is launched."""
    kernels = dict.fromkeys(launch.kernel for launch in plan.launches)
    instructions = [
        opcodes.opcode_of(i.text) or i.opcode for kernel in kernels for i in code.get(kernel, ())
    ]
    words = Counter(opcode.split(".")[0] for opcode in instructions)
    mix = Counter(opcodes.kind(opcode) for opcode in instructions)
    doubles = sum(
        opcode.startswith(("F2F", "I2F", "F2I")) and "F64" in opcode for opcode in instructions
    )
    found = [_metric("code__instructions", len(instructions))]
    found += [_metric(f"code__instructions_{kind}", mix[kind]) for kind in opcodes.CLASSES]
    found += [_metric(name, words[word]) for word, name in _NAMED.items()]
    found.append(_metric("code__conversions_fp64", doubles))
    for word, name in _WIDEST.items():
        widths = [
            a.width for o in instructions if o.split(".")[0] == word and (a := opcodes.access(o))
        ]
        if widths:
            found.append(Metric(name, max(widths), "byte", "compiler"))
    return found


def _metric(name: str, value: int) -> Metric:
    return Metric(name, value, "inst", "compiler")
