"""What the Python drivers share: they are told what to ask, and tell what the client's objects say.

A driver is run as `python DRIVER ORDER`, where the order is JSON. It asks for a picture and, if the order
says so, once more `again`, with the conversation's past in one of the client's own forms. It prints one line
of JSON.
"""

import base64
import hashlib
import json
import sys

ORDER = json.loads(sys.argv[1])
BASE_URL = ORDER["base_url"]
FORM = ORDER["form"]
PROMPT = ORDER["prompt"]
AGAIN = ORDER["again"]
TOOL = {"type": "image_generation", **ORDER["tool"]}
FORCED = ORDER["forced"]
KEY = "sk-test"


def tell(*, pictures, texts, states=(), ends=(), previews=()):
    """Print what came, in order.

    Args:
        pictures: the pictures, as bytes or base64; nothing for one that failed.
        texts: what the model said, one for each response.
        states: what the client says of each picture's state, if it says anything.
        ends: what the client says of each response's end, if it says anything.
        previews: the partial pictures, as bytes or base64.
    """
    told = {
        "pictures": [_digest(one) for one in pictures if one],
        "texts": list(texts),
        "states": list(states),
        "ends": list(ends),
        "previews": [_digest(one) for one in previews],
    }
    sys.stdout.write(json.dumps(told) + "\n")


def _digest(picture):
    data = base64.b64decode(picture, validate=True) if isinstance(picture, str) else picture
    return hashlib.sha256(data).hexdigest()
