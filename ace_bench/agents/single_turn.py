"""The single-turn agent: one prompt, one answer, and in between code to be run where a method allows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from ace_bench.agents.answers import GeneratorReply, code_request, last_answer, read_reply
from ace_bench.agents.official import NO_ANSWER, official_answer, official_citations
from ace_bench.agents.sandbox import Sandbox
from ace_bench.core.backbones import Lm
from ace_bench.core.context import Context
from ace_bench.core.errors import ConfigError, RolloutFault
from ace_bench.core.prompts import RAW_REFLECTION, Prompts, send_within_limit
from ace_bench.core.replies import ask, ask_once, without_surrogates
from ace_bench.core.task import Session
from ace_bench.core.types import Attempt, Fault, GeneratorSpec, Message, Sample, Turn


class SingleTurn:
    """Asks once; a JSON reply that cannot be read is asked for once more, then the rollout faults.

    With ``parse_replies=official`` a JSON reply is read as the authors' finance code reads it: nothing is asked for
    again, and a reply without an answer is a wrong answer.

    A tagged reply without an answer is a wrong answer and no fault, as in Dynamic Cheatsheet. Code that it asks for is
    run in ``sandbox``, and the reply goes on from the output.

    ``scaffold`` is the form of the reply: the method's ``own``, or for all methods alike ``answer_alone`` or ``json``,
    reasoning before the answer. Then no code is run.
    """

    def __init__(
        self,
        *,
        prompts: Prompts,
        generator: GeneratorSpec,
        sandbox: Sandbox,
        parse_replies: Literal["lenient", "official"],
        scaffold: Literal["own", "answer_alone", "json"],
    ):
        self._prompts = prompts
        self._parse_replies = parse_replies
        self._scaffold = scaffold
        if scaffold != "own" and not prompts.uses(generator.template, "scaffold"):
            raise ConfigError(
                f"agent.scaffold={scaffold}: template {generator.template} of these prompts has no such form"
            )
        formats: Mapping[str, Literal["text", "json"]] = {"answer_alone": "text", "json": "json"}
        chosen = formats.get(scaffold)
        self._generator = replace(generator, answer_format=chosen, code_runs=0) if chosen else generator
        self._sandbox = sandbox
        if self._generator.code_runs:
            prompts.require(["executed"])

    def start(self, say: Callable[[str], None]) -> None:
        """Start the sandbox if the method allows code, and report how it confines code."""
        if self._generator.code_runs:
            self._sandbox.start(say)

    @property
    def confinement(self) -> Sequence[str] | None:
        """What confined the code that was run; ``None`` where none was."""
        return self._sandbox.layers

    def close(self) -> None:
        """Nothing to release."""

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the generator's template, and of what shows it the output of its code."""
        executed = {"executed": frozenset(("shown", "output", "left"))} if self._generator.code_runs else {}
        return {
            self._generator.template: inputs | context_fields | {"reflection", RAW_REFLECTION, "code_runs", "scaffold"},
            **executed,
        }

    def solve(self, sample: Sample, session: Session, context: Context, lm: Lm, reflection: str | None) -> Attempt:
        """Attempt the sample. Raises ``RolloutFault`` for an empty or unreadable reply."""
        del session  # these tasks have no actions to take
        attempt, dropped = send_within_limit(context, partial(self._send, sample, lm, reflection))
        return replace(attempt, dropped=dropped)

    def _send(self, sample: Sample, lm: Lm, reflection: str | None, shown: Context) -> Attempt:
        own = {
            "reflection": reflection or "(none)",
            RAW_REFLECTION: "(empty)" if reflection is None else reflection,
            "code_runs": self._generator.code_runs,
            "scaffold": self._scaffold,
        }
        fields = {**own, **sample.inputs, **shown.render(sample)}
        messages = self._prompts.render(self._generator.template, fields)
        if self._generator.answer_format == "text":
            return Attempt(answer=_text_reply(lm, messages))
        if self._generator.answer_format == "xml":
            return self._tagged(messages, lm)
        if self._parse_replies == "official":
            return _official_attempt(lm, messages)
        return ask(lm, messages, GeneratorReply, _attempt)

    def _tagged(self, messages: Sequence[Message], lm: Lm) -> Attempt:
        turns: list[Turn] = []
        said: list[str] = []
        text = _text_reply(lm, messages)
        while len(turns) < self._generator.code_runs and (request := code_request(text)) is not None:
            output = self._sandbox.run(request.code)
            turns.append(Turn(action=request.code, observation=output, thought=request.thought))
            fields = {"shown": request.shown, "output": output, "left": self._generator.code_runs - len(turns)}
            executed = self._prompts.render("executed", fields)
            if executed[0].role != "assistant":
                executed = (Message(role="assistant", content=request.shown), *executed)
            said.append(executed[0].content)
            messages = (*messages, *executed)
            text = _text_reply(lm, messages)
        answer = last_answer(text)
        counters = {"code_runs": len(turns), "without_answer": int(answer is None)}
        reply = "\n\n".join([*said, text])
        return Attempt(answer=answer, reasoning=text, reply=reply, trajectory=tuple(turns), counters=counters)


def _attempt(text: str) -> Attempt:
    reply = read_reply(text)
    return Attempt(
        answer=without_surrogates(reply.answer),  # JSON's escapes may name one
        reasoning=without_surrogates(reply.reasoning),
        cited=tuple(map(without_surrogates, reply.bullet_ids)),
        reply=text,
    )


def _official_attempt(lm: Lm, messages: Sequence[Message]) -> Attempt:
    text = ask_once(lm, messages)
    try:
        answer = without_surrogates(official_answer(text))
    except (ValueError, RecursionError) as error:
        fault = Fault(owner="model", kind="official_error", message=f"the official code breaks off here: {error}")
        raise RolloutFault(fault) from error
    counters = {"without_answer": int(answer == NO_ANSWER)}
    return Attempt(answer=answer, reasoning=text, cited=official_citations(text), reply=text, counters=counters)


def _text_reply(lm: Lm, messages: Sequence[Message]) -> str:
    text = lm(messages).text.strip()
    if not text:
        raise RolloutFault(Fault(owner="model", kind="empty_reply", message="the reply was empty"))
    return text
