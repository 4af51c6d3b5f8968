"""What the offline scene reads out of a prompt."""

from __future__ import annotations

import pytest
from imagecall.middleware.backends.scenery.ground import GROUNDS as PAINTED_GROUNDS
from imagecall.middleware.backends.scenery.land import SKIES as PAINTED_SKIES
from imagecall.middleware.backends.scenery.prompt import Figure, Scene, read_prompt
from imagecall.middleware.backends.scenery.words import COLOURS, GROUNDS, SKIES, SPRITES

Drawn = tuple[str, int, str | None]


def drawn(scene: Scene) -> list[Drawn]:
    names = {value: name for name, value in reversed(COLOURS.items())}
    return [
        (next(word for word, sprite in SPRITES.items() if sprite is figure.sprite), figure.count, colour)
        for figure in scene.figures
        for colour in [figure.colour and names[figure.colour]]
    ]


@pytest.mark.parametrize(
    ("prompt", "sky", "ground", "figures"),
    [
        ("a red cat", "day", "grass", [("cat", 1, "red")]),
        ("a mountain at sunset", "sunset", "mountains", []),
        ("three cats on a beach at sunset", "sunset", "beach", [("cat", 3, None)]),
        ("a lighthouse in a storm", "storm", "coast", [("lighthouse", 1, None)]),
        ("a rocket in space", "space", "none", [("rocket", 1, None)]),
        ("a rocket", "space", "none", [("rocket", 1, None)]),
        ("two blue balloons over a city at night", "night", "city", [("balloon", 2, "blue")]),
        ("a fish and an octopus", "underwater", "seabed", [("fish", 1, None), ("octopus", 1, None)]),
        ("a cat underwater", "underwater", "seabed", [("cat", 1, None)]),
        ("a snowman", "winter", "snow", [("snowman", 1, None)]),
        ("a fox in winter", "winter", "snow", [("fox", 1, None)]),
        ("a snowy mountain", "winter", "mountains", []),
        ("a snowy field", "winter", "snow", []),
        ("a cup of coffee at sunset", "sunset", "table", [("coffee", 1, None)]),
        ("a sofa in the living room", "indoor", "room", [("sofa", 1, None)]),
        ("an astronaut on the moon", "space", "moonscape", [("astronaut", 1, None)]),
        ("a dog by the sea", "day", "beach", [("dog", 1, None)]),
        ("a castle by the sea", "day", "coast", [("castle", 1, None)]),
        ("two sailboats on the sea", "day", "sea", [("boat", 2, None)]),
        ("a bird flying over the sea", "day", "sea", [("bird", 1, None)]),
        ("a kite in the sky", "day", "none", [("kite", 1, None)]),
        ("a house under a blue sky", "day", "grass", [("house", 1, None)]),
        ("a blue sky above green hills", "day", "grass", []),
        ("a galaxy over the desert", "space", "desert", []),
        ("a bat in a forest", "day", "forest", [("bat", 1, None)]),
        ("a bat", "night", "grass", [("bat", 1, None)]),
        ("a camel at night", "night", "desert", [("camel", 1, None)]),
        ("ein rotes Zorbl", "day", "grass", []),
        ("", "day", "grass", []),
    ],
)
def test_a_prompt_becomes_a_scene(prompt: str, sky: str, ground: str, figures: list[Drawn]) -> None:
    scene = read_prompt(prompt)
    assert (scene.setting(), drawn(scene)) == ((sky, ground), figures)


@pytest.mark.parametrize(
    ("prompt", "figures"),
    [
        ("2 dogs", [("dog", 2, None)]),
        ("a dozen owls", [("owl", 6, None)]),
        ("99 balloons", [("balloon", 6, None)]),
        ("a photo from 2024 of a duck, 4k", [("duck", 1, None)]),
        ("a couple of wolves and some mice", [("wolf", 2, None), ("mouse", 3, None)]),
        (
            "cherries, leaves, foxes, penguins",
            [("cherry", 1, None), ("leaf", 1, None), ("fox", 2, None), ("penguin", 2, None)],
        ),
        ("children and snowmen", [("child", 3, None), ("snowman", 3, None)]),
        ("two of the horses", [("horse", 3, None)]),
        ("six cats and four dogs", [("cat", 3, None), ("dog", 3, None)]),
        ("Cat's eyes", [("cat", 1, None)]),
        ("a polar bear and a hot-air balloon", [("polar bear", 1, None), ("parachute", 1, None)]),
        ("a cat. The cat sleeps", [("cat", 1, None)]),
        ("a red cat and a blue cat", [("cat", 1, "red"), ("cat", 1, "blue")]),
        ("a beach without people and no dog but a crab", [("crab", 1, None)]),
    ],
)
def test_numbers_and_plurals_are_counted_up_to_six(prompt: str, figures: list[Drawn]) -> None:
    found = drawn(read_prompt(prompt))
    assert found == figures
    assert sum(count for _, count, _ in found) <= 6


def test_of_more_than_six_kinds_the_first_six_are_drawn() -> None:
    scene = read_prompt("a cat, a dog, a cow, a pig, a goat, a duck, a fox and an owl")
    assert [name for name, _, _ in drawn(scene)] == ["cat", "dog", "cow", "pig", "goat", "duck"]


@pytest.mark.parametrize(
    ("prompt", "figures"),
    [
        ("a red fluffy cat", [("cat", 1, "red")]),
        ("a red and white boat", [("boat", 1, "red")]),
        ("a cat with green eyes and a hat", [("cat", 1, None), ("hat", 1, None)]),
        ("a golden sunset and a dog", [("dog", 1, None)]),
        ("the car is blue", [("car", 1, "blue")]),
        ("an orange cat", [("cat", 1, "orange")]),
        ("an orange", [("tangerine", 1, None)]),
        ("an orange and two oranges", [("tangerine", 1, None), ("tangerine", 2, None)]),
        ("a cat in orange", [("cat", 1, "orange")]),
        ("a red cat in blue", [("cat", 1, "red")]),
    ],
)
def test_a_colour_goes_to_its_noun(prompt: str, figures: list[Drawn]) -> None:
    assert drawn(read_prompt(prompt)) == figures


def test_a_colour_alone_is_a_tint() -> None:
    assert read_prompt("make it blue") == Scene(tint=COLOURS["blue"])
    assert read_prompt("blue colour, please").tint == COLOURS["blue"]
    assert read_prompt("a cat").tint is None


def test_a_coloured_background_replaces_the_landscape() -> None:
    scene = read_prompt("a white rabbit on a pink background at night")
    assert scene.backdrop == COLOURS["pink"]
    assert scene.setting() == ("day", "plain")
    assert drawn(scene) == [("rabbit", 1, "white")]
    assert read_prompt("mountains in the background").setting() == ("day", "mountains")


def test_flying_riding_and_known_things_are_marked() -> None:
    cat, horse = SPRITES["cat"], SPRITES["horse"]
    assert read_prompt("a cat flying over the city").figures == (Figure(cat, flying=True),)
    assert read_prompt("a cat riding a horse").figures == (Figure(cat, riding=True), Figure(horse))
    assert read_prompt("put the cat behind a horse").figures == (Figure(cat, definite=True), Figure(horse))
    assert read_prompt("flying high above") == Scene()


def test_every_word_leads_to_something_that_can_be_painted() -> None:
    assert set(SKIES.values()) <= set(PAINTED_SKIES)
    assert set(GROUNDS.values()) <= set(PAINTED_GROUNDS)
    assert {sprite.place for sprite in SPRITES.values()} == {"ground", "sky", "water", "deep", "bust"}
    for word in SPRITES:
        sky, ground = read_prompt(f"a {word}").setting()
        assert (sky in PAINTED_SKIES, ground in PAINTED_GROUNDS) == (True, True)


def test_no_word_stands_for_two_things() -> None:
    """A thing that is also a setting or a colour could never be drawn."""
    assert not (SPRITES.keys() & (SKIES.keys() | GROUNDS.keys() | COLOURS.keys()))
    assert len(SPRITES) > 500
    assert len(set(SPRITES.values())) > 300
