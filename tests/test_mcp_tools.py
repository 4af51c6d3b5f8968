"""Which tool of a server makes pictures."""

from __future__ import annotations

import pytest
from imagecall.middleware.backends.base import ImageError
from imagecall.middleware.backends.mcp_client.schema import ImageTool, read_tool
from imagecall.middleware.backends.mcp_client.tools import choose_edit_tool, choose_tool


def tool(name: str, *arguments: str) -> ImageTool:
    return read_tool(name, {"properties": {argument: {"type": "string"} for argument in arguments}})


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["txt2img", "create_image", "generate_image"], "generate_image"),
        (["image_generation", "txt2img"], "txt2img"),
        (["weather", "text-to-image"], "text-to-image"),
        (["generateImage", "generate_image"], "generateImage"),
    ],
)
def test_the_first_of_the_usual_names_is_taken_in_whatever_spelling(names: list[str], chosen: str) -> None:
    assert choose_tool([tool(name) for name in names], None).name == chosen


def test_else_the_only_tool_with_a_prompt_is_taken() -> None:
    tools = [tool("weather", "city"), tool("paint", "prompt", "mood"), tool("edit_image", "prompt", "image")]
    assert choose_tool(tools, None).name == "paint"
    nested = read_tool(
        "draw", {"properties": {"params": {"properties": {"prompt": {"type": "string"}}, "type": "object"}}}
    )
    assert choose_tool([tool("weather", "city"), nested], None) is nested


def test_a_configured_tool_wins() -> None:
    assert choose_tool([tool("generate_image"), tool("paint")], "paint").name == "paint"


def test_an_error_names_the_tools_that_there_are() -> None:
    many = [tool(f"tool_{number}", "x") for number in range(14)]
    listed = ", ".join(f"tool_{number}" for number in range(12))
    none = "no tool that is known to make pictures: name one with backend_tool."
    several = "several tools that take a prompt: name one with backend_tool."
    for tools, configured, message in [
        ([], None, f"{none} Its tools: none at all."),
        (many, None, f"{none} Its tools: {listed} and 2 more."),
        ([tool("paint", "prompt"), tool("chat", "prompt")], None, f"{several} Its tools: paint, chat."),
        ([tool("chat")], "paint", "no tool 'paint'. Its tools: chat."),
    ]:
        with pytest.raises(ImageError) as caught:
            choose_tool(tools, configured)
        assert caught.value.message == f"The MCP server has {message}"
        assert caught.value.code == "mcp_no_tool"


def test_an_edit_takes_the_tool_for_it_that_can_take_a_picture() -> None:
    generate = tool("generate_image", "prompt", "input_image")
    tools = [generate, tool("img2img", "prompt", "image"), tool("edit_image", "prompt", "image_path")]
    assert choose_edit_tool(tools, None, None).name == "img2img"
    assert choose_edit_tool(tools, "edit_image", None).name == "edit_image"
    assert choose_edit_tool([generate], None, None) is generate
    assert choose_edit_tool([generate, tool("paint", "image")], None, "paint").name == "paint"


def test_a_server_that_cannot_edit_says_so() -> None:
    with pytest.raises(ImageError) as caught:
        choose_edit_tool([tool("generate_image", "prompt")], None, None)
    assert caught.value.code == "edit_not_supported"
    assert "cannot edit pictures" in caught.value.message
