"""A program for this backbone: reads a prompt, and prints what the embedded reader replies to it."""

import sys

from ace_bench.backbones.embedded import EmbeddedBackbone
from ace_bench.core.types import Message

if __name__ == "__main__":
    prompt = Message(role="user", content=sys.stdin.read())
    sys.stdout.write(EmbeddedBackbone().complete([prompt], role="", session="").text)
