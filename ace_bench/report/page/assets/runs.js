/**
 * All runs: search, filters, groups over seeds, any order; the choices are in the address. It is ours because DataTables
 * makes cells by innerHTML, which the page's policy refuses, and weighs several times as much as the whole page.
 */
class RunsView {
  constructor(library) {
    this.library = library;
    this.choice = {};
    this.root = el("div");
    this.search = el("input", {
      type: "search",
      placeholder: "words, or setting=value",
      oninput: debounced(() => this.set({ q: this.search.value })),
    });
    this.build();
  }

  build() {
    const { runs } = this.library;
    this.intervals = null;
    this.score = scoreColumn(runs);
    this.telling = tellingSettings(this.library);
    this.columns = columnsOf({ ...this.library, telling: this.telling });
    this.menu = new ColumnMenu(this.columns, (cols) => this.set({ cols }));
    const orders = [this.score, ...this.columns.values()];
    this.order = select([["", "newest first"], ...orders.map(({ id, label }) => [id, label])], "", (by) =>
      this.set({ by, down: this.columns.get(by)?.word ? "" : "1" }),
    );
    this.count = el("p.note", { role: "status" });
    this.group = select(
      [
        ["", "no"],
        ["seed", "over seeds"],
      ],
      "",
      (value) => this.set({ group: value }),
    );
    const states = [...new Set(runs.map(({ about }) => about.state))].sort();
    this.filters = new Map([
      [
        "state",
        select([["", "all"], ...states.map((state) => [state, state])], "", (value) => this.set({ state: value })),
      ],
    ]);
    for (const { id, pick, each } of [...this.columns.values()]
      .filter(({ filter }) => filter)
      .sort((a, b) => !a.each - !b.each)) {
      const values = [...new Set(runs.flatMap(each || pick))].filter((value) => value !== undefined).sort(inOrder);
      if (values.length > (each ? 0 : 1) && values.length <= 30 && this.filters.size < 7)
        this.filters.set(
          `is.${id}`,
          select([["", "all"], ...values.map((value) => [value, value])], "", (value) =>
            this.set({ [`is.${id}`]: value }),
          ),
        );
    }
    this.since = el("input", { type: "date", onchange: () => this.set({ since: this.since.value }) });
    this.actions = el("p.actions");
    this.heads = el("tr");
    this.list = new LazyList((item) => this.item(item), {
      empty: runs.length
        ? "No run matches."
        : "There are no runs yet; start one with `ace-bench run task=finer method=ace`.",
      node: el("tbody"),
      frame: el("div"),
    });
    this.list.root.firstChild.replaceWith(
      el(
        "div.scroll",
        { tabindex: 0, role: "region", "aria-label": "Runs" },
        el("table.runs", {}, el("thead", {}, this.heads), this.list.node),
      ),
    );
    this.controls = el(
      "div.controls",
      {},
      field("Search", this.search),
      [...this.filters].map(([name, control]) =>
        field(name === "state" ? name : this.columns.get(name.slice(3)).label, control),
      ),
      field("Since", this.since),
      field("Group", this.group),
      field("Order", this.order),
    );
    const more = el(
      "button.more",
      {
        type: "button",
        "aria-expanded": "false",
        onclick: () => more.setAttribute("aria-expanded", String(this.controls.classList.toggle("all"))),
      },
      "Filters and order",
    );
    this.root.replaceChildren(
      this.controls,
      el("div.bar", {}, this.count, more, this.menu.root, this.actions),
      this.list.root,
    );
  }

  /** Change choices and the address, without an entry in the history for each letter. */
  set(changes) {
    const words = new URLSearchParams(location.hash.slice(1));
    words.set("view", "runs");
    for (const [name, value] of Object.entries({ q: this.search.value, ...changes })) {
      if (value) words.set(name, value);
      else words.delete(name);
    }
    history.replaceState(null, "", `#${words}`);
    this.open(Object.fromEntries(words));
  }

  open(choice) {
    this.choice = choice;
    this.chosen = new Set((choice.runs || "").split(",").filter((key) => this.library.rows.has(key)));
    if (document.activeElement !== this.search) this.search.value = choice.q || "";
    for (const [name, control] of this.filters) control.value = choice[name] || "";
    this.group.value = choice.group || "";
    this.since.value = choice.since || "";
    this.order.value = choice.by || "";
    this.listed = this.menu
      .open(choice.cols)
      .filter(({ id }) => choice.cols || choice.group !== "seed" || id !== "seed");
    const listed = new Set(this.listed.map(({ id }) => id));
    this.unlisted = [...this.columns.values()].filter(
      ({ id, named, place }) => (named || this.telling.includes(place)) && !listed.has(id),
    );
    this.varied = new Set(this.unlisted.filter(({ pick }) => new Set(this.library.runs.map(pick)).size > 1));
    this.show();
  }

  /** The list was read again. */
  update() {
    const typing = document.activeElement === this.search;
    const [open, all] = [this.menu.root.open, this.controls.className];
    this.build();
    this.menu.root.open = open;
    this.controls.className = all;
    if (typing) this.search.focus();
    this.open(this.choice);
  }

  progress(keys) {
    for (const key of keys) {
      const place = this.places?.get(key);
      if (!place?.isConnected) continue;
      const row = this.library.rows.get(key);
      place.replaceChildren(place.firstChild, ...this.cells(row)); // the link keeps its focus
    }
  }

  show() {
    const { q = "", group } = this.choice;
    const { runs, unreadable } = this.library;
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const filters = [...this.filters.keys()].filter((name) => this.choice[name]);
    const since = Date.parse(this.choice.since || "") / 1000 || 0;
    const fits = (row) =>
      row.date >= since &&
      words.every((word) => this.textOf(row).includes(word)) &&
      filters.every((name) => this.valuesOf(row, name).includes(this.choice[name]));
    const found = runs.filter(fits);
    const broken = words.length || filters.length || since ? [] : unreadable;
    if (group === "seed" && !this.intervals) this.readIntervals();
    this.places = new Map();
    const items = group === "seed" ? this.groups(found) : found.map((row) => ({ rows: [row], row }));
    this.sort(items);
    items.forEach((item, place) => Object.assign(item, { first: place > 0 && item.set !== items[place - 1].set }));
    const unread = broken.length ? `, ${broken.length} unreadable` : "";
    const groups = group === "seed" ? `; ${plural(items.length, "group")}, numbers are means over seeds` : "";
    this.count.textContent = `${plural(found.length, "run")} of ${shown(runs.length)}${unread}${groups}`;
    const widthOf = ({ rows }) => {
      // of what stands in the first column, in pixels: scores are pinned behind it
      const several = rows.length > 1;
      return (
        44 +
        (several ? 7.4 : 6.9) * this.name(rows[0], { group: several }).length +
        (several ? 95 : 0) +
        (rows[0].about.source === "real" ? 0 : 100)
      );
    };
    this.root.style.setProperty(
      "--name",
      `min(${Math.max(broken.length && 250, ...items.slice(0, 200).map(widthOf))}px, 400px, 34vw)`,
    );
    this.head();
    this.act();
    this.list.show([...broken.map((one) => ({ broken: one })), ...items]);
  }

  /** The intervals over seeds, which only groups show. */
  async readIntervals() {
    this.intervals = {};
    const found = await this.library.intervals().catch(() => ({}));
    this.intervals = found;
    if (this.choice.group === "seed") this.show();
  }

  /** What a filter looks for in a run. */
  valuesOf(row, filter) {
    if (filter === "state") return [row.about.state];
    const column = this.columns.get(filter.slice(3));
    return column?.each ? column.each(row) : [column?.pick(row)];
  }

  textOf(row) {
    if (!row.words)
      row.words = [
        row.label,
        row.folder,
        row.about.state,
        row.note,
        ...row.tags,
        ...this.library.settings.flatMap(([path, name], place) => [
          `${path}=${row.values[place]}`,
          `${name}=${row.values[place]}`,
        ]),
        ...["task", "method", "backbone", "mode", "seed"].map((name) => `${name}=${row.about[name]}`),
      ]
        .join(" ")
        .toLowerCase();
    return row.words;
  }

  /** The seeds of a run as one item. */
  groups(rows) {
    return [...grouped(rows, ({ seeds }) => seeds).values()].map((members) => ({
      rows: members,
      row: members.length === 1 ? members[0] : null,
    }));
  }

  /** What no column says of a run, or of runs that differ in seeds. */
  name(row, { group = false } = {}) {
    const told = this.unlisted.filter(
      (column) =>
        !(group && COUNTED.includes(column.id)) && (this.varied.has(column) || ["task", "method"].includes(column.id)),
    );
    const words = ["task", "method", "model", "mode", "folder"];
    return (
      told
        .map(({ id, label, pick }) => [id, label, pick(row)])
        .filter(([, , value]) => value !== undefined)
        .map(([id, label, value]) =>
          words.includes(id) ? value : COUNTED.includes(id) ? `${id} ${value}` : `${label}=${value}`,
        )
        .join(" · ") || row.folder.split("/").slice(-2).join("/")
    );
  }

  sort(items) {
    const { by, down } = this.choice;
    const column = by === "score" ? this.score : this.columns.get(by);
    const running = ({ about }) => about.state === "running";
    for (const item of items) {
      // once for each item, not for each comparison
      if (column)
        Object.assign(item, {
          value: this.mean(column, item.rows),
          set: column.score ? item.rows.find(({ tested }) => tested)?.tested || "" : "",
        });
      else
        Object.assign(item, {
          running: item.rows.some(running),
          newest: Math.max(...item.rows.map(({ date }) => date)),
        });
    }
    items.sort((a, b) => {
      if (!column) return b.running - a.running || b.newest - a.newest;
      const [unknown, other] = [a, b].map(({ value }) => value === undefined || value === null);
      if (unknown || other) return unknown - other; // unknown ones last
      if (a.set !== b.set) return inOrder(a.set, b.set); // scores over other samples do not compare
      return (down ? -1 : 1) * inOrder(a.value, b.value);
    });
  }

  mean(column, rows) {
    const values = rows.map(column.pick);
    if (column.score && new Set(rows.filter(({ result }) => result).map(({ tested }) => tested)).size > 1)
      return undefined;
    if (column.word) return values.every((one) => one === values[0]) ? values[0] : undefined;
    if (column.id === "seed" && rows.length > 1) return undefined; // their number stands beside the name
    const known = values.filter((one) => typeof one === "number");
    if (!known.length) return values.includes(null) ? null : undefined;
    return ["last change", "date"].includes(column.id)
      ? Math.max(...known)
      : known.reduce((sum, one) => sum + one, 0) / known.length;
  }

  head() {
    const { by, down } = this.choice;
    this.score.note = "95% interval";
    const sorted = (id) => (id === by ? (down ? "descending" : "ascending") : null);
    const button = ({ id, label, note, word, score }) =>
      el(
        "th",
        { scope: "col", "aria-sort": sorted(id), class: score ? "score" : word ? "word" : null },
        el(
          "button.sort",
          {
            type: "button",
            "data-by": id,
            onclick: () => {
              this.set({ by: id, down: (id === by ? down : word) ? "" : "1" });
              this.heads.querySelector(`[data-by="${CSS.escape(id)}"]`).focus();
            },
          },
          label.split(/(?<=[_.])/).map((part) => [part, el("wbr")]),
          sorted(id) ? (down ? " ▼" : " ▲") : "",
        ),
        note && el("span.note", {}, note),
      );
    this.heads.replaceChildren(el("th", { scope: "col" }, "run"), ...this.shownColumns.map(button));
  }

  get shownColumns() {
    return [this.score, ...this.listed];
  }

  /** What can be done with the chosen runs. */
  act() {
    const keys = [...this.chosen];
    const to = (view, text) =>
      el("a.button", { href: `#${new URLSearchParams({ view, runs: keys.join(",") })}` }, text);
    this.actions.replaceChildren(
      ...(keys.length < 2
        ? [el("span.note", {}, "Choose two or more runs to compare them.")]
        : [
            to("compare", `Compare ${keys.length} runs`),
            " ",
            keys.length === 2 ? to("playbooks", "Playbook against playbook") : "",
          ]),
      " ",
      keys.length ? el("button.link", { type: "button", onclick: () => this.set({ runs: "" }) }, "choose none") : "",
    );
  }

  choose(rows, on) {
    for (const { key } of rows) {
      if (on) this.chosen.add(key);
      else this.chosen.delete(key);
    }
    const words = new URLSearchParams(location.hash.slice(1));
    words.set("view", "runs");
    words.set("runs", [...this.chosen].join(","));
    history.replaceState(null, "", `#${words}`);
    this.choice = Object.fromEntries(words);
    this.act();
  }

  item(item) {
    if (item.broken)
      return el(
        "tr.broken",
        {},
        el(
          "th",
          { scope: "row" },
          el(
            "div.name",
            {},
            el("span.path", { title: item.broken.folder }, item.broken.folder),
            el("span.tag.fault", {}, "unreadable"),
          ),
        ),
        el("td.reason", { colspan: this.shownColumns.length }, item.broken.reason),
      );
    const node = item.row ? this.row(item.row) : this.groupRow(item);
    if (item.first) node.classList.add("first");
    return node;
  }

  box(rows, name) {
    const box = el("input", {
      type: "checkbox",
      "aria-label": `Choose ${name}`,
      onchange: () => this.choose(rows, box.checked),
    });
    box.checked = rows.every(({ key }) => this.chosen.has(key));
    return box;
  }

  row(row, inner = false) {
    const name = this.name(row);
    const node = el(
      `tr${inner ? ".inner" : ""}`,
      {},
      el(
        "th",
        { scope: "row" },
        el(
          "div.name",
          {},
          this.box([row], row.label),
          el("a", { href: link(row, "summary"), title: `${row.label} — ${row.folder}` }, name),
          this.marks(row),
        ),
      ),
      this.cells(row, inner),
    );
    this.places.set(row.key, node);
    return node;
  }

  /** How far a run can be compared with published numbers. `simulated` stands beside the model where that is a column. */
  marks({ about: { simulated, source } }) {
    return [
      source !== "real" && "sample data",
      simulated && !this.listed.some(({ id }) => id === "model") && "simulated",
    ]
      .filter(Boolean)
      .map((mark) => el("span.tag.mark", {}, mark));
  }

  cells(row, inner = false) {
    const one = this.choice.group === "seed" && !inner;
    return this.shownColumns.map((column) =>
      this.cell(column, column.pick(row), {
        note:
          column.score && row.result ? [intervalOf(row.result), one && "one seed"].filter(Boolean).join(", ") : null,
        made: column.score && !row.result && standing(row),
        row,
      }),
    );
  }

  groupRow(item) {
    const [first] = item.rows;
    const name = this.name(first, { group: true });
    const toggle = el(
      "button.toggle",
      {
        type: "button",
        "aria-expanded": "false",
        onclick: () => {
          const open = toggle.getAttribute("aria-expanded") === "true";
          toggle.setAttribute("aria-expanded", String(!open));
          if (open) item.made.forEach((row) => row.remove());
          else node.after(...(item.made = item.rows.map((row) => this.row(row, true))));
        },
      },
      name,
    );
    const states = [...new Set(item.rows.map(({ about }) => about.state))].map(stateTag);
    const node = el(
      "tr.group",
      {},
      el(
        "th",
        { scope: "row" },
        el(
          "div.name",
          {},
          this.box(item.rows, name),
          toggle,
          el("span.tag", {}, plural(item.rows.length, "seed")),
          this.marks(first),
        ),
      ),
      this.shownColumns.map((column) =>
        this.cell(column, this.mean(column, item.rows), {
          note: column.score && this.spanOf(item.rows),
          made: column.score && !item.rows.some(({ result }) => result) && states,
          row: first,
        }),
      ),
    );
    return node;
  }

  /** The interval of the mean of seeds as tables give it, and how many of them have a score. */
  spanOf(rows) {
    const done = rows.filter(({ result }) => result);
    const { ci95, note, runs } =
      done.length === 1 ? { ...done[0].result, runs: 1 } : this.intervals[rows[0].seeds] || {};
    const words = runs === done.length ? [intervalOf({ ci95 }), note] : []; // it is of all seeds, not of those that a filter leaves
    return [...words, done.length && done.length < rows.length && `${done.length} of ${rows.length}`]
      .filter(Boolean)
      .join(", ");
  }

  cell(column, value, { note, made, row }) {
    const { id, label, word, score, minor, text, title } = column;
    const kind = score ? ".score" : word ? ".word" : "";
    return el(
      `td${kind}${minor && !this.choice.cols ? ".minor" : ""}`,
      { "data-label": score ? null : label, title: title ? title(row) : word && value !== undefined ? value : null },
      made || (value === undefined ? "" : text(value)),
      note && el("span.note", {}, ` ${note}`),
      id === "model" && row.about.simulated && [" ", el("span.tag.mark", {}, "simulated")],
    );
  }
}

const alphabet = new Intl.Collator("en", { numeric: true });

/** Numbers by size, words by the alphabet, numbers within words by size. */
function inOrder(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : alphabet.compare(a, b);
}

function intervalOf({ ci95 }) {
  return ci95 ? `${ci95[0].toFixed(1)}–${ci95[1].toFixed(1)}` : "";
}

function stateTag(state, reason = "") {
  return el(`span.tag.${state === "running" ? "right" : "mark"}`, { title: reason || null }, state);
}

/** How a run ended that has no score, or how far it is: what stands in place of a score. */
function standing({ about, live, changed }) {
  const { stage, done, total, score } = live || {};
  const quiet = about.state === "running" && changed && Date.now() / 1000 - changed > QUIET_S;
  const words = [
    stage && done ? `${stage} ${done}${total ? `/${total}` : ""}` : "",
    typeof score === "number" ? `${score.toFixed(1)} so far` : "",
    quiet ? `silent for ${ago(changed, "")}` : "",
  ];
  return [stateTag(about.state, about.reason), el("span.note", {}, words.filter(Boolean).join(", "))];
}

/** Settings and their values as a name. */
function nameOf(settings, values) {
  const words = ["task", "method", "backbone", "mode", "folder"];
  return settings
    .map(([path, name], place) =>
      values[place] === null
        ? ""
        : words.includes(path)
          ? values[place]
          : path === "seed" || path === "attempt"
            ? `${path} ${values[place]}`
            : `${name}=${values[place]}`,
    )
    .filter(Boolean)
    .join(" · ");
}

const QUIET_S = 120;

/** The state of a run that has not finished, and how far it is. */
function progressOf({ about, result, live, changed }) {
  if (result) return [];
  const found = [stateTag(about.state, about.reason)];
  if (!live || !live.stage) return found;
  const { stage, split, done, total, score, n, items, usd, sizes } = live;
  if (total) found.push(el("progress", { max: total, value: done, "aria-label": `${stage}: ${done} of ${total}` }));
  found.push(
    el(
      "span.note",
      {},
      [
        `${stage} ${split} ${done}${total ? ` of ${total}` : ""}`,
        score === null ? "" : `score so far ${score.toFixed(1)} (n = ${n})`,
        items ? plural(items, "item") : "",
        usd ? `$${usd.toFixed(4)}` : "",
      ]
        .filter(Boolean)
        .join(" · "),
    ),
  );
  if (sizes.length > 1) found.push(spark(sizes.map(([step, , size]) => [step, size])));
  if (about.state === "running" && changed && Date.now() / 1000 - changed > QUIET_S)
    found.push(el("span.tag.mark", {}, `nothing written for ${ago(changed, "")}`));
  return found.flatMap((one) => [one, " "]);
}

/** How the context grew, as a line without axes: the numbers stand beside it. */
function spark(points) {
  const [last, most] = [points[points.length - 1][0], Math.max(1, ...points.map(([, size]) => size))];
  return svg(
    "svg",
    { class: "spark", viewBox: "0 0 80 16", "aria-hidden": "true" },
    svg("polyline", {
      class: "line c0",
      points: points
        .map(([step, size]) => `${((78 * step) / last).toFixed(1)},${(15 - (14 * size) / most).toFixed(1)}`)
        .join(" "),
    }),
  );
}

function ago(time, behind = " ago") {
  const seconds = Math.max(0, Date.now() / 1000 - time);
  const [size, unit] = [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ].find(([one]) => seconds >= one) || [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}${behind}`;
}
