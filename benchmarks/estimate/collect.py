"""Programs with their estimated times, in a bundle that a machine with a GPU can time.

    python benchmarks/estimate/collect.py bundle.json

Each task is searched on the emulated device; every verified program goes into the bundle
with its cubin, its launches and its estimate. ``time_on_gpu.py`` needs the bundle, CuPy and NumPy.
"""

from __future__ import annotations

import argparse
import base64
import json
from pathlib import Path
from typing import Any

from optiml_magic.binding import name_expressions, plan
from optiml_magic.model.build import Build
from optiml_magic.model.launch import BufferArgument, Launch
from optiml_magic.optimize import optimize
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.source.program import parse_program
from optiml_magic.testing.kernels import known_task

# Large enough that arrays exceed the L2 of the chip, or that arithmetic dominates the launch.
TASKS: dict[str, dict[str, int]] = {
    "saxpy": {"n": 1 << 24},
    "transpose_naive": {"rows": 4096, "cols": 4096},
    "transpose_tiled": {"rows": 4096, "cols": 4096},
    "matmul_naive": {"m": 512, "n": 512, "k": 512},
    "matmul_tiled": {"m": 512, "n": 512, "k": 512},
    "row_sum": {"rows": 16384, "cols": 1024},
    "row_sum_naive": {"rows": 32768, "cols": 512},
    "softmax": {"rows": 8192, "cols": 1000},
}
BUDGET = 14


def main(out: Path) -> None:
    settings = resolve({"budget": BUDGET, "verify_seeds": 1, "device": "emulated:h200"})
    programs = []
    for name, sizes in TASKS.items():
        result = optimize(known_task(name, **sizes), settings)
        problem = prepare(known_task(name, **sizes), seeds=1)
        with session(settings) as members:
            for step in result.trajectory.steps:
                evaluation = step.evaluation
                if not evaluation.verdict.passed or evaluation.duplicate_of is not None:
                    continue
                assert evaluation.measurement is not None
                program = parse_program(step.candidate.text)
                build = members.tools.compiler.compile(
                    program.compiled_text(),
                    name_expressions(program, problem.interface),
                    members.choice.chip,
                    members.tools.options,
                )
                assert isinstance(build, Build), build
                first = problem.instances[0]
                planned = plan(
                    program, problem.interface, build, first.values, first.shapes,
                    members.choice.chip,
                )  # fmt: skip
                programs.append(
                    {
                        "task": name,
                        "step": step.candidate.number,
                        "title": step.candidate.proposal.title,
                        "estimated_seconds": evaluation.measurement.seconds,
                        "bounds": {b.resource: b.seconds for b in evaluation.measurement.bounds},
                        "metrics": {m.name: m.value for m in evaluation.measurement.metrics},
                        "cubin": base64.b64encode(build.cubin).decode(),
                        "launches": [_launch(launch) for launch in planned.launches],
                        "buffers": [
                            {"name": b.name, "dtype": b.array.dtype.str, "shape": b.array.shape}
                            for b in problem.instances[0].case.buffers
                        ],
                        "program": step.candidate.text,
                    }
                )
        print(f"{name}: {sum(p['task'] == name for p in programs)} programs", flush=True)
    out.write_text(json.dumps({"chip": "h200", "programs": programs}))


def _launch(launch: Launch) -> dict[str, Any]:
    arguments = [
        {"buffer": a.buffer} if isinstance(a, BufferArgument) else {"raw": a.raw}
        for a in launch.arguments
    ]
    return {
        "kernel": launch.kernel,
        "grid": launch.grid,
        "block": launch.block,
        "shared": launch.shared,
        "arguments": arguments,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    main(**vars(parser.parse_args()))
