"""An Nsight Compute report as plain data, through NVIDIA's own reader ``ncu_report``.

Source: Nsight Compute, "Python Report Interface". The module comes with the toolkit, in
``extras/python`` beside ncu, and as the package ``ncu-report``. What a report lacks is left out.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from optiml_magic.child.process import environment
from optiml_magic.model.codec import from_json
from optiml_magic.model.measurement import RuleResult
from optiml_magic.model.vocabulary import VOCABULARY, line_counters

_LINK = re.compile(r"@(?:url|sass|source|section):(?:[^:@]*:)*?([^:@]+)(?::[^@]*)?@")
_SOURCE_LINK = re.compile(r"@source:([^:@]*):(\d+):")
_DERIVED = re.compile(r"l1tex__average_t_sectors_per_request_(\w+)\.ratio")
_SECONDS = 120.0
_KERNEL = "Kernel Name"
Kind = Literal["optimization", "warning", "ok", "error", "none"]
Scope = Literal["global", "local", "unknown"]


@dataclass(frozen=True)
class Instruction:
    """One machine instruction of a launch: where it stands, and what ncu counted of it."""

    address: int
    sass: str  # as ncu prints it; empty where the report has no code
    file: str  # "" where the code has no line information
    line: int
    counts: dict[str, float]  # by the source-level metrics of the vocabulary


@dataclass(frozen=True)
class LaunchReport:
    """One kernel launch. ``kernel`` is the lowered name."""

    kernel: str
    values: dict[str, float]
    instructions: tuple[Instruction, ...] = ()  # by address
    rules: tuple[RuleResult, ...] = ()


@dataclass(frozen=True)
class Unreadable:
    """Why a report could not be read, in a sentence."""

    reason: str


@dataclass(frozen=True)
class _Answer:
    launches: tuple[LaunchReport, ...] = ()
    reason: str = ""


@dataclass
class _Line:
    counts: dict[str, float] = field(default_factory=dict)


def load(report: Path, tool: str, wanted: Sequence[str]) -> tuple[LaunchReport, ...] | Unreadable:
    """The launches of a report in order; ``tool`` is the path of ncu, beside which a reader lies.

    ``wanted`` are the metrics of a whole launch. A process of its own reads: NVIDIA's library is
    known to crash beside other ones, and must not take a notebook with it.
    """
    command = [sys.executable, "-P", "-m", __name__, str(report), tool]
    try:
        done = subprocess.run(  # noqa: S603  # our own module under our own interpreter
            command,
            input="\n".join(wanted),
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
            env={**environment(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except subprocess.TimeoutExpired:
        return Unreadable(f"ncu_report took more than {_SECONDS:.0f} s")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return Unreadable(f"ncu_report could not read the report: {last[:200]}")
    found = from_json(_Answer, done.stdout)
    return found.launches if not found.reason else Unreadable(found.reason)


def main(arguments: Sequence[str]) -> int:
    """Read a report, given with the path of ncu; the wanted metrics come in by lines."""
    wanted = sys.stdin.read().split()
    found = _read(Path(arguments[0]), arguments[1], wanted)
    if isinstance(found, Unreadable):
        answer = _Answer(reason=found.reason)
    else:
        answer = _Answer(launches=tuple(found))
    sys.stdout.write(
        json.dumps(asdict(answer), allow_nan=False)
    )  # what checks it takes 0.4 s to load
    sys.stdout.flush()
    os._exit(0)  # the library's own end is not needed any more


def _read(report: Path, tool: str, wanted: Sequence[str]) -> list[LaunchReport] | Unreadable:
    module = reader(tool)
    if module is None:
        return Unreadable(
            "Python cannot read ncu's reports: pip install ncu-report, of ncu's own release"
        )
    try:
        context = module.load_report(str(report))
        ranges = [context.range_by_idx(at) for at in range(context.num_ranges())]
        actions = [r.action_by_idx(at) for r in ranges for at in range(r.num_actions())]
        return [_launch(module, action, wanted) for action in actions]
    except Exception as cause:  # noqa: BLE001  # a reader of another release raises what it likes
        return Unreadable(f"ncu_report could not read the report: {cause}")


def reader(tool: str) -> Any | None:
    """The module ``ncu_report``: the toolkit's own beside ``tool``, else an installed one."""
    if "ncu_report" in sys.modules:
        return sys.modules["ncu_report"]
    for folder in (*_folders(Path(tool)), None):
        with _importing(folder), contextlib.suppress(ImportError, OSError):
            return importlib.import_module("ncu_report")
    return None


def reader_folder(tool: str) -> Path | None:
    """Where NVIDIA's reader lies, beside ``tool`` or as a package; None where there is none."""
    beside = next(_folders(Path(tool)), None)
    spec = importlib.util.find_spec("ncu_report")
    installed = Path(spec.origin).parent if spec is not None and spec.origin else None
    return beside or installed


def _folders(tool: Path) -> Iterator[Path]:
    """Where toolkits keep it: the ncu on the PATH may be a script that starts the real one."""
    yield from sorted(Path("/opt/nvidia/nsight-compute").glob("*/extras/python"), reverse=True)
    for bin_folder in dict.fromkeys((tool.parent, tool.resolve().parent)):
        yield from filter(Path.is_dir, (bin_folder / "extras" / "python",))
        for root in (bin_folder.parent, bin_folder.parent.parent, bin_folder.parent.parent.parent):
            yield from sorted(root.glob("nsight-compute-*/extras/python"), reverse=True)
            yield from filter(Path.is_dir, (root / "extras" / "python",))


@contextlib.contextmanager
def _importing(folder: Path | None) -> Iterator[None]:
    if folder is None:
        yield
        return
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _launch(module: Any, action: Any, wanted: Sequence[str]) -> LaunchReport:
    values = {}
    for name in wanted:
        metric = action.metric_by_name(name)
        if metric is not None and metric.has_value():
            value = float(metric.as_double())
            if math.isfinite(value):
                values[name] = value
    kernel = str(action.name(module.IAction.NameBase_MANGLED))
    return LaunchReport(
        kernel, values, tuple(_instructions(action, wanted)), tuple(_rules(module, action, kernel))
    )


def _instructions(action: Any, wanted: Sequence[str]) -> Iterator[Instruction]:
    found: dict[int, _Line] = {}
    for name in filter(wanted.__contains__, line_counters()):
        metric = action.metric_by_name(name)
        if metric is None or not metric.has_correlation_ids():
            continue
        addresses = metric.correlation_ids()
        for at in range(metric.num_instances()):
            value = float(metric.as_double(at))
            if math.isfinite(value):
                address = int(addresses.as_uint64(at))
                found.setdefault(address, _Line()).counts[name] = value
    for address in sorted(found):
        place = action.source_info(address)
        yield Instruction(
            address,
            str(action.sass_by_pc(address) or ""),
            str(place.file_name()) if place else "",
            int(place.line()) if place else 0,
            found[address].counts,
        )


def _rules(module: Any, action: Any, kernel: str) -> Iterator[RuleResult]:
    kinds: dict[int, Kind] = {
        module.MsgType_OPTIMIZATION: "optimization",
        module.MsgType_WARNING: "warning",
        module.MsgType_OK: "ok",
        module.MsgType_ERR: "error",
    }
    scopes: dict[int, Scope] = {
        module.SpeedupType_GLOBAL: "global",
        module.SpeedupType_LOCAL: "local",
    }
    for result in action.rule_results():
        if not result.has_rule_message():
            continue
        said = result.rule_message()
        speedup, scope = None, 0
        if result.has_speedup_estimation():
            estimate = result.speedup_estimation()
            speedup, scope = _factor(float(estimate["speedup"])), estimate["type"]
        focus = [(str(m["name"]), float(m["value"])) for m in result.focus_metrics()]
        where = _SOURCE_LINK.search(said["message"])
        yield RuleResult(
            rule=str(result.rule_identifier()),
            title=str(said["title"]),
            message=_LINK.sub(r"\1", said["message"]).strip(),
            kind=kinds.get(said["type"], "none"),
            kernel=kernel,
            speedup=speedup,
            scope=scopes.get(scope, "unknown"),
            line=int(where[2]) if where else 0,
            metrics=tuple((name, value) for name, value in focus if math.isfinite(value)),
        )


def _factor(percent: float) -> float | None:
    """A rule gives the part of the time, in per cent, that its advice may save."""
    if not 0 <= percent < 100:
        return None
    return 100 / (100 - percent)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))


def from_csv(tool: str, report: Path, names: Sequence[str]) -> tuple[LaunchReport, ...]:
    """One a kernel launch, as ncu prints them; the row of units comes first and is left out."""
    # Without base units ncu prints bytes as Kbyte or Mbyte, whichever makes the number short.
    units = ["--print-units", "base"]
    command = [tool, "--import", str(report), "--csv", "--page", "raw", *units]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)  # noqa: S603
    text = done.stdout.splitlines()
    start = next((at for at, line in enumerate(text) if line.startswith('"ID"')), len(text))
    rows = list(csv.DictReader(text[start:]))
    found = []
    for row in rows[1:]:
        known = {name: _number(row.get(name)) for name in names}
        values = {name: value for name, value in known.items() if value is not None}
        found.append(LaunchReport(row[_KERNEL], values))
    return tuple(found)


def _number(text: str | None) -> float | None:
    """A figure of ncu's CSV; None for an empty field, ``nan`` or ``n/a``."""
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value if value == value else None  # noqa: PLR0124  # NaN is not itself


def combined(name: str, launches: Sequence[LaunchReport]) -> float | None:
    """A metric of a whole plan; None where a launch that has a part in it has no value."""
    ratio = parts(name)
    if ratio:
        sectors, requests = (combined(part, launches) for part in ratio)
        return sectors / requests if requests and sectors is not None else None
    values = [one.values.get(name) for one in launches]
    entry = VOCABULARY.get(name)
    known = [value for value in values if value is not None]
    if not known:
        return None
    if entry is not None and entry.combine == "mean":
        weights = [one.values.get(entry.weight) for one in launches]
        if len(launches) == 1:
            return known[0]
        if None in weights or any(v is None and w for v, w in zip(values, weights, strict=True)):
            return None
        total = sum(w or 0.0 for v, w in zip(values, weights, strict=True) if v is not None)
        products = (v * (w or 0.0) for v, w in zip(values, weights, strict=True) if v is not None)
        return sum(products) / total if total else None
    if len(known) < len(values):
        return None
    return max(known) if entry is not None and entry.combine == "max" else sum(known)


def parts(name: str) -> tuple[str, ...]:
    """Sectors and requests, for their ratio."""
    found = _DERIVED.fullmatch(name)
    if found is None:
        return ()
    return f"l1tex__t_sectors_{found[1]}.sum", f"l1tex__t_requests_{found[1]}.sum"
