/** Several runs side by side: results, the paired test of two of them, and who is right where. */
class CompareView {
  constructor(runs, { scores, pairs }, unreadable) {
    this.runs = runs;
    this.unreadable = unreadable;
    this.scores = scores;
    this.pairs = pairs;
    this.ours = runs.length > 1 ? 1 : 0;
    this.base = 0;
    this.only = "differ";
    const options = runs.map((run, place) => [place, `${place + 1}: ${run.name}`]);
    const set = (name) => (value) => {
      this[name] = name === "only" ? value : +value;
      this.show();
    };
    this.verdict = el("p.verdict", { role: "status" });
    this.samples = el("div.scroll");
    this.root = el("div", {}, el("div.scroll", {}, this.table()),
      el("h2", {}, "Two runs, sample by sample"),
      el("div.controls", {}, field("Run", select(options, this.ours, set("ours"))), field("against", select(options, this.base, set("base"))),
        field("Samples", select([["differ", "that differ"], ["wins", "wins"], ["losses", "losses"], ["all", "all"]], this.only, set("only")))),
      this.verdict, this.samples);
    this.show();
  }

  table() {
    const heads = ["run", "", "score", "95% interval", "before", "faults", "context tokens", "calls", "tokens in", "cached", "dollars"];
    return el("table", {}, el("caption", {}, "Results"), el("thead", {}, el("tr", {}, heads.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, [...this.runs.map((run, place) => {
        const { headline, context } = run.metrics;
        const total = sums(run.calls);
        const failed = run.rollouts.filter((rollout) => rollout.fault).length;
        const cells = [headline ? headline.after.toFixed(2) : "n/a", headline && headline.ci95 ? headline.ci95.map((bound) => bound.toFixed(2)).join(" to ") : "n/a", headline && typeof headline.before === "number" ? headline.before.toFixed(2) : "—", shown(failed), context ? shown(context.tokens) : "n/a", shown(total.calls), shown(total.in), share(total), shown(total.usd, 4)];
        return el("tr", {}, el("th", { scope: "row" }, el("a", { href: link(run, "summary") }, `${place + 1}: ${run.name}`)), el("td", {}, run.marks.map((mark) => el("span.tag.mark", {}, mark))), cells.map((cell) => el("td", {}, cell)));
      }), ...this.unreadable.map(({ folder, reason }) => el("tr", {}, el("th", { scope: "row" }, folder), el("td", {}, el("span.tag.mark", {}, "unreadable")), el("td.reason", { colspan: heads.length - 2 }, reason)))]));
  }

  /** The test of run ours against run base, with signs swapped if it was made the other way round. */
  pair() {
    const found = this.pairs.find(({ ours, base }) => (ours === this.ours && base === this.base) || (ours === this.base && base === this.ours));
    if (!found || found.problem || found.ours === this.ours) return found;
    const { interval } = found;
    return { ...found, difference: -found.difference, better: found.worse, worse: found.better, interval: interval && { low: -interval.high, high: -interval.low } };
  }

  show() {
    const pair = this.pair();
    this.verdict.textContent = this.ours === this.base ? "Choose two different runs." : pair.problem ? `These two cannot be compared: ${pair.problem}.` : sentence(pair);
    const [ours, base] = [this.scores[this.ours], this.scores[this.base]];
    const gain = (sample) => ours[sample] - base[sample];
    const wanted = { differ: (sample) => gain(sample) !== 0, wins: (sample) => gain(sample) > 0, losses: (sample) => gain(sample) < 0, all: () => true }[this.only];
    const rows = Object.keys(ours).filter((sample) => sample in base && wanted(sample)).sort((a, b) => gain(b) - gain(a) || (a < b ? -1 : 1));
    const list = rows.map((sample) => el(`tr.${gain(sample) > 0 ? "win" : gain(sample) < 0 ? "loss" : "even"}`, {}, el("th", { scope: "row" }, sample),
      [this.ours, this.base].map((place) => el("td", {}, el("a", { href: link(this.runs[place], "rollouts", { sample }) }, (100 * this.scores[place][sample]).toFixed(1)))),
      el("td", {}, `${gain(sample) > 0 ? "+" : ""}${(100 * gain(sample)).toFixed(1)}`)));
    this.samples.replaceChildren(el("table.samples", {}, el("caption", {}, plural(rows.length, "sample")), el("thead", {}, el("tr", {}, ["sample", `run ${this.ours + 1}`, `run ${this.base + 1}`, "difference"].map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, list)));
  }

  open() {}
}

function sentence({ n, difference, interval, better, worse, p, p_holm, pairs, test, detectable, noise }) {
  const by = test === "mcnemar" ? "McNemar's exact test" : `a ${test.replace("t over", "t test over")}`;
  const within = interval ? ` (95% interval ${interval.low.toFixed(2)} to ${interval.high.toFixed(2)})` : "";
  const shown = (value) => value < 0.0001 ? "below 0.0001" : `= ${value.toPrecision(2)}`;
  const corrected = pairs > 1 ? ` (p ${shown(p_holm)} corrected by Holm's method for the ${pairs} pairs on this page)` : "";
  const found = typeof detectable === "number" ? ` The test would find a difference of ${detectable.toFixed(2)} points with a power of 80%.` : "";
  return `${difference >= 0 ? "+" : ""}${difference.toFixed(2)} points${within} over ${plural(n, "sample")}: ${plural(better, "win")}, ${worse === 1 ? "1 loss" : `${worse} losses`}, p ${shown(p)} by ${by}${corrected}${noise ? "; within noise" : ""}.${found} Each run is one seed: this is about these two contexts only.`;
}
