"""Requests as clients send them, drawn at random: tools in all places, choices, and long histories."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st
from imagecall.events.known import Known
from imagecall.events.lowering import LoweringOptions
from imagecall.events.pictures import Picture
from mutations import JUNK, spots

__all__ = ["BASE64", "Asked", "asked", "damaged"]

Json = dict[str, Any]

BASE64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk" * 3
_URL = f"data:image/png;base64,{BASE64}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, what the store knows of it, and how it is lowered."""

    body: Json
    known: Known = field(default_factory=Known)
    options: LoweringOptions = field(default_factory=LoweringOptions)


# -- tools ---------------------------------------------------------------------------------------

_hosted = st.fixed_dictionaries(
    {"type": st.just("image_generation")},
    optional={
        "action": st.sampled_from(["generate", "edit", "auto", None]),
        "background": st.sampled_from(["opaque", "auto"]),
        "partial_images": st.sampled_from([0, 3, None]),
        "size": st.sampled_from(["auto", "1024x1024", "64x64"]),
        "output_format": st.sampled_from(["png", "jpeg"]),
        "output_compression": st.sampled_from([0, 100]),
        "input_image_mask": st.just({"image_url": _URL}),
        "of_the_future": st.just([1, 2]),
    },
)
_names = st.sampled_from(["weather", "image_generation", "image_generation_2", "draw"])


def _function(name: str) -> Json:
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}}


_other_tools: st.SearchStrategy[Json] = st.sampled_from(
    [
        {"type": "custom", "name": "shell"},
        {"type": "web_search", "search_context_size": "low"},
        {"type": "mcp", "server_label": "docs", "server_url": "https://docs.example"},
        {"type": "namespace", "name": "home", "description": "", "tools": [_function("lamp")]},
    ]
)


@st.composite
def _tools(draw: st.DrawFn, hosted: Json | None) -> list[Json]:
    tools = [_function(name) for name in draw(st.lists(_names, unique=True, max_size=3))]
    tools += draw(st.lists(_other_tools, unique_by=repr, max_size=2))
    tools += [hosted] * draw(st.sampled_from([1, 1, 2])) if hosted else []
    return draw(st.permutations(tools))


# -- the past ------------------------------------------------------------------------------------

_words = st.sampled_from(["Draw a kite.", "A red one, please.", "", "  ", "“é” 🦊\n"])
_ids = st.sampled_from(["ig_1", "ig_2", "ig_3", "ig_4"])
_user = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, _words),
    st.builds(
        lambda text, url: {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": text},
                {"type": "input_image", "detail": "auto", "image_url": url},
            ],
        },
        _words,
        st.sampled_from([_URL, "https://pictures.example/1.png"]),
    ),
    st.builds(
        lambda role, text: {"role": role, "content": text}, st.sampled_from(["system", "developer"]), _words
    ),
)
_image = st.builds(
    lambda kept, identifier: [{**kept, "id": identifier, "type": "image_generation_call"}],
    st.one_of(
        st.just({}),
        st.just({"result": None}),
        st.fixed_dictionaries(
            {"result": st.sampled_from([BASE64, BASE64, None, ""])},
            optional={
                "status": st.sampled_from(["completed", "generating", "failed", "in_progress", None]),
                "revised_prompt": st.sampled_from(["a kite", "", None, "x" * 500]),
                "prompt": st.just("a kite"),
                "action": st.sampled_from(["generate", "edit"]),
                "size": st.just("1024x1024"),
                "output_format": st.just("png"),
                "error": st.sampled_from([None, {"code": "moderation_blocked", "message": BASE64}]),
            },
        ),
    ),
    _ids,
)
_reference = st.builds(
    lambda kind, identifier: [{**kind, "id": identifier}],
    st.sampled_from([{"type": "item_reference"}, {"type": None}, {}]),
    st.sampled_from(["ig_1", "ig_2", "ig_3", "msg_1", "rs_1"]),
)
_said = st.sampled_from(
    [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Here.", "annotations": []}],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": "No."}],
            "status": "completed",
        },
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        {"id": "msg_ig_1", "type": "message", "role": "assistant", "status": "completed", "content": []},
        {"id": "msg_ig_2", "type": "item_reference"},
    ]
).map(lambda item: [item])


@st.composite
def _call(draw: st.DrawFn) -> list[Json]:
    """A client's call with its output, a picture between them now and then."""
    call_id = draw(st.sampled_from(["call_1", "call_ig_1", "call_ig_1_", "call_x"]))
    name = draw(_names)
    call = {
        "type": "function_call",
        "call_id": call_id,
        "name": name,
        "arguments": json.dumps({"city": "Oslo"}),
    }
    output: Any = draw(st.sampled_from(["ok", "{}", [{"type": "input_image", "image_url": _URL}]]))
    between = draw(st.just([]) | _image)
    return [call, *between, {"type": "function_call_output", "call_id": call_id, "output": output}]


@st.composite
def _history(draw: st.DrawFn) -> list[Json]:
    turns = draw(
        st.lists(
            st.one_of(_user.map(lambda item: [item]), _image, _image, _reference, _said, _call()), max_size=7
        )
    )
    items: list[Json] = []
    used: set[Any] = set()
    for turn in turns:
        call_id = turn[0].get("call_id")
        if call_id is None or call_id not in used:
            items += turn
        used.add(call_id)
    return items


_KNOWN_ITEMS: dict[str, Json] = {
    "ig_1": {
        "id": "ig_1",
        "type": "image_generation_call",
        "status": "completed",
        "revised_prompt": "a kite",
    },
    "ig_2": {
        "id": "ig_2",
        "type": "image_generation_call",
        "status": "failed",
        "error": {"code": "x", "message": "y"},
    },
    "ig_3": {"id": "ig_3", "type": "image_generation_call", "status": "completed", "size": "64x64"},
    "ig_4": {"id": "ig_4", "type": "image_generation_call", "status": "completed", "action": "edit"},
    "msg_1": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Here.", "annotations": [], "logprobs": None}],
    },
    "rs_1": {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "y", "status": None},
}
_known = st.builds(
    Known,
    items=st.just(_KNOWN_ITEMS),
    pictures=st.frozensets(_ids),
    reach=st.lists(st.sampled_from([Picture("ig_9"), Picture(url="https://x.example")]), max_size=2).map(
        tuple
    ),
    owed=st.sampled_from([(), ({"type": "function_call_output", "call_id": "call_up", "output": "{}"},)]),
)
_options = st.builds(
    LoweringOptions,
    forced_choice=st.sampled_from(["required", "function", "auto"]),
    backend=st.booleans(),
    workspace=st.booleans(),
    fetch=st.booleans(),
    background=st.booleans(),
)

# -- whole requests ------------------------------------------------------------------------------


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    """Draw a request that is in order."""
    hosted = draw(st.none() | _hosted)
    inside = draw(st.sampled_from(["tools", "tools", "input", "both"]))
    body: Json = {"model": "m"}
    if inside != "input":
        body["tools"] = draw(_tools(hosted))
    items = draw(_history())
    if inside != "tools":
        added = {"type": "additional_tools", "role": "developer", "tools": draw(_tools(hosted))}
        items.insert(draw(st.integers(0, len(items))), added)
    body["input"] = draw(st.just(items) | st.just(items) | st.just("Draw."))
    declared = hosted is not None and (inside != "input" or body["input"] != "Draw.")
    names = [tool["name"] for tool in body.get("tools", []) if tool["type"] == "function"]
    choice = draw(st.sampled_from(_choices(names, declared=declared, required=bool(body.get("tools")))))
    if choice is not None:
        body["tool_choice"] = choice
    previous = draw(st.sampled_from([None, None, "resp_up"]))
    if previous is not None:
        body["previous_response_id"] = "resp_1"
    body |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "stream": st.sampled_from([True, False, None]),
                "instructions": st.sampled_from(["Be brief.", None]),
                "max_tool_calls": st.sampled_from([1, None]),
                "store": st.booleans(),
                "metadata": st.just({"a": "b"}),
                "text": st.just({"format": {"type": "text"}}),
                "of_the_future": st.just({"x": [1]}),
            },
        )
    )
    return Asked(body, replace(draw(_known), previous=previous), draw(_options))


def _choices(names: list[str], *, declared: bool, required: bool) -> list[Any]:
    functions = [{"type": "function", "name": name} for name in names]
    ours = [{"type": "image_generation"}] if declared else []
    choices: list[Any] = [None, "auto", "none", *ours, *functions]
    if declared and required:
        choices.append("required")
    for mode in ("auto", "required"):
        choices += [
            {"type": "allowed_tools", "mode": mode, "tools": list(tools)}
            for tools in (ours, functions)
            if tools
        ]
    return choices


@st.composite
def damaged(draw: st.DrawFn) -> Asked:
    """Draw a request in which up to three values are wrong, missing or there twice."""
    given = draw(asked())
    body = json.loads(json.dumps(given.body))
    for _ in range(draw(st.integers(1, 3))):
        places = list(spots(body))
        if not places:
            break
        holder, key = places[draw(st.integers(0, 1_000)) % len(places)]
        match draw(st.sampled_from(["set", "set", "delete", "repeat"])):
            case "set":
                holder[key] = draw(st.sampled_from(JUNK))
            case "delete":
                del holder[key]
            case _ if isinstance(holder, list):
                holder.insert(key, holder[key])
            case _:
                holder["again"] = holder[key]
    return Asked(body, given.known, given.options)
