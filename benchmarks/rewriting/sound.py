"""Whether every rule leaves the meaning of a kernel alone, on thousands of random kernels.

    python benchmarks/rewriting/sound.py [--write] [--count N] [--seed N] [--processes N]
        [--least N] [--rules RULE ...] [--add]
    python benchmarks/rewriting/sound.py --smallest SEED

Programs are drawn from one seed after the other (``tests/rewriting``) until the rules were applied
``--count`` times, and then until each rule and each primitive was ``--least`` times. Every result
runs beside its input on the emulated device: in two orders of the blocks, at the sizes that the
rules were told and at others, with bounds and hazards looked at. The record,
``benchmarks/results/rewriting-sound.json``, has what is done kept beside it until it is complete:
the same command goes on with the rest after a stop. ``--add`` counts what the record has, and adds
what it lacks, from programs of the seeds behind its own. What is made without a primitive or a rule
that lacks some is not run then. ``--smallest`` prints a small kernel of the kind of a recorded
failure that its rule gets wrong as well.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import multiprocessing
import os
import platform
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from hypothesis.errors import NoSuchExample

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.rewriting.drawing import drawn_again, made, smallest  # noqa: E402
from tests.rewriting.offers import NAMES  # noqa: E402
from tests.rewriting.steps import PRIMITIVES  # noqa: E402
from tests.rewriting.trying import IllMadeError, tried  # noqa: E402
from tests.rewriting.writing import Made  # noqa: E402

RECORD = ROOT / "benchmarks" / "results" / "rewriting-sound.json"
_VERSIONS = ("optiml-magic", "nvidia-cuda-nvrtc", "llvmlite", "tree-sitter-cuda", "numpy")
_WAVE = 40  # programs for each process, between two looks at the count
_SHARE = 4  # no rule has more of the count than one part in so many
_FEW = 20  # programs of a kind that may be of no use to a rule
_UNSURE = 5  # programs of a kind that led to nothing, beside those that were seen
_CURIOUS = 20  # of so many seeds one may be of a kind that is not known well
_BEST = 0.5  # of the share of programs of the best kind that something that lacks is applied to
_MOST = 50_000  # programs, for a rule that is never at home
Row = dict[str, Any]


def one(seed: int, rules: tuple[str, ...] = NAMES, wanted: frozenset[str] = frozenset()) -> Row:
    """What became of the program of a seed."""
    rng, began = Random(seed), time.process_time()
    try:
        trial = tried(made(rng), rng, rules=rules, wanted=wanted)
    except IllMadeError as error:
        return {"seed": seed, "seconds": 0.0, "ill made": str(error)}
    return {
        "seed": seed,
        "seconds": round(time.process_time() - began, 3),
        "family": trial.made.family,
        "kind": _kind(trial.made),
        "forms": trial.made.forms,
        "applied": [[a.rule, a.end, a.again, a.steps] for a in trial.applied],
        "refused": [[r.rule, r.reason] for r in trial.refused],
        "silent": trial.silent,
        "wrong": [
            {
                "rule": a.rule,
                "title": a.title,
                "end": a.end,
                "detail": a.detail,
                "before": a.before,
                "after": a.after,
            }
            for a in trial.unsound
        ],
    }


def collect(options: argparse.Namespace, kept_at: Path) -> list[Row]:
    """The rows of as many seeds as it takes, those of a run that was stopped among them."""
    rows = (
        [json.loads(line) for line in kept_at.read_text().splitlines()] if kept_at.exists() else []
    )
    done = {row["seed"] for row in rows}
    with kept_at.open("a") as kept:
        left = (seed for seed in range(options.seed, options.seed + _MOST) if seed not in done)
        while rules := _wanted(rows, options):
            enough = _applications(rows, options) >= options.count
            wanted = _lacking(rows, options) if enough else frozenset[str]()
            work = partial(one, rules=rules, wanted=wanted)
            hopeful = _hopeful(rows, options)
            seeds = list(islice(filter(hopeful, left), _WAVE * options.processes))
            if not seeds:
                break
            for row in _worked(work, seeds, options.processes):
                rows.append(row)
                kept.write(json.dumps(row) + "\n")
                kept.flush()
                for wrong in row.get("wrong", ()):
                    print(f"seed {row['seed']}: {wrong['rule']}: {wrong['detail']}", flush=True)
                if "ill made" in row:
                    print(f"seed {row['seed']}: ill made: {row['ill made'][:200]}", flush=True)
            cpu = sum(row["seconds"] for row in rows)
            count = sum(len(row.get("applied", ())) for row in rows)
            speed = f"{count / max(cpu, 1e-9):.2f} a second of CPU"
            print(f"{count} applications to {len(rows)} programs, {speed}", flush=True)
            if enough:
                print(f"lacking: {', '.join(sorted(wanted))}", flush=True)
    return sorted(rows, key=lambda row: row["seed"])


def _worked(work: Callable[[int], Row], seeds: list[int], processes: int) -> Iterator[Row]:
    """What becomes of seeds, in processes that end with them: what LLVM holds goes with those."""
    with ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), faulthandler.enable
    ) as pool:
        yield from pool.map(work, seeds)


def _wanted(rows: list[Row], options: argparse.Namespace) -> tuple[str, ...]:
    """The rules that are still to be applied.

    Up to the count all but those that have their share of it; then those that lack some, and those
    that use a primitive which lacks some: all, where none was seen to use it.
    """
    applied = Counter(rule for row in rows for rule, *_ in row.get("applied", ()))
    if _applications(rows, options) < options.count:
        most = max(options.least, options.count // _SHARE)
        return tuple(rule for rule in options.rules if applied[rule] < most)
    lacking = _lacking(rows, options)
    found = [a for row in rows for a in row.get("applied", ())]
    if lacking - set(NAMES) - {step for *_, steps in found for step in steps}:
        return tuple(options.rules)
    users = {rule for rule, _, _, steps in found if lacking & set(steps)}
    return tuple(rule for rule in options.rules if rule in lacking | users)


def _lacking(rows: list[Row], options: argparse.Namespace) -> frozenset[str]:
    """The rules and the primitives that were applied too few times."""
    found = [a for row in rows for a in row.get("applied", ())]
    times = Counter(name for rule, _, _, steps in found for name in (rule, *steps))
    times.update(options.times)
    names = (*options.rules, *PRIMITIVES)
    return frozenset(name for name in names if times[name] < options.least)


def _hopeful(rows: list[Row], options: argparse.Namespace) -> Callable[[int], bool]:
    """Whether the program of a seed may be of use.

    Up to the count it may where a wanted rule was applied to a program of its kind. Then only where
    its kind, or one of its forms, is among those that most often lead to something that lacks. Of
    kinds and forms few of which were seen all may; then only some, once each that lacks was seen.
    """
    enough = _applications(rows, options) >= options.count
    names = _lacking(rows, options) if enough else frozenset(_wanted(rows, options))
    programs = Counter[str]()
    useful = {name: Counter[str]() for name in names}
    for row in rows:
        if "family" in row:
            features = (row["kind"], *row["forms"]) if enough else (row["kind"],)
            programs.update(features)
            for name in {n for rule, _, _, steps in row["applied"] for n in (rule, *steps)} & names:
                useful[name].update(features)
    good = set[str]()
    for counts in useful.values():
        rates = {feature: n / (programs[feature] + _UNSURE) for feature, n in counts.items()}
        least = _BEST * max(rates.values(), default=0.0) if enough else 0.0
        good |= {feature for feature, rate in rates.items() if rate >= least}
    known = enough and all(useful.values())

    def hopeful(seed: int) -> bool:
        drawn = made(Random(seed))
        features = (_kind(drawn), *drawn.forms) if enough else (_kind(drawn),)
        curious = not known or seed % _CURIOUS == 0
        return any(f in good or (curious and programs[f] < _FEW) for f in features)

    return hopeful


def _kind(drawn: Made) -> str:
    """What a program is, and along how many axes the blocks of its first launch have extents."""
    found = re.search(r"block\(([^)]*)\)", drawn.text)
    axes = found[1].count(",") + 1 if found else 0
    return f"{drawn.family} in {axes}"


def _applications(rows: list[Row], options: argparse.Namespace) -> int:
    wanted: int = options.applications
    return wanted + sum(len(row.get("applied", ())) for row in rows)


def summary(rows: list[Row]) -> dict[str, Any]:
    """Counts by rule, refusals by reason, and every failure with its texts."""
    applied = [tuple(a) for row in rows for a in row.get("applied", ())]
    return {
        "programs": len(rows),
        "applications": len(applied),
        "seconds of CPU": round(sum(row["seconds"] for row in rows)),
        "wrong": sum(len(row.get("wrong", ())) for row in rows),
        "ill_made": [row["ill made"] for row in rows if "ill made" in row],
        "rules": {
            name: {
                "applied": sum(a[0] == name for a in applied),
                "to what a rule had made": sum(a[0] == name and a[2] for a in applied),
                "ends": dict(Counter(a[1] for a in applied if a[0] == name).most_common()),
                "programs without a site": sum(name in row.get("silent", ()) for row in rows),
                "refused": dict(
                    Counter(
                        reason
                        for row in rows
                        for rule, reason in row.get("refused", ())
                        if rule == name
                    ).most_common()
                ),
            }
            for name in NAMES
        },
        "primitives": {
            name: {
                "applied": sum(name in a[3] for a in applied),
                "by": dict(Counter(a[0] for a in applied if name in a[3]).most_common()),
            }
            for name in PRIMITIVES
        },
        "families": dict(Counter(row["family"] for row in rows if "family" in row).most_common()),
        "forms": dict(Counter(f for row in rows for f in row.get("forms", ())).most_common()),
        "failures": [
            {"seed": row["seed"], "family": row["family"], **wrong}
            for row in rows
            for wrong in row.get("wrong", ())
        ],
    }


def joined(one: Any, other: Any) -> Any:
    """Two summaries as one: numbers are added, lists come one behind the other."""
    if not isinstance(one, dict):
        return one + other
    both = {name: joined(one[name], other[name]) for name in one.keys() & other.keys()}
    return {name: both.get(name, value) for name, value in (one | other).items()}


def told(found: dict[str, Any]) -> None:
    """The counts as a table."""
    print(f"{'rule':<24} {'applied':>8} {'again':>6} {'wrong':>6} {'no site':>8} {'refused':>8}")
    for name, counts in found["rules"].items():
        good = counts["ends"].get("same", 0) + counts["ends"].get("narrowed", 0)
        print(
            f"{name:<24} {counts['applied']:8} {counts['to what a rule had made']:6} "
            f"{counts['applied'] - good:6} {counts['programs without a site']:8} "
            f"{sum(counts['refused'].values()):8}"
        )
    print(f"\n{'primitive':<24} {'applied':>8}")
    for name, counts in found["primitives"].items():
        print(f"{name:<24} {counts['applied']:8}")
    ends = f"{found['wrong']} wrong, {len(found['ill_made'])} programs ill made"
    print(f"{found['applications']} applications to {found['programs']} programs, {ends}")


def shrunk(seed: int) -> int:
    """Print the smallest kernel that fails as the one of this seed does, for each of its rules."""
    kernels = drawn_again(seed)
    for rule in dict.fromkeys(wrong["rule"] for wrong in one(seed).get("wrong", ())):

        def wrong(kernel: Made, rule: str = rule) -> str:
            trial = tried(kernel, Random(0), each=9, rules=(rule,))
            return next((a.detail for a in trial.unsound), "")

        try:
            found = smallest(kernels, wrong)
        except NoSuchExample:
            print(f"{rule}: none of 300 kernels of the kind, without a rule before it")
        else:
            print(f"{rule}: {wrong(found)}\n{found}\n{found.text}")
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5000, help="applications in all")
    parser.add_argument(
        "--least", type=int, default=200, help="applications of each rule and each primitive"
    )
    parser.add_argument("--seed", type=int, help="of the first program")
    parser.add_argument("--rules", nargs="+", choices=NAMES, default=NAMES, help="only these")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--smallest", type=int, metavar="SEED")
    parser.add_argument("--add", action="store_true", help="what the record lacks, to the record")
    options = parser.parse_args(arguments)
    before = json.loads(RECORD.read_text()) if options.add else None
    parts = [before[part] for part in ("rules", "primitives")] if before else []
    options.times = {name: counts["applied"] for part in parts for name, counts in part.items()}
    options.applications = before["applications"] if before else 0
    if options.seed is None:
        options.seed = before["next_seed"] if before else 0
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"OPTIML_HOME": home, "OPTIML_CACHE": home}
        if options.smallest is not None:
            return shrunk(options.smallest)
        kept_at = RECORD.with_suffix(".partial") if options.write else Path(home) / "rows"
        rows = collect(options, kept_at)
    found = summary(rows)
    whole = joined({name: before[name] for name in found}, found) if before else found
    told(whole)
    if options.write:
        commands = [" ".join(["python benchmarks/rewriting/sound.py", *arguments])]
        if before:
            commands = before["commands"] + commands
        record = {
            "what": "rules applied to random kernels, beside their input on the emulated device",
            "commands": commands,
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "versions": {name: version(name) for name in _VERSIONS},
            "next_seed": max((row["seed"] + 1 for row in rows), default=options.seed),
            **whole,
        }
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        kept_at.unlink()
    return 1 if found["wrong"] or found["ill_made"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
