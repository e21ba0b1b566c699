const WRITTEN = "Written.";

/** The context step by step: a slider, what the step changed, and a playbook's bullets with their history. */
class ContextView {
  constructor(run) {
    this.run = run;
    this.last = run.isPlaybook || run.steps.length ? run.steps.length : 0;
    this.choice = { query: "", section: "", counters: "", changes: false, order: "created" };
    this.slider = el("input", {
      type: "range",
      min: 0,
      max: this.last,
      value: this.last,
      "aria-label": "Step",
      oninput: debounced(() => this.go(+this.slider.value), 15),
    });
    this.where = el("output");
    this.changes = el("div.changes");
    this.written = el("div");
    this.sections = run.isPlaybook
      ? [...new Set([...run.initial, ...run.steps.flatMap((step) => step.set)].map(({ section }) => section))].sort()
      : [];
    this.takeCopy({});
    this.body = el("div");
    const jump = (by) => () => this.go(this.at + by);
    const steps = el(
      "div.slider",
      {},
      el("button", { type: "button", "aria-label": "Step back", onclick: jump(-1) }, "◀"),
      this.slider,
      el("button", { type: "button", "aria-label": "Step on", onclick: jump(1) }, "▶"),
      this.where,
    );
    this.root = el(
      "div",
      {},
      this.last > 0 && steps,
      this.changes,
      this.written,
      run.isPlaybook && this.controls(),
      this.canChange && this.adding(),
      this.body,
    );
    this.list = new LazyList((row) => this.row(row), { empty: "No bullet matches." });
    if (run.isPlaybook) this.body.append(this.list.root);
    this.go(this.last);
    if (this.canChange) this.readCopy();
  }

  controls() {
    const set = (name) => (value) => {
      this.choice[name] = value;
      this.show();
    };
    this.search = el("input", {
      type: "search",
      placeholder: "words or an id",
      oninput: debounced(() => set("query")(this.search.value)),
    });
    this.count = el("p.note", { role: "status" });
    const only = el("input", { type: "checkbox", onchange: () => set("changes")(only.checked) });
    return el(
      "div.controls",
      {},
      field("Search", this.search),
      field("Section", select([["", "all"], ...this.sections.map((name) => [name, name])], "", set("section"))),
      field(
        "Counters",
        select(
          [
            ["", "all"],
            ["helpful", "more helpful than harmful"],
            ["harmful", "at least as harmful as helpful"],
            ["none", "no votes"],
          ],
          "",
          set("counters"),
        ),
      ),
      field(
        "Order",
        select(
          [
            ["created", "oldest first"],
            ["changed", "last changed"],
            ["used", "last used"],
            ["helpful", "most helpful"],
            ["harmful", "most harmful"],
          ],
          "created",
          set("order"),
        ),
      ),
      el("label.field.check", {}, only, el("span", {}, "only what this step changed")),
      this.count,
    );
  }

  go(step) {
    this.at = Math.max(0, Math.min(this.last, step));
    this.slider.value = this.at;
    const record = this.run.steps[this.at - 1];
    const size = record && `${plural(record.context_size, "item")}, ${plural(record.context_tokens, "token")}`;
    this.where.textContent = record
      ? `step ${this.at} of ${this.last}, epoch ${record.epoch + 1}: ${size}`
      : "before the first step";
    if (!this.last) this.where.textContent = "";
    this.changes.replaceChildren(...(record ? this.describe(record) : []));
    this.show();
  }

  describe({ samples, events }) {
    const counts = [...grouped(events, eventName)].map(([name, all]) => `${all.length} ${name}`).join(", ");
    const from = samples.map((sample) => [el("a", { href: link(this.run, "rollouts", { sample }) }, sample), " "]);
    const list = () =>
      el(
        "ul.events",
        {},
        events.map((event) => el("li", {}, this.event(event))),
      );
    return [
      el("p", {}, samples.length ? ["Learnt from ", from] : "Made in one step. ", counts && `— ${counts}.`),
      events.length ? lazy("All events of this step", list) : null,
    ].filter(Boolean);
  }

  event(event) {
    const { sample, bullet, reason, note, votes, merged, into, operation, role, kind, message } = event;
    const id =
      bullet && !into ? el("button.link", { type: "button", onclick: () => this.find(bullet) }, bullet) : bullet;
    const words = [eventName(event), " "];
    if (into) words.push("into ", into);
    else if (id) words.push(id);
    if (merged && !into) words.push(` with ${merged.join(", ")}`);
    if (votes)
      words.push(
        ` ${Object.entries(votes)
          .map(([name, count]) => `+${count} ${name}`)
          .join(", ")}`,
      );
    if (operation) words.push(` ${JSON.stringify(operation)}`);
    if (role) words.push(` ${role}: ${kind || ""} ${message || ""}`);
    if (reason || note) words.push(` (${reason || note})`);
    if (sample) words.push(" from ", el("a", { href: link(this.run, "rollouts", { sample }) }, sample));
    return words;
  }

  find(id) {
    this.search.value = this.choice.query = id;
    this.show();
  }

  show() {
    if (!this.run.isPlaybook) return this.document();
    const now = this.run.bullets(this.at);
    const before = this.at ? this.run.bullets(this.at - 1) : now;
    const { query, section, counters, changes, order } = this.choice;
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const gone = [...before.values()].filter(({ id }) => !now.has(id)).map((bullet) => ({ bullet, mark: "removed" }));
    const rows = [...now.values()].map((bullet) => {
      const old = before.get(bullet.id);
      return { bullet, old, mark: !old ? "new" : old !== bullet ? "changed" : "" };
    });
    const found = [...rows, ...gone].filter(
      ({ bullet, mark }) =>
        (!changes || mark) &&
        (!section || bullet.section === section) &&
        (!counters || counters === voteBalance(bullet)) &&
        words.every((word) => bullet.id.toLowerCase().includes(word) || bullet.content.toLowerCase().includes(word)),
    );
    const added =
      this.canChange && this.at === this.last
        ? [...this.copied.values()].filter(({ id }) => !now.has(id)).map((bullet) => ({ bullet, mark: "new" }))
        : [];
    const by = {
      created: ({ bullet }) => sequence(bullet),
      changed: ({ bullet }) => -bullet.changed,
      used: ({ bullet }) => -(this.run.used[bullet.id] ?? -1),
      helpful: ({ bullet }) => -bullet.helpful,
      harmful: ({ bullet }) => -bullet.harmful,
    }[order];
    found.sort((a, b) => by(a) - by(b) || sequence(a.bullet) - sequence(b.bullet));
    this.count.textContent = `${plural(found.length, "bullet")} of ${now.size}`;
    this.list.show([...added, ...found]);
    return undefined;
  }

  row(item, { open = false, said = "" } = {}) {
    const { bullet, old, mark } = item;
    const { id, section, content, helpful, harmful, neutral, tokens } = bullet;
    const vote = (name, value, was) =>
      el(
        `span.vote.${name}`,
        { title: name },
        `${name} ${was !== undefined && was !== value ? `${was} → ` : ""}${value}`,
      );
    const rewritten = old && old.content !== content;
    const own = this.copied.get(id) === bullet; // the run has no such bullet
    const node = el(
      `li.bullet.${mark || "same"}`,
      {},
      el(
        "p.meta",
        {},
        el("code", {}, id),
        el("span.tag", {}, section),
        mark && el(`span.tag.${mark}`, {}, own ? "added here" : mark),
        vote("helpful", helpful, old && old.helpful),
        vote("harmful", harmful, old && old.harmful),
        vote("neutral", neutral, old && old.neutral),
        el("span.note", {}, plural(tokens, "token")),
      ),
      rewritten && el("p.content", {}, el("del", {}, old.content)),
      el("p.content", {}, mark === "removed" ? el("del", {}, content) : rewritten ? el("ins", {}, content) : content),
    );
    if (!own) node.append(lazy("History of this bullet", () => this.history(bullet)));
    if (this.canChange && this.at === this.last && mark !== "removed")
      node.append(
        ...this.inCopy(bullet, own),
        lazy("Feedback", () => this.feedback(item, () => node, said), { open }),
      );
    return node;
  }

  get canChange() {
    return this.run.library.token && this.run.row.result?.context.kind === "playbook";
  }

  /** Read what earlier visits changed. */
  readCopy() {
    this.run.library.edited(this.run.key).then(
      (copy) => {
        this.takeCopy(copy);
        this.show();
      },
      (error) =>
        this.written.replaceChildren(el("p.warning", {}, `What was changed earlier cannot be read: ${error.message}`)),
    );
  }

  takeCopy({ file, command, bullets = [], removed = [] }) {
    this.copied = new Map(bullets.map((bullet) => [bullet.id, bullet]));
    this.gone = new Set(removed);
    const count = this.copied.size + this.gone.size;
    this.written.replaceChildren(
      ...(file
        ? [
            el(
              "p",
              {},
              `The copy of this playbook differs in ${plural(count, "bullet")}: `,
              el("code", {}, file),
              ". This command tests it:",
            ),
            el("pre", {}, command),
          ]
        : []),
    );
  }

  /** How the copy has a bullet of the run. */
  inCopy({ id, content }, own) {
    if (this.gone.has(id)) return [el("p", {}, el("span.tag.removed", {}, "removed in the copy"))];
    const now = this.copied.get(id);
    if (!now || own) return [];
    return [
      el(
        "p",
        {},
        el("span.tag.changed", {}, "in the copy"),
        el("span.vote", {}, `helpful ${now.helpful}, harmful ${now.harmful}, neutral ${now.neutral}`),
      ),
      ...(now.content === content ? [] : [el("p.content", {}, el("ins", {}, now.content))]),
    ];
  }

  /** Change the copy; return what to say of it. */
  async change(changes) {
    try {
      this.takeCopy(await this.run.library.change(this.run.key, changes));
      return WRITTEN;
    } catch (error) {
      return `Nothing was written: ${error.message}`;
    }
  }

  /** A vote, a comment, other words or the removal of a bullet. */
  feedback(item, place, said) {
    const { id, content } = item.bullet;
    const status = el("p.note", { role: "status" }, said);
    const note = el("input", { type: "text", maxlength: 2000, placeholder: "why, or a comment" });
    const words = el("textarea", { rows: 4 });
    words.value = (this.copied.get(id) || { content }).content;
    const send = (label, changes) => async () => {
      const answer = await this.change({ bullet: id, ...changes() });
      const bullet = this.isOwn(item.bullet) ? this.copied.get(id) : item.bullet;
      if (answer !== WRITTEN) status.textContent = answer;
      else if (!bullet)
        this.show(); // it was added here, and is removed
      else {
        const row = this.row({ ...item, bullet }, { open: true, said: answer });
        place().replaceWith(row);
        [...row.querySelectorAll(".feedback button")].find(({ textContent }) => textContent === label)?.focus();
      }
    };
    const button = (label, changes) => el("button", { type: "button", onclick: send(label, changes) }, label);
    if (this.gone.has(id))
      return el(
        "div.feedback",
        {},
        button("Put it back", () => ({ keep: true })),
        status,
      );
    const vote = (name) => () => ({ vote: name, note: note.value });
    return el(
      "div.feedback",
      {},
      el(
        "div.controls",
        {},
        field("Note", note),
        button("Helpful", vote("helpful")),
        button("Harmful", vote("harmful")),
        button("Only comment", vote("neutral")),
      ),
      field("Words", words),
      button("Save the words", () => ({ content: words.value })),
      " ",
      button("Remove the bullet", () => ({ keep: false })),
      status,
    );
  }

  /** Whether a bullet was added in the copy. */
  isOwn({ id }) {
    return !this.run.bullets(this.last).has(id);
  }

  /** A form for a new bullet. */
  adding() {
    const make = () => {
      const words = el("textarea", { rows: 3 });
      const section = el("input", {
        type: "text",
        maxlength: 80,
        list: "sections",
        placeholder: "one of the playbook, or a new one",
      });
      const status = el("p.note", { role: "status" });
      const add = async () => {
        status.textContent = await this.change({ section: section.value, content: words.value });
        if (status.textContent !== WRITTEN) return;
        words.value = "";
        this.go(this.last);
      };
      return el(
        "div.feedback.adding",
        {},
        field("Section", section),
        el(
          "datalist",
          { id: "sections" },
          this.sections.map((name) => el("option", { value: name })),
        ),
        field("Words", words),
        el("button", { type: "button", onclick: add }, "Add the bullet"),
        status,
      );
    };
    return lazy("Add a bullet", make);
  }

  history({ id, created, changed, sources }) {
    const cited = this.run.rollouts.filter((rollout) => rollout.attempt.cited.includes(id));
    const right = cited.filter(({ grade }) => grade.correct).length;
    const links = (names) =>
      names.map((sample) => [el("a", { href: link(this.run, "rollouts", { sample }) }, sample), " "]);
    const events = this.run.bulletEvents.get(id) || [];
    const used = this.run.used[id];
    return el(
      "div.history",
      {},
      el(
        "p",
        {},
        created < 0
          ? "In the context from the start. "
          : ["Added at step ", this.timed(created), sources.length ? [" from ", links(sources)] : ". "],
      ),
      el(
        "p",
        {},
        cited.length ? `Used by ${plural(cited.length, "rollout")}, ${right} of them right.` : "No rollout cited it.",
      ),
      el(
        "p",
        {},
        changed < 0 ? "Never changed. " : ["Last changed at step ", this.timed(changed), ". "],
        used === undefined ? "Never used in adaptation." : ["Last used at step ", this.timed(used), "."],
      ),
      events.length > 0 &&
        el(
          "ol.events",
          {},
          events.map(({ step, event }) => el("li", {}, "step ", this.step(step), ": ", this.event(event))),
        ),
    );
  }

  /** A step, counted from 0, and when it was recorded. */
  timed(index) {
    const { at } = this.run.steps[index] || {};
    return [this.step(index + 1), ` (${at ? at.replace("T", " ").replace("Z", " UTC") : "time n/a"})`];
  }

  step(number) {
    return el("button.link", { type: "button", onclick: () => this.go(number) }, String(number));
  }

  /** A context other than a playbook: its text, with the lines that this step added and removed. */
  document() {
    const { texts } = this.run;
    const now = texts.length("context") ? texts.numbers("context", this.at) : [];
    if (!now.some((line) => texts.lines[line]))
      return this.body.replaceChildren(el("p.note", {}, "There is no context to show."));
    const before = this.at ? texts.numbers("context", this.at - 1) : now;
    const had = new Set(before);
    const has = new Set(now);
    const lines = now.map((line) => el(had.has(line) ? "span" : "ins", {}, `${texts.lines[line]}\n`));
    const gone = before.filter((line) => !has.has(line)).map((line) => el("del", {}, `${texts.lines[line]}\n`));
    return this.body.replaceChildren(
      el("pre.whole", {}, lines),
      ...(gone.length ? [el("h3", {}, "Lines that this step removed"), el("pre.whole", {}, gone)] : []),
    );
  }

  /** Open what a link names. */
  open({ step, bullet }) {
    if (step !== undefined) this.go(+step);
    if (bullet && this.search) {
      this.find(bullet);
    }
  }
}

function eventName({ event, type, into }) {
  return into ? "merged" : event === "accepted" ? type : event;
}

function voteBalance({ helpful, harmful, neutral }) {
  if (!(helpful || harmful || neutral)) return "none";
  return helpful > harmful ? "helpful" : "harmful";
}

function sequence({ id }) {
  return Number(/\d+$/.exec(id)[0]);
}
