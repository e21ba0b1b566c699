/** Where a link leads: the address after # says view, run and what to open there. */
function link(run, view, more = {}) {
  return `#${new URLSearchParams({ view, run: run.key, ...more })}`;
}

const OF_RUN = [
  ["summary", "Summary"],
  ["context", "Context"],
  ["rollouts", "Rollouts"],
];
const OF_ALL = [
  ["runs", "Runs"],
  ["compare", "Compare"],
  ["playbooks", "Playbooks"],
];

const LONGEST_HEADING = 70;

/** The settings by which a run differs from others, or what it is, where these are many. */
function shortName({ name, row: { about, model } }) {
  return name.length <= LONGEST_HEADING
    ? name
    : `${about.task} · ${about.method} · ${model} · ${about.mode} · seed ${about.seed}`;
}

/** The tags and the note that a user gave a run. */
function notesOf({ tags, note }) {
  return (
    (tags.length > 0 || note) &&
    el(
      "p.note",
      {},
      tags.map((tag) => el("span.tag", {}, tag)),
      " ",
      note,
    )
  );
}

class Page {
  constructor(library) {
    this.library = library;
    this.made = new Map();
    this.turn = 0;
    this.shown = { name: "", run: null, made: {} };
    this.head = document.getElementById("head");
    this.tabs = document.getElementById("tabs");
    this.view = document.getElementById("view");
    window.addEventListener("hashchange", () => this.follow());
    library.watch({ runs: () => this.listAgain(), progress: (changed) => this.progress(changed) });
  }

  get several() {
    const { embedded, runs, unreadable } = this.library;
    return !embedded || runs.length + unreadable.length > 1;
  }

  get first() {
    if (!this.library.embedded) return "runs";
    return this.several ? "compare" : "summary";
  }

  async follow() {
    const {
      view = this.first,
      run: key = this.library.embedded ? this.library.runs[0].key : "",
      ...more
    } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    this.turn += 1;
    const { turn } = this;
    const ofRun = OF_RUN.some(([name]) => name === view);
    const name = ofRun || (this.several && OF_ALL.some(([one]) => one === view)) ? view : this.first;
    let made = null;
    let run = null;
    try {
      run = ofRun || name === "summary" ? await this.library.run(key) : null;
      made = this.make(name, run);
    } catch (error) {
      made = { root: el("p.warning", {}, `The run cannot be shown: ${error.message}`) };
    }
    if (turn !== this.turn) return; // another link was followed meanwhile
    this.shown = { name, run, made };
    this.title();
    if (this.view.firstChild !== made.root) this.view.replaceChildren(made.root);
    if (made.open) made.open(more);
    document.documentElement.dataset.ready = name;
  }

  make(name, run) {
    const key = run ? `${name}/${run.key}` : name;
    const known = this.made.get(key);
    if (known && known.run === run) return known;
    const builders = {
      runs: () => new RunsView(this.library),
      compare: () => new CompareView(this.library),
      playbooks: () => new PlaybooksView(this.library),
      summary: () => ({ root: summaryView(run) }),
      context: () => new ContextView(run),
      rollouts: () => new RolloutsView(run),
    };
    if (this.made.size > 20) this.made.clear(); // what was opened long ago is made again
    const made = Object.assign(builders[name](), { run });
    this.made.set(key, made);
    return made;
  }

  title() {
    const { name, run } = this.shown;
    const { embedded, runs, common } = this.library;
    const choose =
      run &&
      embedded &&
      runs.length > 1 &&
      field(
        "Run",
        select(
          runs.map((row) => [row.key, row.label]),
          run.key,
          (key) => {
            location.hash = link({ key }, name).slice(1);
          },
        ),
      );
    const warn = run && (run.about.simulated || run.about.source !== "real");
    const heading = run
      ? shortName(run)
      : { compare: "Comparison", playbooks: "Playbook against playbook" }[name] || plural(runs.length, "run");
    document.title = visible(`${heading} · ace-bench`);
    this.live = el("p.live");
    this.head.replaceChildren(
      el(
        "h1",
        {},
        heading,
        " ",
        (run || this.library).marks.map((mark) => el("span.tag.mark", {}, mark)),
      ),
      el(
        "p.note",
        {},
        run
          ? [runs.length > 1 && run.name !== common && common, heading !== run.name && run.name, run.about.folder]
              .filter(Boolean)
              .join(" — ")
          : common,
        warn ? " — not comparable with published numbers" : "",
      ),
      (run && notesOf(run.row)) || "",
      choose || "",
      this.live,
    );
    const several = this.several
      ? OF_ALL.filter(([one]) => one !== "runs" || !embedded).map(([one, label]) => [one, label, `#view=${one}`])
      : [];
    const own = run
      ? OF_RUN.map(([one, label]) => [one, one === "context" && run.isPlaybook ? "Playbook" : label, link(run, one)])
      : [];
    const last = embedded && !run ? OF_RUN.map(([one, label]) => [one, label, link(runs[0], one)]) : [];
    const tab = ([one, label, href]) =>
      el("a", { href, "aria-current": one === name && "page", onclick: (event) => this.keepChosen(event, one) }, label);
    this.tabs.replaceChildren(...[...several, ...own, ...last].map(tab));
    const current = this.tabs.querySelector("[aria-current]");
    if (current) {
      // not by scrollIntoView: in Chromium the next Tab then begins behind the link that is shown
      const { offsetLeft: left, offsetWidth: width } = current,
        { scrollLeft: from, clientWidth: room } = this.tabs;
      this.tabs.scrollLeft = Math.min(left, Math.max(from, left + width - room));
    }
    this.strip();
  }

  /** The runs that are chosen in one view are those of the next. */
  keepChosen(event, view) {
    const runs = new URLSearchParams(location.hash.slice(1)).get("runs");
    if (!runs || !OF_ALL.some(([one]) => one === view)) return;
    event.preventDefault();
    location.hash = `#${new URLSearchParams({ view, runs })}`;
  }

  /** The progress of the run that is open. */
  strip() {
    const { run } = this.shown;
    const row = run && this.library.rows.get(run.key);
    if (!row || !row.live || row.result) return;
    this.live.replaceChildren(
      ...progressOf(row),
      " ",
      this.stale ? el("button", { type: "button", onclick: () => this.again() }, "Show what is new") : "",
    );
  }

  async again() {
    const { run } = this.shown;
    this.stale = false;
    await this.library.run(run.key, { again: true }).catch(() => null);
    this.follow();
  }

  async listAgain() {
    const before = this.library.rows;
    await this.library.list().catch(() => null); // the server is gone; the page stays as it is
    const { name, run, made } = this.shown;
    if (made.update) made.update();
    const row = run && this.library.rows.get(run.key);
    if (row && before.get(run.key).about.state !== row.about.state) this.again();
    else if (name === "runs") this.title();
  }

  progress(changed) {
    for (const [key, live] of Object.entries(changed)) {
      const row = this.library.rows.get(key);
      if (row) Object.assign(row, { live, changed: live.changed });
    }
    const { name, run, made } = this.shown;
    if (made.progress) made.progress(Object.keys(changed));
    if (!run || !changed[run.key] || run.row.result) return;
    this.stale = this.seen && this.seen.key === run.key;
    this.seen = { key: run.key };
    this.strip();
    if (name === "summary" && this.stale && Date.now() - (this.read || 0) > 4000) {
      this.read = Date.now();
      this.again();
    }
  }
}

const library = new Library();
library
  .list()
  .then(() => {
    const tables = document.querySelector("footer a");
    if (tables && library.token) tables.search = new URLSearchParams({ token: library.token }); // the tables lead back with it
    return new Page(library).follow();
  })
  .catch((error) =>
    document.getElementById("view").replaceChildren(el("p.warning", {}, `Nothing can be shown: ${error.message}.`)),
  );
