"""ACE that learns strategies from tool executions by rules, without a model: ``method.reflector=rules``."""

from __future__ import annotations

from ace_bench.contexts.playbook.deltas import Add, Operation, Tag, Votes
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.contexts.playbook.wording import comparable
from ace_bench.core.errors import SettingError
from ace_bench.core.method import Arena
from ace_bench.core.types import Rollout, Step
from ace_bench.methods.ace import Curator, Reflector
from ace_bench.methods.ace_parts.replies import BulletTag, Lesson
from ace_bench.methods.ace_parts.step import Delta, Insight
from ace_bench.methods.ace_variants.tool_executions import ExecutionLesson, ExecutionReflector


class RulesReflector(Reflector):
    """Takes the strategies in an attempt for the lesson, and votes by its outcome."""

    templates = ()

    def reflect(self, playbook: Playbook, rollout: Rollout, insight: Insight, step: Step, arena: Arena) -> Insight:
        """Return the insight with the lesson, if the attempt is worth one."""
        found = reflect_on_executions(rollout, arena)
        if found is None:
            return insight
        tags = [BulletTag(id=bullet, tag=found.tag) for bullet in rollout.attempt.cited]
        return insight.with_lesson(rollout, Lesson(found.text, tags))

    def check(self, arena: Arena) -> None:
        """Reject agents without tools."""
        if arena.tools is None:
            raise SettingError(
                "reflector=rules needs an agent that acts by tools (task=appworld): questions that are answered in one "
                "turn have no tool executions; set reflector=on"
            )


class RulesCurator(Curator):
    """Adds new strategies, and votes for those that worked again."""

    templates = ()

    def propose(self, playbook: Playbook, insight: Insight, step: Step, arena: Arena) -> Delta:
        """Return the operations; a bullet that the attempt used has its vote by the outcome."""
        found = [reflect_on_executions(rollout, arena) for rollout in insight.rollouts]
        operations: list[Operation] = []
        for strategy in dict.fromkeys(strategy for lesson in found if lesson for strategy in lesson.strategies):
            votes = Votes(helpful=int(strategy.worked))
            bullet = playbook.index.saying(comparable(strategy.content))
            if bullet is None:
                operations.append(Add(section=strategy.category, content=strategy.content, votes=votes))
            elif strategy.worked and bullet not in insight.rollouts[-1].attempt.cited:
                operations.append(Tag(id=bullet, votes=votes))
        return Delta(tuple(operations))


def reflect_on_executions(rollout: Rollout, arena: Arena) -> ExecutionLesson | None:
    """Return what the rules find in an attempt."""
    return None if arena.tools is None else ExecutionReflector(tools=arena.tools).reflect(rollout)
