/** Where the data comes from: blocks of this page (a report), or the server or static site that the page lies on. */
class Embedded {
  constructor() {
    this.whole = true;
    this.kept = new Map();
  }

  get(name) {
    if (!this.kept.has(name)) this.kept.set(name, unpack(`data-${name}`));
    return this.kept.get(name);
  }
}

class Served {
  constructor() {
    this.whole = false;
  }

  async get(name, query = {}) {
    const words = new URLSearchParams(query).toString();
    const answer = await fetch(`data/${name}.bin${words && `?${words}`}`).catch(() => null);
    if (!answer && location.protocol === "file:")
      throw new Error(
        "browsers do not let this file read the folder beside it. Serve the folder, as `python3 -m http.server` does, " +
          "or write one file by `ace-bench report FOLDER --out FILE.html`",
      );
    if (!answer) throw new Error("the server does not answer. Start `ace-bench view` again");
    if (!answer.ok) throw new Error(await answer.text());
    return inflated(answer.body);
  }
}

/** The list of runs, and runs as they are opened. */
class Library {
  constructor() {
    this.source = document.getElementById("data-runs") ? new Embedded() : new Served();
    this.opened = new Map();
    this.said = new Map();
  }

  get embedded() {
    return this.source instanceof Embedded;
  }

  async list() {
    const found = await this.source.get("runs");
    Object.assign(this, found); // common, settings, runs, unreadable, live
    this.rows = new Map(this.runs.map((row) => [row.key, row]));
    if (!this.live) this.source.whole = true; // a static site ignores what a query asks for: everything comes at once
  }

  /** The token that allows changes, "" where the page only reads. */
  get token() {
    return (this.live && new URLSearchParams(location.search).get("token")) || "";
  }

  /** Change a bullet of a run's playbook in a copy. Return what of the copy differs from what the run tested. */
  change(run, changes) {
    return this.edits("playbook", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Token": this.token },
      body: JSON.stringify({ run, ...changes }),
    });
  }

  /** What of the copy of a run's playbook differs, nothing if there is none. */
  edited(run) {
    return this.edits(`playbook?${new URLSearchParams({ run })}`);
  }

  async edits(address, request) {
    const answer = await fetch(address, request).catch(() => null);
    if (!answer) throw new Error("the server does not answer. Start `ace-bench view` again");
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }

  /** What all runs are marked as. */
  get marks() {
    return ["simulated", "sample data"].filter(
      (mark) => this.runs.length && this.runs.every(({ about }) => marksOf(about).includes(mark)),
    );
  }

  /** One run; read again after its records grew. */
  run(key, { again = false } = {}) {
    if (again || !this.opened.has(key)) {
      const row = this.rows.get(key);
      if (!row) return Promise.reject(new Error("there is no such run any more"));
      this.opened.delete(key);
      if (this.opened.size > 12) this.opened.delete(this.opened.keys().next().value);
      const run = this.source.get(`run-${key}`).then((raw) => new Run(raw, row, this));
      run.catch(() => this.opened.delete(key));
      this.opened.set(key, run);
    }
    return this.opened.get(key);
  }

  /** What was sent in the calls of a session and came back: by the number of the call. */
  calls(key, session) {
    const name = this.source.whole ? key : `${key}/${session}`;
    if (!this.said.has(name)) {
      if (this.said.size > 40) this.said.clear();
      const query = this.source.whole ? {} : { session };
      this.said.set(
        name,
        this.source.get(`calls-${key}`, query).then(({ calls, texts, note }) => ({
          byPlace: new Map(calls.map((call) => [call.place, call])),
          texts: new Texts(texts),
          note,
        })),
      );
    }
    return this.said.get(name);
  }

  comparison(keys) {
    return this.source.get("comparison", this.source.whole ? {} : { runs: keys.join(",") });
  }

  intervals() {
    return this.source.get("intervals");
  }

  /** Tell about events of a live server; the connection is closed while the page is hidden: browsers allow only six. */
  watch({ runs, progress }) {
    if (!this.live) return;
    let events = null;
    const follow = () => {
      if (document.hidden) {
        if (events) events.close();
        events = null;
      } else if (!events) {
        events = new EventSource("events");
        events.addEventListener("runs", runs);
        events.addEventListener("progress", (event) => progress(JSON.parse(event.data)));
      }
    };
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) runs();
      follow();
    });
    follow();
  }
}
