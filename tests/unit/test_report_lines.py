"""A profile says of each line what it executes and how it meets memory."""

from __future__ import annotations

import re

from optiml_magic.commands.views import ProfileView
from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once
from optiml_magic.reports.lines import line_rows
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task


def profiled(task: Task) -> ProfileView:
    return ProfileView(evaluate_once(task, resolve({"device": "emulated:h200"})))


def line_of(task: Task, text: str) -> int:
    return 1 + task.text[: task.text.index(text)].count("\n")


def test_the_line_of_a_strided_store_stands_out() -> None:
    task = known_task("transpose_naive", rows=64, cols=64)
    view = profiled(task)
    measured = view.evaluation.measurement
    assert measured is not None
    line = line_of(task, "out[col * rows + row]")
    row = next(row for row in line_rows(measured) if row.line == line)
    assert row.lanes == 32
    assert "global load: 4 sectors a request" in row.accesses
    assert "global store: 32 sectors a request, 4 would do" in row.accesses
    assert re.search(rf"^ *{line} .*32 sectors a request, 4 would do$", repr(view), re.MULTILINE)


def test_atomics_say_how_lanes_wait_for_each_other() -> None:
    task = known_task("histogram", n=4096)
    measured = profiled(task).evaluation.measurement
    assert measured is not None
    line = line_of(task, "atomicAdd(&local")
    row = next(row for row in line_rows(measured) if row.line == line)
    assert re.search(r"shared atomic: .* turns at one address", row.accesses)
