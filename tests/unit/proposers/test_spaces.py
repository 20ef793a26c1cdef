"""The open numbers of a program, and which of them are tried first."""

from __future__ import annotations

from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.space import Point, Space
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.proposers.spaces import space_of
from optiml_magic.tuning.gaussian import Gaussian

SAXPY = """\
#pragma optiml launch s grid(cdiv(n, B)) block(B)
__global__ void s(float k, const float* x, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = k * x[i];
}
"""


def space(text: str) -> Space | None:
    step = Step(
        Candidate(0, None, Proposal(text, "", "")), Evaluation(0, "", Verdict(Outcome.PASSED, ""))
    )
    return space_of(lambda _: None, step)


def asked(text: str, count: int = 99) -> list[Point]:
    found = space(text)
    assert found is not None
    tuner = Gaussian(found)
    tuner.tell(found.present, 0.0)
    points = [tuner.ask() for _ in range(count)]
    return [point for point in points if point is not None]


def test_a_program_whose_numbers_are_closed_has_no_space() -> None:
    assert space(SAXPY.replace("B", "256")) is None
    assert space("#pragma optiml tune B in {256} = 256\n" + SAXPY) is None
    assert space("#pragma optiml tune B in {64, 256}\n" + SAXPY) is None  # a value is missing
    assert space("__global__ void") is None


def test_the_text_of_a_point_has_its_values() -> None:
    found = space("#pragma optiml tune B in {64, 128, 256} = 128\n" + SAXPY)
    assert found is not None
    assert found.present == {"B": 128}
    proposal = found.proposal({"B": 64}, found.present)
    assert "in {64, 128, 256} = 64\n" in proposal.text
    assert (proposal.title, proposal.proposer) == ("B = 64", "tuner")


def test_neighbours_of_the_users_own_numbers() -> None:
    points = asked("#pragma optiml tune B in {64, 128, 256} = 128\n" + SAXPY)
    assert [p["B"] for p in points] == [64, 256]


def test_those_that_fill_the_chip_come_first_and_what_cannot_run_never() -> None:
    points = asked("#pragma optiml tune B in {8, 48, 256, 2048} = 256\n" + SAXPY)
    assert [p["B"] for p in points] == [48, 8]


def test_seven_names_take_one_step_each_without_the_product_of_their_values() -> None:
    names = [f"T{at}" for at in range(7)]
    tunes = "".join(f"#pragma optiml tune {n} in {{1, 2, 4, 8, 16}} = 4\n" for n in names)
    tunes = tunes.replace("T6 in {1, 2, 4, 8, 16} = 4", "T6 in {1, 2, 4, 8, 16} = 4 if T5 * T6 > 8")
    text = tunes + SAXPY.replace("B", "256").replace("k *", f"({' + '.join(names)}) *")
    first = asked(text, 7)
    assert {name for point in first for name in names if point[name] != 4} == set(names)
    assert all(p["T5"] * p["T6"] > 8 for p in asked(text))
