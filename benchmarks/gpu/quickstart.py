"""The quickstart notebook on a GPU: its cells run as they are, the evidence goes to a folder.

    python benchmarks/gpu/quickstart.py FOLDER

Every code cell is run in a real IPython shell. For each search FOLDER gets NAME.json, the outcome
as the command line writes it, with ncu's counters of every candidate, and NAME.jsonl, the run's
journal; quickstart.json holds the machine, the versions, and each kernel before and after.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.gpu.machine import gpu, versions
from optiml_magic.reports import contract
from optiml_magic.result import Result

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "00_quickstart.ipynb"
COUNTERS = (
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "smsp__inst_executed.sum",
    "dram__bytes.sum",
)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shell: Any = InteractiveShell.instance()
    kernels: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        outcome = shell.run_cell("".join(cell["source"]))
        if "raises-exception" not in cell["metadata"].get("tags", []):
            outcome.raise_error()
        if isinstance(outcome.result, Result):
            kernels[outcome.result.summary.task] = _kept(outcome.result, folder)
            _write(kernels, folder)


def _write(kernels: dict[str, Any], folder: Path) -> None:
    """After every search, so that a run that is cut short leaves what it found."""
    record = {
        "command": "python benchmarks/gpu/quickstart.py FOLDER",
        "date": time.strftime("%Y-%m-%d"),
        "gpu": gpu(),
        "versions": versions(),
        "kernels": kernels,
    }
    (folder / "quickstart.json").write_text(json.dumps(record, indent=1) + "\n")


def _kept(result: Result, folder: Path) -> dict[str, Any]:
    """The outcome and the journal written down; what changed, returned."""
    summary = result.summary
    outcome = contract.optimized(summary)
    outcome["journal"] = f"{summary.task}.jsonl"
    (folder / f"{summary.task}.json").write_text(json.dumps(outcome, indent=1) + "\n")
    if summary.journal is not None:
        shutil.copy(summary.journal, folder / f"{summary.task}.jsonl")
    steps = {"before": summary.root, "after": summary.winner}
    return {
        "device": summary.device,
        "source": summary.source,
        "speedup": result.speedup,
        "interval": list(result.interval),
        "recipe": summary.recipe,
        "diff": result.diff(),
        **{
            when: {
                "seconds": measured.seconds,
                "counters": {
                    m.name: m.value
                    for m in measured.metrics
                    if m.name in COUNTERS and m.source == "ncu"
                },
            }
            for when, step in steps.items()
            if (measured := step.evaluation.measurement) is not None
        },
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    main(**vars(parser.parse_args()))
