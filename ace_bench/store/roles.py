"""How well each role of a run did: what became of its replies, votes, bullets, second tries and citations.

The figures are counted by code, from calls and events that every run folder holds (``role_counts``). They say why a
method does not learn: votes that nobody could count, lessons that repeat their prompt, second tries that stay wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ace_bench.core.types import Record

REFLECTOR, CURATOR = "reflector", "curator"
VOTES, BULLETS, OPERATIONS, CHEATSHEETS = "votes", "bullets", "other operations", "cheatsheets"
"""What roles propose: votes on bullets, bullets to add, all other operations, and rewritten cheatsheets."""
_SHOWN_REASONS = 3
"""Reasons of refusals that a line names, the most frequent first."""
_ENOUGH = 10
"""Number of cases from which a share says something about a role."""
_MANY_UNREAD = 0.1
"""Share of a role's replies that may be unreadable or cut: strong models lose fewer than one in a hundred."""
_HALF = 0.5
"""Share of votes, bullets and citations that must be good: below it most of what the calls cost is thrown away."""
_FEW_TURNED = 0.05
"""Share of second tries that must turn right: fewer do so by chance when a model is asked again."""


class Replies(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of questions that a role was asked, by how they were answered.

    ``at_once`` and ``second_ask`` are questions with a reply that could be read, the latter after a reply that could
    not. ``cut`` counts replies that ended at the limit of their length, whether they could be read or not, and
    ``all_reasoning`` those without text, whose words the server reports as reasoning.
    """

    asked: int = 0
    at_once: int = 0
    second_ask: int = 0
    unreadable: int = 0
    cut: int = 0
    all_reasoning: int = 0


class Sentences(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of sentences of five words or more in the replies of a role.

    ``copied`` ones stand word for word in the prompt that the reply answers. ``shared`` are those of them that also
    stand in the role's shortest prompt, of another session: words of the template, or a text that all samples share.
    """

    total: int = 0
    copied: int = 0
    shared: int = 0


class Proposals(msgspec.Struct, frozen=True, kw_only=True):
    """Number of proposals that were accepted, and of those that were refused by reason."""

    accepted: int = 0
    refused: Mapping[str, int] = {}

    @property
    def total(self) -> int:
        """Number of proposals."""
        return self.accepted + sum(self.refused.values())

    @property
    def reasons(self) -> str:
        """The most frequent reasons of refusals, with their numbers."""
        ordered = sorted(self.refused.items(), key=lambda refused: (-refused[1], refused[0]))
        return ", ".join(f"{number:,} {reason}" for reason, number in ordered[:_SHOWN_REASONS])


class SecondTries(msgspec.Struct, frozen=True, kw_only=True):
    """Number of attempts that were made again with a reflection: the second one at a sample and all later ones.

    ``right`` ones are right where the attempt before was wrong. Of ``copied`` ones at least half of the sentences stand
    in their prompt.
    """

    total: int = 0
    right: int = 0
    copied: int = 0


class Citations(msgspec.Struct, frozen=True, kw_only=True):
    """What attempts at samples cited.

    ``valid`` and ``invented`` are numbers of ids that the playbook held, and did not hold. ``inventing`` counts the
    attempts that cited one of the latter. ``with_bullets`` counts first attempts that cited at least one valid id,
    ``without_bullets`` those that cited none though there were bullets, and ``right`` those of each with a right
    answer.
    """

    attempts: int = 0
    valid: int = 0
    invented: int = 0
    inventing: int = 0
    with_bullets: int = 0
    right_with_bullets: int = 0
    without_bullets: int = 0
    right_without_bullets: int = 0


class Curations(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of replies that hold a list of operations, and of those with an ``empty`` list.

    ``wrong`` and ``empty_wrong`` are those of each about a sample whose first attempt was wrong.
    """

    total: int = 0
    empty: int = 0
    wrong: int = 0
    empty_wrong: int = 0


class RoleQuality(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How well a role did. ``None`` and missing ``proposals`` say that the role has nothing of the kind.

    ``bullets`` are the sentences of the operations that it proposed, which ``sentences`` holds, too.
    """

    replies: Replies = Replies()
    sentences: Sentences | None = None
    proposals: Mapping[str, Proposals] = {}
    bullets: Sentences | None = None
    curations: Curations | None = None
    second_tries: SecondTries | None = None
    citations: Citations | None = None

    def describe(self) -> list[str]:
        """Return the figures in words, one phrase for each kind. Kinds without any are left out."""
        phrases = [_describe_replies(self.replies)] if self.replies.asked else []
        if self.sentences is not None and self.sentences.copied:
            phrases.append(f"{_describe_copies(self.sentences)} of its sentences stand in the prompt")
        if self.bullets is not None and self.bullets.copied:
            phrases.append(f"{_describe_copies(self.bullets)} of its bullets' sentences do")
        for what, proposals in self.proposals.items():
            refused = f" (refused: {proposals.reasons})" if proposals.refused else ""
            phrases.append(f"{proposals.accepted:,} of {proposals.total:,} {what} accepted{refused}")
        if (lists := self.curations) is not None and lists.empty:
            wrong = f" ({lists.empty_wrong:,} of {lists.wrong:,} after a wrong attempt)" if lists.wrong else ""
            phrases.append(f"nothing proposed in {lists.empty:,} of {lists.total:,} replies{wrong}")
        if (tries := self.second_tries) is not None:
            copied = f", {tries.copied:,} copy half of their sentences" if tries.copied else ""
            phrases.append(f"{tries.right:,} of {tries.total:,} second tries turned right{copied}")
        return phrases if self.citations is None else [*phrases, *_describe_citations(self.citations)]


def _describe_replies(replies: Replies) -> str:
    others = (
        (replies.second_ask, "after a second ask"),
        (replies.unreadable, "unreadable"),
        (replies.cut, "cut at their limit"),
    )
    parts = [f"{number:,} {what}" for number, what in others if number]
    return ", ".join([f"{replies.at_once:,} of {replies.asked:,} replies read at once", *parts])


def _describe_copies(sentences: Sentences) -> str:
    copied, shared = (f"{number / sentences.total:.0%}" for number in (sentences.copied, sentences.shared))
    return f"{copied} ({shared} in what all prompts share)" if shared != "0%" else copied


def _describe_citations(cited: Citations) -> list[str]:
    phrases = list[str]()
    if cited.valid:
        phrases.append(f"{cited.valid:,} bullets cited")
    if cited.inventing:
        phrases.append(f"invented bullets cited in {cited.inventing:,} of {cited.attempts:,} attempts")
    if cited.with_bullets:
        phrase = f"{cited.right_with_bullets:,} of {cited.with_bullets:,} right with a cited bullet"
        without = f", {cited.right_without_bullets:,} of {cited.without_bullets:,} without"
        phrases.append(phrase + without * bool(cited.without_bullets))
    return phrases


Roles = Mapping[str, RoleQuality]


def roles_of(metrics: Mapping[str, Any]) -> Roles | None:
    """Return the roles of a run's metrics; ``None`` where they hold none, as those of older versions."""
    return msgspec.convert(metrics["role_quality"], dict[str, RoleQuality]) if "role_quality" in metrics else None


def record_of(roles: Roles) -> Record:
    """Return the roles as ``metrics.json`` holds them."""
    record: Record = msgspec.to_builtins(roles)
    return record


def advice_on_roles(roles: Roles) -> list[str]:
    """Return a sentence with cause and fix for each figure of a role that is far off."""
    unread = [role for role, quality in roles.items() if _loses_replies(quality.replies)]
    sentences = list[str]()
    if unread:
        sentences.append(
            f"many replies are unreadable or cut ({', '.join(unread)}): raise sampling.ROLE.max_tokens, try another "
            "backbone.structured, or take a stronger model"
        )
    return sentences + [sentence for role, quality in roles.items() for sentence in _advise(role, quality)]


def _loses_replies(replies: Replies) -> bool:
    # What the server takes for reasoning is not too long and not too hard to read.
    return max(replies.unreadable, replies.cut) - replies.all_reasoning > _MANY_UNREAD * replies.asked


def _advise(role: str, quality: RoleQuality) -> Iterator[str]:
    stronger = f"give the role a stronger model (backbone@roles.{role}=NAME)"
    for what, proposals in quality.proposals.items():
        if proposals.total >= _ENOUGH and proposals.accepted < _HALF * proposals.total:
            yield (
                f"most {what} of the {role} are refused ({proposals.reasons}): its model does not keep to what the "
                f"prompt allows; set backbone.structured=json_schema where the server has it, or {stronger}"
            )
    if (lists := quality.curations) is not None and lists.empty_wrong >= max(_ENOUGH, _HALF * lists.wrong):
        yield (
            f"the {role} proposes nothing after {lists.empty_wrong:,} of {lists.wrong:,} wrong attempts, so their "
            f"lessons are lost: read some of its prompts on the run's page, and {stronger}"
        )
    if (copied := quality.bullets) is not None and copied.total >= _ENOUGH and copied.shared > _HALF * copied.total:
        yield (
            f"most sentences in the {role}'s bullets repeat its instructions or what all samples share, and teach "
            f"nothing: {stronger}"
        )
    tries = quality.second_tries
    if tries is not None and tries.total >= 2 * _ENOUGH and tries.right < _FEW_TURNED * tries.total:
        yield (
            f"only {tries.right:,} of {tries.total:,} second tries turned right, so reflections do not help: give the "
            "Reflector a stronger model (backbone@roles.reflector=NAME), or show it the answers, if labels is not gold"
        )
    if (cited := quality.citations) is not None and cited.inventing >= max(_ENOUGH, _HALF * cited.attempts):
        yield (
            f"the {role} cites bullets that do not exist in {cited.inventing:,} of {cited.attempts:,} attempts, so "
            "votes on them cannot count: set backbone.structured=json_schema where the server has it"
        )
