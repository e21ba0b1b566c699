/** All runs: search, filters, groups over seeds, any order; the choices are in the address. */
class RunsView {
  constructor(library) {
    this.library = library;
    this.choice = {};
    this.root = el("div");
    this.search = el("input", { type: "search", placeholder: "words, or setting=value", oninput: debounced(() => this.set({ q: this.search.value })) });
    this.build();
  }

  /** Columns: what a run was, then what came out. Scores over different samples have columns of their own. */
  columns() {
    const { runs, settings } = this.library;
    const of = (name, pick, { digits = 0, low = true } = {}) => ({ id: name, label: name, pick, text: (value) => shown(value, digits), low });
    const result = (pick) => ({ result }) => (result ? pick(result) : undefined);
    const either = (name) => ({ result, live }) => (result || live || {})[name];
    const scores = new Map();
    for (const row of runs) {
      const { about, result } = row;
      row.scored = result ? [about.task, result.split, result.metric, result.sampled].join("/") : null;
      if (result) scores.set(row.scored, { about, result });
    }
    const several = scores.size > 1;
    const scored = [...scores].sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, one]) => ({
      id, label: `${several ? `${one.about.task} ` : ""}${one.result.split} ${one.result.metric}`, note: `n = ${one.result.n}`, score: true, pick: (row) => (row.scored === id ? row.result.after : undefined), text: (value) => shown(value, 2), row: (row) => scoreOf(row.result),
    }));
    return [
      ...settings.map(([path, label], place) => ({ id: path, label, setting: true, pick: ({ values }) => values[place] ?? undefined, text: (value) => value })),
      ...scored,
      of("before", result(({ before }) => before ?? undefined), { digits: 2 }),
      of("faults", either("faults")),
      of("items", ({ result: found, live }) => (found ? found.context.items : live?.items)),
      of("context tokens", ({ result: found, live }) => (found ? found.context.tokens : live?.tokens)),
      of("calls", either("calls")),
      of("tokens in", either("in")),
      of("dollars", either("usd"), { digits: 4 }),
      { id: "changed", label: "last change", pick: ({ changed }) => changed ?? undefined, text: (value) => (value ? ago(value) : "") },
    ].filter(({ pick, score }) => score || runs.some((row) => pick(row) !== undefined));
  }

  build() {
    const { runs } = this.library;
    this.shownColumns = this.columns();
    this.count = el("p.note", { role: "status" });
    this.group = select([["", "no"], ["seed", "over seeds"]], "", (value) => this.set({ group: value }));
    const states = [...new Set(runs.map(({ about }) => about.state))].sort();
    this.filters = new Map([["state", select([["", "all"], ...states.map((state) => [state, state])], "", (value) => this.set({ state: value }))]]);
    for (const { id, label, pick } of this.shownColumns.filter(({ setting }) => setting)) {
      const values = [...new Set(runs.map(pick))].filter((value) => value !== undefined).sort(inOrder);
      if (values.length > 1 && values.length <= 30 && this.filters.size < 6) this.filters.set(`is.${id}`, select([["", "all"], ...values.map((value) => [value, value])], "", (value) => this.set({ [`is.${id}`]: value })));
      if (this.filters.has(`is.${id}`)) this.filters.get(`is.${id}`).dataset.label = label;
    }
    this.actions = el("p.actions");
    this.heads = el("tr");
    this.list = new LazyList((item) => this.item(item), { empty: runs.length ? "No run matches." : "There are no runs yet; start one with `ace-bench run task=finer method=ace`.", node: el("tbody"), frame: el("div") });
    this.list.root.firstChild.replaceWith(el("div.scroll", { tabindex: 0, role: "region", "aria-label": "Runs" }, el("table.runs", {}, el("thead", {}, this.heads), this.list.node)));
    this.root.replaceChildren(
      el("div.controls", {}, field("Search", this.search), [...this.filters].map(([, control], place) => field(place ? control.dataset.label : "state", control)), field("Group", this.group)),
      el("div.bar", {}, this.count, this.actions), this.list.root);
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
    this.show();
  }

  /** The list was read again. */
  update() {
    const typing = document.activeElement === this.search;
    this.build();
    if (typing) this.search.focus();
    this.open(this.choice);
  }

  progress(keys) {
    for (const key of keys) {
      const place = this.places?.get(key);
      if (!place?.node.isConnected) continue;
      const row = this.library.rows.get(key);
      place.state.replaceChildren(...progressOf(row));
      place.node.replaceChildren(place.node.firstChild, ...this.cells(row)); // the link keeps its focus
    }
  }

  show() {
    const { q = "", group } = this.choice;
    const { runs, unreadable } = this.library;
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const filters = [...this.filters.keys()].filter((name) => this.choice[name]);
    const fits = (row) => words.every((word) => this.textOf(row).includes(word)) && filters.every((name) => (name === "state" ? row.about.state : this.valueOf(row, name.slice(3))) === this.choice[name]);
    const found = runs.filter(fits);
    const broken = words.length || filters.length ? [] : unreadable;
    this.places = new Map();
    const scored = new Set(found.map((row) => row.scored));
    this.listed = this.shownColumns.filter(({ id, score }) => !score || scored.has(id)); // scores of other runs would only make the table wide
    const items = group === "seed" ? this.groups(found) : found.map((row) => ({ rows: [row], row }));
    this.sort(items);
    this.count.textContent = `${plural(found.length, "run")} of ${shown(runs.length)}${broken.length ? `, ${broken.length} unreadable` : ""}${group === "seed" ? `; ${plural(items.length, "group")}, numbers are means over seeds` : ""}`;
    this.head();
    this.act();
    this.list.show([...broken.map((one) => ({ broken: one })), ...items]);
  }

  valueOf(row, id) {
    return this.shownColumns.find((column) => column.id === id)?.pick(row);
  }

  textOf(row) {
    if (!row.words) row.words = [row.label, row.folder, row.about.state, ...this.library.settings.flatMap(([path, name], place) => [`${path}=${row.values[place]}`, `${name}=${row.values[place]}`]), ...["task", "method", "backbone", "mode", "seed"].map((name) => `${name}=${row.about[name]}`)].join(" ").toLowerCase();
    return row.words;
  }

  /** Runs with the same settings but for seed and attempt, as one item. */
  groups(rows) {
    const { settings } = this.library;
    const own = settings.map(([path]) => !["seed", "attempt", "folder"].includes(path));
    const key = ({ values, about }) => JSON.stringify([values.filter((_, place) => own[place]), about.task, about.method]);
    return [...grouped(rows, key).values()].map((members) => ({ rows: members, row: members.length === 1 ? members[0] : null, name: nameOf(settings.filter((_, place) => own[place]), members[0].values.filter((_, place) => own[place])) || members[0].about.method }));
  }

  sort(items) {
    const { by, down } = this.choice;
    const column = this.shownColumns.find(({ id }) => id === by);
    const states = ["running", "failed", "stopped"];
    const urgency = ({ about }) => (states.indexOf(about.state) + 4) % 4; // of others: 3
    for (const item of items) { // once for each item, not for each comparison
      if (column) item.value = this.mean(column, item.rows);
      else Object.assign(item, { urgency: Math.min(...item.rows.map(urgency)), newest: Math.max(...item.rows.map(({ changed }) => changed || 0)) });
    }
    items.sort((a, b) => {
      if (!column) return a.urgency - b.urgency || b.newest - a.newest;
      if (a.value === undefined || b.value === undefined) return (a.value === undefined) - (b.value === undefined); // unknown ones last
      return (down ? -1 : 1) * inOrder(a.value, b.value);
    });
  }

  mean(column, rows) {
    const values = rows.map(column.pick);
    if (column.setting) return values.every((one) => one === values[0]) ? values[0] : undefined;
    const known = values.filter((one) => typeof one === "number");
    if (!known.length) return values.includes(null) ? null : undefined;
    return column.id === "changed" ? Math.max(...known) : known.reduce((sum, one) => sum + one, 0) / known.length;
  }

  head() {
    const { by, down } = this.choice;
    const sorted = (id) => (id === by ? (down ? "descending" : "ascending") : null);
    const button = ({ id, label, note, setting }) => el("th", { scope: "col", "aria-sort": sorted(id), class: setting ? "word" : null },
      el("button.sort", { type: "button", "data-by": id, onclick: () => {
        this.set({ by: id, down: (id === by ? down : setting) ? "" : "1" });
        this.heads.querySelector(`[data-by="${CSS.escape(id)}"]`).focus();
      } }, label.split(/(?<=[_.])/).map((part) => [part, el("wbr")]), sorted(id) ? (down ? " ▼" : " ▲") : ""), note && el("span.note", {}, note));
    this.heads.replaceChildren(el("th", { scope: "col" }, "run"), ...this.listed.map(button));
  }

  /** What can be done with the chosen runs. */
  act() {
    const keys = [...this.chosen];
    const to = (view, text) => el("a.button", { href: `#${new URLSearchParams({ view, runs: keys.join(",") })}` }, text);
    this.actions.replaceChildren(...(keys.length < 2 ? [el("span.note", {}, "Choose two or more runs to compare them.")] : [to("compare", `Compare ${keys.length} runs`), " ", keys.length === 2 ? to("playbooks", "Playbook against playbook") : ""]),
      " ", keys.length ? el("button.link", { type: "button", onclick: () => this.set({ runs: "" }) }, "choose none") : "");
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
    if (item.broken) return el("tr.broken", {}, el("th", { scope: "row" }, item.broken.folder, " ", el("span.tag.fault", {}, "unreadable")), el("td.reason", { colspan: this.listed.length }, item.broken.reason));
    return item.row ? this.row(item.row) : this.groupRow(item);
  }

  box(rows, name) {
    const box = el("input", { type: "checkbox", "aria-label": `Choose ${name}`, onchange: () => this.choose(rows, box.checked) });
    box.checked = rows.every(({ key }) => this.chosen.has(key));
    return box;
  }

  row(row, inner = false) {
    const state = el("span.state", {}, progressOf(row));
    const own = marksOf(row.about).filter((mark) => mark !== row.about.state && !this.library.marks.includes(mark));
    const node = el(`tr${inner ? ".inner" : ""}`, {},
      el("th", { scope: "row" }, el("div.name", {}, this.box([row], row.label), el("a", { href: link(row, "summary"), title: row.folder }, row.label), own.map((mark) => el("span.tag.mark", {}, mark))), state),
      this.cells(row));
    this.places.set(row.key, { state, node });
    return node;
  }

  cells(row) {
    return this.listed.map((column) => this.cell(column, column.pick(row), column.row && column.pick(row) !== undefined ? column.row(row) : null));
  }

  groupRow(item) {
    const toggle = el("button.toggle", { type: "button", "aria-expanded": "false", onclick: () => {
      const open = toggle.getAttribute("aria-expanded") === "true";
      toggle.setAttribute("aria-expanded", String(!open));
      if (open) item.made.forEach((row) => row.remove());
      else node.after(...(item.made = item.rows.map((row) => this.row(row, true))));
    } }, item.name);
    const node = el("tr.group", {}, el("th", { scope: "row" }, el("div.name", {}, this.box(item.rows, item.name), toggle, el("span.tag", {}, plural(item.rows.length, "seed")))),
      this.listed.map((column) => this.cell(column, this.mean(column, item.rows), column.score ? spreadOf(item.rows.map(column.pick)) : null)));
    return node;
  }

  cell({ setting, text }, value, note) {
    return el(setting ? "td.word" : "td", {}, value === undefined ? "" : text(value), note && el("span.note", {}, ` ${note}`));
  }
}

const alphabet = new Intl.Collator("en", { numeric: true });

/** Numbers by size, words by the alphabet, numbers within words by size. */
function inOrder(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : alphabet.compare(a, b);
}

function scoreOf({ ci95 }) {
  return ci95 ? `${ci95[0].toFixed(1)}–${ci95[1].toFixed(1)}` : "";
}

/** The standard deviation over seeds. */
function spreadOf(values) {
  const known = values.filter((one) => typeof one === "number");
  if (known.length < 2) return "";
  const mean = known.reduce((sum, one) => sum + one, 0) / known.length;
  return `± ${Math.sqrt(known.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (known.length - 1)).toFixed(2)}`;
}

/** Settings and their values as a name. */
function nameOf(settings, values) {
  const words = ["task", "method", "backbone", "mode", "folder"];
  return settings.map(([path, name], place) => (values[place] === null ? "" : words.includes(path) ? values[place] : path === "seed" || path === "attempt" ? `${path} ${values[place]}` : `${name}=${values[place]}`)).filter(Boolean).join(" · ");
}

const QUIET_S = 120;

/** The state of a run that has not finished, and how far it is. */
function progressOf({ about, result, live, changed }) {
  if (result) return [];
  const found = [el(`span.tag.${about.state === "running" ? "right" : "mark"}`, { title: about.reason || null }, about.state)];
  if (!live || !live.stage) return found;
  const { stage, split, done, total, score, n, items, usd, sizes } = live;
  if (total) found.push(el("progress", { max: total, value: done, "aria-label": `${stage}: ${done} of ${total}` }));
  found.push(el("span.note", {}, [`${stage} ${split} ${done}${total ? ` of ${total}` : ""}`, score === null ? "" : `score so far ${score.toFixed(1)} (n = ${n})`, items ? plural(items, "item") : "", usd ? `$${usd.toFixed(4)}` : ""].filter(Boolean).join(" · ")));
  if (sizes.length > 1) found.push(spark(sizes.map(([step, , size]) => [step, size])));
  if (about.state === "running" && changed && Date.now() / 1000 - changed > QUIET_S) found.push(el("span.tag.mark", {}, `nothing written for ${ago(changed, "")}`));
  return found.flatMap((one) => [one, " "]);
}

/** How the context grew, as a line without axes: the numbers stand beside it. */
function spark(points) {
  const [last, most] = [points[points.length - 1][0], Math.max(1, ...points.map(([, size]) => size))];
  return svg("svg", { class: "spark", viewBox: "0 0 80 16", "aria-hidden": "true" }, svg("polyline", { class: "line c0", points: points.map(([step, size]) => `${((78 * step) / last).toFixed(1)},${(15 - (14 * size) / most).toFixed(1)}`).join(" ") }));
}

function ago(time, behind = " ago") {
  const seconds = Math.max(0, Date.now() / 1000 - time);
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([one]) => seconds >= one) || [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}${behind}`;
}
