"""Answers of a benchmark: a kernel, a wrapper, a model that calls it, and inputs from functions."""

from __future__ import annotations

import pytest

from optiml_magic.commands import parsers, tasks
from optiml_magic.commands.python.cell import kernel_in
from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.problem import prepare

SOURCE = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
source = """
#include <torch/extension.h>
__global__ void k(const float* x, float* out, float alpha, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) out[i] = alpha * x[i] + i / cols;
}
torch::Tensor run_cuda(torch::Tensor x, float alpha) {
    auto rows = x.size(0);
    int cols = x.size(1);
    auto out = torch::empty_like(x);
    const int threads = 256;
    k<<<(rows * cols + threads - 1) / threads, threads>>>(
        x.data_ptr<float>(), out.data_ptr<float>(), alpha, rows, cols);
    return out;
}
"""
cpp = "torch::Tensor run_cuda(torch::Tensor x, float alpha);"
op = load_inline(name="op", cpp_sources=cpp, cuda_sources=source, functions=["run_cuda"])
'''
MODEL = """
class ModelNew(nn.Module):
    def __init__(self, alpha):
        super().__init__()
        self.alpha = alpha
    def forward(self, x):
        return op.run_cuda(x, self.alpha)
"""
INPUTS = """
batch, dim = 16, 1000
def get_inputs():
    return [torch.rand(batch, dim)]
def get_init_inputs():
    return [0.5]
"""


def told(model: str = MODEL, inputs: str = INPUTS) -> dict[str, object]:
    source = SOURCE if "forward(x, self" not in model else SOURCE.replace("run_cuda", "forward")
    _, notes = drop_host_code(kernel_in(source + model + inputs) or "")
    found = {n.name: n.shape or n.value for n in notes if n.kind in ("literal", "allocated")}
    return {name: value for name, value in found.items() if value is not None}


def test_an_answer_needs_no_array_of_the_notebook() -> None:
    options = parsers.parse(parsers.cell_parser(), ["check"])
    found = prepare(tasks.from_cell(SOURCE + MODEL + INPUTS, options, {}), seeds=1)
    values = found.instances[0].values
    assert values["x"].shape == (16, 1000)
    assert (values["rows"], values["cols"], values["alpha"]) == (16, 1000, 0.5)


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (MODEL, INPUTS.replace("[torch.rand(batch, dim)]", "(torch.randn((batch, dim)).cuda(),)")),
        (MODEL, INPUTS.replace("return [torch.rand(batch, dim)]",
                               "a = torch.ones(batch, dim, device='cuda')\n    return [a]")),
        (MODEL, INPUTS + "if __name__ == '__main__':\n    ModelNew(*get_init_inputs())(3)\n"),
        (MODEL.replace("alpha):", "alpha=0.5):"), INPUTS.replace("[0.5]", "[]")),
        (MODEL.replace("op.run", "self.op.run").replace("= alpha", "= alpha\n        self.op = op"),
         INPUTS),
        (MODEL.replace("return op", "x = x.contiguous()\n        return op"), INPUTS),
        (MODEL + MODEL.replace("ModelNew", "Model").replace("alpha)\n", "alpha * 2)\n"), INPUTS),
        (MODEL.replace("ModelNew", "Mine"), INPUTS),
        (MODEL.replace("run_cuda", "forward"), INPUTS),
        (MODEL.replace("self.alpha = alpha", "self.alpha = 0.5"), INPUTS),
    ],
)  # fmt: skip
def test_a_model_is_called_as_a_harness_does(model: str, inputs: str) -> None:
    assert told(model, inputs) == {"x": (16, 1000), "alpha": 0.5}


@pytest.mark.parametrize(
    "model",
    [
        MODEL.replace("op.run_cuda(x,", "op.run_cuda(x.T,"),
        MODEL.replace("op.run_cuda(x,", "op.run_cuda(x.T.contiguous(),"),
        MODEL.replace("op.run_cuda(x,", "op.run_cuda(x.reshape(-1, 10),"),
        MODEL.replace("op.run_cuda(x,", "op.run_cuda(x[1:],"),
        MODEL.replace("op.run_cuda(x,", "op.run_cuda(*[x],"),
        MODEL.replace("return op", "x = x.view(-1, 10)\n        return op"),
        MODEL.replace("return op", "x = x.T\n        return op"),
        MODEL.replace("return op.run_cuda(x", "y = x.T\n        return op.run_cuda(y"),
        MODEL.replace("return op.run_cuda(x", "y = norm(x)\n        return op.run_cuda(y"),
        MODEL + MODEL,
        MODEL.replace("forward(self, x)", "forward(self, *x)"),
    ],
)
def test_an_array_that_has_other_axes_in_the_wrapper_is_not_known(model: str) -> None:
    assert "x" not in told(model)


@pytest.mark.parametrize(
    "inputs",
    [
        INPUTS.replace("torch.rand(batch, dim)", "torch.rand(batch, dim).half()"),
        INPUTS.replace("torch.rand(batch, dim)", "torch.rand(batch, dim, dtype=torch.float64)"),
        INPUTS.replace("torch.rand(batch, dim)", "torch.rand(batch, read())"),
        INPUTS.replace("[torch.rand(batch, dim)]", "[torch.rand(batch, dim) for _ in range(1)]"),
        INPUTS.replace("    return [t", "    if big:\n        batch = 4\n    return [t"),
        INPUTS.replace("    return [t", "    batch += 1\n    return [t"),
        INPUTS.replace("return [torch.rand(batch, dim)]",
                       "batch = torch.rand(batch, dim)\n    return [batch]"),
        INPUTS + INPUTS.replace("16, 1000", "4, 4"),
    ],
)  # fmt: skip
def test_inputs_that_are_made_otherwise_are_not_known(inputs: str) -> None:
    assert "x" not in told(inputs=inputs)


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (MODEL.replace("return op", "self.alpha = 3\n        return op"), INPUTS),
        (MODEL, INPUTS.replace("return [0.5]", "alpha = read()\n    return [alpha]")),
        (MODEL, INPUTS.replace("[0.5]", "[]")),
        (MODEL.replace("self.alpha = alpha", "self.alpha = alpha * 2"), INPUTS),
        (MODEL.replace("self.alpha)", "self.alpha * x.mean())"), INPUTS),
    ],
)
def test_a_number_of_the_model_that_may_be_another_is_not_known(model: str, inputs: str) -> None:
    assert "alpha" not in told(model, inputs)


WEIGHTS = (
    SOURCE.replace(
        "const float* x, float* out, float alpha", "const float* x, const float* w, float* out"
    )
    .replace("alpha * x[i] + i / cols", "w[i % cols] * x[i]")
    .replace("torch::Tensor x, float alpha", "torch::Tensor x, torch::Tensor w")
    .replace("out.data_ptr<float>(), alpha", "w.data_ptr<float>(), out.data_ptr<float>()")
)
LAYERS = """
class ModelNew(nn.Module):
    def __init__(self, dim, shape=None):
        super().__init__()
        {made}
    def forward(self, x):
        y = x.contiguous()
        return op.run_cuda(y, {given})
batch, dim = 16, 1000
shape = (dim, 1, 1)
def get_inputs():
    return [torch.rand(batch, dim)]
def get_init_inputs():
    return [dim, shape]
"""


@pytest.mark.parametrize(
    ("made", "given", "shape"),
    [
        ("self.w = nn.Parameter(torch.randn(dim))", "self.w", (1000,)),
        ("self.w = nn.Parameter(torch.randn(shape) * 0.02)", "self.w", (1000, 1, 1)),
        ("self.norm = nn.LayerNorm(dim)", "self.norm.weight", (1000,)),
        ("self.fc = nn.Linear(64, dim)", "self.fc.bias", (1000,)),
        ("self.fc = nn.Linear(64, dim)", "self.fc.weight", (1000, 64)),
        ("self.conv = nn.Conv2d(3, dim, 5)", "self.conv.weight", (1000, 3, 5, 5)),
        ("self.w = nn.Parameter(torch.randn(ask()))", "self.w", None),
        ("self.w = nn.Parameter(torch.randn(dim)); self.w = ask()", "self.w", None),
    ],
)
def test_what_a_model_learns_is_made_as_it_makes_it(
    made: str, given: str, shape: tuple[int, ...] | None
) -> None:
    _, notes = drop_host_code(kernel_in(WEIGHTS + LAYERS.format(made=made, given=given)) or "")
    found = {note.name: note.shape for note in notes if note.kind == "allocated"}
    assert found.get("w") == shape
    assert found["x"] == (16, 1000)
