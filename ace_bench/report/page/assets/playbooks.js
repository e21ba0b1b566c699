/** One playbook against another, or against itself at another step: by bullets, or as text. */
class PlaybooksView {
  constructor(library) {
    this.library = library;
    this.root = el("div");
    this.sides = [{}, {}];
  }

  open({ runs = "", at = "", as = "bullets", only = "differ" }) {
    const keys = runs.split(",").filter((key) => this.library.rows.has(key));
    const all = [...this.library.rows.values()].filter(
      ({ result }) => !result || result.context.kind.startsWith("playbook"),
    );
    if (!all.length) {
      this.root.replaceChildren(el("p.note", {}, "No run has a playbook."));
      return;
    }
    const [first, second = first] = keys.length ? keys : all.slice(0, 2).map(({ key }) => key);
    const steps = at.split(",");
    Object.assign(this, { keys: [first, second], steps, as, only });
    const options = all.map(({ key, label }) => [key, label]);
    const choose = (place) =>
      select(options, this.keys[place], (key) =>
        this.go({
          runs: this.keys.map((old, side) => (side === place ? key : old)).join(","),
          at: this.steps.map((old, side) => (side === place ? "" : old)).join(","),
        }),
      );
    this.body = later(Promise.all(this.keys.map((key) => this.library.run(key))), (found) => this.both(found));
    this.stepControls = el("div.controls");
    this.root.replaceChildren(
      el(
        "div.controls",
        {},
        field("From run", choose(0)),
        field("To run", choose(1)),
        field(
          "As",
          select(
            [
              ["bullets", "bullets"],
              ["text", "text"],
            ],
            as,
            (value) => this.go({ as: value }),
          ),
        ),
        as === "bullets" &&
          field(
            "Bullets",
            select(
              [
                ["differ", "that differ"],
                ["changed", "changed"],
                ["del", "only in the first"],
                ["ins", "only in the second"],
                ["same", "in both"],
                ["all", "all"],
              ],
              only,
              (value) => this.go({ only: value }),
            ),
          ),
      ),
      this.stepControls,
      this.body,
    );
  }

  go(changes) {
    const words = new URLSearchParams(location.hash.slice(1));
    words.set("view", "playbooks");
    words.set("runs", this.keys.join(","));
    for (const [name, value] of Object.entries(changes)) words.set(name, value);
    location.hash = words;
  }

  both(runs) {
    if (runs.some((run) => !run.isPlaybook)) return el("p.warning", {}, "One of these runs has no playbook.");
    const steps = runs.map((run, side) =>
      this.steps[side] === undefined || this.steps[side] === ""
        ? run.steps.length
        : Math.max(0, Math.min(run.steps.length, +this.steps[side] || 0)),
    );
    const slider = (side) => {
      const input = el("input", {
        type: "number",
        min: 0,
        max: runs[side].steps.length,
        value: steps[side],
        onchange: () => this.go({ at: steps.map((old, place) => (place === side ? input.value : old)).join(",") }),
      });
      return field(`${side ? "To" : "From"} step, of ${runs[side].steps.length}`, input);
    };
    this.stepControls.replaceChildren(...runs.map((_, side) => slider(side)));
    const [a, b] = runs.map((run, side) => [...run.bullets(steps[side]).values()]);
    return this.as === "text" ? this.text(a, b) : this.bullets(a, b);
  }

  bullets(a, b) {
    const pairs = pairedBullets(a, b);
    const count = (kind) => pairs.filter((pair) => pair.kind === kind).length;
    const shownPairs = pairs.filter(
      ({ kind }) => this.only === "all" || (this.only === "differ" ? kind !== "same" : kind === this.only),
    );
    const list = new LazyList((pair) => this.row(pair), { empty: "There are none." });
    list.show(shownPairs);
    const both = `${count("same")} in both, ${count("changed")} changed`;
    const one = `${count("del")} only in the first, ${count("ins")} only in the second`;
    return [
      el("p.verdict", { role: "status" }, `${plural(a.length, "bullet")} and ${b.length}: ${both}, ${one}.`),
      list.root,
    ];
  }

  row({ kind, before, after }) {
    const names = { same: "", changed: "changed", del: "removed", ins: "new" };
    const labels = { same: "in both", changed: "changed", del: "only in the first", ins: "only in the second" };
    const { section } = after || before;
    const ids = [...new Set([before, after].filter(Boolean).map(({ id }) => id))].join(" → ");
    const votes = ["helpful", "harmful", "neutral"].map((name) =>
      el(
        "span.vote",
        {},
        `${name} ${[before, after]
          .filter(Boolean)
          .map((bullet) => bullet[name])
          .filter((value, place, all) => !place || value !== all[0])
          .join(" → ")}`,
      ),
    );
    const content = kind === "changed" ? markedText(before.content, after.content) : (after || before).content;
    return el(
      `li.bullet.${names[kind] || "same"}`,
      {},
      el(
        "p.meta",
        {},
        el("code", {}, ids),
        el("span.tag", {}, section),
        el(`span.tag.${names[kind] || "even"}`, {}, labels[kind]),
        votes,
      ),
      el("p.content", {}, content),
    );
  }

  text(a, b) {
    const parts = diff(asLines(a), asLines(b));
    const changed = parts.filter(({ kind }) => kind !== "same").reduce((sum, { items }) => sum + items.length, 0);
    const nodes = parts.map(({ kind, items }, place) => {
      if (kind !== "same") return items.map((line) => el(kind, {}, `${kind === "del" ? "−" : "+"} ${line}\n`));
      if (items.length <= 2 * CONTEXT + 1) return items.map((line) => `  ${line}\n`);
      const head = place ? items.slice(0, CONTEXT) : [];
      const tail = place < parts.length - 1 ? items.slice(items.length - CONTEXT) : [];
      return [...head, `… ${plural(items.length - head.length - tail.length, "equal line")}`, ...tail].map(
        (line) => `  ${line}\n`,
      );
    });
    return [
      el(
        "p.verdict",
        { role: "status" },
        changed ? `${plural(changed, "line")} of one playbook alone.` : "The texts are equal.",
      ),
      el("pre.whole", {}, nodes),
    ];
  }
}

const CONTEXT = 3;
const ALIKE = 0.5;

/** A playbook as text: its sections, and their bullets without counters. */
function asLines(bullets) {
  return [...grouped(bullets, ({ section }) => section)].flatMap(([section, own]) => [
    `## ${section}`,
    ...own.flatMap(({ id, content }) => `[${id}] ${content}`.split("\n")),
  ]);
}

/** Bullets of two playbooks: with equal content in both; changed under the same id; in one alone. Runs may use one id for
 *  quite different lessons, so an id counts only where half of the words agree. */
function pairedBullets(a, b) {
  const byContent = grouped(b, ({ section, content }) => `${section}\n${content}`);
  const taken = new Set();
  const partner = new Map();
  const pair = (before, kind, after) => {
    partner.set(before, { kind, after });
    taken.add(after);
  };
  for (const bullet of a) {
    const other = (byContent.get(`${bullet.section}\n${bullet.content}`) || []).find((one) => !taken.has(one));
    if (other) pair(bullet, "same", other);
  }
  const byId = new Map(b.filter((bullet) => !taken.has(bullet)).map((bullet) => [bullet.id, bullet]));
  for (const bullet of a.filter((one) => !partner.has(one))) {
    const other = byId.get(bullet.id);
    if (other && overlap(bullet.content, other.content) >= ALIKE) pair(bullet, "changed", other);
  }
  const rows = a.map((before) => ({ kind: "del", before, ...partner.get(before) }));
  const order = { changed: 0, del: 1, ins: 2, same: 3 };
  return [...rows, ...b.filter((bullet) => !taken.has(bullet)).map((after) => ({ kind: "ins", after }))].sort(
    (x, y) => order[x.kind] - order[y.kind],
  );
}

/** The share of words that two texts have in common. */
function overlap(a, b) {
  const [x, y] = [a, b].map((text) => new Set(text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || []));
  const both = [...x].filter((word) => y.has(word)).length;
  return both / (x.size + y.size - both || 1);
}
