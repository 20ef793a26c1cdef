"""Functions of torch, which come by ``__torch_function__``, in functions of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from optiml_magic.synthesis.array import Trace, Traced
from optiml_magic.synthesis.refusals import RefusalError

_SAME = frozenset((
    "exp", "log", "log1p", "expm1", "sqrt", "tanh", "sin", "cos", "abs", "floor", "ceil", "sign",
    "square", "maximum", "minimum", "where", "matmul", "einsum", "outer", "dot", "tril", "triu",
    "trace", "diag", "flip", "roll", "cumsum", "cumprod", "sum", "prod", "mean", "argmax", "argmin",
    "isnan", "stack", "tile", "logaddexp", "hypot", "arctan2", "clip", "reshape", "any", "all",
))  # fmt: skip
_RENAMED = MappingProxyType({
    "mul": "multiply", "sub": "subtract", "div": "true_divide", "pow": "power", "neg": "negative",
    "add": "add", "mm": "matmul", "bmm": "matmul", "cat": "concatenate", "concat": "concatenate",
    "clamp": "clip", "amax": "max", "amin": "min", "permute": "transpose", "round": "rint",
    "unsqueeze": "expand_dims", "transpose": "swapaxes", "flatten": "ravel", "rsub": "subtract",
})  # fmt: skip
_OPTIONS = MappingProxyType({"dim": "axis", "keepdim": "keepdims", "input": "", "other": ""})


def _softmax(x: Any, axis: int = -1) -> Any:
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def _logsumexp(x: Any, axis: int = -1, keepdims: bool = False) -> Any:
    top = np.max(x, axis=axis, keepdims=True)
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis)


def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "none":
        raise RefusalError("`gelu` by the error function", "say `approximate='tanh'`")
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _layer_norm(
    x: Any, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    axis = tuple(range(-len(normalized_shape), 0))
    apart = x - np.mean(x, axis=axis, keepdims=True)
    made = apart / np.sqrt(np.mean(apart * apart, axis=axis, keepdims=True) + eps)
    made = made if weight is None else made * weight
    return made if bias is None else made + bias


def _varied(of: Any) -> Callable[..., Any]:
    def called(x: Any, axis: Any = None, *, correction: int = 1, **options: Any) -> Any:
        return of(x, axis=axis, ddof=correction, **options)

    return called


_WRITTEN: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "softmax": lambda x, axis=-1, **_: _softmax(x, axis),
    "log_softmax": lambda x, axis=-1, **_: x - _logsumexp(x, axis, keepdims=True),
    "logsumexp": _logsumexp, "gelu": _gelu, "layer_norm": _layer_norm,
    "relu": lambda x, **_: np.maximum(x, 0), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x, **_: x / (1 + np.exp(-x)), "rsqrt": lambda x: 1 / np.sqrt(x),
    "softplus": lambda x: np.logaddexp(x, 0),
    "linear": lambda x, w, bias=None: x @ w.T if bias is None else x @ w.T + bias,
    "mse_loss": lambda x, y: np.mean((x - y) ** 2), "l1_loss": lambda x, y: np.mean(np.abs(x - y)),
    "var": _varied(np.var), "std": _varied(np.std),
})  # fmt: skip


def called(trace: Trace, function: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """A function of torch on traced arrays; RefusalError for one that is not known here."""
    name = str(getattr(function, "__name__", function))
    extra = {_OPTIONS.get(key, key): value for key, value in options.items()}
    given = [*(extra.pop("", None) for _ in range("" in extra)), *args]
    if name in _WRITTEN:
        return _WRITTEN[name](*given, **extra)
    known = getattr(np, name if name in _SAME else _RENAMED.get(name, ""), None)
    if known is None:
        raise RefusalError(f"`torch.{name}` is not traced", "write it in functions of NumPy")
    if name in ("permute", "reshape") and len(given) > 2:
        given = [given[0], given[1:]]
    if name == "rsub":
        given = given[::-1]
    made: Traced = trace.function(known, given, extra)
    return made
