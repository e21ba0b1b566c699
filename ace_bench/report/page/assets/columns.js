/** What a run is by name: columns of their own, whether runs differ in them or not. */
const NAMED = ["task", "method", "backbone", "mode", "labels", "seed"];
const COUNTED = ["seed", "attempt", "folder"];
const MOST_SETTINGS = 3;
/** What n already says of a run. */
const LIMITS = ["limit", "limit.test"];

/** The settings, by their place, that tell runs apart which have the same name. */
function tellingSettings({ runs, settings }) {
  let alike = [
    ...grouped(runs, ({ about, model }) =>
      JSON.stringify([about.task, about.method, model, about.mode, about.labels, about.seed]),
    ).values(),
  ];
  const telling = [];
  settings.forEach(([path], place) => {
    const valueOf = ({ values }) => values[place];
    if (NAMED.includes(path) || !alike.some((rows) => new Set(rows.map(valueOf)).size > 1)) return;
    if (!LIMITS.includes(path)) telling.push(place);
    alike = alike.flatMap((rows) => [...grouped(rows, valueOf).values()]);
  });
  return telling;
}

/** What a list can show of runs, by id: what they are, their results and costs, and the settings in which they differ.
 *  `ace-bench ls` has the same columns. */
function columnsOf({ runs, settings, telling }) {
  const of = (name, pick, more = {}) => ({ id: name, label: name, pick, text: (value) => shown(value), ...more });
  const either =
    (name) =>
    ({ result, live }) =>
      (result || live || {})[name];
  const words = { word: true, text: (value) => value };
  const about = (name, more) => of(name, ({ about: { [name]: value } }) => value, { ...words, named: true, ...more });
  const varies = (pick) => new Set(runs.map(pick)).size > 1;
  const own = settings.flatMap(([path], place) => (NAMED.includes(path) ? [] : [place]));
  const usual = telling.filter((place) => !COUNTED.includes(settings[place][0])).slice(0, MOST_SETTINGS);
  const setting = (place) =>
    of(settings[place][0].replaceAll(",", " "), ({ values }) => values[place] ?? undefined, {
      ...words,
      label: settings[place][1],
      place,
      usual: usual.includes(place),
      filter: telling.includes(place),
    });
  const total = (row) =>
    typeof either("in")(row) === "number" && typeof either("out")(row) === "number"
      ? either("in")(row) + either("out")(row)
      : null;
  const all = [
    about("task", { usual: false, filter: true }),
    about("method", { usual: false, filter: true }),
    of("model", ({ model }) => model, { ...words, named: true, filter: true }),
    about("mode", { usual: varies(({ about: { mode } }) => mode), filter: true }),
    about("labels", { filter: true }),
    about("seed", { word: false, text: (value) => String(value) }),
    ...usual.map(setting),
    of("n", ({ result }) => result?.n, { minor: true, usual: varies(({ result }) => result?.n) }),
    of("gain", (row) => (row.result && row.about.method !== "base" ? (row.gain?.points ?? null) : undefined), {
      text: (value) => (value === null ? shown(value) : `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`),
      title: ({ gain }) => gain && `over ${gain.over}`,
    }),
    of("cost", (row) => either("usd")(row) ?? null, {
      text: (value) => (value === null ? shown(value) : `$${value.toFixed(2)}`),
    }),
    of("tokens", total, {}),
    of("date", ({ date }) => date, { text: (value) => utc(value) }),
    of("tags", ({ tags }) => tags.join(" ") || undefined, { ...words, filter: true, each: ({ tags }) => tags }),
    of("note", ({ note }) => note || undefined, words),
    ...own.filter((place) => !usual.includes(place)).map(setting),
    of("tested on", ({ tested }) => tested || undefined, { ...words, usual: false }),
    of("score before", ({ result }) => result?.before ?? undefined, { text: (value) => shown(value, 2), usual: false }),
    of("faults", either("faults"), { usual: false }),
    of("items", ({ result, live }) => (result ? result.context.items : live?.items), { usual: false }),
    of("context tokens", ({ result, live }) => (result ? result.context.tokens : live?.tokens), { usual: false }),
    of("calls", either("calls"), { usual: false }),
    of("last change", ({ changed }) => changed ?? undefined, {
      usual: false,
      text: (value) => (value ? ago(value) : ""),
    }),
    of("path", ({ folder }) => folder, { ...words, usual: false }),
  ];
  return new Map(
    all.filter(({ pick }) => runs.some((row) => pick(row) !== undefined)).map((column) => [column.id, column]),
  );
}

function utc(seconds) {
  return new Date(1000 * seconds).toISOString().slice(0, 16).replace("T", " ");
}

/** The column of scores; note on each run what it was tested on, since only scores over the same samples compare. */
function scoreColumn(runs) {
  const about = ({ about: { task }, result }) => `${task} ${result.split} ${result.metric}, n = ${result.n}`;
  const scored = runs.filter(({ result }) => result);
  const sets = new Map(scored.map((row) => [`${about(row)}/${row.result.sampled}`, about(row)]));
  const names = [...sets.values()];
  for (const row of runs) {
    const text = row.result && about(row);
    row.tested =
      text && (names.indexOf(text) === names.lastIndexOf(text) ? text : `${text} (${row.result.sampled.slice(0, 4)})`);
  }
  const [first] = scored;
  return {
    id: "score",
    label: sets.size === 1 ? `${first.result.split} ${first.result.metric}` : "score",
    score: true,
    pick: ({ result }) => result?.after,
    text: (value) => shown(value, 2),
  };
}

/** Chooses, hides and orders columns; the choice is a text for the address. */
class ColumnMenu {
  constructor(columns, choose) {
    this.columns = columns;
    this.choose = choose;
    this.list = el("ol");
    this.root = el(
      "details.menu",
      { onkeydown: ({ key }) => key === "Escape" && this.root.removeAttribute("open") },
      el("summary.button", {}, "Columns"),
      el(
        "div.panel",
        {},
        this.list,
        el("button.link", { type: "button", onclick: () => choose("") }, "the usual columns"),
      ),
    );
  }

  /** Read a choice; return its columns in order. */
  open(words) {
    const all = [...this.columns.values()];
    const chosen = words
      ? [...new Set(words.split(","))].map((id) => this.columns.get(id)).filter(Boolean)
      : all.filter(({ usual }) => usual !== false);
    const change = (next) => this.choose(next.map(({ id }) => id).join(",") || "none");
    const move = (column, by) => {
      const next = chosen.filter((one) => one !== column);
      next.splice(Math.max(0, chosen.indexOf(column) + by), 0, column);
      change(next);
      this.list.querySelector(`[data-move="${CSS.escape(column.id)}${by}"]`).focus();
    };
    const item = (column) => {
      const box = el("input", {
        type: "checkbox",
        "aria-label": `Column ${column.label}`,
        "data-move": column.id,
        onchange: () => {
          change(box.checked ? [...chosen, column] : chosen.filter((one) => one !== column));
          this.list.querySelector(`[data-move="${CSS.escape(column.id)}"]`).focus();
        },
      });
      box.checked = chosen.includes(column);
      const arrow = (by, sign, where) =>
        el(
          "button",
          {
            type: "button",
            "data-move": `${column.id}${by}`,
            "aria-label": `Move ${column.label} to the ${where}`,
            onclick: () => move(column, by),
          },
          sign,
        );
      return el(
        "li",
        {},
        el("label", {}, box, " ", column.label),
        box.checked && [arrow(-1, "◀", "left"), arrow(1, "▶", "right")],
      );
    };
    this.list.replaceChildren(...[...chosen, ...all.filter((column) => !chosen.includes(column))].map(item));
    return chosen;
  }
}
