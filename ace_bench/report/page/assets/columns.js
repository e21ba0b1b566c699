/** Settings that name a run unless the reader makes them columns. */
const NAMING = ["task", "method", "backbone", "mode", "seed", "attempt", "folder"];

/** What a list can show of runs, by id: their settings, then their results and costs. */
function columnsOf({ runs, settings }) {
  const of = (name, pick, more = {}) => ({ id: name, label: name, pick, text: (value) => shown(value), ...more });
  const either = (name) => ({ result, live }) => (result || live || {})[name];
  const words = { word: true, text: (value) => value };
  const naming = settings.some(([path]) => NAMING.includes(path)) ? NAMING : settings.slice(0, 1).map(([path]) => path);
  const all = [
    of("progress", ({ result, about }) => (result ? undefined : about.state), { ...words, node: progressOf }),
    of("tested on", ({ tested }) => tested || undefined, { ...words, usual: new Set(runs.map(({ tested }) => tested).filter(Boolean)).size > 1 }),
    ...settings.map(([path, label], place) => ({ id: path.replaceAll(",", " "), label, place, usual: !naming.includes(path), pick: ({ values }) => values[place] ?? undefined, ...words })),
    of("score before", ({ result }) => result?.before ?? undefined, { text: (value) => shown(value, 2) }),
    of("faults", either("faults")),
    of("items", ({ result, live }) => (result ? result.context.items : live?.items), { minor: true }),
    of("context tokens", ({ result, live }) => (result ? result.context.tokens : live?.tokens), { minor: true }),
    of("calls", either("calls"), { minor: true }),
    of("tokens in", either("in"), { minor: true }),
    of("dollars", either("usd"), { minor: true, text: (value) => shown(value, 4) }),
    of("last change", ({ changed }) => changed ?? undefined, { minor: true, text: (value) => (value ? ago(value) : "") }),
    of("path", ({ folder }) => folder, { ...words, usual: false }),
  ];
  return new Map(all.filter(({ pick }) => runs.some((row) => pick(row) !== undefined)).map((column) => [column.id, column]));
}

/** The column of scores; note on each run what it was tested on, since only scores over the same samples compare. */
function scoreColumn(runs) {
  const about = ({ about: { task }, result }) => `${task} ${result.split} ${result.metric}, n = ${result.n}`;
  const scored = runs.filter(({ result }) => result);
  const sets = new Map(scored.map((row) => [`${about(row)}/${row.result.sampled}`, about(row)]));
  const names = [...sets.values()];
  for (const row of runs) {
    const text = row.result && about(row);
    row.tested = text && (names.indexOf(text) === names.lastIndexOf(text) ? text : `${text} (${row.result.sampled.slice(0, 4)})`);
  }
  const [first] = scored;
  const one = sets.size === 1;
  return { id: "score", label: one ? `${first.result.split} ${first.result.metric}` : "score", note: one && `n = ${first.result.n}`, score: true, pick: ({ result }) => result?.after, text: (value) => shown(value, 2) };
}

/** Chooses, hides and orders columns; the choice is a text for the address. */
class ColumnMenu {
  constructor(columns, choose) {
    this.columns = columns;
    this.choose = choose;
    this.list = el("ol");
    this.root = el("details.menu", { onkeydown: ({ key }) => key === "Escape" && this.root.removeAttribute("open") }, el("summary.button", {}, "Columns"),
      el("div.panel", {}, this.list, el("button.link", { type: "button", onclick: () => choose("") }, "the usual columns")));
  }

  /** Read a choice; return its columns in order. */
  open(words) {
    const all = [...this.columns.values()];
    const chosen = words ? [...new Set(words.split(","))].map((id) => this.columns.get(id)).filter(Boolean) : all.filter(({ usual }) => usual !== false);
    const change = (next) => this.choose(next.map(({ id }) => id).join(",") || "none");
    const move = (column, by) => {
      const next = chosen.filter((one) => one !== column);
      next.splice(Math.max(0, chosen.indexOf(column) + by), 0, column);
      change(next);
      this.list.querySelector(`[data-move="${CSS.escape(column.id)}${by}"]`).focus();
    };
    const item = (column) => {
      const box = el("input", { type: "checkbox", "aria-label": `Column ${column.label}`, "data-move": column.id, onchange: () => {
        change(box.checked ? [...chosen, column] : chosen.filter((one) => one !== column));
        this.list.querySelector(`[data-move="${CSS.escape(column.id)}"]`).focus();
      } });
      box.checked = chosen.includes(column);
      const arrow = (by, sign, where) => el("button", { type: "button", "data-move": `${column.id}${by}`, "aria-label": `Move ${column.label} to the ${where}`, onclick: () => move(column, by) }, sign);
      return el("li", {}, el("label", {}, box, " ", column.label), box.checked && [arrow(-1, "◀", "left"), arrow(1, "▶", "right")]);
    };
    this.list.replaceChildren(...[...chosen, ...all.filter((column) => !chosen.includes(column))].map(item));
    return chosen;
  }
}
