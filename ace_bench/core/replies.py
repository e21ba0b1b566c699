"""Structured replies: one parser for all roles. An unreadable reply is asked for once more, then it is a fault.

The parser reads the whole text as JSON, or else every object in it, with the slips repaired that ``lenient_json``
names; ``objects`` says which of several counts. What a model thinks was cut before (``thoughts``). The JSON is
validated against the role's type; extra fields are ignored.

A request offers tools in place of a reply's schema, as both say what a reply may be. The contents of assistant and
tool messages, and the reply, are then JSON, so that budgets, records and caches hold tool calls as they hold any text::

    assistant and reply   {"content": "...", "tool_calls": [{"id": "...", "name": "...", "arguments": "{...}"}]}
    tool                  {"tool_call_id": "...", "content": "..."}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, overload

import msgspec

from ace_bench.core.backbones import Lm
from ace_bench.core.closed_sets import NO_SETS, ClosedSets, close
from ace_bench.core.encoding import decoder_of
from ace_bench.core.errors import RolloutFault
from ace_bench.core.lenient_json import FoundObject, find_objects
from ace_bench.core.objects import choose_last
from ace_bench.core.types import Completion, Fault, Message, Record

Reply = TypeVar("Reply", bound=msgspec.Struct)
Result = TypeVar("Result")
_Turn = TypeVar("_Turn", bound=msgspec.Struct)

TOOLS, CHOICE = "tools", "tool_choice"

_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
UNREADABLE_REPLY = "unreadable_reply"
"""Kind of the fault of a reply that no parser can read, the server's or ours."""
EMPTY_REPLY = ", ".join(["INCORRECT_DUE_TO_EMPTY_RESPONSE"] * 4)
"""The reply of a model that sent nothing, in the authors' code (``llm.timed_llm_call``)."""
RETRY_START = "That reply could not be read: "
"""How the message begins that asks for a reply once more."""
_MAX_ECHO = 2_000
_MANY_BLANKS = re.compile(r"\s{20,}")
_REPEATS = re.compile(r"(.{1,200}?)\1{2,}", re.DOTALL)
_LONGEST_REPEATS = 40
"""Characters of a passage that repeats itself which are shown as they are: ``1000000`` is a number."""
_SHOWN_FIRST, _SHOWN_LAST = 1_500, 500
"""Characters of an unreadable reply that prompts show."""
_REASONS = {
    "length_truncated": "it reached the limit of its length before it was complete",
    "empty_reply": "it was empty",
    "no_content": "it was empty",
}
"""Reasons in words for a model; the messages of these faults advise the user."""


class DraftOnly(ValueError):
    """The last object of a reply was cut off, and what stands before it is a draft."""


def parse(
    text: str,
    kind: type[Reply],
    prompt: Sequence[Message] = (),
    read: Callable[[FoundObject], Reply] | None = None,
) -> Reply:
    """Parse a model's text as a reply of type ``kind``: of several objects, the one that ``objects`` chooses.

    Objects of ``prompt`` that a reply repeats are examples of the form. ``read`` is for a role that reads more from an
    object, also from one that was cut off. Raises ``ValueError`` with the reason if nothing fits, if all that fits
    repeats the form, or if the last object was cut off behind a draft.
    """
    problems: list[str] = []
    fitting: list[tuple[Mapping[str, Any], Reply]] = []
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    cut_off = False
    for candidate in _find_all(text, problems):
        try:
            reply = _decode(candidate, kind) if read is None else read(candidate)
        except msgspec.ValidationError as error:
            problems.insert(0, str(error))
            continue
        except ValueError as error:
            problems.append(str(error))
            cut_off = not candidate.whole and not {*candidate.value, candidate.cut_in}.isdisjoint(names)
            continue
        fitting.append((candidate.value, reply))
        cut_off = False
    if not fitting:
        raise ValueError(problems[0] if problems else "the reply holds no JSON object")
    if cut_off:
        raise DraftOnly("the last JSON object is cut off")
    required = [field.encode_name for field in msgspec.structs.fields(kind) if field.required]
    return choose_last(fitting, required, prompt)


def _decode(candidate: FoundObject, kind: type[Reply]) -> Reply:
    if not candidate.whole:
        raise ValueError("the JSON object is cut off")
    reply: Reply = decoder_of(kind).decode(msgspec.json.encode(candidate.value))
    return reply


def _find_all(text: str, problems: list[str]) -> Sequence[FoundObject]:
    """Return the object that a text is, or else the objects in it, or in its fenced blocks, and note what is wrong."""
    return (
        _read_object(text.strip(), problems)
        or [*find_objects(text)]
        or [candidate for block in _FENCE.findall(text) for candidate in _read_object(block, problems)]
    )


def _read_object(text: str, problems: list[str]) -> Sequence[FoundObject]:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        problems.append(f"no valid JSON object: {error}")
    except RecursionError:
        problems.append("the reply is nested too deeply")
    else:
        return [FoundObject(value, whole=True)] if isinstance(value, dict) else []
    return []


def without_surrogates(text: str) -> str:
    """Replace lone surrogates: JSON may contain them, UTF-8 files cannot."""
    return text.encode("utf-8", "replace").decode()


def schema_of(kind: type[msgspec.Struct], sets: ClosedSets = NO_SETS) -> Record:
    """Return the JSON schema of a reply type for servers that constrain decoding, with some sets closed."""
    return close(_marked_schema(kind), sets) if sets else _open_schema(kind)


@cache
def _open_schema(kind: type[msgspec.Struct]) -> Record:
    return close(_marked_schema(kind), NO_SETS)


@cache
def _marked_schema(kind: type[msgspec.Struct]) -> Record:
    """Return the schema with its definitions inlined; the fields that name members of sets are marked."""
    decoder_of(kind)  # makes the first use of the type happen under its lock
    (schema,), components = msgspec.json.schema_components([kind], ref_template="{name}")
    inlined: dict[str, Any] = _inline(schema, components)
    return inlined


def _inline(node: Any, components: Record) -> Any:
    if isinstance(node, dict):
        if "$ref" in node:
            return _inline(components[node["$ref"]], components)
        return {key: _inline(value, components) for key, value in node.items()}
    if isinstance(node, list):
        return [_inline(item, components) for item in node]
    return node


def ask_once(lm: Lm, messages: Sequence[Message]) -> str:
    """Return the reply as it is, even if it is empty, and ``EMPTY_REPLY`` for null, as the authors' code does."""
    try:
        return lm(messages).as_written
    except RolloutFault as error:
        if error.fault.kind == "no_content":
            return EMPTY_REPLY
        if error.fault.kind not in ("empty_reply", "length_truncated", UNREADABLE_REPLY) or error.paid is None:
            raise
        return error.paid.as_written


def ask_as_written(lm: Lm, messages: Sequence[Message]) -> str:
    """Return the reply with its thoughts, for code that does not separate them."""
    try:
        return lm(messages).as_written
    except RolloutFault as error:
        if error.blank is None or not error.blank.strip():
            raise
        return error.blank


def without_repeats(text: str) -> str:
    """Shorten passages and blanks that repeat without end, as models write them, to one of each."""
    return _REPEATS.sub(
        lambda run: run[1] if len(run[0]) > _LONGEST_REPEATS else run[0], _MANY_BLANKS.sub(" ", text)
    ).rstrip()


def describe_unreadable(error: RolloutFault) -> str:
    """Describe an unreadable reply for a prompt: the reason, and its first and last characters."""
    text = "" if error.paid is None else error.paid.text.strip()
    left_out = len(text) - _SHOWN_FIRST - _SHOWN_LAST
    if left_out > 0:
        text = f"{text[:_SHOWN_FIRST]}\n[{left_out} characters left out]\n{text[-_SHOWN_LAST:]}"
    text = without_repeats(text)
    reason = _REASONS.get(error.fault.kind, error.fault.message)
    return f"(This reply could not be read: {reason}.)\n{text}".rstrip()


@overload
def ask(lm: Lm, messages: Sequence[Message], kind: type[Reply], *, sets: ClosedSets = ...) -> Reply: ...
@overload
def ask(
    lm: Lm,
    messages: Sequence[Message],
    kind: type[msgspec.Struct],
    read: Callable[[str, Sequence[Message]], Result],
    *,
    sets: ClosedSets = ...,
) -> Result: ...
def ask(
    lm: Lm,
    messages: Sequence[Message],
    kind: Any,
    read: Callable[[str, Sequence[Message]], Any] | None = None,
    *,
    sets: ClosedSets = NO_SETS,
) -> Any:
    """Ask for a structured reply; if it is unreadable, ask once more with the reason, then raise a model fault.

    ``read`` is for a role that reads more from a text and its prompt than ``parse`` does; it raises ``ValueError``.
    ``sets`` are what marked fields of the reply may name.
    """
    read = read or (lambda text, prompt: parse(text, kind, prompt))
    schema = schema_of(kind, sets)
    first = _ask_for_json(lm, messages, schema)
    try:
        return read(first.text, messages)
    except ValueError as error:
        problem = str(error)
    retry = (
        *messages,
        Message(role="assistant", content=without_repeats(first.text[:_MAX_ECHO])),
        Message(role="user", content=f"{RETRY_START}{problem}. Send only the JSON object asked for above."),
    )
    second = _ask_for_json(lm, retry, schema)
    try:
        return read(second.text, messages)
    except ValueError as error:
        fault = Fault(owner="model", kind=UNREADABLE_REPLY, message=str(error))
        raise RolloutFault(fault, second) from error


def _ask_for_json(lm: Lm, messages: Sequence[Message], schema: Record) -> Completion:
    """Return the reply, also where the server did not accept as JSON what the model wrote: it may be readable."""
    try:
        return lm(messages, schema)
    except RolloutFault as error:
        if error.fault.kind != UNREADABLE_REPLY or error.paid is None or not error.paid.text.strip():
            raise
        return error.paid


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a tool; ``arguments`` is JSON as the model wrote it, which may be broken."""

    id: str
    name: str
    arguments: str


class ToolTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What a model says in a conversation with tools: text, calls or both."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool returned for one call."""

    tool_call_id: str
    content: str


def offer(tools: Sequence[Record], choice: Any = None) -> Record:
    """Return the ``schema`` of a request with tools, which are described as in OpenAI's chat completions.

    Without tools it says that the conversation holds tool calls of earlier requests.
    """
    return {TOOLS: list(tools), **({} if choice is None else {CHOICE: choice})}


def is_offer(schema: Record | None) -> bool:
    """Whether the ``schema`` of a request offers tools; a JSON schema has no such keyword."""
    return schema is not None and TOOLS in schema


def takes_tools(part: object) -> bool:
    """Whether a backbone, or what passes calls to it, can be offered tools: it says so by ``takes_tools = True``."""
    return getattr(part, "takes_tools", False) is True


def write_turn(turn: ToolTurn | ToolResult) -> str:
    """Return the content of a message in a conversation with tools."""
    return msgspec.json.encode(turn).decode()


def read_turn(content: str, kind: type[_Turn]) -> _Turn:
    """Read what ``write_turn`` wrote; raises ``ValueError``."""
    turn: _Turn = decoder_of(kind).decode(content)
    return turn
