"""The pages of the rewrite rules, docs/rules, from their code and the records of the benchmarks.

    python benchmarks/rewriting/pages.py

An index and a page for each rule: what it teaches, a kernel before and after, its open numbers,
what it expects, the findings that name it, what it refuses, and the evidence. Nothing in them is
written for a single rule: what a page says is said by the rule itself, by a program that it made
here, or by ``benchmarks/results``. Pages of rules that no longer exist are removed.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from optiml_magic.findings import TOOLS  # noqa: E402
from optiml_magic.proposers.rewrites import REWRITES  # noqa: E402
from optiml_magic.proposers.rewrites.base import Rewrite  # noqa: E402
from optiml_magic.source.program import parse_program  # noqa: E402

if TYPE_CHECKING:
    from benchmarks.rewriting.applied import Example

PAGES = ROOT / "docs" / "rules"
RESULTS = ROOT / "benchmarks" / "results"
SURVEY, SOUND = RESULTS / "rewriting-survey.json", RESULTS / "rewriting-sound.json"
_MOST_REASONS, _MOST_PROGRAMS, _MOST_VALUES = 12, 12, 12
_COMMAND = "python benchmarks/rewriting/pages.py"
_SHARES = (("verified", "tried"), ("gained", "timed"))
_QUOTED = re.compile(r"`[^`]*`")
_CARDS = ("h100", "h200")
_DIGITS = re.compile(r"\d+")
Record = dict[str, Any]


def gist(rule: Rewrite) -> str:
    """The first sentence of the rule's file."""
    said = inspect.getdoc(inspect.getmodule(type(rule))) or ""
    return re.split(r"(?<=[.!?])\s", " ".join(said.split()), maxsplit=1)[0]


def taught(rule: Rewrite) -> str:
    """Its paragraph; nothing of a rule that has none."""
    return str(getattr(rule, "teaches", ""))


def named_by(name: str) -> list[str]:
    """The tools whose code names the rule in an action."""
    found = []
    for tool in TOOLS:
        module = inspect.getmodule(type(tool))
        tree = ast.parse(inspect.getsource(module)) if module else ast.Module([], [])
        if any(isinstance(node, ast.Constant) and node.value == name for node in ast.walk(tree)):
            found.append(tool.name)
    return found


def changed(before: str, after: str) -> tuple[str, str]:
    """Of two programs the parts in which they differ; of the first at least the kernels."""
    one, other = _parts(before), _parts(after)
    old = [part for part in one if part not in other]
    if not any("{" in part for part in old):
        old = [part for part in one if part not in other or "__global__" in part]
    new = [part for part in other if part not in one]
    return "\n".join(old), "\n".join(new)


def _parts(text: str) -> list[str]:
    """What stands at the top of a program: directives a line each, functions, comments left out."""
    found: list[str] = []
    open_lines: list[str] = []
    depth = 0
    for line in text.splitlines():
        alone = depth == 0 and not open_lines
        if alone and (not line.strip() or line.lstrip().startswith("//")):
            continue
        open_lines.append(line)
        code = line.partition("//")[0]
        depth += code.count("{") - code.count("}")
        ends = code.rstrip().endswith(("}", ";")) or line.startswith("#")
        if depth == 0 and ends and not code.rstrip().endswith("\\"):
            found.append("\n".join(open_lines))
            open_lines = []
    return [*found, *(["\n".join(open_lines)] if open_lines else [])]


def page(rule: Rewrite, example: Example | None, survey: Record, sound: Record) -> str:
    """The page of one rule."""
    counts = survey.get("rules", {}).get(rule.name, {})
    drawn = sound.get("rules", {}).get(rule.name, {})
    home = Path(inspect.getfile(type(rule))).relative_to(ROOT)
    parts = [
        f"# `{rule.name}`",
        gist(rule),
        taught(rule),
        f"Its code: [{home}](../../{home}).",
        *_shown(example),
        *_numbers(example, counts),
        *_expected(rule.name, counts),
        *_refused(counts, drawn),
        *_evidence(rule.name, counts, drawn, survey),
        f"*Made by `{_COMMAND}`; all rules are in the [index](README.md).*",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _shown(example: Example | None) -> Iterator[str]:
    yield "## Before and after"
    if example is None:
        yield "No program that it applies to is known."
        return
    before, after = changed(example.before, example.after)
    yield f"`{example.name}`, {example.title}:"
    yield f"```cuda\n{before}\n```"
    yield f"```cuda\n{after}\n```"


def _numbers(example: Example | None, counts: Record) -> Iterator[str]:
    found: dict[str, list[int]] = dict(counts.get("open", {}))
    if example is not None:
        before = {tune.name for tune in parse_program(example.before).tunes}
        for tune in parse_program(example.after).tunes:
            if tune.name not in before:
                found[tune.name] = sorted({*found.get(tune.name, ()), *tune.values})
    yield "## Numbers"
    if not found:
        yield "It leaves none open."
        return
    yield "| it leaves open | values, over all kernels |\n|---|---|\n" + "\n".join(
        f"| `{name}` | {_values(values)} |" for name, values in sorted(found.items())
    )


def _values(values: list[int]) -> str:
    if len(values) <= _MOST_VALUES:
        return ", ".join(map(str, values))
    return f"{len(values)} values from {values[0]} to {values[-1]}"


def _expected(name: str, counts: Record) -> Iterator[str]:
    yield "## What it expects"
    rows = counts.get("expected", [])
    if rows:
        yield "| metric | | times | because | matches |\n|---|---|---|---|---|\n" + "\n".join(
            f"| `{row['metric']}` | {row['direction']} | {_times(row['factor'])} | "
            f"{row['because']} | {row['matches']} |"
            for row in _together(rows)
        )
    if counts.get("arithmetic"):
        yield f"It says where it changes arithmetic: {', '.join(counts['arithmetic'])}."
    tools, met = named_by(name), counts.get("named by", {})
    told = [f"`{t}`" + (f" ({met[t]} kernels)" if t in met else "") for t in {*tools, *met}]
    yield f"Findings that name it: {', '.join(sorted(told)) or 'none'}."


def _together(rows: list[Record]) -> list[Record]:
    """Rows of one metric and reason as one, the factors from the least to the most."""
    found: dict[tuple[str, str, str], Record] = {}
    for row in rows:
        key = row["metric"], row["direction"], row["because"]
        if key not in found:
            found[key] = dict(row)
            continue
        low, high = found[key]["factor"]
        found[key]["factor"] = [min(low, row["factor"][0]), max(high, row["factor"][1])]
        found[key]["matches"] += row["matches"]
    return [*found.values()]


def _times(factor: list[float]) -> str:
    low, high = factor
    return "any" if low == high == 1.0 else f"{low:.3g} to {high:.3g}"


def _refused(counts: Record, drawn: Record) -> Iterator[str]:
    yield "## When it does not apply"
    seen, random, first = Counter[str](), Counter[str](), dict[str, Record]()
    for row in counts.get("reasons", ()):
        seen[_kind(row["reason"])] += row["count"]
        first.setdefault(_kind(row["reason"]), row)
    for reason, count in drawn.get("refused", {}).items():
        random[_kind(reason)] += count
    kinds = sorted({*seen, *random}, key=lambda kind: (-seen[kind], -random[kind], kind))
    if not kinds:
        yield "No refusal is recorded: where it has no site it says nothing."
        return
    heads = ("reason", "kernels of the survey", "random kernels", "for instance")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for kind in kinds[:_MOST_REASONS]:
        told = first.get(kind)
        reason, place = (told["reason"], _place(told)) if told else (kind, "")
        cells = (_cell(reason), seen[kind] or "", random[kind] or "", place)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    yield "\n".join(lines)
    if len(kinds) > _MOST_REASONS:
        yield f"The records have all {len(kinds)} reasons."


def _kind(reason: str) -> str:
    """A reason without the names and numbers in it."""
    return _DIGITS.sub("N", _QUOTED.sub("`...`", reason))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _place(row: Record) -> str:
    return f"`{row['program']}`" + (f", line {row['line']}" if row["line"] else "")


def _evidence(name: str, counts: Record, drawn: Record, survey: Record) -> Iterator[str]:
    yield "## Evidence"
    if not (drawn or counts):
        yield "No record has it yet."
    if drawn:
        ends = drawn["ends"]
        wrong = drawn["applied"] - ends.get("same", 0) - ends.get("narrowed", 0)
        yield (
            f"On random kernels ([record](../../benchmarks/results/{SOUND.name})): applied "
            f"{drawn['applied']} times, {wrong} wrong; {drawn['programs without a site']} programs "
            "had no site for it."
        )
    if counts:
        share = f" ({counts['share']:.1%})" if counts["tried"] else ""
        gains = ""
        if counts["gained"]:
            median, most = counts["median gain"], counts["greatest gain"]
            gains = f", {median:.2f}x in the median and {most:.2f}x at most"
        yield (
            f"On {counts['programs']} kernels of this repository ([record]"
            f"(../../benchmarks/results/{SURVEY.name}), estimated times of {survey['device']}): "
            f"{counts['matches']} matches in {counts['matched']} programs, "
            f"{counts['outside the suite']} of them outside the suite; {counts['verified']} of "
            f"{counts['tried']} points verified{share}; {counts['gained']} of {counts['timed']} "
            f"matches gained{gains}."
        )
        if best := _best(name, survey):
            yield "| kernel | points verified | best |\n|---|---|---|\n" + "\n".join(best)
        if counts["failed"]:
            yield "Not verified: " + "; ".join(
                f"`{one['program']}` ({one['outcome']}: {_cell(one['why'])})"
                for one in counts["failed"][:_MOST_PROGRAMS]
            )
    if rows := measured(name, counts):
        yield "On a card:"
        heads = "| kernel | edit | times as fast | record | command |\n|---|---|---|---|---|\n"
        yield heads + "\n".join(rows)


def _best(name: str, survey: Record) -> list[str]:
    """The programs on which it gains most, each with its best match."""
    found = []
    for row in survey.get("rows", []):
        matches = row["matched"].get(name, [])
        if matches:
            outcomes, best = max(matches, key=lambda match: match[1])
            right = sum(outcome == "passed" for outcome in outcomes)
            told = f"{best:.2f}x" if best else ""
            line = f"| `{row['name']}` | {right} of {len(outcomes)} | {told} |"
            found.append((best, line))
    return [line for _, line in sorted(found, key=lambda one: -one[0])[:_MOST_PROGRAMS]]


def measured(name: str, counts: Record) -> list[str]:
    """What ``benchmarks/results/*.jsonl`` have of it on a card, a line for each kernel and edit.

    A row counts where it names the rule as what it applied, or where each of its edits has the
    title of a match of the survey, numbers aside, and one of them is this rule's.
    """
    titles = {*counts.get("titles", ())}
    found: dict[tuple[str, str, str], str] = {}
    for path in sorted(p for card in _CARDS for p in RESULTS.glob(f"*{card}*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            kernel, edit, times = _figure(row)
            edits = [_DIGITS.sub("N", one.partition(": ")[0]) for one in edit.split(", then ")]
            if not times or not (row.get("rewrite") == name or titles.intersection(edits)):
                continue
            command = _command(row, path)
            found[path.name, kernel, edit] = (
                f"| {kernel} | {_cell(edit)} | {times:.2f} | "
                f"[{path.name}](../../benchmarks/results/{path.name}) | `{command}` |"
            )
    return [*found.values()]


def _figure(row: Record) -> tuple[str, str, float]:
    """Kernel, edit and speed-up of a row that was timed on a card; 0.0 of any other."""
    setup = row.get("setup")
    if isinstance(setup, dict):  # of ``optiml bench``
        seconds = row.get("seconds") or {}
        timed = not row.get("error") and str(setup.get("device", "")).startswith("cuda")
        whole = timed and {"input", "best"} <= {*seconds}
        times = seconds["input"] / seconds["best"] if whole else 0.0
        return row.get("task", ""), row.get("recipe", ""), times
    timed = row.get("source", "events") == "events" and row.get("tree", "today") == "today"
    times = row.get("speedup") if timed else None
    return row.get("task") or row.get("kernel", ""), row.get("title", ""), times or 0.0


def _command(row: Record, path: Path) -> str:
    """The row's own command, else the one that the table of the benchmarks has for its file."""
    setup = row.get("setup") or {}
    if told := row.get("command") or setup.get("command"):
        return str(told)
    for line in (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8").splitlines():
        quoted = re.findall(r"`([^`]*)`", line)
        if any(fnmatch(f"results/{path.name}", record) for record in quoted[1:]):
            return f"python benchmarks/{quoted[0]}"
    return ""


def index(rules: Iterable[Rewrite], survey: Record) -> str:
    """The list of all rules."""
    heads = ("rule", "what it does", "findings that name it", "matches", "points verified",
             "matches that gain")  # fmt: skip
    lines = []
    for rule in rules:
        r = survey.get("rules", {}).get(rule.name)
        told = ["", "", ""]
        if r:
            verified, gained = (f"{r[a]} of {r[b]}" for a, b in _SHARES)
            told = [str(r["matches"]), verified, gained]
        tools = sorted({*named_by(rule.name), *(r["named by"] if r else ())})
        cells = [f"[`{rule.name}`]({rule.name}.md)", gist(rule), ", ".join(tools), *told]
        lines.append(f"| {' | '.join(cells)} |")
    intro = (
        "A rule reads a program and makes others that mean the same ([how](../rewriting.md)).\n"
        "Each has a page: a kernel before and after, its numbers, its refusals, its evidence."
    )
    parts = ["# Rules", intro, "\n".join([f"| {' | '.join(heads)} |", "|---" * 6 + "|", *lines])]
    if survey:
        parts.append(
            f"The figures are of {survey['programs']} of {survey['of']} kernels held here: "
            f"`{survey['command']}`, estimated on {survey['device']}, record [{SURVEY.name}]"
            f"(../../benchmarks/results/{SURVEY.name})."
        )
    parts.append(f"*Made by `{_COMMAND}`.*")
    return "\n\n".join(parts) + "\n"


def _record(path: Path) -> Record:
    found: Record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def main() -> int:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    from benchmarks.rewriting.applied import examples  # what it loads is for this alone

    survey, sound = _record(SURVEY), _record(SOUND)
    PAGES.mkdir(exist_ok=True)
    shown = examples(REWRITES, survey)
    made = {"README.md": index(REWRITES, survey)}
    for rule in REWRITES:
        found = shown.get(rule.name)
        made[f"{rule.name}.md"] = page(rule, found, survey, sound)
        print(f"{rule.name}: {found.name if found else 'no example'}", flush=True)
    for old in PAGES.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (PAGES / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
