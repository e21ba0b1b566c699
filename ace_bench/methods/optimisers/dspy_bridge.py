"""Runs DSPy's optimisers on the arena: every evaluation is a rollout, and every proposal is a counted call.

This module imports ``dspy``, which takes a second: methods import it only when they optimise.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar, copy_context
from functools import cache, partial
from typing import Any, TextIO

import dspy
import msgspec
from dspy.lm15 import Message as Part
from dspy.lm15 import Request, Response, TextPart, Usage
from dspy.propose import grounded_proposer
from dspy.propose.utils import get_dspy_source_code
from dspy.teleprompt.gepa.instruction_proposal import InstructionProposer
from dspy.utils.exceptions import AdapterParseError, LMError

from ace_bench.contexts.instruction import Instruction
from ace_bench.core.backbones import Lm
from ace_bench.core.errors import RolloutFault
from ace_bench.core.method import Arena
from ace_bench.core.python_text import read_python
from ace_bench.core.replies import parse
from ace_bench.core.types import Completion, Fault, Message, Record
from ace_bench.methods.optimisers.dspy_program import (
    PROPOSER,
    PrefetchCallback,
    ProgramRollouts,
    examples,
    out_of_dspy,
    program,
    through_dspy,
)

_PROPOSED, _BASIC = "proposed_instruction", "basic_instruction"
_SILENCED: ContextVar[bool] = ContextVar("silenced", default=False)


class _MutedStream:
    """A stream that drops what silenced code writes and passes on what other threads write, such as the console."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if _SILENCED.get() else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Muted:
    """Mutes the standard streams while any run wants it; a run that ends must not unmute those beside it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._muted = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._muted.enter_context(redirect_stdout(_MutedStream(sys.stdout)))
                self._muted.enter_context(redirect_stderr(_MutedStream(sys.stderr)))
                self._muted.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", ".* is an experimental feature")  # of samplers that MIPROv2 chose

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._muted.close()


_MUTED = _Muted()


@contextmanager
def silenced() -> Iterator[None]:
    """Drop what this context and those copied from it write to the standard streams."""
    token = _SILENCED.set(True)
    try:
        with _MUTED:
            yield
    finally:
        _SILENCED.reset(token)


class JsonFormat(dspy.JSONAdapter):  # type: ignore[misc]
    """DSPy's JSON format."""

    def parse(self, signature: Any, completion: str) -> Mapping[str, str]:
        """Read the fields of a reply, all of them texts; raises ``AdapterParseError`` if one is missing."""
        try:
            return msgspec.structs.asdict(parse(completion, _fields(tuple(signature.output_fields))))
        except ValueError as error:
            raise AdapterParseError(
                adapter_name="JSONAdapter", signature=signature, lm_response=completion, message=str(error)
            ) from error


class ChatFormat(dspy.ChatAdapter):  # type: ignore[misc]
    """DSPy's chat format; if a reply does not follow it, DSPy asks once more, for JSON."""

    def _make_json_adapter_fallback(self) -> dspy.Adapter:
        return JsonFormat()


@cache
def _fields(names: tuple[str, ...]) -> type[msgspec.Struct]:
    return msgspec.defstruct("Fields", [(name, str) for name in names])


class _Engine:
    """Sends DSPy's requests as counted calls.

    The backbone's own sampling settings apply: DSPy's temperature and rollout ids are not passed on. Usage is not
    reported to DSPy, because the run has counted it.
    """

    def __init__(self, lm: Lm):
        self._lm = lm

    def complete(self, request: Request) -> Response:
        with through_dspy():
            reply = self._ask(request)
        if isinstance(reply, RolloutFault):
            raise reply  # a failed proposal, which the optimiser handles
        message = Part.assistant([TextPart(reply)])
        return Response(id=None, model=request.model, message=message, finish_reason="stop", usage=Usage())

    def _ask(self, request: Request) -> str | RolloutFault:
        try:
            return self._lm(_messages(request)).text
        except RolloutFault as fault:
            return fault

    def stream(self, request: Request) -> Iterator[Any]:
        raise NotImplementedError

    def close(self) -> None:
        pass


def _messages(request: Request) -> list[Message]:
    system = request.system if isinstance(request.system, str | None) else "".join(p.text for p in request.system)
    head = [Message(role="system", content=system)] if system else []
    return [*head, *(Message(role=part.role, content=part.text or "") for part in request.messages)]


class OptimiserSession:
    """A task's program, the model that proposes, and the faults of its proposals.

    ``context`` is the first instruction, and the best one after ``compile``.
    """

    def __init__(self, start: Instruction, arena: Arena, name: str):
        self.context = start
        self.faults: list[Record] = []
        self.arena = arena
        self._rollouts = ProgramRollouts(arena)
        self._name = name
        self.proposer = self.proposer_in(0)

    def proposer_in(self, session: int) -> dspy.LM:
        """Return the model that proposes, in a session of its own."""
        ask = partial(self._ask, self.arena.lm(PROPOSER, f"{self._name}/{session}"))
        # without DSPy's cache and retries: the run has its own
        return dspy.LM(f"ace-bench/{PROPOSER}", engine=_Engine(ask), cache=False, num_retries=0)

    @contextmanager
    def open(self, **settings: Any) -> Iterator[None]:
        """Run an optimiser: without output, without threads of DSPy, and without lasting changes to DSPy's settings."""
        with out_of_dspy(), silenced(), dspy.context(
            lm=self.proposer,  # only rollouts call the generator, but DSPy requires a model
            callbacks=[PrefetchCallback(self._rollouts)],
            num_threads=1,
            disable_history=True,
            **settings,
        ):  # fmt: skip
            yield

    def compile(self, optimiser: Any) -> dspy.Module:
        """Return the best program of an optimiser; its instruction becomes ``context``."""
        train, validation = examples(self.arena, "train"), examples(self.arena, "val")
        best = optimiser.compile(program(self.context, self._rollouts), trainset=train, valset=validation)
        self.context = self._rollouts.context(best.predictors()[0])
        return best

    def summary(self, **found: object) -> Record:
        """Return an event about the whole search."""
        return {"event": "optimised", "rollouts": len(self._rollouts.keys), **found}

    def failed(self, error: Exception) -> None:
        """Record an unusable reply as a fault; failed calls are recorded already."""
        if not isinstance(error, LMError):
            self._note(Fault(owner="model", kind="unreadable_reply", message=str(error)))

    def _ask(self, lm: Lm, messages: Sequence[Message], schema: Record | None = None) -> Completion:
        try:
            return lm(messages, schema)
        except RolloutFault as error:
            self._note(error.fault)
            raise

    def _note(self, fault: Fault) -> None:
        self.faults.append({"event": "fault", "role": PROPOSER, **vars(fault)})


class GepaProposer(InstructionProposer):  # type: ignore[misc]
    """DSPy's proposer; a proposal that fails is noted, and GEPA goes on with the next minibatch."""

    def __init__(self, session: OptimiserSession):
        super().__init__(adapter=JsonFormat())
        self._session = session

    def __call__(self, candidate: Any, reflective_dataset: Any, components_to_update: Any) -> Any:
        """Return the proposed texts by component."""
        try:
            return super().__call__(candidate, reflective_dataset, components_to_update)
        except Exception as error:
            self._session.failed(error)
            raise


class ParallelProposer(GepaProposer):
    """Asks for all proposals of an iteration side by side, each in a session of its own; one that fails has no texts.

    GEPA calls back with each task of an iteration, then takes the proposals one by one.
    """

    def __init__(self, session: OptimiserSession):
        super().__init__(session)
        self._tasks: list[tuple[Any, ...]] = []
        self._texts: deque[Any] = deque()
        self._started = 0

    def on_proposal_start(self, event: Any) -> None:
        """Keep a task; called by GEPA."""
        self._started += 1
        self._tasks.append((self._started, event["parent_candidate"], event["reflective_dataset"], event["components"]))

    def __call__(self, candidate: Any, reflective_dataset: Any, components_to_update: Any) -> Any:
        """Return the next proposal, in the order of the tasks."""
        if not self._texts:
            proposals = [partial(copy_context().run, self._propose, *task) for task in self._tasks]
            self._tasks = []
            self._texts.extend(self._session.arena.map(lambda ask: ask(), proposals))
        return self._texts.popleft()

    def _propose(self, number: int, *task: Any) -> Any:
        try:
            with dspy.context(lm=self._session.proposer_in(number)):
                return super().__call__(*task)
        except Exception:  # noted; raised, it would have GEPA ask for all again
            return {}


def _source_code(module: Any) -> Any:
    """Return a program's source, which MIPROv2 shows its model; it would go on without what it cannot read."""
    return read_python(lambda: get_dspy_source_code(module))


grounded_proposer.get_dspy_source_code = _source_code  # DSPy gives no other place to put it


class MiproFormat(ChatFormat):
    """DSPy's chat format, which returns the basic instruction if a proposal fails.

    MIPROv2 itself goes on without a summary that failed, but not without an instruction.
    """

    def __init__(self, session: OptimiserSession):
        super().__init__()
        self._session = session

    def __call__(self, lm: Any, lm_kwargs: Any, signature: Any, demos: Any, inputs: Any) -> Any:
        """Return the fields of the reply."""
        try:
            return super().__call__(lm, lm_kwargs, signature, demos, inputs)
        except Exception as error:
            self._session.failed(error)
            if _PROPOSED not in signature.output_fields:
                raise
            return [{_PROPOSED: inputs[_BASIC]}]
