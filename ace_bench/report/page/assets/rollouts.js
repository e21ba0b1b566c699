/** Every rollout, faults first, then wrong ones, the latest contexts first; one of them in full, with the prompts and
 *  replies of all its calls. */
class RolloutsView {
  constructor(run) {
    this.run = run;
    this.choice = { query: "", outcome: "", stage: "" };
    this.search = el("input", {
      type: "search",
      placeholder: "sample, question, answer",
      oninput: debounced(() => this.set("query", this.search.value)),
    });
    this.count = el("p.note", { role: "status" });
    this.outcome = select(
      [
        ["", "all"],
        ["fault", "faults"],
        ["wrong", "wrong"],
        ["right", "right"],
        ["unjudged", "not judged"],
      ],
      "",
      (value) => this.set("outcome", value),
    );
    const stages = [
      ["", "all"],
      ["adapt", "adapt"],
      ["evaluate", "evaluate"],
    ];
    this.detail = el("article.detail", { "aria-live": "polite" }, el("p.note", {}, "Choose a rollout."));
    this.list = new LazyList((rollout) => this.row(rollout), { empty: "No rollout matches." });
    this.order = run.rollouts
      .map((rollout, place) => ({ rollout, place }))
      .sort((a, b) => rank(a.rollout) - rank(b.rollout) || b.rollout.at - a.rollout.at || a.place - b.place)
      .map(({ rollout }) => rollout);
    this.root = el(
      "div.split",
      {},
      el(
        "div.side",
        {},
        el(
          "div.controls",
          {},
          field("Search", this.search),
          field("Outcome", this.outcome),
          field(
            "Stage",
            select(stages, "", (value) => this.set("stage", value)),
          ),
          this.count,
        ),
        this.list.root,
      ),
      this.detail,
    );
    this.show();
    if (this.order.length) this.choose(this.order[0]);
  }

  set(name, value) {
    this.choice[name] = value;
    this.show();
  }

  show() {
    const { query, outcome, stage } = this.choice;
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.order.filter(
      (rollout) =>
        (!outcome || outcome === verdict(rollout)) &&
        (!stage || rollout.stage === stage) &&
        words.every((word) => this.text(rollout).includes(word)),
    );
    this.count.textContent = `${plural(found.length, "rollout")} of ${this.order.length}`;
    this.list.show(found);
  }

  text({ sample, attempt }) {
    return `${sample} ${this.run.input(sample, "question")} ${attempt.answer || ""}`.toLowerCase();
  }

  row(rollout) {
    const { sample, grade, attempt } = rollout;
    return el(
      "li",
      {},
      el(
        "button.row",
        {
          type: "button",
          "data-key": rollout.key,
          "aria-pressed": rollout === this.chosen ? "true" : "false",
          onclick: () => this.choose(rollout),
        },
        el(`span.tag.${verdict(rollout)}`, {}, verdict(rollout)),
        el("strong", {}, sample),
        el(
          "span.note",
          {},
          `${when(rollout)} · ${grade.judged === false ? "no score" : `score ${+grade.score.toFixed(2)}`}`,
        ),
        el("span.cut", {}, attempt.answer === null ? "no answer" : attempt.answer),
      ),
    );
  }

  choose(rollout) {
    this.chosen = rollout;
    for (const button of this.list.node.querySelectorAll("button.row"))
      button.setAttribute("aria-pressed", String(button.dataset.key === rollout.key));
    this.detail.replaceChildren(...this.full(rollout).filter(Boolean));
    this.detail.scrollTop = 0;
  }

  full(rollout) {
    const { run } = this;
    const { sample, attempt, grade, fault, judge_fault: unjudged, key, restarts, seconds, calls, at } = rollout;
    const others = run.triesOf.get(sample).filter((other) => other !== rollout);
    const facts = [
      when(rollout),
      rollout.split,
      plural(calls, "call"),
      `${seconds.toFixed(2)} s`,
      restarts ? plural(restarts, "restart") : "",
      attempt.dropped ? `${plural(attempt.dropped, "item")} left out of the prompt` : "",
      ...Object.entries(attempt.counters).map(([name, count]) => `${name.replaceAll("_", " ")} ${count}`),
    ];
    const inputs = run.inputs(sample).filter(([name, text]) => name !== "question" && text);
    const own = run.callsOf.get(key) || [];
    const cited = attempt.cited.map((id) => [
      run.isPlaybook && at !== null ? el("a", { href: link(run, "context", { step: at, bullet: id }) }, id) : id,
      " ",
    ]);
    return [
      el("h2", {}, sample, " ", el(`span.tag.${verdict(rollout)}`, {}, verdict(rollout))),
      el("p.note", {}, facts.filter(Boolean).join(" · ")),
      fault && el("p.warning", {}, `Fault of the ${fault.owner}: ${fault.kind}. ${fault.message}`),
      unjudged && el("p.warning", {}, `The judge gave no verdict: ${unjudged.kind}. ${unjudged.message}`),
      part("Question", run.input(sample, "question")),
      inputs.length > 0 && lazy("Other inputs", () => inputs.map(([name, text]) => part(name, text))),
      this.answers(attempt.answer, grade),
      el(
        "p",
        {},
        grade.judged === false ? "No score" : `Score ${+grade.score.toFixed(4)}`,
        Object.entries(grade.detail).map(([name, value]) => ` · ${name} ${+value.toFixed(4)}`),
        grade.group && ` · group ${grade.group}`,
      ),
      grade.observed && part("Shown by the environment", grade.observed),
      grade.report && lazy("Report of the grader", () => el("pre.text", {}, grade.report)),
      attempt.reasoning &&
        !attempt.trajectory.length &&
        lazy("Reasoning", () => el("pre.text", {}, attempt.reasoning), { open: true }),
      cited.length > 0 && el("p", {}, "Cites ", cited),
      attempt.trajectory.length > 0 && this.trajectory(attempt.trajectory),
      el("h3", {}, "Calls"),
      own.length ? own.map((call) => this.call(call)) : el("p.note", {}, "No call is recorded under this rollout."),
      others.length > 0 && [
        el("h3", {}, "Other rollouts of this sample"),
        el(
          "ul",
          {},
          others.map((other) =>
            el(
              "li",
              {},
              el("button.link", { type: "button", onclick: () => this.choose(other) }, when(other)),
              " ",
              el(`span.tag.${verdict(other)}`, {}, verdict(other)),
            ),
          ),
        ),
      ],
    ].flat(Infinity);
  }

  /** Answer and reference side by side, with the parts that differ marked where the answer is wrong. */
  answers(answer, { gold, correct }) {
    const marked =
      answer === null || !gold || correct
        ? { answer: answer === null ? "(none)" : answer, gold, note: "" }
        : markedAnswer(answer, gold);
    return [
      el("div.pair", {}, part("Answer", marked.answer), part("Reference", marked.gold)),
      marked.note && el("p.note", {}, marked.note),
    ];
  }

  trajectory(turns) {
    const steps = () =>
      el(
        "ol.turns",
        {},
        turns.map(({ thought, action, observation }) =>
          el(
            "li",
            {},
            thought && el("p.content", {}, thought),
            action ? el("pre.code", {}, action) : el("p.note", {}, "no code"),
            observation && el("pre.text", {}, observation),
          ),
        ),
      );
    return lazy(`Trajectory: ${plural(turns.length, "step")}`, steps, { open: true });
  }

  call(call) {
    const { role, session, place, usage, seconds, replayed, retries, thoughts, fault } = call;
    const cost = [
      `${shown(usage.prompt)} in`,
      `${shown(usage.cached)} cached`,
      `${shown(usage.completion)} out`,
      `${seconds.toFixed(2)} s`,
      retries ? plural(retries, "retry").replace("retrys", "retries") : "",
      replayed ? "replayed" : "",
    ];
    const said = (make) => () =>
      later(this.run.library.calls(this.run.key, session), (found) => make(found, found.byPlace.get(place)));
    return el(
      "section.call",
      {},
      el("h4", {}, role, " ", el("span.note", {}, cost.filter(Boolean).join(" · "))),
      fault && el("p.warning", {}, `Could not be used: ${fault.kind}. ${fault.message}`),
      lazy(
        "Prompt",
        said(({ texts, note }, { prompt }) =>
          prompt ? this.prompt(role, prompt, texts) : el("p.note", {}, note || "The prompt was not stored."),
        ),
      ),
      thoughts &&
        lazy(
          `Thoughts: ${plural(thoughts, "character")}`,
          said((_, call) => el("pre.text", {}, call.thoughts)),
        ),
      lazy(
        "Reply",
        said((_, { reply }) => el("pre.text", {}, tidyJson(reply))),
      ),
    );
  }

  prompt(role, { at, heads }, texts) {
    const lines = texts.numbers(role, at);
    let from = 0;
    return heads.map(([speaker, count]) => {
      const text = lines
        .slice(from, from + count)
        .map((line) => texts.lines[line])
        .join("\n");
      from += count;
      return el("div.message", {}, el("h5", {}, speaker), el("pre.text", {}, text));
    });
  }

  open({ rollout, sample }) {
    const found = rollout ? this.run.byKey.get(rollout) : sample && (this.run.triesOf.get(sample) || [])[0];
    if (found) this.choose(found);
    if (sample) this.search.value = sample;
    if (sample) this.set("query", sample);
  }
}

function part(label, text) {
  return el("div.part", {}, el("h3", {}, label), el("pre.text", {}, text));
}

function verdict({ fault, grade }) {
  if (fault) return "fault";
  if (grade.judged === false) return "unjudged";
  return grade.correct ? "right" : "wrong";
}

function rank(rollout) {
  return ["fault", "wrong", "unjudged", "right"].indexOf(verdict(rollout));
}

function when({ stage, trial, at, key }) {
  const epoch = /\/epoch(\d+)\//.exec(key);
  const context = at === null ? "" : at === 0 ? ", first context" : `, after step ${at}`;
  return `${stage}${epoch ? `, epoch ${+epoch[1] + 1}` : ""}${context}${trial ? `, try ${trial + 1}` : ""}`;
}

/** JSON replies are easier to read with line breaks; anything else stays as it is. */
function tidyJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
