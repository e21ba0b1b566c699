"""A backbone: a program that reads a prompt from its standard input and prints the reply."""

import subprocess
import time
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from ace_bench.core.errors import BackboneUnavailable, RolloutFault
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.settings import Count, Text
from ace_bench.core.types import Completion, Fault, Message, Record, Usage


class Program:
    """Starts ``command`` once for each call and waits at most ``timeout`` seconds for its end.

    ``simulated`` must be true if the program is no language model.
    """

    def __init__(self, *, command: Annotated[Sequence[Text], Meta(min_length=1)], timeout: Count, simulated: bool):
        self.name = command[0]
        self.simulated = simulated
        self.context_length: int | None = None
        self.identity: Record = {"command": list(command), "simulated": simulated}
        self._command = list(command)
        self._timeout = timeout

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        """Return what the program prints. Without an end, or with an exit status, the call has failed."""
        del role, session, schema  # the program gets the messages alone
        prompt = "\n\n".join(message.content for message in messages)
        started = time.monotonic()
        try:
            done = subprocess.run(
                self._command, input=prompt, capture_output=True, text=True, timeout=self._timeout, check=True
            )
        except OSError as error:
            problem = f"the program {self.name} cannot be started: {error.strerror}; install it"
            raise BackboneUnavailable(problem) from error
        except subprocess.SubprocessError as error:
            raise RolloutFault(Fault(owner="backbone", kind="no_reply", message=str(error))) from error
        usage = Usage(prompt=None, completion=None, cached=None, usd=None)  # the program counts no tokens
        return Completion(text=done.stdout, usage=usage, seconds=time.monotonic() - started, model=self.name)

    def count(self, text: str) -> int:
        """Estimate tokens, as the tokenizer is unknown."""
        return estimate_tokens(text)
