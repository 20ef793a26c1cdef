from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.errors import MachineError
from optiml_magic.journal import SCHEMA, Journal, RunHeader
from optiml_magic.llms.base import LlmFailure, Reply, Request
from optiml_magic.llms.openai import OpenAILLM
from optiml_magic.llms.scripted import ScriptedLLM
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.proposers.asking import Asker, Room
from optiml_magic.proposers.base import Proposer
from optiml_magic.proposers.brief import Contents
from optiml_magic.proposers.llm import LlmProposer
from optiml_magic.proposers.mixture import mixed
from optiml_magic.proposers.rules import RuleProposer
from optiml_magic.search.search import TreeSearch
from optiml_magic.source.program import parse_program
from tests.ideas import made
from tests.unit.llms.endpoint import completed, serving

from .views import RIGHT, SCALE, step, view

WRONG = Verdict(Outcome.WRONG, "3 of 12 wrong")
EXPECTED = {"metric": "sectors.ratio", "direction": "lower", "because": "fewer sectors"}


def draft(**fields: Any) -> dict[str, Any]:
    base = {"title": "an edit", "rationale": "why", "hypothesis": EXPECTED, "edits": None}
    return {**base, "program": None, **fields}


def edit(find: str, replacement: str) -> dict[str, str]:
    return {"find": find, "replace": replacement}


def says(*drafts: Any, **more: Any) -> str:
    return json.dumps({"proposals": drafts, **more})


GOOD = draft(edits=[edit("2.0f * a[i]", "a[i] + a[i]")])
BETTER = SCALE.replace("2.0f * a[i]", "a[i] + a[i]")


def test_edits_become_proposals() -> None:
    llm = ScriptedLLM([says(GOOD, draft(title="b", program=SCALE.replace("256}", "256, 512}")))])
    proposer: Proposer = LlmProposer(Asker(llm))
    first, second = proposer.propose(view(), 16).ideas
    told = Proposal(
        BETTER,
        "an edit",
        "llm:scripted",
        "why",
        Hypothesis("sectors.ratio", "lower", "fewer sectors"),
        0.6,
    )
    assert first == replace(Idea.of(told), paid=True)
    assert first.proposal(BETTER) == told
    assert parse_program(second.text).tunes[0].values == (128, 256, 512)
    assert (second.title, second.prior) == ("b", 0.55)
    assert from_json(Proposal, to_json(Proposal, told)) == told


@pytest.mark.parametrize(
    ("told", "factor"),
    [(4.0, 4.0), (0.25, 4.0), (None, 1.0), (0.0, 1.0), (-3.0, 1.0), (1e300, 1e6), (1e-320, 1e6)],
)
def test_the_factor_of_a_model_is_read_as_times_lower_or_higher(told: Any, factor: float) -> None:
    reply = says(draft(**{**GOOD, "hypothesis": {**EXPECTED, "factor": told}}))
    (found,) = LlmProposer(Asker(ScriptedLLM([reply]))).propose(view(), 4).ideas
    assert found.hypothesis == Hypothesis(
        "sectors.ratio", "lower", "fewer sectors", (factor, factor)
    )


@pytest.mark.parametrize(
    ("named", "answers"),
    [("uncoalesced_access", "uncoalesced_access"), ("no such tool", ""), (None, "")],
)
def test_a_model_answers_a_finding_by_the_name_of_its_tool(named: Any, answers: str) -> None:
    (found,) = (
        LlmProposer(Asker(ScriptedLLM([says({**GOOD, "answers": named})]))).propose(view(), 4).ideas
    )
    assert found.answers == answers


def test_it_mixes_with_the_rules() -> None:
    literal = re.sub("#pragma optiml tune.*\n", "", SCALE).replace("BLOCK", "256")
    told = replace(view(), step=step(literal))
    found = mixed((RuleProposer(), LlmProposer(Asker(ScriptedLLM([says(GOOD)])))), told, 16).ideas
    assert {idea.proposer for idea in found} >= {"llm:scripted", "block_size"}


@pytest.mark.parametrize(
    "wrap",
    [
        "{}",
        "```json\n{}\n```",
        "Sure! Here it is.\n```\n{}\n```\nGood luck.",
        '<think>{"proposals": maybe {x}} or {"proposals": []}</think>\n{}',
        "```cuda\nif (x) { y; } for (;;) { {{}} }\n```\n\n{}",
        '\ufeff{} {"proposals": ...}',
    ],
)  # fmt: skip
def test_the_answer_is_found_wherever_it_stands(wrap: str) -> None:
    reply = says(GOOD)
    head, _, tail = wrap.rpartition("{}")
    proposer = LlmProposer(Asker(ScriptedLLM([head + reply + tail])))
    assert [p.text for p in proposer.propose(view(), 4).ideas] == [BETTER]


def test_bare_line_breaks_in_strings_are_read() -> None:
    proposer = LlmProposer(Asker(ScriptedLLM([says(draft(program=BETTER)).replace("\\n", "\n")])))
    assert [p.text for p in proposer.propose(view(), 4).ideas] == [BETTER]


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps([GOOD]),
        json.dumps(GOOD),
        "The list:\n```json\n" + json.dumps([GOOD], indent=2) + "\n```",
        json.dumps({"plan": "think", "proposals": [GOOD]}),
        says({**GOOD, "confidence": 0.9, "hypothesis": {**EXPECTED, "unit": "sectors"}}),
        says({"edits": GOOD["edits"]}),
        says({"edits": GOOD["edits"], "hypothesis": None}),
        says(GOOD) + " and nothing else: " + says(),
        says(draft(edits=[edit("out[i]   =\n  2.0f*a[ i ]", "out[i] = a[i] + a[i]")])),
    ],
)
def test_what_is_said_in_other_forms_is_read_all_the_same(reply: str) -> None:
    proposer = LlmProposer(Asker(ScriptedLLM([reply])))
    assert [p.text for p in proposer.propose(view(), 4).ideas] == [BETTER]
    assert proposer.notes == ()


@pytest.mark.parametrize("find", ["nt  i = block", "inti = blockIdx.x", "i  n"])
def test_other_blanks_neither_cut_nor_join_words(find: str) -> None:
    llm = ScriptedLLM([says(draft(edits=[edit(find, "x")])), says(GOOD)])
    proposer = LlmProposer(Asker(llm))
    proposer.propose(view(), 4)
    assert "does not occur" in " ".join(proposer.notes)


def with_line(line: str) -> dict[str, Any]:
    return draft(edits=[edit("__global__", f"{line}\n__global__")])


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (draft(title=" "), "neither"),
        (draft(title="", edits=[]), "neither"),
        (draft(program=SCALE), "does not change"),
        (draft(edits=[edit("i < n", "i < n")]), "does not change"),
        (draft(edits=[edit("nowhere", "x")]), "does not occur"),
        (draft(edits=[edit("int", "long")]), "more than once"),
        (draft(edits=[edit(" \n", "x")]), "is empty"),
        (draft(edits=[edit("", "x")]), "is empty"),
        (draft(edits=[edit("2.0f * a[i]", "x"), edit("a[i];", "y;")]), "overlap"),
        (draft(edits=[edit("2.0f", "2.f")], program=BETTER), "both"),
        (draft(program=BETTER.split("\n", 2)[2]), "no launch"),
        (draft(program="int main() {}"), "no kernel"),
        (draft(edits=[edit(" = 256", "")]), "no value"),
        (draft(edits=[edit("launch scale", "launch scales")]), "no kernel `scales`"),
        (draft(edits=[edit("grid(", "grit(")]), "in `#pragma optiml launch scale grit"),
        (draft(edits=[edit("float* out,", "float* out, float* more,")]), "no buffer `more`"),
        (with_line("void f() { scale<<<1, 1>>>(0, 0, 0); }"), "<<<"),
        (with_line('#include "/etc/passwd"'), "not allowed"),
        (with_line("#include </etc/passwd>"), "not allowed"),
        (with_line("#include <../../x.h>"), "not allowed"),
        (with_line("#inc\\\nlude </etc/passwd>"), "not allowed"),
        (with_line("#include_next <x.h>"), "not allowed"),
        (with_line("#embed </etc/passwd>"), "not allowed"),
        (with_line("%:include </etc/passwd>"), "digraphs"),
        (with_line("??=include </etc/passwd>"), "trigraphs"),
        (with_line("// a ??/\n#include </etc/passwd>"), "not allowed"),
        (with_line("#\\ \ninclude </etc/passwd>"), "not allowed"),
        (with_line("// x\r#include </etc/passwd>"), "carriage return"),
        (with_line("#include <own.cuh>"), "not allowed"),
        (with_line("#include <secrets>"), "not allowed"),
        (with_line("#include <own/limits>"), "not allowed"),
        (with_line('#include "cuda_fp16.h"'), "not allowed"),
        (with_line("#include <cuda/../../x.h>"), "not allowed"),
        (with_line("#define F </etc/passwd>\n#include F"), "not allowed"),
        (with_line("#if __has_include(</etc/passwd>)\n#endif"), "not allowed"),
        (with_line("#define H __has_include\n#if H(<x>)\n#endif"), "not allowed"),
        (with_line("#ifdef X\n#elif __has_embed(</etc/passwd>)\n#endif"), "not allowed"),
        (with_line('# 1 "/etc/passwd"'), "a line directive"),
        (with_line('#line 1 "/etc/passwd"'), "a line directive"),
        (with_line('#pragma GCC dependency "/etc/passwd"'), "a pragma that asks for a file"),
        (with_line('_Pragma("GCC dependency \\"/etc/passwd\\"")'), "asks for a file"),
        (with_line("// \x1b[2J"), "U+001B"),
        (with_line("// \u202e"), "U+202E"),
        (draft(program=BETTER + "/" * 200_000), "more than 200000"),
        (draft(hypothesis={**EXPECTED, "direction": "sideways"}), "`hypothesis.direction`"),
        ({"rationale": "x"}, "neither"),
        (7, "proposal 1"),
        (draft(program=BETTER + "// \ud800"), "U+D800"),
    ],
)
def test_what_cannot_be_evaluated_is_dropped_with_its_reason(raw: Any, reason: str) -> None:
    llm = ScriptedLLM([says(raw), says(GOOD)])
    proposer = LlmProposer(Asker(llm))
    assert [p.text for p in proposer.propose(view(), 4).ideas] == [BETTER]
    assert reason in " ".join(proposer.notes)
    assert reason in llm.requests[1].user


@pytest.mark.parametrize(
    "line",
    [
        "#include <cuda_fp16.h>",
        "#include <cooperative_groups/reduce.h>",
        "#include <cuda/std/limits>",
        "#define HALF(x) { x; }",
        "#pragma unroll 4",
        "// \u00e9 and %: and <<<",
    ],
)
def test_ordinary_lines_pass(line: str) -> None:
    (found,) = LlmProposer(Asker(ScriptedLLM([says(with_line(line))]))).propose(view(), 4).ideas
    assert f"{line}\n__global__" in found.text


def test_what_the_input_kernel_includes_may_stay() -> None:
    text = '#include "my own.cuh"\n' + SCALE
    (found,) = LlmProposer(Asker(ScriptedLLM([says(GOOD)]))).propose(view(text), 4).ideas
    assert found.text.startswith('#include "my own.cuh"\n')


def test_what_an_include_of_the_input_kernel_means_stays() -> None:
    text = '#define F "own.cuh"\n#include F\n' + SCALE
    again = '#undef F\n#define F "secrets"\n#include F\n'
    llm = ScriptedLLM([says(draft(edits=[edit("__global__", f"{again}__global__")]), GOOD)] * 3)
    proposer = LlmProposer(Asker(llm))
    assert [one.title for one in proposer.propose(view(text), 4).ideas] == ["an edit"]
    assert "`#undef F` is not allowed" in " ".join(proposer.notes)


def test_scratch_buffers_are_allowed() -> None:
    edits = [
        edit("float* out,", "float* out, float* more,"),
        edit(
            "#pragma optiml launch", "#pragma optiml scratch more float[n]\n#pragma optiml launch"
        ),
    ]
    assert LlmProposer(Asker(ScriptedLLM([says(draft(edits=edits))]))).propose(view(), 4).ideas


def test_a_whole_program_may_come_in_a_fence_and_keeps_the_line_ends_of_its_parent() -> None:
    text = SCALE.replace("\n", "\r\n")
    fenced = f"```cuda\n{BETTER}```"
    two_lines = draft(edits=[edit("{\n    int i", "{\n    const int i")])
    proposer = LlmProposer(Asker(ScriptedLLM([says(draft(program=fenced), two_lines)])))
    whole, edited = proposer.propose(view(text), 4).ideas
    assert whole.text == BETTER.replace("\n", "\r\n")
    assert edited.text == text.replace("int i =", "const int i =")


def test_edits_apply_to_the_parent_at_once() -> None:
    edits = [edit("int i =", "int j ="), edit("out[i] = 2.0f * a[i]", "int i = j; out[i] = a[i]")]
    (found,) = LlmProposer(Asker(ScriptedLLM([says(draft(edits=edits))]))).propose(view(), 4).ideas
    assert "int j = blockIdx" in found.text
    assert "int i = j; out[i] = a[i];" in found.text


AT_ONCE = Room(pause=lambda _: None)


def test_only_what_cannot_be_used_is_asked_for_again() -> None:
    other = draft(title="c", program=SCALE.replace("2.0f", "2.00f"))
    llm = ScriptedLLM([says(draft(title="b", edits=[edit("nowhere", "y")]), GOOD), says(other)])
    proposer = LlmProposer(Asker(llm))
    assert [p.title for p in proposer.propose(view(), 2).ideas] == ["an edit", "c"]
    first, second = llm.requests
    assert second.user.startswith(first.user)
    again = second.user.removeprefix(first.user)
    assert '"title": "b"' in again
    assert "does not occur" in again
    assert "a[i] + a[i]" not in again
    assert len(proposer.notes) == 1


def test_two_repairs_and_no_more() -> None:
    replies = [Reply("hm", 10, 2, 0.5), Reply('{"proposals": [}', 20, 3, 0.5)]
    llm = ScriptedLLM([*replies, Reply("hm", 10, 2, 0.5), says(GOOD)])
    proposer = LlmProposer(Asker(llm))
    assert list(proposer.propose(view(), 4).ideas) == []
    first, second, _ = llm.requests
    assert second.user.startswith(first.user)
    assert "hm\n\nFault: there is no JSON object" in second.user
    assert "gave up after 2 repairs" in proposer.notes[-1]


def test_useless_replies_end_it() -> None:
    llm = ScriptedLLM(["hm"] * 99)
    proposer = LlmProposer(Asker(llm))
    for _ in range(9):
        assert not proposer.propose(view(), 4).ideas
    assert len(llm.requests) == 5 * 3
    assert "5 useless replies in a row: the model is not asked again" in proposer.notes[-1]


def test_it_is_not_asked_while_what_it_proposed_waits_to_be_tried() -> None:
    llm = ScriptedLLM([says(GOOD), says(GOOD)])
    proposer = LlmProposer(Asker(llm))
    (idea,) = proposer.propose(view(), 4).ideas
    answer = proposer.propose(replace(view(), find_queued=lambda: (idea,)), 4)
    assert answer == Ideas(more=True)
    assert len(llm.requests) == 1
    own = replace(idea, paid=False)  # of a rule
    assert proposer.propose(replace(view(), find_queued=lambda: (own,)), 4).ideas


@pytest.mark.parametrize(("evaluated", "wanted"), [(0, 4), (5, 3), (9, 1), (11, 1)])
def test_it_is_asked_for_as_many_as_can_still_be_tried(evaluated: int, wanted: int) -> None:
    llm = ScriptedLLM([says(GOOD)])
    proposer = LlmProposer(Asker(llm, Room(12)))
    proposer.propose(replace(view(), evaluated=[step()] * evaluated), 16)
    assert f"Plan up to {wanted} different edits" in llm.requests[0].user


def failing(title: str, parent: int = 0, number: int = 3) -> Step:
    wrong = Verdict(Outcome.WRONG, "3 of 12 elements of `out` are wrong", line=6)
    one = step(BETTER.replace("a[i] +", "a[i] -"), number=number, title=title, verdict=wrong)
    proposal = replace(one.candidate.proposal, proposer="llm:scripted")
    return replace(one, candidate=replace(one.candidate, parent=parent, proposal=proposal))


def test_a_program_that_failed_is_shown_to_the_model_once_and_again_where_that_failed() -> None:
    llm = ScriptedLLM([says(draft(edits=[edit("a[i] - a[i]", "a[i] + a[i]")])), says(GOOD)])
    proposer = LlmProposer(Asker(llm))
    failed = failing("twice by a sum")
    (mended,) = proposer.propose(replace(view(), evaluated=[step(), failed]), 4).ideas
    assert mended.text == BETTER
    assert mended.title == "twice by a sum, repaired"
    assert mended.hypothesis == failed.candidate.proposal.hypothesis
    question = llm.requests[0].user
    assert "3 of 12 elements of `out` are wrong" in question
    assert "a[i] - a[i]" in question
    (other,) = proposer.propose(replace(view(), evaluated=[step(), failed]), 4).ideas
    assert other.title == "an edit"  # it is not shown a second time


@pytest.mark.parametrize(
    ("titles", "title"),
    [
        (["x", "x, repaired"], "x, repaired twice"),
        (["x", "x, repaired", "x, repaired twice"], None),
        (["x", "y"], "y, repaired"),
    ],
)
def test_what_failed_is_repaired_twice_at_most_the_latest_first(
    titles: list[str], title: str | None
) -> None:
    llm = ScriptedLLM([says(draft(edits=[edit("a[i] - a[i]", "a[i] + a[i]")])), says(GOOD)])
    steps = [failing(one, number=number) for number, one in enumerate(titles, 3)]
    found = LlmProposer(Asker(llm)).propose(replace(view(), evaluated=steps), 4).ideas
    assert [one.title for one in found] == [title or "an edit"]


def test_a_cut_reply_is_asked_for_shorter_with_more_room_once() -> None:
    cut = LlmFailure("truncated", "cut off", 5, 6)
    llm = ScriptedLLM([cut, says(GOOD)])
    proposer = LlmProposer(Asker(llm))
    assert len(proposer.propose(view(), 4).ideas) == 1
    first, second = llm.requests
    assert "cut off" in second.user
    assert second.max_tokens == 2 * first.max_tokens
    llm = ScriptedLLM([cut] * 9)
    assert not LlmProposer(Asker(llm)).propose(view(), 4).ideas
    assert len(llm.requests) == 2


def test_no_more_ideas() -> None:
    llm = ScriptedLLM([says()])
    proposer = LlmProposer(Asker(llm))
    assert list(proposer.propose(view(), 4).ideas) == []
    assert len(llm.requests) == 1
    assert "no more ideas" in proposer.notes[-1]


def test_a_failure_is_tried_again_after_a_while_and_three_in_a_row_end_it() -> None:
    down, waited = LlmFailure("unreachable", "nobody there"), list[float]()
    llm = ScriptedLLM([down, down, says(GOOD), *[down] * 9])
    proposer = LlmProposer(Asker(llm, Room(pause=waited.append)))
    found = [len(proposer.propose(view(), 4).ideas) for _ in range(9)]
    assert found == [1, 0, 0, 0, 0, 0, 0, 0, 0]
    assert waited == [1.0, 4.0, 1.0, 4.0]
    assert len(llm.requests) == 6
    assert "3 failures in a row: the model is not asked again" in proposer.notes[-1]


def test_a_request_and_a_pause_take_half_of_what_is_left_at_most() -> None:
    down, waited = LlmFailure("server", "fails"), list[float]()
    llm = ScriptedLLM([down, down, down])
    LlmProposer(Asker(llm, Room(24, lambda: 3.0, pause=waited.append))).propose(view(), 4)
    assert waited == [1.0, 1.5]
    assert {request.seconds for request in llm.requests} == {1.5}


def test_a_request_that_is_refused_is_not_put_again() -> None:
    llm = ScriptedLLM([LlmFailure("rejected", "too long"), says(GOOD)])
    proposer = LlmProposer(Asker(llm, AT_ONCE))
    assert not proposer.propose(view(), 4).ideas
    assert proposer.propose(view(), 4).ideas


class Refusing(ScriptedLLM):
    """Answers a few times, and then does not accept the key."""

    def complete(self, request: Request) -> Reply | LlmFailure:
        found = super().complete(request)
        if isinstance(found, LlmFailure):
            raise MachineError("no key")
        return found


def test_a_key_that_is_refused_from_the_beginning_passes_through() -> None:
    with pytest.raises(MachineError):
        LlmProposer(Asker(Refusing([]))).propose(view(), 4)


def test_a_key_that_is_refused_later_ends_the_models_part_alone() -> None:
    llm = Refusing([says(GOOD)])
    proposer = LlmProposer(Asker(llm))
    assert [len(proposer.propose(view(), 4).ideas) for _ in range(4)] == [1, 0, 0, 0]
    assert len(llm.requests) == 2
    assert proposer.notes[-1].endswith("no key: the model is not asked again")


def test_counts_and_notes_are_bounded() -> None:
    many = [draft(program=BETTER + f"// {number}\n") for number in range(40)]
    assert len(LlmProposer(Asker(ScriptedLLM([says(*many)]))).propose(view(), 16).ideas) == 4
    assert len(LlmProposer(Asker(ScriptedLLM([says(*many)]))).propose(view(), 2).ideas) == 2
    eager = LlmProposer(Asker(ScriptedLLM([says(*many)]), Room(most=40)))
    priors = [proposal.prior for proposal in eager.propose(view(), 40).ideas]
    assert priors == sorted(priors, reverse=True)
    assert min(priors) > 0
    silent = LlmProposer(Asker(ScriptedLLM([])))
    assert list(silent.propose(view(), 0).ideas) == []
    chatty = LlmProposer(Asker(ScriptedLLM([says(*[7] * 100)] * 3), Room(most=100)))
    chatty.propose(view(), 100)
    assert len(chatty.notes) == 50
    assert all(len(note) < 400 for note in chatty.notes)


@pytest.mark.parametrize("text", ["x" * 100_001, "#pragma optiml lunch"])
def test_a_program_that_cannot_be_asked_about_is_noted(text: str) -> None:
    llm = ScriptedLLM([])
    proposer = LlmProposer(Asker(llm))
    assert list(proposer.propose(view(text), 4).ideas) == []
    assert llm.requests == []
    assert len(proposer.notes) == 1


def test_titles_are_fit_for_a_terminal() -> None:
    loud = draft(title="\x1b[31m\nred\u202e" + "y" * 500, edits=GOOD["edits"], rationale="\x00a\nb")
    (found,) = LlmProposer(Asker(ScriptedLLM([says(loud)]))).propose(view(), 4).ideas
    assert found.title.isprintable()
    assert len(found.title) == 120
    assert found.rationale == "a b"


def test_a_later_visit_draws_another_sample_and_the_same_visit_the_same() -> None:
    llm = ScriptedLLM([says()] * 3)
    proposer = LlmProposer(Asker(llm), seed=7)
    for tried in ((), (), (step(number=1),)):
        proposer.propose(replace(view(), tried=tried), 4)
    first, again, later = llm.requests
    assert first == again
    assert later.seed != first.seed


def test_a_resumed_run_asks_nothing_again(tmp_path: Path) -> None:
    header = RunHeader(
        SCHEMA,
        "r",
        "t",
        SCALE,
        "",
        "",
        "",
        "emulated:h200",
        "c",
        0,
        "mcts",
        1,
        ("llm:scripted",),
        (),
        False,
        "",
    )
    asked = ScriptedLLM([says(GOOD)])
    journal = Journal.create(tmp_path / "run", header)
    proposer = LlmProposer(Asker(asked)).propose
    first = journal.remember_expand(proposer, proposer)(view(), 4)
    journal.close()
    journal = Journal.resume(tmp_path / "run", header)
    silent = ScriptedLLM([])
    proposer = LlmProposer(Asker(silent)).propose
    assert journal.remember_expand(proposer, proposer)(view(), 4) == first
    journal.close()
    assert silent.requests == []


def test_over_http_braces_and_percent_signs_arrive_unchanged() -> None:
    odd = SCALE.replace("__global__", '#define P(x) {{ "%s {0} %(x)d ${y} @COUNT@" }}\n__global__')
    odd = odd.replace("i % 1", "i %1").replace("if", "/* \u4f60\u597d */ if")
    with serving(completed("not yet"), completed(says(GOOD))) as endpoint:
        llm = OpenAILLM("toy", endpoint.url, "k-1", timeout=5.0)
        proposer = LlmProposer(Asker(llm))
        (found,) = proposer.propose(view(odd), 4).ideas
        llm.close()
    assert found.text == odd.replace("2.0f * a[i]", "a[i] + a[i]")
    assert found.proposer == "llm:toy"
    for body in endpoint.bodies:
        assert odd.rstrip("\n") in body["messages"][1]["content"]
        assert body["response_format"]["json_schema"]["name"] == "kernel_proposals"


def test_over_http_an_exact_run_asks_for_the_bits_and_drops_what_says_otherwise() -> None:
    frank = draft(title="b", program=SCALE.replace("2.0f", "2.1f"), arithmetic=["the factor"])
    refused = replace(view().step, refused=(Refusal("tile", "there is no loop"),))
    with serving(
        completed(says(GOOD, frank)), completed(says()), completed(says(frank))
    ) as endpoint:
        llm = OpenAILLM("toy", endpoint.url, "k-1", timeout=5.0)
        proposer = LlmProposer(Asker(llm), contents=Contents(exact=True))
        (found,) = proposer.propose(replace(view(), step=refused), 4).ideas
        loose = LlmProposer(Asker(llm)).propose(view(), 4).ideas
        llm.close()
    assert found.text == BETTER
    assert [idea.arithmetic for idea in loose] == [("the factor",)]
    assert any("`b`: no edit may change the arithmetic" in note for note in proposer.notes)
    first, _, second = (body["messages"][1]["content"] for body in endpoint.bodies)
    assert "Every bit of every output" in first
    assert "- tile: there is no loop" in first
    assert "Every bit of every output" not in second


def test_over_http_a_model_is_told_what_became_of_its_ideas_wherever_they_were() -> None:
    """Three ideas for the input kernel; the last question is about what the first of them made."""
    others = [
        draft(title=f"edit {n}", program=SCALE.replace("2.0f", f"{n}.0f")) for n in range(3, 6)
    ]
    ends = {"edit 3": (2e-6, RIGHT), "edit 4": (0.0, WRONG), "edit 5": (9e-6, RIGHT)}

    def became(candidate: Candidate) -> Evaluation:
        seconds, verdict = ends.get(candidate.proposal.title, (8e-6, RIGHT))
        number = candidate.number
        found = step(number=number, seconds=seconds, verdict=verdict).evaluation
        gain = 8e-6 / seconds if seconds else 0.0
        return replace(found, reward=gain / 10 if verdict.passed else -1.0)

    with serving(completed(says(*others)), *[completed(says())] * 9) as endpoint:
        llm = OpenAILLM("toy", endpoint.url, "k-1", timeout=5.0)
        search = TreeSearch(Proposal(SCALE, "input", "user"), LlmProposer(Asker(llm)).propose)
        search.tell([became(candidate) for candidate in search.ask(1)])
        search.tell([became(candidate) for candidate in search.ask(3)])
        assert search.ask(1) == []
        llm.close()
    asked = [body["messages"][1]["content"] for body in endpoint.bodies]
    assert "your other ideas" not in asked[0]
    (of_first,) = [one for one in asked if "= 3.0f * a[i]" in one.split("# What became of it")[0]]
    own = of_first.split("# What became of your other ideas in this search")[1].split("\n#")[0]
    assert "- edit 4: It failed (wrong): 3 of 12 wrong" in own
    assert "- edit 5: right, 9 us, estimated, on h200, 0.889x the speed of the input kernel" in own
    assert "edit 3" not in own  # it is the program that is asked about


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip
WORDS = st.sampled_from(
    ["{", "}", "[", '"', '{"proposals":', "```json\n", "```", "</think>", "\\ud800", "\n", ","]
)
PIECES = st.lists(WORDS | st.text(max_size=10) | st.just(says(GOOD)), max_size=12).map("".join)
TEXTS = st.text(max_size=40) | st.integers(0, len(SCALE)).flatmap(
    lambda at: st.text(max_size=12).map(lambda put: SCALE[:at] + put + SCALE[at:])
)
EDITS = st.builds(
    lambda at, size, put: edit(SCALE[at : at + size], put),
    st.integers(0, len(SCALE)),
    st.integers(0, 60),
    st.text(max_size=20) | st.sampled_from(["#", "}", "#pragma optiml launch", "/*", '"', "<<<"]),
)
DRAFTS = st.builds(
    draft,
    title=st.text(max_size=20),
    edits=st.none() | st.lists(EDITS, max_size=3),
    program=st.none() | TEXTS,
)


@given(PIECES | JSON.map(json.dumps) | st.lists(DRAFTS | JSON, max_size=4).map(lambda d: says(*d)))
def test_any_reply_gives_proposals_or_a_note(reply: str) -> None:
    llm = ScriptedLLM([reply, reply])
    proposer = LlmProposer(Asker(llm))
    found = proposer.propose(view(), 4).ideas
    assert found or proposer.notes
    for proposal in made(found):
        assert parse_program(proposal.text).launches
        assert proposal.text != SCALE
        assert from_json(Proposal, to_json(Proposal, proposal)) == proposal
    for said in (*proposer.notes, *(request.user for request in llm.requests)):
        assert said.encode()


@pytest.mark.parametrize("reply", ["[" * 100_000, '{"proposals":' * 20_000, '{"a":' + "9" * 9999])
def test_hostile_replies_end(reply: str) -> None:
    proposer = LlmProposer(Asker(ScriptedLLM([reply, reply])))
    assert list(proposer.propose(view(), 4).ideas) == []
    assert proposer.notes
