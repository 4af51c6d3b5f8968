"""What the offline scene can draw: things, their colours, skies and grounds, each with its English words.

The table is picked by hand. A word stands for the one sprite that most people expect of it; words with
a likelier other meaning (fly, watch, bear as a verb) are left out rather than guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["COLOURS", "GROUNDS", "SKIES", "SPRITES", "Sprite", "find_sprite"]


@dataclass(frozen=True, slots=True)
class Sprite:
    """One thing of the table.

    Attributes:
        glyph: its characters in OpenMoji's font.
        place: `ground`, `sky`, `water` (swims at the surface), `deep` (swims below it) or
            `bust` (head and shoulders, cut off below).
        size: its height relative to a person's.
        home: the setting it brings along where the prompt names none.
    """

    glyph: str
    place: str
    size: float
    home: str


COLOURS = {
    "red": "#e5352b", "scarlet": "#e5352b", "crimson": "#c3202f", "maroon": "#8c1f2f",
    "orange": "#f58a1f", "yellow": "#fcdc2a", "gold": "#f0b429", "golden": "#f0b429",
    "green": "#4fae3a", "lime": "#a5d63a", "olive": "#8a8f3a", "mint": "#8fe0bd",
    "teal": "#1f9e98", "turquoise": "#35c8c0", "cyan": "#3fcbe8", "blue": "#3f8fe8",
    "azure": "#59b2f2", "navy": "#27408b", "indigo": "#4b4fc0", "purple": "#8e56c2",
    "violet": "#9a63d6", "lavender": "#b9a2e6", "magenta": "#d6409f", "pink": "#ff8fbb",
    "brown": "#8f5b34", "beige": "#e6d3ad", "tan": "#d0a97a", "white": "#fafafa",
    "silver": "#c3cad2", "grey": "#9a9fa6", "gray": "#9a9fa6", "black": "#4b4d59",
}  # fmt: skip

_ENDINGS = (("s", ""), ("es", ""), ("ies", "y"), ("ves", "f"), ("ves", "fe"), ("men", "man"))
_IRREGULAR = {
    "mice": "mouse", "geese": "goose", "men": "man", "people": "person", "children": "child",
    "cacti": "cactus", "oranges": "tangerine",
}  # fmt: skip

# One line each: the setting, then the words that call for it (an underscore joins a phrase).
_SKIES = """
day: day sun sunny daylight daytime noon summer spring blue_sky
dawn: dawn sunrise morning daybreak
sunset: sunset sundown dusk evening twilight golden_hour
night: night nighttime midnight moon moonlight moonlit stars starry nocturnal fireworks
storm: storm stormy thunderstorm thunder lightning tempest hurricane
rain: rain rainy raining drizzle
fog: fog foggy mist misty haze hazy
winter: winter wintry snowy snowing snowfall snowstorm blizzard
space: space outer_space galaxy cosmos cosmic universe nebula orbit on_the_moon
underwater: underwater undersea under_the_sea under_water deep_sea ocean_floor seabed reef coral_reef aquarium
indoor: indoor indoors room living_room bedroom kitchen office library classroom
"""
_GROUNDS = """
grass: grass meadow field garden park lawn hill hills hillside countryside pasture prairie farm
mountains: mountain mountains peak peaks alps valley mountainside
sea: sea ocean water waves harbour harbor bay port marina lake river pond
beach: beach shore seaside sand
coast: coast cliff cliffs rocks
snow: snow snowing winter wintry ice arctic antarctica north_pole glacier snowfall blizzard
desert: desert dunes dune sahara
city: city town skyline downtown skyscraper skyscrapers buildings metropolis urban cityscape
road: road street highway
forest: forest woods woodland jungle rainforest
autumn: autumn autumnal
table: table desk kitchen tabletop
room: room living_room bedroom office library classroom indoor indoors
seabed: underwater undersea under_the_sea under_water deep_sea ocean_floor seabed reef coral_reef aquarium
moonscape: on_the_moon
none: space outer_space galaxy cosmos cosmic universe nebula orbit clouds sky blue_sky
"""

# place, size, home; then the sprites, each with its words.
_TABLE: tuple[tuple[str, float, str, str], ...] = (
    ("ground", 0.6, "grass", """
        🐁 mouse rat, 🐿 squirrel chipmunk, 🦔 hedgehog porcupine, 🐌 snail, 🐸 frog toad,
        🦎 lizard gecko newt, 🐹 hamster, 🐤 chick, 🐜 ant, 🕷 spider, 🐛 caterpillar, 🪲 beetle,
        🐞 ladybug ladybird, 🦗 grasshopper cricket, 🍄 mushroom toadstool, 🐦 bird sparrow robin,
        🐦‍⬛ crow raven, 🌷 tulip, 🌹 rose, 🌻 sunflower, 🌼 flower daisy blossom,
        🌸 cherry_blossom sakura, 🌺 hibiscus, 🪷 lotus water_lily, 🌱 plant seedling sprout,
        🍀 clover shamrock, 🍁 leaf maple_leaf, 🪶 feather, 🪵 log, 🪨 rock stone boulder, 🌾 wheat,
        ⚽ ball football soccer, 🎃 pumpkin jack_o_lantern, 🏆 trophy"""),
    ("ground", 0.85, "grass", """
        🐈 cat kitten kitty, 🐕 dog puppy hound, 🐩 poodle, 🐇 rabbit bunny hare,
        🐓 rooster chicken hen cockerel, 🐢 turtle tortoise, 🦡 badger, 🦨 skunk, 🦝 raccoon, 🦫 beaver,
        🦊 fox, 🐺 wolf, 🐼 panda, 🐻 bear, 🐨 koala, 🦥 sloth, 🦃 turkey, 🦚 peacock, 🐍 snake serpent,
        🐑 sheep lamb, 🐐 goat, 🐏 ram, 🐖 pig piglet, 🐒 monkey ape, 🦤 dodo, 🦜 parrot macaw, 🦉 owl,
        🔥 fire campfire bonfire flame, 🤖 robot android, 💀 skull, 🤠 cowboy, 🤡 clown,
        👹 monster ogre demon, 👺 goblin, 👼 angel, 🪦 grave tombstone, 🐲 chinese_dragon"""),
    ("ground", 1.05, "grass", """
        🐎 horse pony stallion, 🫏 donkey mule, 🐄 cow cattle calf, 🐂 ox bull, 🐃 buffalo, 🦬 bison yak,
        🦌 deer reindeer stag elk moose, 🐗 boar, 🦙 llama alpaca, 🦘 kangaroo wallaby, 🦓 zebra,
        🐅 tiger, 🐆 leopard cheetah jaguar panther, 🦁 lion lioness, 🦍 gorilla, 🦧 orangutan,
        🦄 unicorn, 🦩 flamingo, 🐊 crocodile alligator, 🦖 dinosaur tyrannosaurus rex, ⛺ tent,
        🚲 bicycle bike, 🏃 runner jogger, 💃 dancer ballerina, 🚶 walker pedestrian, 🧘 yoga meditation,
        🏇 rider jockey, 🚴 cyclist"""),
    ("ground", 1.25, "grass", """
        🐘 elephant, 🦏 rhino rhinoceros, 🦛 hippo hippopotamus, 🦒 giraffe, 🦣 mammoth,
        🦕 brontosaurus diplodocus, 🐉 dragon, 🚜 tractor, 🎠 carousel, 🛝 playground, ⛲ fountain"""),
    ("ground", 1.5, "grass", """
        🏠 house home cottage cabin, 🏡 villa homestead, 🏰 castle fortress palace, 🏯 pagoda,
        ⛪ church chapel, 🕌 mosque, 🛕 temple, 🏛 museum parthenon, 🏭 factory, 🏫 school, 🏥 hospital,
        🏨 hotel, 🛖 hut, 🎪 circus, 🎡 ferris_wheel, ⛩ torii shrine gate, 🌋 volcano,
        🌲 pine fir spruce, 🌳 tree oak, 🎄 christmas_tree, 🪾 bare_tree dead_tree, U+E205 eiffel_tower,
        U+E208 tower, 🗽 statue_of_liberty"""),
    ("ground", 0.7, "desert", "🦂 scorpion"),
    ("ground", 1.1, "desert", "🐪 camel dromedary, 🌵 cactus, U+E20F pyramid"),
    ("ground", 0.95, "snow", """
        🐧 penguin, ⛄ snowman, 🛷 sled sledge sleigh, 🐻‍❄️ polar_bear, ⛷ skier, 🏂 snowboarder,
        🦭 seal"""),
    ("ground", 0.7, "beach", """
        🦀 crab, U+1FA8E treasure treasure_chest, 🐚 shell seashell, 🪸 coral, ⛱ parasol beach_umbrella,
        ⚓ anchor"""),
    ("ground", 1.5, "beach", "🌴 palm palm_tree coconut_tree"),
    ("ground", 1.7, "coast", "lighthouse lighthouse"),
    ("ground", 1.0, "road", """
        🚗 car automobile, 🏎 race_car racecar sports_car, 🚕 taxi cab, 🚓 police_car, 🚙 jeep suv,
        🚐 van minivan, 🚌 bus coach, 🚒 fire_truck fire_engine, 🚑 ambulance, 🚛 truck lorry, 🛻 pickup,
        🏍 motorcycle motorbike, 🛵 scooter moped, 🚂 train locomotive, 🚋 tram, 🛹 skateboard"""),
    ("water", 0.9, "sea", """
        ⛵ boat sailboat yacht, 🛳 ship ferry, 🚤 speedboat motorboat, 🛶 canoe kayak rowboat, 🏄 surfer,
        🏊 swimmer, 🏝 island, 🐋 whale, 🐬 dolphin"""),
    ("water", 0.8, "grass", "🦆 duck, 🪿 goose, 🦢 swan"),
    ("deep", 0.75, "underwater", """
        🐟 fish goldfish, 🐠 tropical_fish clownfish angelfish, 🐡 pufferfish blowfish, 🐙 octopus,
        🦑 squid, 🦈 shark, 🪼 jellyfish, 🦞 lobster, 🦐 shrimp prawn, 🧜 mermaid,
        🫍 orca killer_whale"""),
    ("sky", 0.7, "grass", """
        🎈 balloon, 🪁 kite, 🦅 eagle hawk falcon, 🕊 dove pigeon seagull gull, 🦋 butterfly,
        🐝 bee bumblebee, 🛩 biplane propeller_plane, 🪂 parachute hot_air_balloon,
        ✈ airplane plane aeroplane jet aircraft airliner, 🚁 helicopter, ❤ heart, 🌈 rainbow,
        🧚 fairy"""),
    ("sky", 0.7, "night", "🦇 bat, ❄ snowflake, 👻 ghost, ⭐ star, 🌠 shooting_star, 🎆 firework"),
    ("sky", 0.8, "space", """
        🚀 rocket spaceship spacecraft, 🛰 satellite, 🪐 planet saturn, 🌍 earth globe,
        🛸 ufo flying_saucer, ☄ comet meteor asteroid, 👾 space_invader, 👽 alien"""),
    ("bust", 0.95, "space", "🧑‍🚀 astronaut cosmonaut spaceman"),
    ("bust", 0.95, "grass", """
        👨 man guy gentleman, 👩 woman lady, 👦 boy, 👧 girl, 👶 baby, 🧒 child kid, 🧑 person human,
        👴 old_man grandfather grandpa, 👵 old_woman grandmother grandma, 👸 princess queen,
        🤴 prince king, 🧙 wizard sorcerer witch magician, 🧛 vampire, 🧝 elf, 🧟 zombie,
        🦸 superhero hero, 🦹 villain, 🥷 ninja, 👮 policeman police_officer, 👷 builder worker,
        🕵 detective, 💂 guard soldier, 🎅 santa santa_claus, 🧌 troll, 👰 bride, 👪 family,
        🧑‍🍳 chef cook, 🧑‍🌾 farmer, 🧑‍🎨 painter artist, 🧑‍🔬 scientist, 🧑‍⚕️ doctor nurse,
        🧑‍🚒 firefighter, 🧑‍🏫 teacher"""),
    ("ground", 0.8, "table", """
        🍎 apple fruit, 🍐 pear, 🍊 tangerine clementine, 🍋 lemon, 🍌 banana, 🍉 watermelon, 🍇 grape,
        🍓 strawberry, 🍒 cherry, 🍑 peach, 🥭 mango, 🍍 pineapple, 🥥 coconut, 🥝 kiwi, 🍅 tomato,
        🥑 avocado, 🍆 eggplant aubergine, 🥔 potato, 🥕 carrot, 🌽 corn, 🌶 chili pepper chilli,
        🥦 broccoli, 🍞 bread loaf toast, 🥐 croissant, 🥖 baguette, 🥨 pretzel, 🧀 cheese, 🥚 egg,
        🥞 pancake, 🥩 steak, 🍔 burger hamburger cheeseburger, 🍟 fries french_fries, 🍕 pizza,
        🌭 hot_dog hotdog, 🥪 sandwich, 🌮 taco, 🌯 burrito, 🥗 salad, 🍝 pasta spaghetti,
        🍜 noodles ramen soup, 🍣 sushi, 🍦 ice_cream, 🍩 donut doughnut, 🍪 cookie biscuit,
        🎂 cake birthday_cake, 🧁 cupcake muffin, 🥧 pie, 🍫 chocolate, 🍬 candy, 🍭 lollipop, 🍯 honey,
        🍷 wine, 🍸 cocktail martini, 🍺 beer, 🍾 champagne, ☕ coffee cup tea mug cappuccino espresso,
        🫖 teapot, 🥛 milk glass_of_water, 🍿 popcorn, 💐 bouquet, 🕯 candle, 🎁 gift present,
        🧸 teddy_bear teddy, 🪴 potted_plant houseplant, 📚 books, 📖 book, 💡 light_bulb lightbulb bulb,
        📷 camera, 💻 laptop, 🖥 computer, 📱 phone smartphone, ☎ telephone, 🔑 key,
        💎 diamond gem jewel, 👑 crown, 💍 ring, 🔔 bell, 🎲 dice, 🔮 crystal_ball, 🏺 vase amphora,
        ✏ pencil, 🎨 palette, 🎻 violin, 🎸 guitar, 🎺 trumpet, 🎷 saxophone, 🥁 drum, 🎧 headphones,
        🎤 microphone, 🔭 telescope, 🔬 microscope, 🏀 basketball, 👟 shoe sneaker, 👢 boot, 👒 hat,
        🎩 top_hat, 👗 dress, 👕 shirt, 👓 glasses, 🕶 sunglasses, ☂ umbrella, 🧳 suitcase, 🎒 backpack,
        🗡 dagger sword, 🛡 shield, 🪙 coin, 🧶 yarn, 🥣 bowl cereal, U+E0CB bottle, 🏮 lantern,
        🖼 painting picture_frame, 📦 box parcel, 🪺 nest"""),
    ("ground", 1.1, "room", """
        🪑 chair, 🛋 sofa couch, 🛏 bed, 🚪 door, 🪞 mirror, 📺 television tv, 🎹 piano, 🪟 window"""),
)  # fmt: skip


def _sprites() -> Iterator[tuple[str, Sprite]]:
    for place, size, home, entries in _TABLE:
        for entry in entries.split(","):
            glyph, *words = entry.split()
            if glyph.startswith("U+"):  # private-use characters show nothing in an editor
                glyph = chr(int(glyph.removeprefix("U+"), 16))
            sprite = Sprite(glyph, place, size, home)
            yield from ((word.replace("_", " "), sprite) for word in words)


def _settings(lines: str) -> dict[str, str]:
    pairs = (line.split(": ") for line in lines.strip().splitlines())
    return {word.replace("_", " "): name for name, words in pairs for word in words.split()}


SPRITES = dict(_sprites())
SKIES = _settings(_SKIES)
GROUNDS = _settings(_GROUNDS)


def singulars(word: str) -> Iterator[str]:
    """Guess what an English plural may be the plural of."""
    yield _IRREGULAR.get(word, word)
    for ending, replacement in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            yield word.removesuffix(ending) + replacement


def find_sprite(phrase: str) -> tuple[Sprite | None, bool]:
    """Look a phrase up; the second value tells whether only its singular was known."""
    if phrase in SPRITES:
        return SPRITES[phrase], False
    found = next((SPRITES[word] for word in singulars(phrase) if word in SPRITES), None)
    return found, found is not None
