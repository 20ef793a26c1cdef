"""What NumPy writes in Python, functions of rows, and sizes wherever they are used."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from optiml_magic.synthesis.graph import Graph
from optiml_magic.synthesis.indexing import never_negative
from optiml_magic.synthesis.refusals import Refused
from tests.present import sampled
from tests.unit.synthesis.graphs import SIZES, agree, graph_of

OWN = {
    "gradient": lambda x: np.gradient(x, axis=0) + np.gradient(x)[1],
    "flipped": lambda x: np.fliplr(x) + np.flipud(x) + np.rot90(np.rot90(x)),
    "power": lambda x: np.linalg.matrix_power(x.T @ x, 3),
    "vander": lambda y: np.vander(y, 3),
    "function": lambda x: np.fromfunction(lambda i, j: i * 2 + j, x.shape) + x,
    "joined": lambda y: np.c_[y, 2 * y].sum(axis=1) + np.r_[0, y][1:],
    "differences": lambda y: np.diff(y, prepend=0.0) + np.append(np.diff(y), 1.0),
    "trapezoid": lambda x: np.trapezoid(x, axis=1) + np.trapezoid(x, dx=0.5),
    "polynomial": lambda x: np.polyval([1.0, -2.0, 0.5], x) + np.sinc(x / 9),
    "crossed": lambda x: np.cross(x[:3, 0], x[:3, 1]),
    "norms": lambda x: np.linalg.norm(x, 3, axis=1) + np.linalg.norm(x, "fro"),
    "correlations": lambda x: np.corrcoef(x + np.eye(*x.shape)),
    "close": lambda x: np.isclose(x, 2) | np.isneginf(x),
    "diagonal": lambda y: np.diagflat(y, 1),
}
ENTRIES = {
    "swap": lambda x: _swapped(x.copy()),
    "blocks": lambda x: np.block([[x, -x], [x * 2, x]]),
    "halves": lambda x: np.concatenate([p.sum(axis=1) for p in np.array_split(x.T[:3], 2)]),
    "grids": lambda x, n, m: np.mgrid[:n, :m][1] + np.ogrid[:n, :m][0] * x,
    "packed": lambda x: np.unpackbits(np.packbits(x > 0, axis=1), axis=1),
    "places": lambda x, at: _marked(np.zeros_like(x), at),
    "chosen": lambda x, at: np.choose(np.abs(at) % 2, [x[:, 0], x[:, 1]]),
    "pieces": lambda x: np.piecewise(x, [x < 0, x > 2], [lambda v: -v, 1, 0.5]),
    "missing": lambda x: np.nanmean(np.where(x > 3, np.nan, x), axis=1),
    "extreme": lambda x: np.nanmax(np.where(x > 3, np.nan, x), axis=1) + np.nanstd(x, axis=1),
    "quantiles": lambda x: np.percentile(x, [25, 50], axis=1, keepdims=True),
    "halfway": lambda x: np.median(x, axis=1) + np.median(x),
    "ordered": lambda x, at: np.lexsort((x[:, 0], at)),
    "counts": lambda x: np.histogram(x, bins=[-4.0, 0.0, 1.0, 9.0], density=True)[0],
    "weights": lambda x: np.histogram(x, bins=4, range=(-4, 9), weights=x)[0],
    "falling": lambda x, y: np.digitize(x, -np.cumsum(y)) + np.digitize(x, np.cumsum(y)),
    "members": lambda x: np.isin(x, [1, 2, 3]),
    "infinite": lambda x: np.logaddexp(np.full_like(x, -np.inf), -np.inf) + np.logaddexp2(x, x),
    "window": lambda m: np.hanning(m) + np.blackman(m) * np.hamming(m),
    "parts": lambda x: np.modf(x / 3),
    "rounded up": lambda x, n: np.zeros(-(-n // 8)) + x[0, 0],
    "columns": lambda x: x[:, np.array([True, False, True, *[False] * 9])[: int(x.shape[1])]],
    "rows": lambda x: np.apply_along_axis(lambda row: row - row.mean() + row[0], 1, x),
    "ranks": lambda x: np.apply_along_axis(lambda c: np.cumsum(np.sort(c)) @ c, 0, x),
    "numbers": lambda x, y: np.vectorize(lambda a, b: a * a + b)(x, y),
    "chain": lambda x, y: np.linalg.multi_dot([y, x.T, x, y]) + np.vecdot(y, y),
    "lists": lambda x, y: np.einsum(x, [0, 1], y, [1], [0]),
}
USES = {
    "float first": lambda x, n: 0.15 / n + 2.0 * n - (0.5 - n) + x,
    "scalars": lambda x, n, m: x * np.float32(2) / m + np.float64(0.5) * n,
    "powers": lambda x, m: x * m**-0.5 + 2.0**m,
    "products": lambda x: x + np.prod(x.shape) + 1.0 / len(x) + 3.0 * x.size,
}


def _swapped(x: Any) -> Any:
    x[0, 0], x[1, 1] = x[1, 1], x[0, 0]
    return x


def _marked(x: Any, at: Any) -> Any:
    x[np.arange(len(x)), at] = 1
    np.put_along_axis(x, at[:, None], 2, axis=1)
    return x


@pytest.mark.parametrize("name", sampled([*OWN, *ENTRIES, *USES], 2))
def test_the_graph_gives_what_the_function_gives(name: str) -> None:
    agree({**OWN, **ENTRIES, **USES}[name], everywhere=name not in ("halves", "columns"))


@pytest.mark.parametrize("name", USES)
def test_no_use_of_a_size_is_one_of_its_value(name: str) -> None:
    assert not graph_of(USES[name]).assumptions


def test_what_takes_a_number_pins_the_size_that_it_is() -> None:
    graph = graph_of(lambda x, n: x * [1, 2, 3, 4, 5, 6, 7, 8, 9, 10][n])
    assert isinstance(graph, Graph)
    assert [str(a) for a in graph.assumptions] == [f"n == {SIZES[0]['n']}"]
    graph = graph_of(lambda x, n: x if n / 4 > 1 else -x)
    assert [str(a) for a in graph.assumptions] == [f"n == {SIZES[0]['n']}"]


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (lambda x: np.unique(x), "`np.unique` has as many results as the data say"),
        (lambda x: np.linalg.det(x.T @ x), "`np.linalg.det` is not traced"),
        (lambda x: np.array_equal(x, x), "`np.array_equal`: a branch on the values"),
        (lambda x: np.apply_along_axis(lambda r: r[r > 0], 1, x), "a mask selects"),
        (lambda x: np.vectorize(lambda v: max(0, v))(x), "a branch on the values"),
    ],
)
def test_what_own_code_cannot_do_is_refused(reference: Any, said: str) -> None:
    refused = graph_of(reference)
    assert isinstance(refused, Refused)
    assert said in refused.reason
    assert refused.line


def test_places_that_are_never_negative_are_not_wrapped() -> None:
    def sides(*given: Any) -> list[bool]:
        return [never_negative(node) for node in given]

    graph = graph_of(lambda x, at: (x.argmax(axis=1), at % 3, np.maximum(at, 0), (x > 0).sum(axis=1),
                                    at, np.minimum(at, 2), -at))  # fmt: skip
    assert sides(*(n for _, n in graph.outputs)) == [True] * 4 + [False] * 3


def _of_cupy() -> Any:
    """A stand-in for CuPy, whose functions have NumPy's names."""
    module = ModuleType("cupy")
    module.__dict__.update(exp=np.exp, max=np.max, zeros=np.zeros, asarray=np.asarray)
    return module


cp = _of_cupy()


def of_cupy(x: Any) -> Any:
    return cp.exp(x - cp.max(x, axis=1, keepdims=True)) + cp.zeros(x.shape[1])


def test_cupy_is_another_name_of_numpy() -> None:
    agree(of_cupy)


def _of_torch(name: str, plain: Any) -> Any:
    """A stand-in for a function of torch, which asks its arguments by the same protocol."""

    def called(*args: Any, **kwargs: Any) -> Any:
        first = args[0][0] if isinstance(args[0], list) else args[0]
        if hasattr(first, "__torch_function__"):
            return type(first).__torch_function__(called, (type(first),), args, kwargs)
        return plain(*args, **kwargs)

    called.__name__ = name
    return called


def _soft(x: Any, dim: int) -> Any:
    powers = np.exp(x - x.max(axis=dim, keepdims=True))
    return powers / powers.sum(axis=dim, keepdims=True)


def test_functions_of_torch_are_those_of_numpy() -> None:
    softmax, mul = _of_torch("softmax", _soft), _of_torch("mul", np.multiply)
    amax = _of_torch("amax", lambda x, dim, keepdim: np.max(x, axis=dim, keepdims=keepdim))
    cat = _of_torch("cat", lambda x, dim: np.concatenate(x, axis=dim))
    deviation = _of_torch("var", lambda x, dim: np.var(x, axis=dim, ddof=1))
    agree(lambda x: cat([softmax(x, dim=1), mul(amax(x, dim=1, keepdim=True), x)], dim=0))
    agree(lambda x: deviation(x, dim=0))
    refused = graph_of(lambda x: _of_torch("fft_rfft", np.fft.rfft)(x))
    assert isinstance(refused, Refused)
    assert refused.reason == "`torch.fft_rfft` is not traced"
