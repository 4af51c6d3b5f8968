"""How real model servers tell their turns: a row for each server, and for each quirk by itself.

Every row must lead to the very stream that the same turn of a well-behaved server leads to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from deeds import Did, called, refused, said, thought
from manners import Manner
from rewrites import (
    blank_message_first,
    call_id_as_id,
    calls_in_progress,
    late_reasoning,
    message_again,
    response_ids,
    stray_keys,
)

__all__ = ["DIALECTS", "KITE", "Dialect"]

KITE = {"prompt": "a red kite over a harbour"}

CALL = (called(KITE),)
THOUGHT = (thought("The user ", "wants a kite."), *CALL)
SUMMARY = (Did("reasoning", ("A kite ", "it is.")), *CALL)
TEXT = (said("Sure, ", "drawing."), *CALL)
ALL = (thought("Think", "."), said("Sure, ", "drawing."), *CALL)
TWO = (called(KITE), called({"prompt": "the moon"}))
TEXT_TWO = (said("Sure, ", "both."), *TWO)
MIXED = (called(KITE), called({"city": "Oslo"}, "weather"))
ANSWER = (said("Hello ", "there", "."),)
REFUSAL = (refused("I would ", "rather not."),)

_TURNS = (CALL, THOUGHT, SUMMARY, TEXT, ALL, TWO, TEXT_TWO, MIXED, ANSWER, REFUSAL)
_CALLS = frozenset({"function_call"})
_MESSAGES = frozenset({"message"})
_KINDS = frozenset({"message", "reasoning", "function_call"})


@dataclass(frozen=True, slots=True)
class Dialect:
    """One row: whose it is, how it is told, and the turns that this server can tell without a loss."""

    name: str
    manner: Manner
    turns: tuple[tuple[Did, ...], ...] = _TURNS


def _ids(*words: str) -> frozenset[str]:
    return frozenset(words)


_NULLS = {"async": None, "caller": None, "namespace": None}
_LLAMA = Manner(
    bare=True,
    numbers="none",
    places="none",
    parts=False,
    lacking=_ids("arguments.done", "reasoning_text.done"),
    closing="together",
    end_extra={"timings": {"predicted_ms": 1.5}},
)
_LITELLM = Manner(named=False, sentinel=True, extra={"model": "local"})
_HARMONY = Manner(item_extra={**_NULLS, "encrypted_content": None}, rewrite=stray_keys)
_OPEN = Manner(
    named=False,
    numbers="none",
    places="zero",
    ids="between",
    unannounced=_KINDS,
    lacking=_ids(
        "output_item.done", "part.added", "part.done", "text.done", "refusal.done", "arguments.done"
    ),
    rewrite=calls_in_progress,
)

SERVERS = (
    Dialect("OpenAI: padding on every event", Manner(extra={"obfuscation": "x8Kq"})),
    Dialect("vLLM: null keys in every item", Manner(item_extra=_NULLS)),
    Dialect("vLLM gpt-oss: stray keys inside items", _HARMONY),
    Dialect(
        "vLLM gpt-oss: a call in the final output alone", replace(_HARMONY, silent=_CALLS), (CALL, ALL, TWO)
    ),
    Dialect("llama.cpp: no index, no number, everything ends last", _LLAMA),
    Dialect("llama.cpp: a line end for a message", replace(_LLAMA, rewrite=blank_message_first)),
    Dialect(
        "transformers: whole calls, then the message again",
        Manner(named=False, whole=_CALLS, deltas="none", places="from one", rewrite=message_again),
        (CALL, TEXT, TWO, TEXT_TWO),
    ),
    Dialect("transformers: queued first", Manner(named=False, opening=("created", "queued", "in_progress"))),
    Dialect("LiteLLM bridge: calls end first", replace(_LITELLM, closing="calls first")),
    Dialect("LiteLLM before vLLM", replace(_LITELLM, item_extra=_NULLS)),
    Dialect(
        "LiteLLM before llama.cpp", replace(_LLAMA, named=False, sentinel=True, extra={"model": "local"})
    ),
    Dialect("OGX: no end of texts", Manner(named=False, lacking=_ids("output_text.done"))),
    Dialect(
        "OGX: indexes lie until the end, a message is lost",
        Manner(
            named=False,
            places="late",
            closing="calls first",
            endless=_MESSAGES,
            final="without messages",
            item_extra={"response_id": "resp_1"},
        ),
    ),
    Dialect(
        "responses.js: only the last item ends, the others stay in progress",
        Manner(named=False, closing="last", unfinished=True),
    ),
    Dialect(
        "gpt-oss reference: nothing of a call but its end, indexes below zero",
        Manner(unannounced=_CALLS, deltas="none", lacking=_ids("arguments.done"), places="negative"),
        (CALL, THOUGHT, TWO, ANSWER),
    ),
    Dialect("open-responses-server: calls in repeated in_progress", _OPEN, (CALL, TEXT, ANSWER)),
    Dialect(
        "Ollama: text and call share an index, calls first in the output",
        Manner(deltas="one", places="zero", endless=_MESSAGES, final="calls first"),
        (CALL, THOUGHT, TEXT, ALL, ANSWER),
    ),
    Dialect("SGLang: phases of messages", Manner(item_extra={"phase": "commentary"})),
    Dialect("LM Studio: arguments at their end alone", Manner(deltas="none")),
    Dialect(
        "GitHub Copilot: all ids change with each event",
        Manner(ids="rotating", rewrite=response_ids(lambda own, count: f"{own}_{count}")),
    ),
    Dialect(
        "OpenRouter: comments, reasoning ends last and has another id in the end",
        Manner(
            named=False,
            between=": OPENROUTER PROCESSING\n\n",
            sentinel=True,
            ids="final",
            rewrite=late_reasoning,
        ),
    ),
    Dialect(
        "DeepSeek: the response's id is a bare UUID",
        Manner(rewrite=response_ids(lambda own, _: f"0d2f6c1a-5b1e-4c56-9a51-3a5f6e6f000{own[-1]}")),
    ),
    Dialect(
        "LocalAI: one id for a call and all its arguments in one delta",
        Manner(deltas="one", sentinel=True, rewrite=call_id_as_id),
    ),
    Dialect(
        "LocalAI: calls are complete when they begin",
        Manner(deltas="none", lacking=_ids("arguments.done"), whole=_CALLS, sentinel=True),
    ),
    Dialect("mistral.rs: indexes with gaps", Manner(places="gaps", sentinel=True)),
    Dialect(
        "aimock: no numbers, a usage of zeros",
        Manner(
            numbers="none", terminal={"usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}}
        ),
    ),
    Dialect("smg: the response says store", Manner(terminal={"store": True})),
)

QUIRKS = (
    Dialect("no event lines", Manner(named=False)),
    Dialect("[DONE]", Manner(sentinel=True)),
    Dialect("CRLF", Manner(newline="\r\n")),
    Dialect("CR", Manner(newline="\r")),
    Dialect("comments between frames", Manner(between=":\n\n: ping\n")),
    Dialect("ids and delays of events", Manner(between="id: 7\nretry: 3000\n")),
    Dialect("no numbers", Manner(numbers="none")),
    Dialect("the same number always", Manner(numbers="frozen")),
    Dialect("numbers that fall", Manner(numbers="downwards")),
    Dialect("no indexes", Manner(places="none")),
    Dialect("one index for all", Manner(places="zero")),
    Dialect("indexes from one", Manner(places="from one")),
    Dialect("indexes that are wrong until the end", Manner(places="late")),
    Dialect("no index of parts", Manner(parts=False)),
    Dialect("no ids", Manner(ids="none")),
    Dialect("no ids, no indexes, no numbers", Manner(ids="none", places="none", numbers="none", parts=False)),
    Dialect("ids unlike those of their items", Manner(ids="between")),
    Dialect("other ids in the final output", Manner(ids="final", call_ids="other")),
    Dialect("items end together", Manner(closing="together")),
    Dialect("items end backwards", Manner(closing="backwards")),
    Dialect("items never end", Manner(endless=_KINDS)),
    Dialect("messages never end", Manner(endless=_MESSAGES)),
    Dialect("no ends of parts", Manner(lacking=_ids("part.done", "text.done", "refusal.done"))),
    Dialect("no parts", Manner(lacking=_ids("part.added", "part.done"))),
    Dialect("no announcements", Manner(unannounced=_KINDS)),
    Dialect("items announced as complete", Manner(whole=_KINDS)),
    Dialect("arguments in one piece", Manner(deltas="one")),
    Dialect("arguments only in the item", Manner(deltas="none", lacking=_ids("arguments.done"))),
    # What was thought and not streamed stands in its item, and is not streamed afterwards.
    Dialect(
        "everything in the final output alone",
        Manner(silent=_KINDS),
        (CALL, TEXT, TWO, TEXT_TWO, MIXED, ANSWER, REFUSAL),
    ),
    Dialect("an empty final output", Manner(final="empty")),
    Dialect("no final output", Manner(final="absent")),
    Dialect("no created and no in_progress", Manner(opening=())),
    Dialect("created alone", Manner(opening=("created",))),
    Dialect("in_progress again and again", Manner(opening=("created", "in_progress", "in_progress"))),
    Dialect("a bare first response", Manner(bare=True)),
    Dialect("unknown keys everywhere", Manner(extra={"x": 1}, item_extra={"y": 2}, end_extra={"z": 3})),
)

DIALECTS = (*SERVERS, *QUIRKS)
