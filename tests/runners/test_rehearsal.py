"""Estimates of whole runs from a few rehearsed samples, compared as a whole with a file.

The prompts are this test's own, and a token is a word: no figure depends on the words of the prompt sets.
"""

import json
from dataclasses import replace

import pytest

from ace_bench.ace.learner import PlaybookLearner
from ace_bench.backbones.openai_compatible.settings import PriceCard
from ace_bench.core.errors import ConfigError
from ace_bench.core.types import Attempt, Message, Sample
from ace_bench.runners.estimate_text import describe
from ace_bench.runners.rehearsal import rehearse
from ace_bench.runners.small_run import StandIn
from tests.outcomes import outcomes
from tests.runners.scripted import Scripted, Toy, delta, gold, play, reflection, right, wrong

PROMPTS = {
    "base": "Answer. {{ question }}",
    "generator": "Answer with these notes. {{ playbook }} {{ question }} {{ reflection }}",
    "reflector": "Was this right? {{ question }} {{ answer }} {{ correct }} {{ playbook }}",
    "curator": "What is new? {{ playbook }} {{ reflection }}",
    "rewriter": "Write all notes anew. {{ playbook }} {{ reflection }}",
}


class Uneven(Toy):
    """A later sample has a longer question."""

    def samples(self, split):
        return [
            Sample(
                id=one.id, split=split, inputs={**one.inputs, "question": f"{one.inputs['question']}{' more' * place}"}
            )
            for place, one in enumerate(super().samples(split))
        ]


class Judged(Uneven):
    judge_template = "judge"

    def prompt_fields(self, inputs, shown):
        return {}

    def judge(self, sample, answer, grade, prompts, lm):
        lm([Message(role="user", content=f"Is {answer} right?")])
        return grade


class Model(Scripted):
    """A priced model, with a limit of replies and a context length if these are given."""

    simulated = False

    def __init__(self, limit=None, length=None):
        super().__init__()
        self.context_length = length
        if limit is not None:
            self.reply_limit = {"generator": limit}.get

    def count(self, text):
        return len(text.split())

    def dollars(self, usage):
        return PriceCard(input=1000.0, cached_input=100.0, output=10_000.0).dollars(usage)


class Acting:
    """Takes a step for each word behind the first four of a question, and at most five."""

    max_steps = 5

    def prompt_fields(self, inputs, shown):
        return {}

    def conversation(self, sample, context, attempt, reflection):
        return ()

    def solve(self, sample, session, context, lm, reflection):
        said = [Message(role="user", content=f"Do this. {sample.inputs['question']}")]
        for _ in range(min(self.max_steps, 1 + len(sample.inputs["question"].split()) - 4)):
            said += [Message(role="assistant", content=lm(said).text), Message(role="user", content="it is done")]
        return Attempt(answer=gold(sample.id), ended="finished")


def stand_in(name):
    """Replies in place of the model: a first attempt is wrong, and each curator's call brings a note."""

    def generator(call):
        if "read" in name and call.sample == "toy-test-2" and "NOT JSON" not in call.prompt:
            return "NOT JSON"
        return right(call) if call.trial or "right" in name else wrong(call)

    notes = {"curator": lambda call: delta(f"note on {call.session}"), "rewriter": lambda _: "Notes.\nMore notes."}
    return Scripted(generator=generator, reflector=lambda _: reflection("a rule"), judge=lambda _: "yes", **notes)


ACE, ONLINE = ("method=ace", "mode.epochs=2", "mode.before=true"), ("method=ace", "mode=online", "mode.window=2")
CASES = {
    "base": ("method=base",),
    "ace": ACE,
    "ace, right at once": ACE,
    "ace, best": (*ACE, "mode.select=best", "mode.eval_every=7"),
    "ace, online": ONLINE,
    "ace, online, before": (*ONLINE, "mode.batch_size=2", "mode.before=true"),
    "ace, rewrite": (*ACE, "method.update=rewrite"),
    "ace, in proportion": ACE,
    "ace, judged": ACE,
    "ace, replies of up to 50 tokens": ACE,
    "ace, up to 50 of 400 tokens": ACE,
    "ace, with code": ACE,
    "ace, acting": ACE,
    "ace, acting, five epochs": (*ACE, "mode.epochs=5"),
    "few samples": (*ACE, "limit=3"),
    "nothing to learn": ACE,
    "ace, a reply that cannot be read": ACE,
    "base, replies of up to 50 tokens": ("method=base",),
    "ace, acting, replies of up to 50 tokens": ACE,
}


@pytest.fixture
def estimate(tmp_path, monkeypatch):
    """Rehearse a case; nothing is run. Returns the estimate, and how many calls the stand-in answered."""
    for name, text in PROMPTS.items():
        (tmp_path / "qa").mkdir(exist_ok=True)
        (tmp_path / "qa" / f"{name}.j2").write_text(f"{{% block user %}}{text}{{% endblock %}}")

    def estimated(name):
        specs = []
        model = Model(50 if "50" in name else None, 400 if "400" in name else None)
        if "code" in name:
            model = Model(80)

        def kept(spec):
            agent = Acting() if "acting" in name else spec.agent
            spec = replace(spec, simulated=False, rehearsal=stand_in(name), agent=agent)
            if "code" in name:
                spec.agent.code_runs = 3
            specs.append(spec)
            raise ConfigError("the run ends here: it is only built")

        words = (f"prompts={tmp_path}", *CASES[name])
        task = Judged if "judged" in name else Uneven
        sizes = {"train": 0 if "nothing" in name else 20, "val": 6, "test": 12}
        ran = play(tmp_path, *words, method="base", script=model, task=task, spec=kept, **sizes)
        assert ran.status == 2
        with monkeypatch.context() as patched:
            if "proportion" in name:
                patched.setattr(PlaybookLearner, "workload", lambda *_: None)
            return rehearse(specs[0]), len(specs[0].rehearsal.calls)

    return estimated


def row(account):
    usage = account.usage
    return f"{account.calls} calls, {usage.prompt} + {usage.completion} tokens, {usage.cached} cached, ${usage.usd:.3f}"


def written(name, found, rehearsed):
    rows = [f"{end}: {row(getattr(found, end))}" for end in ("low", "typical", "high")]
    return "\n".join(
        [
            f"# {name}: {' '.join(CASES[name])}",
            *rows,
            f"roles: {', '.join(found.prompts)}, rehearsed in {rehearsed} calls",
            describe(found),
        ]
    )


def test_estimates_of_many_kinds_of_runs(snapshot, estimate):
    assert "\n\n".join(written(name, *estimate(name)) for name in CASES) == snapshot


STAND_IN = [
    '["{\\"done\\": true, \\"reasons\\": {\\"ok\\": true}, \\"why\\": \\"short\\", \\"count\\": 3}", null, {}]',
    (
        '["{\\"done\\": true, \\"reasons\\": {\\"ok\\": true}, \\"why\\": \\"short\\", \\"count\\": 3}", '
        'null, {"opposite": true}]'
    ),
    '["{\\"why\\": \\"short\\"}", null, {"opposite": true}]',
    '["[true]", null, {"opposite": true}]',
    '["true or not", null, {"opposite": true}]',
    '["a text", null, {"lengthened": true}]',
    '["<a>a</a><b>t</b>", null, {"lengthened": true}]',
    (
        '["{\\"done\\": true, \\"reasons\\": {\\"ok\\": true}, \\"why\\": \\"short\\", \\"count\\": 3}", '
        '{}, {"lengthened": true}]'
    ),
    (
        '["{\\"done\\": true, \\"reasons\\": {\\"ok\\": true}, \\"why\\": \\"short\\", \\"count\\": 3}", '
        '{"why": {"maxLength": 9}}, {"lengthened": true}]'
    ),
    '["{\\"done\\": true}", {}, {"lengthened": true}]',
    '["more words than the limit has, which is ten", null, {"lengthened": true}]',
]


def test_a_stand_in_for_a_model(snapshot):
    """A case is a reply, its schema, and whether the stand-in lengthens it or says the opposite."""

    def said(case):
        reply, schema, options = json.loads(case)
        settings = {"opposite": False, "lengthened": False, **options}
        one = StandIn("generator", Model(10), Scripted(generator=lambda _: reply), **settings)
        return one.complete([], role="generator", session="s/0", schema=schema).text

    assert outcomes(said, STAND_IN) == snapshot
