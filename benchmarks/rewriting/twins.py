"""Whether the rules find the same speed however a kernel is spelled.

    python benchmarks/rewriting/twins.py [--write] [--processes N] [--least N] [--all]
    python benchmarks/rewriting/twins.py [--originals NAME ...] [--forms FORM ...]

An original (``tests/twins``) that a structural rule has a site in is searched with rules alone, and
so are its twins: ten evaluations on the emulated device, at sizes at which the rules pay. A row has
the best times of both. Without ``--all`` it is a fixed sample in which every form occurs
``--least`` times, alone or with others, or as often as there are twins of it. What is done is kept
beside the record, ``benchmarks/results/rewriting-twins.json``: the same command goes on with the
rest after a stop.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from optiml_magic.errors import OptimlError  # noqa: E402
from optiml_magic.model.task import Task  # noqa: E402
from optiml_magic.optimize import optimize  # noqa: E402
from optiml_magic.settings import resolve  # noqa: E402
from tests.twins.originals import ORIGINALS, Values  # noqa: E402
from tests.twins.twins import Twin, of  # noqa: E402

RECORD = ROOT / "benchmarks" / "results" / "rewriting-twins.json"
_VERSIONS = ("optiml-magic", "nvidia-cuda-nvrtc", "llvmlite", "tree-sitter-cuda", "numpy")
_BUDGET, _WANTED = 10, 1.07
#: The rules that change what a thread does; numbers alone change with the others.
STRUCTURAL = ("coalesce_mapping", "transpose_tile", "row_to_lanes", "blocked_product", "stage_tile")
Row = dict[str, Any]
_F4, _I4 = np.float32, np.int32


def _numbers(rng: np.random.Generator, *shape: int) -> Any:
    return rng.uniform(-1.0, 1.0, shape).astype(_F4)


def _rows(rng: np.random.Generator, rows: int, cols: int, *more: str, **out: Any) -> Values:
    first, *vectors = more
    return {
        first: _numbers(rng, rows, cols), "rows": rows, "cols": cols,
        **{name: _numbers(rng, cols) for name in vectors}, **out,
    }  # fmt: skip


def _csr(rng: np.random.Generator) -> Values:
    rows, cols = 2048, 1024
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 129, rows))]).astype(_I4)
    count = int(starts[-1])
    return {
        "starts": starts, "columns": rng.integers(0, cols, count, dtype=_I4),
        "values": _numbers(rng, count), "x": _numbers(rng, cols), "y": np.zeros(rows, _F4),
        "rows": rows,
    }  # fmt: skip


def _plane(rows: int, cols: int) -> Any:
    return np.zeros((rows, cols), _F4)


#: Inputs of the originals that a rule has a site in, as large as it takes for the rule to pay.
LARGE: Mapping[str, Callable[[np.random.Generator], Values]] = {
    "transpose": lambda rng: _rows(rng, 1024, 1056, "a", out=_plane(1056, 1024)),
    "matmul": lambda rng: {
        "a": _numbers(rng, 512, 132), "b": _numbers(rng, 132, 544), "c": _plane(512, 544),
        "m": 512, "n": 544, "k": 132,
    },
    "batched_matmul": lambda rng: {
        "a": _numbers(rng, 12, 132, 132), "b": _numbers(rng, 12, 132, 132),
        "c": np.zeros((12, 132, 132), _F4), "batches": 12, "n": 132,
    },
    "row_sum": lambda rng: _rows(rng, 1024, 516, "a", out=np.zeros(1024, _F4)),
    "row_max": lambda rng: _rows(rng, 1024, 516, "a", out=np.zeros(1024, _F4)),
    "row_argmin": lambda rng: _rows(rng, 1024, 516, "a", where=np.zeros(1024, _I4)),
    "row_normalise": lambda rng: _rows(rng, 1024, 516, "a", out=_plane(1024, 516)),
    "softmax": lambda rng: _rows(rng, 1024, 516, "x", out=_plane(1024, 516)),
    "layer_norm": lambda rng: _rows(
        rng, 1024, 516, "x", "gamma", "beta", out=_plane(1024, 516)
    ),
    "matvec": lambda rng: _rows(rng, 1024, 516, "a", "x", y=np.zeros(1024, _F4)),
    "triangular": lambda rng: {
        "lower": _numbers(rng, 772, 772), "x": _numbers(rng, 772), "y": np.zeros(772, _F4), "n": 772
    },
    "spmv_csr": _csr,
    "nbody": lambda rng: {
        **{name: _numbers(rng, 2052) for name in ("px", "py", "mass")},
        "ax": np.zeros(2052, _F4), "ay": np.zeros(2052, _F4), "n": 2052,
    },
    "embedding": lambda rng: {
        "table": _numbers(rng, 519, 772), "ids": rng.integers(0, 523, 1024, dtype=_I4),
        "out": _plane(1024, 772), "tokens": 1024, "width": 772, "vocabulary": 519,
    },
    "point_lengths": lambda rng: {
        "points": _numbers(rng, 200_000, 3), "lengths": np.zeros(200_000, _F4), "n": 200_000
    },
    "downsample": lambda rng: {
        "image": _numbers(rng, 1024, 1056), "out": _plane(512, 528), "width": 1056,
        "out_width": 528, "out_height": 512,
    },
}  # fmt: skip


def twins(options: argparse.Namespace) -> list[Twin]:
    """Those that are searched, each original before the twins, under the form of no name."""
    names = options.originals or LARGE
    originals = [o for o in ORIGINALS if o.name in names]
    every = [twin for original in originals for twin in of(original)]
    chosen = every if options.all else sample(every, options.least)
    chosen = [t for t in chosen if not options.forms or {*t.form.split("+")} & {*options.forms}]
    return [*(Twin(original, "", original.text) for original in originals), *chosen]


def sample(every: Iterable[Twin], least: int) -> list[Twin]:
    """Some of them, the same each time, those of several forms first: each form so many times."""
    order = list(every)
    Random(0).shuffle(order)
    counts: Counter[str] = Counter()
    chosen = []
    for twin in sorted(order, key=lambda t: "+" not in t.form):
        forms = twin.form.split("+")
        if any(counts[form] < least for form in forms):
            chosen.append(twin)
            counts.update(forms)
    return chosen


@dataclass(frozen=True)
class Work:
    """A twin as what another process can be handed."""

    original: str
    form: str
    text: str
    renamed: Mapping[str, str]
    inout: tuple[str, ...]

    @classmethod
    def of(cls, twin: Twin) -> Work:
        return cls(twin.original.name, twin.form, twin.text, twin.renamed, twin.inout)


def searched(work: Work, home: str) -> Row:
    """The best of ten evaluations of a program, and the rules that took part."""
    values = LARGE[work.original](np.random.default_rng(7))
    named = {work.renamed.get(name, name): value for name, value in values.items()}
    settings = resolve(
        {
            "device": "emulated:h200", "llm": "none", "budget": _BUDGET, "experience": "none",
            "verify_seeds": 1, "home": home,
        }
    )  # fmt: skip
    row: Row = {"original": work.original, "form": work.form}
    try:
        result = optimize(Task(work.text, inputs=named, inout=work.inout), settings)
    except OptimlError as error:
        return {**row, "error": str(error)}
    trajectory = result.summary.trajectory
    best, root = trajectory.best, trajectory.root
    assert best.evaluation.measurement is not None
    assert root.evaluation.measurement is not None
    tried = Counter(step.candidate.proposal.proposer for step in trajectory.steps[1:])
    return {
        **row,
        "sites": [name for name in STRUCTURAL if name in tried],
        "input_us": round(root.evaluation.measurement.seconds * 1e6, 4),
        "best_us": round(best.evaluation.measurement.seconds * 1e6, 4),
        "best": best.candidate.proposal.title,
        "failed": [
            f"{step.candidate.proposal.title}: {step.evaluation.verdict.outcome.name}"
            for step in trajectory.steps
            if not step.evaluation.verdict.passed
        ],
    }


def collect(wanted: list[Twin], options: argparse.Namespace, kept_at: Path, home: str) -> list[Row]:
    """A row of each, those of an earlier run among them."""
    rows: list[Row] = []
    if kept_at.exists():
        rows = [json.loads(line) for line in kept_at.read_text().splitlines()]
    done = {(row["original"], row["form"]) for row in rows}
    todo = [t for t in wanted if (t.original.name, t.form) not in done]
    with (
        ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as pool,
        kept_at.open("a") as kept,
    ):
        running = [pool.submit(partial(searched, home=home), Work.of(twin)) for twin in todo]
        for at, future in enumerate(as_completed(running), 1):
            row = future.result()
            rows.append(row)
            kept.write(json.dumps(row) + "\n")
            kept.flush()
            best = row.get("best_us", row.get("error"))
            print(f"{at} of {len(todo)}: {row['original']} {row['form']}: {best}", flush=True)
    places = {(t.original.name, t.form): at for at, t in enumerate(wanted)}
    rows = [row for row in rows if (row["original"], row["form"]) in places]
    return sorted(rows, key=lambda row: places[row["original"], row["form"]])


def summary(rows: list[Row]) -> dict[str, Any]:
    """Every twin beside its original, and the share of them that are as fast."""
    originals = {row["original"]: row for row in rows if not row["form"]}
    told = []
    for row in rows:
        first = originals[row["original"]]
        if not row["form"] or "error" in first or not first["sites"]:
            continue
        ratio = None if "error" in row else round(row["best_us"] / first["best_us"], 4)
        told.append({**row, "original_us": first["best_us"], "ratio": ratio})
    forms = sorted({form for row in told for form in row["form"].split("+")})
    return {
        "twins": len(told),
        "within": sum(_within(row) for row in told),
        "share": round(_share(told), 4),
        "rules": {
            name: _counts(r for r in told if name in originals[r["original"]]["sites"])
            for name in STRUCTURAL
        },
        "originals": {
            name: {
                **first,
                **_counts(row for row in told if row["original"] == name),
            }
            for name, first in originals.items()
        },
        "forms": {
            form: _counts(row for row in told if form in row["form"].split("+")) for form in forms
        },
        "rows": told,
    }


def _within(row: Row) -> bool:
    return row["ratio"] is not None and row["ratio"] <= _WANTED


def _share(rows: list[Row]) -> float:
    return sum(map(_within, rows)) / len(rows) if rows else 1.0


def _counts(rows: Iterable[Row]) -> dict[str, Any]:
    rows = [*rows]
    return {"twins": len(rows), "within": sum(map(_within, rows)), "share": round(_share(rows), 4)}


def told(found: dict[str, Any]) -> None:
    """The counts, and every twin that lost."""
    for kind in ("rules", "originals"):
        for name, counts in found[kind].items():
            print(f"{name:<20} {counts['within']:4} of {counts['twins']:4} {counts['share']:7.1%}")
    lost = [row for row in found["rows"] if not _within(row)]
    for row in sorted(lost, key=lambda row: -(row["ratio"] or 1e9)):
        why = row.get("error") or f"{row['best_us']} for {row['original_us']} us: {row['best']}"
        print(f"{row['ratio']} {row['original']} {row['form']}: {why}")
    print(f"{found['within']} of {found['twins']} within 7 %: {found['share']:.1%}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--least", type=int, default=8, help="twins of each form in the sample")
    parser.add_argument("--all", action="store_true", help="all twins, which takes hours")
    parser.add_argument("--originals", nargs="+", choices=LARGE, help="only these")
    parser.add_argument("--forms", nargs="+", help="only these")
    options = parser.parse_args(arguments)
    if options.write and (options.originals or options.forms):
        parser.error(
            "a record is of the whole sample: --write with neither --originals nor --forms"
        )
    wanted, began = twins(options), time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        os.environ["OPTIML_CACHE"] = home
        kept_at = RECORD.with_suffix(".partial") if options.write else Path(home) / "rows"
        rows = collect(wanted, options, kept_at, home)
    found = summary(rows)
    told(found)
    if options.write:
        record = {
            "what": "the best of ten evaluations by rules alone, of originals and of their twins",
            "command": " ".join(["python benchmarks/rewriting/twins.py", *arguments]),
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "versions": {name: version(name) for name in _VERSIONS},
            "device": "emulated:h200",
            "budget": _BUDGET,
            "sample": "all" if options.all else f"every form {options.least} times at least",
            "seconds": round(time.monotonic() - began),
            **found,
        }
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        kept_at.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
