"""What one search is worth to the next: kernels searched twice, the second time after a sibling.

    python benchmarks/search/pairs.py FOLDER [--processes N] [--budget 32] [--limit S] [--write]

Of each pair the first kernel is searched without experience, the second without any and with the
entry of the first alone, on the emulated device. Told are the evaluations, the input kernel's not
among them, until a program has 95 % of the gain that the second had without, the median of their
ratios over the pairs in which the first is known to the second, and how much of that gain there is
after half the evaluations. FOLDER/NAME.json is a pair; the same command goes on with the rest. The
record is ``benchmarks/results/search-pairs.json``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.search import siblings, tasks  # noqa: E402
from benchmarks.search.ship import entry  # noqa: E402
from optiml_magic.errors import OptimlError  # noqa: E402
from optiml_magic.experience import shipped  # noqa: E402
from optiml_magic.model.task import Task  # noqa: E402

RECORD = ROOT / "benchmarks" / "results" / "search-pairs.json"
#: Kernels that do alike in other words, at other sizes; the second is one of the suite or of these.
PAIRS = (
    ("twin/row_sum", "row_norms"), ("workload/gemv_thread_per_row", "gemv"),
    ("workload/column_sums", "column_means"), ("twin/layer_norm", "layer_norm"),
    ("twin/transpose", "transpose"), ("twin/matmul", "matmul"), ("twin/nbody", "gravity"),
    ("twin/spmv_csr", "spmv"), ("workload/heat_with_x_along_rows", "heat_2d"),
    ("workload/pairwise_distances", "distances"), ("twin/softmax", "workload/log_sum_exp"),
    ("twin/row_max", "workload/row_max"), ("twin/matvec", "gemv_transposed"),
    ("known/matmul_naive", "linear_relu"), ("known/histogram", "byte_histogram"),
    ("workload/gelu_in_double", "workload/option_in_double"),
)  # fmt: skip
_NEAR = 0.95
_COUNTED = 2_000_000
Json = dict[str, Any]


@dataclass(frozen=True)
class Order:
    """What a process does; ``until`` is the time of day after which no search begins."""

    folder: Path
    home: Path
    device: str
    budget: int
    until: float


def made() -> dict[str, Callable[[], Task]]:
    """All kernels by name."""
    return {**siblings.tasks(emulated=True), **tasks.tasks()}


def searched(pair: tuple[str, str], order: Order) -> str:
    """One pair; what came of it, in a line."""
    first, second = pair
    name = f"{first} {second}".replace("/", "-").replace(" ", "+")
    if time.time() > order.until:
        return f"{name}: not begun"
    home = order.home / name
    common: Json = {
        "home": home, "device": order.device, "budget": order.budget, "verify_seeds": 1,
        "count_instructions": _COUNTED, "trial_seconds": 2.0, "seconds": 1e9,
    }  # fmt: skip
    try:
        before = siblings.searched(made()[first](), experience="none", **common)
        assert before.journal is not None
        found = entry(before.journal)
        shipped.write(file := order.home / f"{name}.entries", [found] if found else [])
        plain = siblings.searched(made()[second](), experience="none", **common)
        told = siblings.searched(made()[second](), experience="shipped", shipped=file, **common)
    except OptimlError as error:
        return f"{name}: {error}"
    row = {
        "first": siblings.row_of(first, before),
        "without": siblings.row_of(second, plain),
        "with": siblings.row_of(second, told),
    }
    (order.folder / f"{name}.json").write_text(json.dumps(row) + "\n")
    return f"{name}: {json.dumps(compared(row))}"


def compared(row: Json) -> Json:
    """Evaluations to 95 % of the gain that the second search has without experience."""
    without, informed = row["without"]["best_so_far"], row["with"]["best_so_far"]
    wanted = without[0] / (1 + _NEAR * (without[0] / without[-1] - 1))
    needed = [
        next((at for at, s in enumerate(column) if s is not None and s <= wanted), len(column))
        for column in (without, informed)
    ]
    return {
        "first": row["first"]["task"],
        "second": row["without"]["task"],
        "known": bool(row["with"]["notes"]),
        "gain": round(without[0] / without[-1], 3),
        "gain_with": round(informed[0] / informed[-1], 3),
        "without": needed[0],
        "with": needed[1],
        "share_at_half": round(_gained(informed[: len(without) // 2]) / _gained(without), 3),
    }


def _gained(column: Sequence[float]) -> float:
    """How much of the input kernel's time is saved, over the time of the best."""
    return column[0] / column[-1] - 1 or 1e-9


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--budget", type=int, default=32)
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds")
    parser.add_argument("--device", default="emulated:h200")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    until = time.time() + options.limit
    known = {path.stem for path in options.folder.glob("*.json")}
    left = [p for p in PAIRS if f"{p[0]}+{p[1]}".replace("/", "-") not in known]
    spawned = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as home,
        ProcessPoolExecutor(options.processes, mp_context=spawned) as processes,
    ):
        order = Order(options.folder, Path(home), options.device, options.budget, until)
        for done in as_completed(processes.submit(searched, pair, order) for pair in left):
            print(done.result(), flush=True)
    rows = [json.loads(path.read_text()) for path in sorted(options.folder.glob("*.json"))]
    pairs = [compared(row) for row in rows]
    # One that gains nothing has nothing to come to sooner.
    telling = [p for p in pairs if p["known"] and p["without"]]
    for one in pairs:
        print(json.dumps(one))
    if telling:
        ratio = statistics.median(p["with"] / p["without"] for p in telling)
        half = statistics.median(p["share_at_half"] for p in telling)
        print(f"{len(telling)} pairs: median {ratio:.2f} of the evaluations, {half:.2f} at half")
    if options.write:
        record = {
            "what": f"evaluations to {_NEAR:.0%} of the gain without experience",
            "command": " ".join(["python benchmarks/search/pairs.py FOLDER", *arguments[1:]]),
            "date": time.strftime("%Y-%m-%d"),
            "device": options.device,
            "pairs": pairs,
            "rows": rows,
        }
        RECORD.write_text(json.dumps(record) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
