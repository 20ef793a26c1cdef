"""What a run was made from, as digests: a journal resumes only where they still hold."""

from __future__ import annotations

import hashlib
import inspect
import tokenize
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.headers import fingerprint
from optiml_magic.devices import maps
from optiml_magic.model.codec import to_json
from optiml_magic.problem import Problem
from optiml_magic.settings import Settings


def inputs_digest(problem: Problem, settings: Settings) -> str:
    """Of everything that a verdict depends on beside the program: data, answers, limits."""
    digest = hashlib.sha256()
    for instance in problem.instances:
        for name, value in sorted(instance.values.items()):
            if not isinstance(value, np.ndarray):
                digest.update(f"{name}={value!r};".encode())
        for buffer in instance.case.buffers:
            shape = f"{buffer.name} {buffer.role} {buffer.array.dtype} {buffer.array.shape}"
            digest.update(f"{shape} {buffer.tolerance};".encode())
            contents = [] if buffer.role == "output" else [buffer.array]
            for array in (*contents, *([] if buffer.expected is None else [buffer.expected])):
                digest.update(f"{array.dtype} {maps.digest(array)};".encode())
    digest.update(f"{settings.instructions} {settings.run_seconds}".encode())
    return digest.hexdigest()[:16]


def source_digest(reference: Callable[..., Any]) -> str:
    """Of the source of a reference; ``unknown`` where it cannot be had."""
    try:
        source = inspect.getsource(reference)
    except (OSError, TypeError, SyntaxError, tokenize.TokenError):
        return "unknown"  # typed where no source is kept, or a lambda that cannot be cut out
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def options_digest(options: CompileOptions, text: str) -> str:
    """Of the options and the headers that ``text`` reaches; its own where that is not known."""
    reached = fingerprint(text, options) or uuid.uuid4().hex
    return hashlib.sha256(f"{to_json(CompileOptions, options)} {reached}".encode()).hexdigest()[:16]
