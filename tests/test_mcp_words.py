"""What is shown of a server's own words."""

from __future__ import annotations

from imagecall.middleware.backends.mcp_words import Words


def test_secrets_are_masked_the_longest_first_and_short_ones_are_left() -> None:
    words = Words(["secret", "secret-long", "1", ""])
    assert words.show("secret-long and secret, 1") == "*** and ***, 1"


def test_base64_is_taken_out() -> None:
    run = "iVBORw0K" * 20
    assert Words([]).show(f"ok {run}= data:image/png;base64,{run} end") == "ok […] […] end"


def test_words_are_one_line_of_at_most_three_hundred_characters() -> None:
    assert Words([]).show(" two\n\n lines ") == "two lines"
    shown = Words([]).show("so many words " * 30)
    assert len(shown) == 300
    assert shown.endswith("…")
