const MOST_LINES = 6;

/** Several runs side by side: settings, results, curves, the paired test of two of them, and who is right where. */
class CompareView {
  constructor(library) {
    this.library = library;
    this.only = "differ";
    this.root = el("div");
  }

  async open({ runs: wanted, ours, base }) {
    const { embedded, rows } = this.library;
    const keys = wanted ? wanted.split(",").filter((key) => rows.has(key)) : embedded ? [...rows.keys()] : [];
    if (this.made === keys.join(",")) return;
    this.made = keys.join(",");
    this.rows = keys.map((key) => rows.get(key));
    if (!keys.length) {
      this.root.replaceChildren(el("p.note", {}, "Choose the runs to compare in ", el("a", { href: "#view=runs" }, "the list of runs"), "."));
      return;
    }
    const differ = this.library.settings.map(([path, name], place) => ({ path, name, place })).filter(({ place }) => this.rows.some(({ values }) => values[place] !== this.rows[0].values[place]));
    const name = ({ values, label }) => nameOf(differ.map(({ path, name: short }) => [path, short]), differ.map(({ place }) => values[place])) || label;
    this.names = new Map(this.rows.map((row) => [row.key, name(row)]));
    [this.base, this.ours] = [keys.includes(base) ? base : keys[0], keys.includes(ours) ? ours : keys[keys.length > 1 ? 1 : 0]];
    this.tests = el("div", {}, el("p.note", {}, "Reading …"));
    const lines = this.rows.slice(0, MOST_LINES);
    this.root.replaceChildren(embedded ? "" : el("p.note", {}, el("a", { href: `#${new URLSearchParams({ view: "runs", runs: keys.join(",") })}` }, "Choose other runs")), el("div.scroll", { tabindex: 0, role: "region", "aria-label": "Results" }, this.table()),
      later(Promise.all(lines.map(({ key }) => this.library.run(key))), (found) => this.curves(found)),
      el("h2", {}, "Two runs, sample by sample"), this.tests);
    try {
      Object.assign(this, await this.library.comparison(keys)); // scores, pairs, problem
    } catch (error) {
      this.tests.replaceChildren(el("p.warning", {}, `The runs cannot be compared: ${error.message}`));
      return;
    }
    if (this.made === keys.join(",")) this.pairView(keys);
  }

  table() {
    const measured = ({ about, result }) => `${about.task} ${result.split} ${result.metric}, n = ${result.n}`;
    const kinds = new Set(this.rows.filter(({ result }) => result).map((row) => `${row.result.sampled} ${measured(row)}`));
    const first = this.rows.find(({ result }) => result);
    const score = kinds.size === 1 ? measured(first) : "score";
    const heads = ["run", "", score, "95% interval", "before", "faults", "context tokens", "calls", "tokens in", "cached", "dollars"];
    const { embedded, unreadable } = this.library;
    return el("table", {}, el("caption", {}, "Results"), el("thead", {}, el("tr", {}, heads.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, [...this.rows.map((row) => {
        const { result, live } = row;
        const total = result || live || {};
        const two = (value) => value.toFixed(2);
        const cells = [result ? [two(result.after), kinds.size > 1 && el("span.note", {}, ` ${measured(row)}`)].filter(Boolean) : "n/a", result && result.ci95 ? result.ci95.map(two).join(" to ") : "n/a", result && typeof result.before === "number" ? two(result.before) : "—", shown(total.faults), result ? shown(result.context.tokens) : shown(total.tokens), shown(total.calls), shown(total.in), share({ cached: total.cached ?? null, in: total.in }), shown(total.usd, 4)];
        return el("tr", {}, el("th", { scope: "row" }, el("a", { href: link(row, "summary") }, this.names.get(row.key))), el("td", {}, marksOf(row.about).filter((mark) => !this.library.marks.includes(mark)).map((mark) => el("span.tag.mark", {}, mark))), cells.map((cell) => el("td", {}, cell)));
      }), ...(embedded ? unreadable : []).map(({ folder, reason }) => el("tr", {}, el("th", { scope: "row" }, folder), el("td", {}, el("span.tag.mark", {}, "unreadable")), el("td.reason", { colspan: heads.length - 2 }, reason)))]));
  }

  /** The learning curves and the sizes of the contexts, one line a run. */
  curves(runs) {
    const left = this.rows.length - runs.length;
    const note = left > 0 ? `The first ${runs.length} runs; ${left} more are left out.` : "";
    const lines = (points) => runs.map((run) => ({ name: this.names.get(run.key), points: points(run) })).filter(({ points: found }) => found.length);
    const steps = lines((run) => learningPoints(run));
    if (!steps.length) return el("p.note", {}, "None of these runs adapted a context.");
    return el("div.charts", {},
      lineChart({ title: "Learning curves", note: note || "First rollouts during adaptation, or the running mean of an online run, in percent.", series: steps, xLabel: "step", yLabel: "percent", low: 0, high: 100 }),
      lineChart({ title: "Context size", note, series: lines((run) => sizePoints(run)), xLabel: "step", yLabel: "tokens", low: 0 }));
  }

  pairView(keys) {
    const options = keys.map((key) => [key, this.names.get(key)]);
    const set = (name) => (value) => {
      this[name] = value;
      history.replaceState(null, "", `#${new URLSearchParams({ view: "compare", runs: keys.join(","), ours: this.ours, base: this.base })}`);
      this.show();
    };
    this.verdict = el("p.verdict", { role: "status" });
    this.samples = el("div.scroll");
    this.tests.replaceChildren(
      el("div.controls", {}, field("Run", select(options, this.ours, set("ours"))), field("against", select(options, this.base, set("base"))),
        field("Samples", select([["differ", "that differ"], ["wins", "wins"], ["losses", "losses"], ["all", "all"]], this.only, set("only"))),
        el("p", {}, this.toPlaybooks = el("a.button", { href: "#" }, "Playbook against playbook"))),
      this.verdict, this.samples);
    const tested = this.pairs.filter(({ ours, base }) => keys.includes(ours) && keys.includes(base));
    this.tested = holm(tested);
    this.show();
  }

  /** The test of run ours against run base, with signs swapped if it was made the other way round. */
  pair() {
    const found = this.tested.find(({ ours, base }) => (ours === this.ours && base === this.base) || (ours === this.base && base === this.ours));
    if (!found || found.problem || found.ours === this.ours) return found;
    const { interval } = found;
    return { ...found, difference: -found.difference, better: found.worse, worse: found.better, interval: interval && { low: -interval.high, high: -interval.low } };
  }

  show() {
    const pair = this.pair();
    const problem = pair ? pair.problem : this.problem || "there is no test of them";
    this.verdict.textContent = this.ours === this.base ? "Choose two different runs." : problem ? `These two cannot be compared: ${problem}.` : sentence(pair);
    this.toPlaybooks.href = `#${new URLSearchParams({ view: "playbooks", runs: `${this.base},${this.ours}` })}`;
    const [ours, base] = [this.scores[this.ours] || {}, this.scores[this.base] || {}];
    const gain = (sample) => ours[sample] - base[sample];
    const wanted = { differ: (sample) => gain(sample) !== 0, wins: (sample) => gain(sample) > 0, losses: (sample) => gain(sample) < 0, all: () => true }[this.only];
    const rows = Object.keys(ours).filter((sample) => sample in base && wanted(sample)).sort((a, b) => gain(b) - gain(a) || (a < b ? -1 : 1));
    const list = rows.map((sample) => el(`tr.${gain(sample) > 0 ? "win" : gain(sample) < 0 ? "loss" : "even"}`, {}, el("th", { scope: "row" }, sample),
      [this.ours, this.base].map((key) => el("td", {}, el("a", { href: link({ key }, "rollouts", { sample }) }, (100 * this.scores[key][sample]).toFixed(1)))),
      el("td", {}, `${gain(sample) > 0 ? "+" : ""}${(100 * gain(sample)).toFixed(1)}`)));
    this.samples.replaceChildren(el("table.samples", {}, el("caption", {}, plural(rows.length, "sample")), el("thead", {}, el("tr", {}, ["sample", this.names.get(this.ours), this.names.get(this.base), "difference"].map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, list)));
  }
}

/** P-values of a family of tests adjusted by Holm's step-down method. */
function holm(pairs) {
  const tested = pairs.filter(({ p }) => p !== undefined).sort((a, b) => a.p - b.p);
  let largest = 0;
  const adjusted = new Map(tested.map((pair, rank) => {
    largest = Math.max(largest, Math.min(1, pair.p * (tested.length - rank)));
    return [pair, largest];
  }));
  return pairs.map((pair) => (adjusted.has(pair) ? { ...pair, p_holm: adjusted.get(pair), noise: adjusted.get(pair) >= 0.05, family: tested.length } : pair));
}

function sentence({ n, difference, interval, better, worse, p, p_holm: corrected, family, test, detectable, noise }) {
  const by = `a ${test.replace("t over", "t test over")}`;
  const within = interval ? ` (95% interval ${interval.low.toFixed(2)} to ${interval.high.toFixed(2)})` : "";
  const value = (one) => (one < 0.004 ? "below 0.004" : `= ${one.toPrecision(2)}`);
  const adjusted = family > 1 ? ` (p ${value(corrected)} corrected by Holm's method for the ${family} pairs on this page)` : "";
  const found = typeof detectable === "number" ? ` The test would find a difference of ${detectable.toFixed(2)} points with a power of 80%.` : "";
  return `${difference >= 0 ? "+" : ""}${difference.toFixed(2)} points${within} over ${plural(n, "sample")}: ${plural(better, "win")}, ${worse === 1 ? "1 loss" : `${worse} losses`}, p ${value(p)} by ${by}${adjusted}${noise ? "; within noise" : ""}.${found} Each run is one seed: this is about these two contexts only.`;
}
