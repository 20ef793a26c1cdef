"""A reference and examples for words that came without: a model writes them, a person confirms.

The reference is read before it runs (``synthesis/written.py``), and has to agree with every
example, the user's own and the model's. That makes it no oracle yet: the model may have misread the
words twice. It becomes one when the user gave the examples, or accepts them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from optiml_magic.llms.base import LLM, LlmFailure, Request
from optiml_magic.model.oracle import Example, Oracle, listed
from optiml_magic.proposers import prompt
from optiml_magic.proposers.drafts import one_line
from optiml_magic.proposers.replies import described, json_object, strict_schema
from optiml_magic.synthesis.refusals import Refused
from optiml_magic.synthesis.written import functions

_REPAIRS = 2
_LEAST = 2  # examples of a model; ours
_MOST = 8
_LONGEST = 2000  # characters of one side of an example
_CLOSE = 1e-4  # of an example's numbers, which are written in few digits; ours
_TEMPERATURE = 0.2
_SCHEMA_NAME = "oracle"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Example(_Model):
    inputs: str
    output: str


class _Size(_Model):
    name: str
    value: int


class _Written(_Model):
    source: str
    sizes: list[_Size] | None = None
    examples: list[_Example]


@cache
def schema() -> str:
    """The JSON schema of a reply."""
    return strict_schema(_Written)


def written(
    llm: LLM, words: str, given: str, examples: Sequence[Example] = (), *, max_tokens: int = 8192
) -> Oracle | str:
    """What the model writes for the words, or why there is none; two repairs at most.

    Args:
        llm: who is asked.
        words: the user's.
        given: the inputs in words; "" where the model has to write them too.
        examples: the user's, which the reference has to agree with.
        max_tokens: of one reply.
    """
    shown = "\n".join(f"- {one.inputs} gives {one.output}" for one in examples)
    question = first = prompt.joined(
        ("What is wanted", words),
        ("The inputs", given),
        ("Examples of the user", shown),
        ("Write the oracle", prompt.text("oracle_ask" if given else "oracle_inputs")),
    )
    complaint = ""
    for _ in range(1 + _REPAIRS):
        system = prompt.text("oracle_system")
        outcome = llm.complete(
            Request(system, question, _SCHEMA_NAME, schema(), _TEMPERATURE, 0, max_tokens)
        )
        if isinstance(outcome, LlmFailure):
            return outcome.message
        found = _read(outcome.text, words, llm.name)
        if isinstance(found, Oracle):
            complaint = _fault(found, examples, makes_inputs=not given)
            if not complaint:
                return found
        else:
            complaint = found
        question = prompt.joined(
            ("What is wanted", first),
            ("Your last reply", outcome.text[:20_000]),
            ("What was wrong", f"{complaint}\n\n{prompt.text('oracle_repair')}"),
        )
    return f"its reference cannot be used: {complaint}"


def disagreement(reference: Any, example: Example) -> str:
    """How a reference differs from an example; "" where it agrees."""
    try:
        inputs = {name: _array(value) for name, value in json.loads(example.inputs).items()}
        wanted = json.loads(example.output)
        found = reference(**inputs)
        if isinstance(wanted, dict):
            pairs = [(found[name], value) for name, value in wanted.items()]
        elif isinstance(found, tuple):
            pairs = list(zip(found, wanted, strict=True))
        else:
            pairs = [(found, wanted)]
        same = all(_same(np.asarray(one), np.asarray(other)) for one, other in pairs)
    except Exception as error:  # noqa: BLE001  # what a model wrote may raise anything
        return f"for {example.inputs} it raises {type(error).__name__}: {one_line(str(error), 200)}"
    if same:
        return ""
    got = one_line(json.dumps(listed(found)), 300)
    return f"for {example.inputs} it gives {got}, and the example says {example.output}"


def _read(reply: str, words: str, model: str) -> Oracle | str:
    found = json_object(reply, "source")
    if isinstance(found, str):
        return found
    try:
        told = _Written.model_validate(found)
    except ValidationError as unfit:
        return described(unfit)
    examples = tuple(Example(one.inputs, one.output) for one in told.examples[:_MOST])
    if any(len(one.inputs) > _LONGEST or len(one.output) > _LONGEST for one in examples):
        return "an example is too long for a person to check"
    sizes = {one.name: one.value for one in told.sizes or ()}
    return Oracle(words, one_line(model, 80), told.source, sizes, examples)


def _fault(oracle: Oracle, given: Sequence[Example], *, makes_inputs: bool) -> str:
    """What is wrong with an oracle that can be seen without knowing what was meant."""
    names = ("reference", "inputs") if makes_inputs else ("reference",)
    made = functions(oracle.source, *names)
    if isinstance(made, Refused):
        return f"line {made.line} of the source: {made.reason}. {made.fix}"
    if not given and len(oracle.examples) < _LEAST:
        return f"there are fewer than {_LEAST} examples"
    for example in (*given, *oracle.examples):
        differs = disagreement(made["reference"], example)
        if differs:
            return f"the reference does not agree with an example: {differs}"
    if makes_inputs:
        try:
            values = made["inputs"](np.random.default_rng(0), **oracle.sizes)
            made["reference"](**values)
        except Exception as error:  # noqa: BLE001  # likewise
            return f"on its own inputs it raises {type(error).__name__}: {error}"[:300]
    return ""


def _same(one: Any, other: Any) -> bool:
    if one.shape != other.shape:
        return False
    return bool(np.allclose(one, other, rtol=_CLOSE, atol=_CLOSE, equal_nan=True))


def _array(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, list) else value
