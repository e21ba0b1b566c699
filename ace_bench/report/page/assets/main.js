/** Where a link leads: the address after # says run, part and what to open there. */
function link(run, view, more = {}) {
  return `#${new URLSearchParams({ view, run: run.place, ...more })}`;
}

const VIEWS = [["summary", "Summary"], ["context", "Context"], ["rollouts", "Rollouts"]];

class Page {
  constructor({ runs, comparison, unreadable, common, labels }) {
    this.common = common;
    this.labels = labels;
    this.count = runs;
    this.comparison = comparison;
    this.unreadable = unreadable;
    this.runs = new Map();
    this.made = new Map();
    this.turn = 0;
    this.head = document.getElementById("head");
    this.tabs = document.getElementById("tabs");
    this.view = document.getElementById("view");
    window.addEventListener("hashchange", () => this.follow());
  }

  async run(place) {
    if (!this.runs.has(place)) this.runs.set(place, new Run(await unpack(`data-run-${place}`), place, this.labels[place]));
    return this.runs.get(place);
  }

  async follow() {
    const { view = this.comparison ? "compare" : "summary", run: wanted = 0, ...more } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    const place = Math.max(0, Math.min(this.count - 1, +wanted || 0));
    this.turn += 1;
    const { turn } = this;
    const run = await this.run(place);
    const known = [...VIEWS.map(([name]) => name), ...(this.comparison ? ["compare"] : [])];
    const name = known.includes(view) ? view : "summary";
    const made = await this.make(name, run);
    if (turn !== this.turn) return; // another link was followed meanwhile
    this.title(run, name);
    if (this.view.firstChild !== made.root) this.view.replaceChildren(made.root);
    if (made.open) made.open(more);
    document.documentElement.dataset.ready = name;
  }

  async make(name, run) {
    const key = name === "compare" ? name : `${name}/${run.place}`;
    if (!this.made.has(key)) {
      const builders = {
        summary: () => ({ root: summaryView(run) }),
        context: () => new ContextView(run),
        rollouts: () => new RolloutsView(run),
        compare: async () => new CompareView(await Promise.all(Array.from({ length: this.count }, (_, place) => this.run(place))), this.comparison, this.unreadable),
      };
      this.made.set(key, await builders[name]());
    }
    return this.made.get(key);
  }

  title(run, view) {
    const comparing = view === "compare";
    const choose = this.count > 1 && !comparing && field("Run", select(Array.from({ length: this.count }, (_, place) => [place, `${place + 1}: ${this.labels[place]}`]), run.place, (place) => {
      location.hash = link({ place }, view).slice(1);
    }));
    const marks = run.marks.map((mark) => el("span.tag.mark", {}, mark));
    const warn = run.about.simulated || run.about.source !== "real";
    this.head.replaceChildren(
      el("h1", {}, comparing ? plural(this.count, "run") : run.name, " ", comparing ? "" : marks),
      el("p.note", {}, comparing ? this.common || "A comparison of run folders." : [this.count > 1 && this.common, run.about.folder].filter(Boolean).join(" — "), warn && !comparing ? " — not comparable with published numbers" : ""), choose || "");
    const tabs = [...(this.comparison ? [["compare", "Compare"]] : []), ...VIEWS.map(([name, label]) => [name, name === "context" && run.isPlaybook ? "Playbook" : label])];
    this.tabs.replaceChildren(...tabs.map(([name, label]) => el("a", { href: link(run, name), "aria-current": name === view && "page" }, label)));
  }
}

unpack("data-report")
  .then((report) => new Page(report).follow())
  .catch((error) => document.getElementById("view").replaceChildren(el("p.warning", {}, `The report cannot be shown: ${error}`)));
