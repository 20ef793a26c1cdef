from __future__ import annotations

from optiml_magic.reports.fitting import fitted

REPORT = """\
t: 2x faster, estimated, verified, and whatever else there may be to be said of it here

diff:
  +    const int whole = (size_t)&y[0] % 16 == 0 ? n / 4 * 4 : 0; // a line of a program stays

findings on the input kernel:
  [warning] uncoalesced_access: The load on line 7 touches 32.0 sectors a request.

details:
  launch       inferred
  note         other sizes: 14 checked, n = 8, batch = 2; n = 8, batch = 128; n = 8, and more"""


def test_sentences_break_at_words_below_their_beginning_and_programs_stay() -> None:
    assert fitted(REPORT, 60).splitlines() == [
        "t: 2x faster, estimated, verified, and whatever else there",
        "  may be to be said of it here",
        "",
        "diff:",
        REPORT.splitlines()[3],
        "",
        "findings on the input kernel:",
        "  [warning] uncoalesced_access: The load on line 7 touches",
        "            32.0 sectors a request.",
        "",
        "details:",
        "  launch       inferred",
        "  note         other sizes: 14 checked, n = 8, batch = 2; n",
        "               = 8, batch = 128; n = 8, and more",
    ]


def test_a_report_that_fits_is_as_it_was() -> None:
    assert fitted(REPORT, 200) == REPORT
