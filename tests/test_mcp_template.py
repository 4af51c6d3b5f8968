"""A tool's arguments as somebody wrote them down."""

from __future__ import annotations

from typing import Any

import pytest
from imagecall.middleware.backends.base import Image, ImageRequest
from imagecall.middleware.backends.mcp_client.template import ArgumentsTemplate

KITE = Image(b"kite", "png", 1, 1)
DOG = Image(b"dog", "jpeg", 1, 1)


def fill(template: dict[str, Any], prompt: str = "a kite", model: str | None = None, **request: Any) -> Any:
    return ArgumentsTemplate(template).fill(ImageRequest(prompt, **request), model)


def test_placeholders_are_filled_at_any_depth_and_the_rest_stays() -> None:
    template = {
        "workflow": "flux",
        "inputs": {"6": {"text": "{prompt}, photo"}, "5": {"width": "{width}", "height": "{height}"}},
        "tags": ["{quality}", "fixed", 7, None, True],
        "pair": ("{aspect_ratio}",),
    }
    assert fill(template, size="1536x1024", quality="high") == {
        "workflow": "flux",
        "inputs": {"6": {"text": "a kite, photo"}, "5": {"width": 1536, "height": 1024}},
        "tags": ["high", "fixed", 7, None, True],
        "pair": ["3:2"],
    }


def test_what_nobody_asked_for_is_left_out() -> None:
    template = {
        "prompt": "{prompt}",
        "size": "{size}",
        "box": {"width": "{width}", "height": "{height}"},
        "list": ["{quality}"],
        "ratio": "{aspect_ratio}",
        "note": "quality: {quality}.",
        "empty": {},
        "none": [],
    }
    assert fill(template) == {"prompt": "a kite", "note": "quality: .", "empty": {}, "none": []}
    assert fill(template, size="huge")["size"] == "huge"
    assert "box" not in fill(template, size="0x0")


def test_all_placeholders_have_their_value() -> None:
    names = ("model", "n", "background", "output_format", "output_compression", "moderation")
    template = {"prompt": "{prompt}", **{name: f"{{{name}}}" for name in names}, "f": "{input_fidelity}"}
    asked = {"background": "opaque", "output_format": "webp", "output_compression": 50}
    filled = fill(template, model="flux", moderation="low", input_fidelity="high", **asked)
    assert filled == {
        "prompt": "a kite",
        "model": "flux",
        "n": 1,
        **asked,
        "moderation": "low",
        "f": "high",
    }


def test_pictures_have_placeholders_too() -> None:
    names = ("image", "image_url", "images", "image_urls", "mask", "mask_url")
    template = {"prompt": "{prompt}", **{name: f"{{{name}}}" for name in names}}
    assert ArgumentsTemplate(template).edits
    assert fill(template) == {"prompt": "a kite"}
    assert fill(template, images=(KITE, DOG), mask=KITE) == {
        "prompt": "a kite",
        "image": "ZG9n",
        "image_url": "data:image/jpeg;base64,ZG9n",
        "images": ["a2l0ZQ==", "ZG9n"],
        "image_urls": ["data:image/png;base64,a2l0ZQ==", "data:image/jpeg;base64,ZG9n"],
        "mask": "a2l0ZQ==",
        "mask_url": "data:image/png;base64,a2l0ZQ==",
    }
    assert fill({"all": "{prompt}: {images}"}, images=(KITE, DOG))["all"] == "a kite: a2l0ZQ==,ZG9n"


def test_braces_in_a_prompt_mean_nothing() -> None:
    assert fill({"p": "{prompt}!", "q": "{prompt}"}, "a {size} {kite}", size="1x1") == {
        "p": "a {size} {kite}!",
        "q": "a {size} {kite}",
    }


def test_a_template_without_a_place_for_pictures_cannot_edit() -> None:
    assert not ArgumentsTemplate({"prompt": "{prompt}", "x": '{"json": 1}'}).edits


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ({"prompt": "{promt}"}, "unknown placeholder {promt}; there are: prompt, model,"),
        ({"prompt": "a kite"}, "has no {prompt}"),
    ],
)
def test_a_template_that_cannot_work_is_refused(template: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match="arguments template") as caught:
        ArgumentsTemplate(template)
    assert words in str(caught.value)
