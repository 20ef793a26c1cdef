"""Every setting: its default, its environment variable, what it means.

Resolved anew at each command, in the order flag, environment, default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from optiml_magic.errors import UsageError, nearest


@dataclass(frozen=True)
class Settings:
    """Values in force. ``home`` holds the caches, what was learned, and the journals of runs.

    ``experience``: all is what earlier runs here found, and what others measured and came with the
    package, in the file ``shipped``; with shipped or none nothing is added to what runs here found.
    """

    device: str = "auto"  # OPTIML_DEVICE
    llm: str = "auto"  # OPTIML_LLM: a model's name, none, or auto; its key is in OPENAI_API_KEY
    llm_url: str = ""  # OPTIML_LLM_URL: an OpenAI-compatible endpoint, else OPENAI_BASE_URL
    llm_seconds: float = 120.0  # OPTIML_LLM_SECONDS: silence of the endpoint that ends a request
    llm_tokens: int = 8192  # OPTIML_LLM_TOKENS: of one answer
    llm_budget: int = 0  # OPTIML_LLM_BUDGET: tokens of a search, asked and answered; 0: no limit
    llm_prices: str = ""  # OPTIML_LLM_PRICES: of a million tokens asked and answered, as 0.25,2.00
    llm_temperature: float = 0.7  # OPTIML_LLM_TEMPERATURE: of its proposals, from 0 to 2
    llm_effort: str = ""  # OPTIML_LLM_EFFORT: how much it reasons; empty: its own default
    llm_parallel: int = 4  # OPTIML_LLM_PARALLEL: requests at once
    prompts: str = ""  # OPTIML_PROMPTS: a folder whose NAME.md stand in place of the package's
    show_prompts: bool = False  # OPTIML_SHOW_PROMPTS: 1 or 0, all that is sent to it and comes back
    thoughts: int = 3  # OPTIML_THOUGHTS: strategies that it develops for what is synthesised
    budget: int = 24  # OPTIML_BUDGET: evaluations, the input kernel's included
    seconds: float = 300.0  # OPTIML_SECONDS: of the whole search
    seed: int = 0  # OPTIML_SEED
    objective: Literal["speed", "energy"] = (
        "speed"  # OPTIML_OBJECTIVE: of a search; energy is for GPUs alone
    )
    policy: str = "mcts"  # OPTIML_POLICY: mcts, greedy, beam, random or best-of-n
    verify_seeds: int = 3  # OPTIML_VERIFY_SEEDS: sets of inputs that each candidate is checked on
    trial_seconds: float = 20.0  # OPTIML_TRIAL_SECONDS: of other inputs, then fewer are tried
    run_seconds: float = 30.0  # OPTIML_RUN_SECONDS: of one execution, then the host is killed
    compile_seconds: float = 60.0  # OPTIML_COMPILE_SECONDS: of one compilation, then it is killed
    instructions: int = 20_000_000_000  # OPTIML_INSTRUCTIONS: per emulated launch
    count_instructions: int = 5_000_000_000  # OPTIML_COUNT_INSTRUCTIONS: larger ones are sampled
    std: str = "c++17"  # OPTIML_STD: the language standard
    exact: bool = False  # OPTIML_EXACT: 1 or 0, every bit of the outputs as the input kernel has it
    fast_math: bool = False  # OPTIML_FAST_MATH: 1 or 0
    compiler: str = "nvrtc"  # OPTIML_COMPILER: nvrtc or nvcc
    nvcc_args: str = ""  # OPTIML_NVCC_ARGS: more arguments for nvcc, as a shell would split them
    experience: str = "all"  # OPTIML_EXPERIENCE: all, shipped or none: what a search begins with
    shipped: Path = Path(__file__).parent / "experience" / "shipped.jsonl"  # OPTIML_SHIPPED
    energy: bool = False  # OPTIML_ENERGY: measure it too, two seconds a program, on a GPU
    home: Path = Path("~/.cache/optiml")  # OPTIML_HOME
    cache: str = ""  # OPTIML_CACHE: another folder for what is only kept to save time

    def __post_init__(self) -> None:
        object.__setattr__(self, "home", Path(self.home).expanduser())

    @property
    def for_trials(self) -> float:
        """Seconds for wanted answers, for learning other inputs, and for trying a winner on them.

        Each of the three: together at most half of a search.
        """
        return min(self.trial_seconds, self.seconds / 6)

    @property
    def for_candidates(self) -> float:
        """Seconds that compiling a candidate may take: a quarter of the search's, at least ten."""
        return min(self.compile_seconds, max(_LEAST_COMPILING, self.seconds / 4))

    @property
    def compiled(self) -> Path:
        """The compile cache's folder."""
        return self._caches / "compiled"

    @property
    def disassembled(self) -> Path:
        """The folder of the cubins' machine code as text."""
        return self._caches / "disassembled"

    @property
    def objects(self) -> Path:
        """The folder of the emulated device's object code."""
        return self._caches / "objects"

    @property
    def experience_file(self) -> Path:
        """What earlier runs learned."""
        return self.home / "experience.sqlite"

    @property
    def runs(self) -> Path:
        """The folder of the journals."""
        return self.home / "runs"

    @property
    def _caches(self) -> Path:
        return Path(self.cache).expanduser() if self.cache else self.home


_LEAST_COMPILING = 10.0  # seconds: ours
_POSITIVE = (
    "budget", "seconds", "verify_seeds", "run_seconds", "compile_seconds", "instructions",
    "count_instructions", "llm_seconds", "llm_parallel", "trial_seconds",
)  # fmt: skip
CHOICES = {
    "std": ("c++11", "c++14", "c++17", "c++20"),
    "compiler": ("nvrtc", "nvcc"),
    "experience": ("all", "shipped", "none"),
    "objective": ("speed", "energy"),
    "llm_effort": ("", "none", "minimal", "low", "medium", "high", "xhigh"),
    "policy": ("mcts", "greedy", "beam", "random", "best-of-n"),
}
_PRICES = re.compile(r"\d+(\.\d+)?,\d+(\.\d+)?")
_SWITCHES = {"0": False, "1": True, "false": False, "true": True}


def resolve(flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings for one command; ``flags`` that are None were not given."""
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    values: dict[str, Any] = {}
    for field in fields(Settings):
        raw = os.environ.get(f"OPTIML_{field.name.upper()}")
        if field.name in given:
            values[field.name] = given[field.name]
        elif raw:
            values[field.name] = _converted(field.name, raw, type(field.default))
    settings = Settings(**values)
    for name in _POSITIVE:
        if not getattr(settings, name) > 0:
            raise UsageError(f"{name} is {getattr(settings, name)}", fix="use a value above zero")
    for name in ("thoughts", "llm_budget"):
        if getattr(settings, name) < 0:
            raise UsageError(f"{name} is {getattr(settings, name)}", fix="use zero or more")
    if not 0 <= settings.llm_temperature <= 2:
        raise UsageError(
            f"llm_temperature is {settings.llm_temperature}", fix="use a value from 0 to 2"
        )
    if settings.llm_prices and not _PRICES.fullmatch(settings.llm_prices):
        raise UsageError(
            f"llm_prices is {settings.llm_prices!r}",
            fix="write what a million tokens cost, asked and answered: 0.25,2.00",
        )
    for name, allowed in CHOICES.items():
        value = getattr(settings, name)
        if value not in allowed:
            named = [word for word in allowed if word]
            fix = nearest(str(value), named) or f"choose one of {', '.join(named)}"
            raise UsageError(f"{name} is {value!r}", fix=fix)
    if settings.nvcc_args and settings.compiler != "nvcc":
        raise UsageError("--nvcc-args works only with nvcc", fix="add --compiler nvcc")
    return settings


def _converted(name: str, raw: str, kind: type) -> Any:
    try:
        return _SWITCHES[raw.lower()] if kind is bool else kind(raw)
    except (ValueError, KeyError):
        variable, article = f"OPTIML_{name.upper()}", "an" if kind is int else "a"
        raise UsageError(
            f"{variable}={raw!r} is not {article} {kind.__name__}",
            fix=f"set {variable} to {article} {kind.__name__}",
        ) from None
