"""The clients: what each is called, and what it can do. `remarks.md` says what is odd about it."""

from __future__ import annotations

from matrix import Client

__all__ = ["CLIENTS"]

_WHOLE = "the items of the response, whole"
_PREVIOUS = "`previous_response_id`"
_HTTP_ONLY = {"WebSocket": "it speaks HTTP only"}

CLIENTS = (
    Client(
        "openai-python",
        ("openai", "websockets"),
        driver="openai_python.py",
        snippet="openai_python.py",
        turns={
            "whole": f"{_WHOLE}, not streamed",
            "stream": f"{_WHOLE}, streamed",
            "previous": _PREVIOUS,
            "id": "the picture's item by its id alone",
            "reference": "an `item_reference`",
        },
    ),
    Client(
        "openai-node",
        ("openai", "ws"),
        driver="openai_node.mjs",
        snippet="openai_node.mjs",
        turns={
            "whole": "its helper `toResponseInputItems`, not streamed",
            "stream": "its helper `toResponseInputItems`, streamed",
            "previous": _PREVIOUS,
        },
    ),
    Client(
        "openai-agents (Python)",
        ("openai-agents", "websockets"),
        driver="openai_agents.py",
        snippet="openai_agents.py",
        turns={
            "whole": "`result.to_input_list()`, not streamed",
            "stream": "`result.to_input_list()`, streamed",
            "previous": _PREVIOUS,
        },
        end="",
    ),
    Client(
        "@openai/agents",
        ("@openai/agents", "openai"),
        driver="openai_agents.mjs",
        snippet="openai_agents.mjs",
        turns={
            "whole": "`result.history`, not streamed",
            "stream": "`result.history`, streamed",
            "previous": "`previousResponseId`",
        },
        end="",
    ),
    Client(
        "AI SDK",
        ("ai", "@ai-sdk/openai"),
        driver="ai_sdk.mjs",
        snippet="ai_sdk.mjs",
        turns={
            "whole": "`response.messages`, not streamed",
            "stream": "`response.messages`, streamed",
            "previews": "`response.messages`, streamed with two previews",
        },
        lacks=_HTTP_ONLY,
        failed="an empty result",
        made="a result",
        end="stop",
    ),
    Client(
        "LangChain (Python)",
        ("langchain-openai",),
        driver="langchain_python.py",
        snippet="langchain_python.py",
        turns={
            "whole": "the message, not streamed: pictures by their ids",
            "stream": "the message, streamed: pictures by their ids",
            "unstored": "the message with `store=False`: pictures whole",
        },
        lacks={
            **_HTTP_ONLY,
            "previews": "it raises `NotImplementedError` when the tool has `partial_images`",
        },
    ),
    Client(
        "LangChain.js",
        ("@langchain/openai", "@langchain/core"),
        driver="langchain_node.mjs",
        snippet="langchain_node.mjs",
        turns={"whole": "the message, not streamed", "stream": "the message, streamed"},
        lacks={**_HTTP_ONLY, "previews": "it drops the events of partial pictures"},
    ),
    Client(
        "pydantic-ai",
        ("pydantic-ai-slim", "websockets"),
        driver="pydantic_ai_agent.py",
        snippet="pydantic_ai_agent.py",
        turns={"whole": "`all_messages()`, not streamed", "stream": "`all_messages()`, streamed"},
        failed="failed",
        end="stop",
    ),
    Client(
        "LlamaIndex",
        ("llama-index-llms-openai",),
        driver="llama_index_openai.py",
        snippet="llama_index_openai.py",
        turns={"previous": "`track_previous_responses=True`"},
        lacks=_HTTP_ONLY,
        failed="failed",
    ),
    Client(
        "LiteLLM SDK",
        ("litellm",),
        driver="litellm_sdk.py",
        snippet="litellm_sdk.py",
        turns={
            "whole": f"{_WHOLE}, not streamed",
            "stream": f"{_WHOLE}, streamed",
            "previous": _PREVIOUS,
        },
        lacks={**_HTTP_ONLY, "previews": "it drops the events of partial pictures"},
    ),
    Client(
        "A browser's `fetch`",
        ("playwright",),
        driver="browser.py",
        snippet="browser.html",
        turns={
            "whole": f"{_WHOLE}, not streamed",
            "stream": f"{_WHOLE}, streamed",
            "previous": _PREVIOUS,
        },
        lacks={"WebSocket": "the reader uses `fetch`"},
    ),
)
