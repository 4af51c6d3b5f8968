"""What the Python drivers share: they are told where and how, and tell which pictures came.

A driver is run as `python DRIVER BASE_URL FORM`. It asks for a picture, says `make it blue` in the client's
own form of replaying a conversation, and prints one line of JSON.
"""

import base64
import hashlib
import json
import sys

FIRST = "Draw a red cat"
SECOND = "make it blue"
BASE_URL, FORM = sys.argv[1:]
KEY = "sk-test"
TOOL = {"type": "image_generation"}


def tell(pictures: list, texts: list) -> None:
    """Print the pictures' digests (bytes, or base64) and the answers' texts, in order."""
    data = [base64.b64decode(one, validate=True) if isinstance(one, str) else one for one in pictures]
    digests = [hashlib.sha256(one).hexdigest() for one in data]
    sys.stdout.write(json.dumps({"pictures": digests, "texts": texts}) + "\n")
