"""The single-turn agent: one prompt, one answer, and in between code to be run where a method allows it.

A Generator's reply is the JSON object it was asked for, an answer that stands clearly in another form, or tags.

Beyond ``core.replies`` this reads fields of other types (``bullet_ids`` null, a text or numbers; reasoning as list or
object), objects cut off behind the answer, a ``final_answer`` member in a text that is no JSON, and the sentence ``The
final answer is: ...``, with or without ``\\boxed{}``, or ``Finish[...]``. If a text that is not JSON gives several
answers, it has no answer.

A tagged reply is any text with the answer between tags, and now and then a block of Python to be run (Dynamic
Cheatsheet).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

import msgspec

from ace_bench.agents.official import NO_ANSWER, official_answer, official_citations
from ace_bench.agents.sandbox import Sandbox
from ace_bench.core.backbones import Lm
from ace_bench.core.closed_sets import BULLETS, one_of
from ace_bench.core.context import Citable, Context
from ace_bench.core.errors import ConfigError, RolloutFault
from ace_bench.core.lenient_json import FoundObject
from ace_bench.core.objects import Echo, find_echo
from ace_bench.core.prompts import RAW_REFLECTION, Prompts, send_within_limit
from ace_bench.core.replies import DraftOnly, ask, ask_as_written, ask_once, parse, without_surrogates
from ace_bench.core.task import Session
from ace_bench.core.types import Attempt, Fault, GeneratorSpec, Message, Sample, Turn

_IDS = re.compile(r"[^\s,;\[\]\"']+")
_CITED = re.compile(r"\[([a-z]{2,}-\d{4,})\]")
_MEMBER = re.compile(r"""(["'])final_answer\1\s*:\s*(["'])((?:(?!\2)[^\\\n]|\\.)*)\2(?=[ \t]*(?:[,}\n]|\Z))""")
_SENTENCE = re.compile(r"the final answer is:?[ \t]*\n?([^\n]+)", re.IGNORECASE)
_FINISH = re.compile(r"\bFinish\[([^\[\]\n]*)\]")
_BOXED = r"\boxed{"
_WRAPPED = re.compile(
    r"<(answer|response|output|solution|final_answer)>((?:(?!</?\1>).)+)</\1>", re.DOTALL | re.IGNORECASE
)
"""A reply inside tags. Some models wrap the text after their thoughts like this."""
_WRAPPING = " \t$*`"
_ANSWER = "final_answer"
_OWN, _REASONED = ("reasoning", _ANSWER), ("rationale", "answer")
"""Keys of a reply: those that our prompts ask for, and StreamBench's."""

RUN = "EXECUTE CODE!"
"""Asks for the block of code right before it to be run, as in Dynamic Cheatsheet (paper, figure 7)."""

_BLOCK = re.compile(rf"```(?:python|py)?[ \t]*\n((?:(?!```).)*?)\n?[ \t]*```\s*{RUN}", re.DOTALL)
_OPEN, _CLOSE = "<answer>", "</answer>"


class GeneratorReply(msgspec.Struct, frozen=True, kw_only=True):
    """What the Generator returns (paper, figure 12). Models often answer numbers bare or lists as lists.

    Fields stand in the order of the prompt: where decoding is constrained, a model writes them in this order. It must
    reason before it answers. The ids come last: small models write long lists of them, and a list between the two makes
    them forget the form of the answer.
    """

    reasoning: str = ""
    final_answer: str | int | float | list[str]
    bullet_ids: list[Annotated[str, one_of(BULLETS)]] = []

    @property
    def answer(self) -> str:
        """The answer as text."""
        return _as_text(self.final_answer)


class CodeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A reply up to the flag, the text before its code, and the code; what followed the flag was made up."""

    shown: str
    thought: str
    code: str


class SingleTurn:
    """Asks once; a JSON reply that cannot be read is asked for once more, then the rollout faults.

    With ``parse_replies=official`` a JSON reply is read as the authors' finance code reads it: nothing is asked for
    again, and a reply without an answer is a wrong answer.

    A tagged reply without an answer is a wrong answer and no fault, as in Dynamic Cheatsheet. Code that it asks for is
    run in ``sandbox``, and the reply goes on from the output.

    ``scaffold`` is the form of the reply: the method's ``own``, or for all methods alike ``answer_alone`` or ``json``,
    reasoning before the answer. Then no code is run.
    """

    draws_from_seed = False

    def __init__(
        self,
        *,
        prompts: Prompts,
        generator: GeneratorSpec,
        parse_replies: Literal["lenient", "official"],
        scaffold: Literal["own", "answer_alone", "json"],
        sandbox: Sandbox | None = None,
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
        self._sandbox = sandbox or Sandbox()
        self.code_runs = self._generator.code_runs
        if self._generator.code_runs:
            prompts.require(["executed"])

    def start(self, say: Callable[[str], None]) -> None:
        """Start the sandbox if the method allows code, and report how it confines code."""
        if self._generator.code_runs:
            self._sandbox.start(say)

    @property
    def confinement(self) -> Sequence[str] | None:
        """What confined the code that was run; ``None`` if none was."""
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

    def _send(self, sample: Sample, lm: Lm, reflection: str | None, context: Context) -> Attempt:
        prompt_values = {
            "reflection": reflection or "(none)",
            RAW_REFLECTION: "(empty)" if reflection is None else reflection,
            "code_runs": self._generator.code_runs,
            "scaffold": self._scaffold,
        }
        fields = {**prompt_values, **sample.inputs, **context.render(sample)}
        messages = self._prompts.render(self._generator.template, fields)
        if self._generator.answer_format == "text":
            text = self._text_reply(lm, messages)
            wrapped = None if self._parse_replies == "official" else _WRAPPED.fullmatch(text)
            return Attempt(answer=wrapped[2].strip() if wrapped else text)
        if self._generator.answer_format == "xml":
            return self._solve_with_tags(messages, lm)
        if self._parse_replies == "official":
            return _official_attempt(lm, messages)
        citable = context.bullet_ids if isinstance(context, Citable) else ()
        return ask(lm, messages, GeneratorReply, _attempt, sets={BULLETS: citable})

    def _solve_with_tags(self, messages: Sequence[Message], lm: Lm) -> Attempt:
        turns: list[Turn] = []
        replies: list[str] = []
        text = self._text_reply(lm, messages)
        while len(turns) < self._generator.code_runs and (request := code_request(text)) is not None:
            output = self._sandbox.run(request.code)
            turns.append(Turn(action=request.code, observation=output, thought=request.thought))
            fields = {"shown": request.shown, "output": output, "left": self._generator.code_runs - len(turns)}
            executed = self._prompts.render("executed", fields)
            if executed[0].role != "assistant":
                executed = (Message(role="assistant", content=request.shown), *executed)
            replies.append(executed[0].content)
            messages = (*messages, *executed)
            text = self._text_reply(lm, messages)
        answer = last_answer(text)
        counters = {"code_runs": len(turns), "without_answer": int(answer is None)}
        reply = "\n\n".join([*replies, text])
        return Attempt(answer=answer, reasoning=text, reply=reply, trajectory=tuple(turns), counters=counters)

    def _text_reply(self, lm: Lm, messages: Sequence[Message]) -> str:
        official = self._parse_replies == "official"
        text = (ask_as_written(lm, messages) if official else lm(messages).text).strip()
        if not text:
            raise RolloutFault(Fault(owner="model", kind="empty_reply", message="the reply was empty"))
        return text


def _attempt(text: str, prompt: Sequence[Message]) -> Attempt:
    reply = read_reply(text, prompt)
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


def read_reply(text: str, prompt: Sequence[Message] = ()) -> GeneratorReply:
    """Read a reply; raises ``ValueError`` with the reason if it holds no answer or none that is beyond doubt."""
    try:
        return parse(text, GeneratorReply, prompt, _from_object)
    except ValueError as error:
        reply = None if isinstance(error, DraftOnly) else _from_text(text, prompt)
        if reply is None:
            raise ValueError(str(error)) from error
        return reply


def _from_object(reply_object: FoundObject) -> GeneratorReply:
    value = reply_object.value
    reasoning, final = _REASONED if "rationale" in value and "final_answer" not in value else _OWN
    answer = _plain_answer(value.get(final))
    if answer is None:
        problem = "missing" if final not in value else "neither a text, a number, true or false, nor a list of these"
        raise ValueError(f"the object's {final} is {problem}" if reply_object.whole else "the object is cut off")
    return GeneratorReply(
        reasoning=_plain_text(value.get(reasoning)),
        bullet_ids=_plain_ids(value.get("bullet_ids")),
        final_answer=answer,
    )


def _from_text(text: str, prompt: Sequence[Message]) -> GeneratorReply | None:
    """Read an answer from a text without a readable object, if all places that give one agree."""
    members = {match[3] for match in _MEMBER.finditer(text)}
    answers = {text for text in members if find_echo({_ANSWER: text}, [_ANSWER], prompt) is Echo.NONE}
    if not answers and (members or _ANSWER not in text):
        answers = {_strip_box(match[1]) for match in _SENTENCE.finditer(text)} | set(_FINISH.findall(text))
    if len(answers) != 1 or not (answer := answers.pop()):
        return None
    return GeneratorReply(reasoning=text, bullet_ids=list(dict.fromkeys(_CITED.findall(text))), final_answer=answer)


def _strip_box(sentence: str) -> str:
    """Return the answer of a sentence without formulas' marks; "" if it holds more than the boxed answer."""
    stripped = sentence.strip(_WRAPPING).rstrip(".").strip(_WRAPPING)
    if not stripped.startswith(_BOXED):
        return stripped
    inner = stripped[len(_BOXED) : -1]
    return inner.strip() if stripped.endswith("}") and "{" not in inner and "}" not in inner else ""


def _plain_answer(value: Any) -> str | None:
    if isinstance(value, list):
        parts = [_plain_answer(item) if not isinstance(item, list) else None for item in value]
        return ",".join(part for part in parts if part is not None) if parts and None not in parts else None
    return _as_text(value) if isinstance(value, str | int | float) else None


def _as_text(answer: str | float | list[str]) -> str:
    if isinstance(answer, list):
        return ",".join(answer)
    if isinstance(answer, bool):
        return str(answer).lower()  # as JSON writes it
    return answer if isinstance(answer, str) else repr(answer)


def _plain_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def _plain_ids(value: Any) -> list[str]:
    if isinstance(value, str):
        return _IDS.findall(value)
    items = value if isinstance(value, list) else []
    return [str(item) for item in items if isinstance(item, str | int)]


def code_request(text: str) -> CodeRequest | None:
    """Return the first code that a reply asks to have run, ``None`` if it asks for nothing."""
    match = _BLOCK.search(text.replace("\r\n", "\n"))
    if match is None:
        return None
    reply_text = match.string
    return CodeRequest(shown=reply_text[: match.end()], thought=reply_text[: match.start()].strip(), code=match[1])


def last_answer(text: str) -> str | None:
    """Return what stands in the last answer tag, up to the end where it is not closed; ``None`` without any."""
    _, opening, after = text.rpartition(_OPEN)
    return after.partition(_CLOSE)[0].strip() or None if opening else None
