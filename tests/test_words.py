"""What is shown of a server's own words."""

from __future__ import annotations

from imagecall.middleware.backends.secret_values import Secrets
from imagecall.middleware.backends.words import Words

WORDS = Words(Secrets(["canary-0123456789"]))


def test_secrets_are_struck_out() -> None:
    assert WORDS.show("canary-0123456789 or canary-0…") == "[secret] or [secret]"


def test_base64_is_taken_out() -> None:
    run = "iVBORw0K" * 20
    assert WORDS.show(f"ok {run}= data:image/png;base64,{run} end") == "ok […] […] end"


def test_words_are_one_line_of_at_most_three_hundred_characters() -> None:
    assert WORDS.show(" two\n\n\x00 lines ") == "two lines"
    assert WORDS.show("so " * 100) == ("so " * 100).strip()
    shown = WORDS.show("so many words " * 30)
    assert len(shown) == 300
    assert shown.endswith("…")


def test_a_long_text_is_not_read_to_its_end() -> None:
    assert WORDS.show(" " * 10_000 + "the end") == ""
