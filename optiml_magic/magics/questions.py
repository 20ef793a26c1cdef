"""What a front end asks of the kernel beside the cells: one comm a question, answered in JSON.

``docs/labextension.md`` has the questions. Where the kernel has subshells they are answered while a
cell runs, so nothing here touches the shell but to read its names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from optiml_magic.commands import outcomes
from optiml_magic.commands.searches import Searches
from optiml_magic.errors import OptimlError, UsageError
from optiml_magic.journal import read_lines
from optiml_magic.magics.first import SCHEMA
from optiml_magic.magics.optiml import OptimlMagics
from optiml_magic.model.codec import to_json
from optiml_magic.runs import saved
from optiml_magic.runs.comparison import Comparison
from optiml_magic.runs.history import history
from optiml_magic.settings import resolve

_MOST = 50  # runs of one answer

Question = Mapping[str, Any]


def answered(shell: Any, question: Question) -> dict[str, Any]:
    """The answer; its ``error`` says what is wrong with the question."""
    ask: Callable[[Any, Question], dict[str, Any]] | None = _ANSWERS.get(str(question.get("ask")))
    if ask is None or question.get("schema") != SCHEMA:
        return {"error": "this release of optiml-magic does not know the question"}
    try:
        return ask(shell, question)
    except OptimlError as error:
        return {"error": str(error)}
    except Exception as error:  # noqa: BLE001  # whatever it is, somebody waits for it
        return {"error": f"{type(error).__name__}: {error}"}


def _runs(shell: Any, question: Question) -> dict[str, Any]:
    found = history(resolve().runs, min(int(question.get("last", 20)), _MOST))
    return {
        "runs": found.rows(),
        "total": found.total,
        "searches": [
            {"name": h.name, "state": h.state, "evaluations": h.evaluations, "seconds": h.seconds}
            for h in _searches(shell).going
        ],
    }


def _run(shell: Any, question: Question) -> dict[str, Any]:
    """As in a saved file."""
    result = outcomes.named(str(question["run"]), resolve(), shell.user_ns)
    return {"saved": json.loads(to_json(saved.Saved, saved.saved(result)))}


def _compare(shell: Any, question: Question) -> dict[str, Any]:
    names = (str(question["one"]), str(question["two"]))
    one, two = (outcomes.named(name, resolve(), shell.user_ns) for name in names)
    found = Comparison.of(names, (one, two))
    return {
        "names": names,
        "headline": found.headline,
        "facts": found.facts,
        "differing": found.differing,
        "diff": str(found.diff()),
    }


def _best(shell: Any, question: Question) -> dict[str, Any]:
    """The fastest program of a run, and the words of its cell's command where it is of one."""
    name, settings = str(question["run"]), resolve()
    program = outcomes.named(name, settings, shell.user_ns).program
    path = outcomes.run_of(name, settings)
    about = read_lines(path)[1][0].about if path else None
    asked = about.asked if about else None
    return {"program": program, "words": asked.words if asked and asked.cell else ()}


def _stop(shell: Any, question: Question) -> dict[str, Any]:
    """One search by its name, or the newest whose name stands in the cell."""
    searches = _searches(shell)
    name = question.get("name")
    if name is None:
        cell = str(question["cell"])
        named = [h.name for h in searches.going if re.search(rf"\b{re.escape(h.name)}\b", cell)]
        if not named:
            raise UsageError(
                "no search of this cell runs", fix="%optiml status lists those that do"
            )
        name = named[-1]
    return {"said": searches.stop(name)}


def _searches(shell: Any) -> Searches:
    magics = shell.magics_manager.registry.get(OptimlMagics.__name__)
    return magics.searches if magics else Searches()


_ANSWERS: Mapping[str, Callable[[Any, Question], dict[str, Any]]] = {
    "runs": _runs,
    "run": _run,
    "compare": _compare,
    "best": _best,
    "stop": _stop,
}
