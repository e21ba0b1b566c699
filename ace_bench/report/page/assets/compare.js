const MOST_LINES = 6;
const MOST_COMPARED = 50; // the server tests no more at once
const MOST_TOGETHER = 12; // a report of more runs opens on those that can be compared

/** Several runs side by side: settings, results, curves, the paired test of two of them over their seeds, and who is right
 *  where. Without a choice it opens on runs that can be compared. */
class CompareView {
  constructor(library) {
    this.library = library;
    this.only = "differ";
    this.root = el("div");
  }

  async open({ runs: wanted, ours, base }) {
    const { embedded, rows } = this.library;
    const offers = comparable(this.library.runs);
    const whole = embedded && (rows.size <= MOST_TOGETHER || !offers.length) ? [...rows.keys()] : [];
    const keys = wanted
      ? wanted.split(",").filter((key) => rows.has(key))
      : whole.length
        ? whole
        : offers.length
          ? offers[0].keys
          : [];
    const made = `${keys.join(",")} ${base} ${ours}`;
    if (this.made === made) return;
    this.made = made;
    if (!keys.length) {
      this.root.replaceChildren(
        el(
          "p.note",
          {},
          "No two finished runs were tested on the same samples. Choose runs in ",
          el("a", { href: "#view=runs" }, "the list of runs"),
          ".",
        ),
      );
      return;
    }
    this.rows = keys
      .map((key) => rows.get(key))
      .sort((a, b) => (b.about.method === "base") - (a.about.method === "base"));
    const differ = this.library.settings
      .map(([path, name], place) => ({ path, name, place }))
      .filter(({ place }) => this.rows.some(({ values }) => values[place] !== this.rows[0].values[place]));
    const name = ({ values, label }) =>
      nameOf(
        differ.map(({ path, name: short }) => [path, short]),
        differ.map(({ place }) => values[place]),
      ) || label;
    this.names = new Map(this.rows.map((row) => [row.key, name(row)]));
    this.tests = el("div", {}, el("p.note", {}, "Reading …"));
    const lines = this.rows.slice(0, MOST_LINES);
    this.root.replaceChildren(
      whole.length ? "" : this.others(offers, keys),
      el("div.scroll", { tabindex: 0, role: "region", "aria-label": "Results" }, this.table()),
      later(Promise.all(lines.map(({ key }) => this.library.run(key))), (found) => this.curves(found)),
      el("h2", {}, "Two runs, sample by sample"),
      this.tests,
    );
    try {
      Object.assign(this, { sides: [], problem: "" }, await this.library.comparison(keys)); // sides, scores, pairs
    } catch (error) {
      this.tests.replaceChildren(el("p.warning", {}, `The runs cannot be compared: ${error.message}`));
      return;
    }
    if (this.made === made) this.pairView(keys, { ours, base });
  }

  /** Links to other runs that can be compared. */
  others(offers, keys) {
    const list = () =>
      el(
        "ul",
        {},
        offers.map(({ name, keys: own }) =>
          el("li", {}, el("a", { href: `#${new URLSearchParams({ view: "compare", runs: own.join(",") })}` }, name)),
        ),
      );
    return el(
      "div",
      {},
      !this.library.embedded &&
        el(
          "p.note",
          {},
          el("a", { href: `#${new URLSearchParams({ view: "runs", runs: keys.join(",") })}` }, "Choose other runs"),
        ),
      offers.length > 0 && (this.offered = lazy(`${plural(offers.length, "set")} of runs on the same samples`, list)),
    );
  }

  table() {
    const measured = ({ about, result }) => `${about.task} ${result.split} ${result.metric}, n = ${result.n}`;
    const kinds = new Set(
      this.rows.filter(({ result }) => result).map((row) => `${row.result.sampled} ${measured(row)}`),
    );
    const first = this.rows.find(({ result }) => result);
    const score = kinds.size === 1 ? measured(first) : "score";
    const heads = [
      "run",
      "",
      score,
      "95% interval",
      "before",
      "faults",
      "context tokens",
      "calls",
      "tokens in",
      "cached",
      "dollars",
    ];
    const { embedded, unreadable } = this.library;
    return el(
      "table",
      {},
      el("caption", {}, "Results"),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          heads.map((name) => el("th", { scope: "col" }, name)),
        ),
      ),
      el("tbody", {}, [
        ...this.rows.map((row) => {
          const { result, live } = row;
          const total = result || live || {};
          const two = (value) => value.toFixed(2);
          const cells = [
            result
              ? [two(result.after), kinds.size > 1 && el("span.note", {}, ` ${measured(row)}`)].filter(Boolean)
              : "n/a",
            result && result.ci95 ? result.ci95.map(two).join(" to ") : "n/a",
            result && typeof result.before === "number" ? two(result.before) : "—",
            shown(total.faults),
            result ? shown(result.context.tokens) : shown(total.tokens),
            shown(total.calls),
            shown(total.in),
            share({ cached: total.cached ?? null, in: total.in }),
            shown(total.usd, 4),
          ];
          return el(
            "tr",
            {},
            el("th", { scope: "row" }, el("a", { href: link(row, "summary") }, this.names.get(row.key))),
            el(
              "td",
              {},
              marksOf(row.about)
                .filter((mark) => !this.library.marks.includes(mark))
                .map((mark) => el("span.tag.mark", {}, mark)),
            ),
            cells.map((cell) => el("td", {}, cell)),
          );
        }),
        ...(embedded ? unreadable : []).map(({ folder, reason }) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, folder),
            el("td", {}, el("span.tag.mark", {}, "unreadable")),
            el("td.reason", { colspan: heads.length - 2 }, reason),
          ),
        ),
      ]),
    );
  }

  /** The learning curves and the sizes of the contexts, one line a run. */
  curves(runs) {
    const left = this.rows.length - runs.length;
    const note = left > 0 ? `The first ${runs.length} runs; ${left} more are left out.` : "";
    const lines = (points) =>
      runs
        .map((run) => ({ name: this.names.get(run.key), points: points(run) }))
        .filter(({ points: found }) => found.length);
    const steps = lines((run) => learningPoints(run));
    if (!steps.length) return el("p.note", {}, "None of these runs adapted a context.");
    return el(
      "div.charts",
      {},
      lineChart({
        title: "Learning curves",
        note: note || "First rollouts during adaptation, or the running mean of an online run, in percent.",
        series: steps,
        xLabel: "step",
        yLabel: "percent",
        low: 0,
        high: 100,
      }),
      lineChart({
        title: "Context size",
        note,
        series: lines((run) => sizePoints(run)),
        xLabel: "step",
        yLabel: "tokens",
        low: 0,
      }),
    );
  }

  pairView(keys, chosen) {
    const sides = this.sides.filter(({ runs }) => runs.some((key) => keys.includes(key)));
    const sideOf = (key) => sides.find(({ runs }) => runs.includes(key))?.key;
    this.tested = holm(this.pairs.filter(({ ours, base }) => sideOf(ours) && sideOf(base)));
    const possible = this.tested.find(({ problem }) => !problem) ||
      this.tested[0] || { base: sides[0]?.key, ours: sides[0]?.key };
    [this.base, this.ours] = [sideOf(chosen.base) || possible.base, sideOf(chosen.ours) || possible.ours];
    this.sideNames = new Map(
      sides.map(({ key, seeds, of }) => [
        key,
        of > 1
          ? `${withoutSeed(this.names.get(key))} (${seeds === of ? plural(seeds, "seed") : `${seeds} of ${of} seeds`})`
          : this.names.get(key),
      ]),
    );
    const options = [...this.sideNames];
    const set = (name) => (value) => {
      this[name] = value;
      history.replaceState(
        null,
        "",
        `#${new URLSearchParams({ view: "compare", runs: keys.join(","), ours: this.ours, base: this.base })}`,
      );
      this.show();
    };
    this.verdict = el("p.verdict", { role: "status" });
    this.samples = el("div.scroll");
    this.tests.replaceChildren(
      el(
        "div.controls",
        {},
        field("Run", select(options, this.ours, set("ours"))),
        field("against", select(options, this.base, set("base"))),
        field(
          "Samples",
          select(
            [
              ["differ", "that differ"],
              ["wins", "wins"],
              ["losses", "losses"],
              ["all", "all"],
            ],
            this.only,
            set("only"),
          ),
        ),
        el("p", {}, (this.toPlaybooks = el("a.button", { href: "#" }, "Playbook against playbook"))),
      ),
      this.verdict,
      this.samples,
    );
    this.show();
  }

  /** The test of run ours against run base, with signs swapped if it was made the other way round. */
  pair() {
    const found = this.tested.find(
      ({ ours, base }) => (ours === this.ours && base === this.base) || (ours === this.base && base === this.ours),
    );
    if (!found || found.problem || found.ours === this.ours) return found;
    const { interval } = found;
    return {
      ...found,
      difference: -found.difference,
      better: found.worse,
      worse: found.better,
      interval: interval && { low: -interval.high, high: -interval.low },
    };
  }

  seedsOf(key) {
    return this.sides.find((side) => side.key === key).seeds;
  }

  verdictOn(pair, problem) {
    const { ours, base } = this;
    if (ours === base) {
      const alone = this.sides.length < 2;
      return alone ? "These are seeds of one run, with nothing to compare them with." : "Choose two different runs.";
    }
    if (problem) return `These two cannot be compared: ${problem}.`;
    const names = `${this.sideNames.get(ours)} against ${this.sideNames.get(base)}`;
    return `${names}: ${sentence(pair, this.seedsOf(ours), this.seedsOf(base))}`;
  }

  show() {
    const pair = this.pair();
    const problem = pair ? pair.problem : this.problem || "there is no test of them";
    if (this.offered && (problem || this.sides.length < 2)) this.offered.open = true;
    this.verdict.textContent = this.verdictOn(pair, problem);
    this.toPlaybooks.href = `#${new URLSearchParams({ view: "playbooks", runs: `${this.base},${this.ours}` })}`;
    const [ours, base] = [this.scores[this.ours] || {}, this.scores[this.base] || {}];
    const gain = (sample) => ours[sample] - base[sample];
    const wanted = {
      differ: (sample) => gain(sample) !== 0,
      wins: (sample) => gain(sample) > 0,
      losses: (sample) => gain(sample) < 0,
      all: () => true,
    }[this.only];
    const rows = Object.keys(ours)
      .filter((sample) => sample in base && wanted(sample))
      .sort((a, b) => gain(b) - gain(a) || (a < b ? -1 : 1));
    const list = rows.map((sample) =>
      el(
        `tr.${gain(sample) > 0 ? "win" : gain(sample) < 0 ? "loss" : "even"}`,
        {},
        el("th", { scope: "row" }, sample),
        [this.ours, this.base].map((key) =>
          el(
            "td",
            {},
            el("a", { href: link({ key }, "rollouts", { sample }) }, (100 * this.scores[key][sample]).toFixed(1)),
          ),
        ),
        el("td", {}, `${gain(sample) > 0 ? "+" : ""}${(100 * gain(sample)).toFixed(1)}`),
      ),
    );
    this.samples.replaceChildren(
      el(
        "table.samples",
        {},
        el("caption", {}, plural(rows.length, "sample")),
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["sample", this.sideNames.get(this.ours), this.sideNames.get(this.base), "difference"].map((name) =>
              el("th", { scope: "col" }, name),
            ),
          ),
        ),
        el("tbody", {}, list),
      ),
    );
  }
}

/** Sets of finished runs that were tested on the same samples with one model, as a choice to compare, those with a base
 *  first. */
function comparable(runs) {
  const kind = ({ about, model, tested }) => JSON.stringify([about.task, model, about.simulated, tested]);
  scoreColumn(runs); // notes what each was tested on
  const sets = [
    ...grouped(
      runs.filter(({ result }) => result),
      kind,
    ).values(),
  ].filter((rows) => new Set(rows.map(({ seeds }) => seeds)).size > 1);
  const hasBase = (rows) => rows.some(({ about }) => about.method === "base");
  const newest = (rows) => Math.max(...rows.map(({ date }) => date));
  const marked = ([{ about }]) => about.simulated || about.source !== "real";
  return sets
    .sort((a, b) => hasBase(b) - hasBase(a) || marked(a) - marked(b) || newest(b) - newest(a))
    .map((rows) => {
      const methods = [...new Set(rows.map(({ about }) => about.method))].sort(
        (a, b) => (b === "base") - (a === "base"),
      );
      return {
        name: `${rows[0].tested}, ${rows[0].model}: ${methods.join(", ")}`,
        keys: rows.slice(0, MOST_COMPARED).map(({ key }) => key),
      };
    });
}

function withoutSeed(name) {
  return (
    name
      .split(" · ")
      .filter((word) => !/^seed \d+$/.test(word))
      .join(" · ") || "all seeds"
  );
}

/** P-values of a family of tests adjusted by Holm's step-down method. */
function holm(pairs) {
  const tested = pairs.filter(({ p }) => p !== undefined).sort((a, b) => a.p - b.p);
  let largest = 0;
  const adjusted = new Map(
    tested.map((pair, rank) => {
      largest = Math.max(largest, Math.min(1, pair.p * (tested.length - rank)));
      return [pair, largest];
    }),
  );
  return pairs.map((pair) =>
    adjusted.has(pair)
      ? { ...pair, p_holm: adjusted.get(pair), noise: adjusted.get(pair) >= 0.05, family: tested.length }
      : pair,
  );
}

function sentence(
  { n, difference, interval, better, worse, p, p_holm: corrected, family, test, detectable, noise },
  seeds,
  baseSeeds,
) {
  const by = `a ${test.replace("t over", "t test over")}`;
  const within = interval ? ` (95% interval ${interval.low.toFixed(2)} to ${interval.high.toFixed(2)})` : "";
  const value = (one) => (one < 0.004 ? "below 0.004" : `= ${one.toPrecision(2)}`);
  const adjusted =
    family > 1 ? ` (p ${value(corrected)} corrected by Holm's method for the ${family} pairs on this page)` : "";
  const found =
    typeof detectable === "number"
      ? ` The test would find a difference of ${detectable.toFixed(2)} points with a power of 80%.`
      : "";
  const points = `${difference >= 0 ? "+" : ""}${difference.toFixed(2)} points${within} over ${plural(n, "sample")}`;
  const losses = worse === 1 ? "1 loss" : `${worse} losses`;
  const tested = `p ${value(p)} by ${by}${adjusted}${noise ? "; within noise" : ""}`;
  const alone = seeds === 1 && baseSeeds === 1;
  const scope = alone ? " Each side is one seed: this is about these two contexts only." : "";
  return `${points}: ${plural(better, "win")}, ${losses}, ${tested}.${found}${scope}`;
}
