"""The reader as an agent: look up what is needed, put a program together, run it, mend what fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ace_bench.core.types import Message
from ace_rehearsal.reader.skills.acting.adapt import adapted, filters
from ace_rehearsal.reader.skills.acting.compose import Workshop
from ace_rehearsal.reader.skills.acting.conversation import Scene, read_scene
from ace_rehearsal.reader.skills.acting.documentation import read_documentation
from ace_rehearsal.reader.skills.acting.improvise import Improviser, named_apps
from ace_rehearsal.reader.skills.acting.lessons import gather
from ace_rehearsal.reader.skills.acting.repairs import FAILED, repairs_for
from ace_rehearsal.reader.skills.acting.statements import Statement, analysed

_MOST_FAILURES = 5
_COMPLETE = "apis.supervisor.complete_task()"
_UNDOCUMENTED = ("supervisor", "api_docs")


def act(messages: Sequence[Message]) -> str | None:
    """Take the next step in an agent's conversation; ``None`` where the messages are none."""
    scene = read_scene(messages)
    return None if scene is None else _Plan(scene).reply()


@dataclass(frozen=True)
class _Plan:
    scene: Scene

    def reply(self) -> str:
        apps = [app for app in self._apps if not self._looked_up(f"show_api_descriptions(app_name='{app}')")]
        if apps:
            calls = [f"print(apis.api_docs.show_api_descriptions(app_name='{app}'))" for app in apps]
            return _said(f"I look at what {', '.join(apps)} can do.", "\n".join(calls))
        unread = [call for call in self._calls if not self._looked_up(_documented(call))]
        if unread:
            return _said("I read the documentation first.", "\n".join(f"print({_documented(call)})" for call in unread))
        if not self._program or len(self._failures) >= _MOST_FAILURES:
            return _said("I do not know how to do this.", _COMPLETE)
        cited = dict.fromkeys(statement.owner for statement in self._program if statement.owner)
        relied = f" I rely on [{', '.join(cited)}]." if cited else ""
        return _said(f"I know enough to act.{relied}", repairs_for(self._failures).mended(_joined(self._program)))

    def _looked_up(self, call: str) -> bool:
        return any(call in code for code, _ in self.scene.steps)

    @cached_property
    def _apps(self) -> tuple[str, ...]:
        return named_apps(self.scene.question, self.scene.apps)

    @cached_property
    def _program(self) -> tuple[Statement, ...]:
        scene, documentation = self.scene, read_documentation(self.scene.steps)
        taught = gather(scene.lessons)
        values = ((slot, slot.value(scene.question)) for slot in taught.slots)
        slots = [
            replace(analysed(f"{slot.name} = {value!r}"), owner=slot.owner)
            for slot, value in values
            if value is not None
        ]
        pager = next((statement.name for statement in taught.statements if statement.pages), "")
        improviser = Improviser(question=scene.question, apps=self._apps, documentation=documentation, pager=pager)
        pool = (*slots, *taught.statements, *improviser.statements())
        workshop = Workshop(question=scene.question, pool=pool)
        for program in workshop.programs(self._apps):
            fitted = tuple(adapted(statement, scene.question, documentation) for statement in program)
            whole = workshop.filtered(fitted, filters(fitted, pool, scene.question, documentation))
            if not self._hopeless(whole):
                return whole
        return ()

    def _hopeless(self, program: Sequence[Statement]) -> bool:
        """Whether a program failed in a way that cannot be mended."""
        code = repairs_for(self._failures).mended(_joined(program))
        return any(code == ran and output.startswith(FAILED) for ran, output in self.scene.steps)

    @cached_property
    def _failures(self) -> tuple[str, ...]:
        return tuple(output for _, output in self.scene.steps if output.startswith(FAILED))

    @cached_property
    def _calls(self) -> tuple[str, ...]:
        calls = (call for statement in self._program for call in statement.calls)
        return tuple(dict.fromkeys(call for call in calls if call.split(".")[0] not in _UNDOCUMENTED))


def _joined(program: Sequence[Statement]) -> str:
    lines = [statement.code for statement in program]
    return "\n".join(lines if program[-1].completes else [*lines, _COMPLETE])


def _documented(call: str) -> str:
    app, api = call.split(".")
    return f"apis.api_docs.show_api_doc(app_name='{app}', api_name='{api}')"


def _said(thought: str, code: str) -> str:
    return f"{thought}\n\n```python\n{code}\n```"
