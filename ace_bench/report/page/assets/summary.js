/** The result of the run: metrics, learning curve, cost and cache, faults. */
function summaryView(run) {
  return el(
    "div",
    {},
    answer(run),
    tiles(run),
    run.about.reason && el("p.warning", {}, `${run.about.state}: ${run.about.reason}`),
    run.continues &&
      el(
        "div",
        {},
        el(
          "p",
          {},
          run.about.reason.startsWith("budget.")
            ? "This command continues it, with a larger budget:"
            : "This command continues it:",
        ),
        el("pre", {}, run.continues),
      ),
    run.notes.map((note) => el("p.warning", {}, note)),
    run.warnings.map((warning) => el("p.warning", {}, `${warning}.`)),
    run.advice.map((sentence) => el("p.warning", {}, `Advice: ${sentence}.`)),
    run.certificate.map((line) => el("p.note", {}, line)),
    changed(run),
    el("div.charts", {}, learning(run), sizes(run)),
    roles(run),
    faults(run),
    costs(run),
    records(run),
  );
}

/** Whether it helped, what it cost, and what one run cannot say. */
function answer(run) {
  const { sentences, notes } = run.answer;
  if (!sentences.length && !notes.length) return null;
  return el(
    "section.answer",
    { "aria-label": "Did it help" },
    sentences.map((sentence) => el("p.verdict", {}, sentence)),
    notes.map((note) => el("p.note", {}, note)),
  );
}

const MOST_CHANGED = 5;

/** The samples that adaptation fixed and broke, against the run's own test before it or against the base beside it. */
function changed(run) {
  const { changed: own, beside } = run.answer;
  return [
    changedFrom(run, own, "What it fixed and broke"),
    beside.map(({ name, folder, changed: pairs }) => changedFrom(run, pairs, `What differs from ${name}`, folder)),
  ];
}

/** The samples that differ, with the bullets cited there. `folder` is that of another run whose answers come first. */
function changedFrom(run, found, title, folder = "") {
  const pairs = found.map((before) => [before, run.byKey.get(before.after)]).filter(([, after]) => after);
  if (!pairs.length) return null;
  const gain = ([before, after]) => after.grade.score - before.score;
  const sides = [
    ["fixed", "Fixed", pairs.filter((pair) => gain(pair) > 0)],
    ["broken", "Broken", pairs.filter((pair) => gain(pair) < 0)],
  ];
  sides.forEach(([, , found]) => found.sort((a, b) => Math.abs(gain(b)) - Math.abs(gain(a))));
  return el(
    "section",
    {},
    el("h2", {}, title),
    folder && el("p.note", {}, `Before: the answers of ${folder}.`),
    citedBullets(run, sides),
    sides.map(([, title, found]) =>
      el(
        "div",
        {},
        el("h3", {}, `${title}: ${plural(found.length, "sample")}`),
        found.length > 0 && [
          changedTable(run, found.slice(0, MOST_CHANGED)),
          found.length > MOST_CHANGED &&
            lazy(`${found.length - MOST_CHANGED} more`, () => changedTable(run, found.slice(MOST_CHANGED))),
        ],
      ),
    ),
  );
}

function changedTable(run, pairs) {
  const heads = ["sample", "question", "before", "after", "reference", "bullets cited"];
  const words = (answer, score) => `${answer === null ? "no answer" : answer} (${+score.toFixed(2)})`;
  const earlier = ({ before, answer, score }) =>
    run.byKey.has(before)
      ? el("a", { href: link(run, "rollouts", { rollout: before }) }, el("span.few", {}, words(answer, score)))
      : el("span.few", {}, words(answer, score));
  const rows = pairs.map(([before, after]) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("a", { href: link(run, "rollouts", { rollout: after.key }) }, after.sample)),
      el("td.words", {}, el("span.few", {}, run.input(after.sample, "question"))),
      el("td.words", {}, earlier(before)),
      [words(after.attempt.answer, after.grade.score), after.grade.gold || ""].map((text) =>
        el("td.words", {}, el("span.few", {}, text)),
      ),
      el(
        "td.words",
        {},
        after.attempt.cited.length ? after.attempt.cited.map((id) => [bulletLink(run, id, after.at), " "]) : "none",
      ),
    ),
  );
  return el(
    "div.scroll",
    { tabindex: 0, role: "region", "aria-label": "Changed samples" },
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          heads.map((name) => el("th.words", { scope: "col" }, name)),
        ),
      ),
      el("tbody", {}, rows),
    ),
  );
}

function bulletLink(run, id, at) {
  return run.isPlaybook && at !== null && run.bullets(at).has(id)
    ? el("a", { href: link(run, "context", { step: at, bullet: id }), title: run.bullets(at).get(id).content }, id)
    : id;
}

/** The bullets that the answers to fixed and broken samples cite most. */
function citedBullets(run, sides) {
  const counts = new Map();
  for (const [side, , found] of sides) {
    for (const [, { attempt, at }] of found) {
      for (const id of new Set(attempt.cited)) {
        const bullet = at !== null && run.isPlaybook ? run.bullets(at).get(id) : null;
        if (!bullet) continue; // it was invented
        if (!counts.has(id)) counts.set(id, { fixed: 0, broken: 0, content: bullet.content, at });
        counts.get(id)[side] += 1;
      }
    }
  }
  if (!counts.size) return el("p.note", {}, "No answer to these samples cites a bullet of its playbook.");
  const most = [...counts].sort(([, a], [, b]) => b.fixed + b.broken - a.fixed - a.broken).slice(0, MOST_CHANGED);
  return el(
    "div.scroll",
    { tabindex: 0, role: "region", "aria-label": "Cited bullets" },
    el(
      "table",
      {},
      el(
        "caption",
        {},
        `Bullets cited there${counts.size > most.length ? `, the first ${most.length} of ${counts.size}` : ""}`,
      ),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["bullet", "fixed", "broken", "content"].map((name) =>
            el(name === "content" ? "th.words" : "th", { scope: "col" }, name),
          ),
        ),
      ),
      el(
        "tbody",
        {},
        most.map(([id, { fixed, broken, content, at }]) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, bulletLink(run, id, at)),
            el("td", {}, shown(fixed)),
            el("td", {}, shown(broken)),
            el("td.words", {}, el("span.few", {}, content)),
          ),
        ),
      ),
    ),
  );
}

function tiles(run) {
  const { headline, context, rollouts } = run.metrics;
  const cards = [];
  if (headline) {
    const { metric, split, before, after, ci95, n } = headline;
    const range95 = ci95 ? `95% interval ${ci95[0].toFixed(2)} to ${ci95[1].toFixed(2)}, n = ${n}` : `n = ${n}`;
    const gain =
      typeof before === "number"
        ? `before ${before.toFixed(2)} (${after >= before ? "+" : ""}${(after - before).toFixed(2)})`
        : "";
    cards.push([`${split} ${metric}`, after.toFixed(2), range95, gain]);
    cards.push(["context", plural(context.items, "item"), `${context.kind}, ${shown(context.tokens)} tokens`]);
  }
  const made = rollouts ? rollouts.adapt + rollouts.evaluate : run.rollouts.length;
  const failed = run.rollouts.filter((rollout) => rollout.fault).length;
  cards.push([
    "rollouts",
    shown(made),
    plural(run.steps.length, "step"),
    failed ? plural(failed, "fault") : "no faults",
  ]);
  const total = sums(run.calls);
  cards.push(["calls", shown(total.calls), `${shown(total.in)} tokens in, ${shown(total.out)} out`]);
  const { tokens_per_s: together, call_tokens_per_s: one, calls_in_flight: inFlight } = run.speed;
  if (!run.about.simulated)
    cards.push([
      "generated tokens per second",
      shown(together, 1),
      `${shown(one, 1)} a call, ${shown(inFlight, 1)} calls in flight`,
    ]);
  const saved = run.metrics.cache?.total.saved;
  cards.push([
    "cached prompt tokens",
    share(total),
    `${shown(total.cached)} of ${shown(total.in)}`,
    typeof saved === "number" && `input ${(100 * saved).toFixed(1)}% cheaper`,
  ]);
  const lists = [run.metrics.price_lists ?? []].flat().join(", ");
  cards.push([
    "dollars",
    shown(total.usd, 4),
    `${shown(total.seconds, 1)} s of model time`,
    lists && `at the prices of ${lists}`,
  ]);
  return el(
    "div.tiles",
    {},
    cards.map(([label, value, ...notes]) =>
      el(
        "div.tile",
        {},
        el("h3", {}, label),
        el("p.big", {}, value),
        notes.filter(Boolean).map((note) => el("p.note", {}, note)),
      ),
    ),
  );
}

/** How well each role did, a card for each: what became of its replies, votes, bullets and second tries. */
function roles(run) {
  const cards = Object.entries(run.roles);
  if (!cards.length) return null;
  return el(
    "section",
    {},
    el("h2", {}, "Roles"),
    el(
      "div.roles",
      {},
      cards.map(([role, phrases]) =>
        el(
          "div.tile",
          {},
          el("h3", {}, role),
          el(
            "ul",
            {},
            phrases.map((phrase) => el("li", {}, phrase)),
          ),
        ),
      ),
    ),
  );
}

const SMOOTH = 20;

/** The mean score of the last first rollouts by step; of an online run, of all predictions so far. */
function learningPoints(run) {
  const tries = run.firstTries;
  const online = run.about.mode === "online";
  const scores = tries.map(({ rollout }) => 100 * rollout.grade.score);
  let sum = 0;
  return scores.map((score, place) => {
    sum += score;
    if (!online && place >= SMOOTH) sum -= scores[place - SMOOTH];
    return [tries[place].step, sum / (online ? place + 1 : Math.min(place + 1, SMOOTH))];
  });
}

function sizePoints(run) {
  return run.steps.map(({ context_tokens: tokens }, step) => [step + 1, tokens]);
}

function learning(run) {
  const online = run.about.mode === "online";
  const points = learningPoints(run);
  const last = run.steps.length;
  const { headline, validation } = run.metrics;
  const flat = (value) =>
    typeof value === "number" && last
      ? [
          [0, value],
          [last, value],
        ]
      : [];
  return lineChart({
    title: "Learning curve",
    note: online
      ? "Running mean score of the predictions, in percent."
      : `First rollouts during adaptation, mean over ${SMOOTH} samples, in percent.`,
    series: [
      { name: online ? "predictions so far" : "first tries", points },
      { name: "validation", points: (validation || []).map(({ step, score }) => [step, score]), dots: true },
      { name: "tested before", points: headline && !online ? flat(headline.before) : [] },
      { name: "tested after", points: headline && !online ? flat(headline.after) : [] },
    ],
    xLabel: "step",
    yLabel: "percent",
    low: 0,
    high: 100,
  });
}

function sizes(run) {
  const items = run.isPlaybook ? "bullets" : "items";
  return el(
    "div",
    {},
    lineChart({
      title: "Context size",
      series: [{ name: "tokens", points: sizePoints(run) }],
      xLabel: "step",
      yLabel: "tokens",
      low: 0,
    }),
    el(
      "p.note",
      {},
      run.steps.length
        ? `${plural(run.steps[run.steps.length - 1].context_size, items.slice(0, -1))} after the last step.`
        : "This run did not adapt.",
    ),
  );
}

function sums(calls) {
  const answered = calls.filter(({ fault }) => !fault || fault.owner !== "backbone");
  const total = { calls: answered.length, replayed: 0, in: 0, out: 0, cached: 0, usd: 0, seconds: 0 };
  const add = (sum, value) => (sum === null || value === null || value === undefined ? null : sum + value);
  for (const { usage, seconds, replayed } of calls) {
    total.seconds += seconds;
    if (replayed) total.replayed += 1;
    else {
      total.in = add(total.in, usage.prompt);
      total.out = add(total.out, usage.completion);
      total.cached = add(total.cached, usage.cached);
      total.usd = add(total.usd, usage.usd);
    }
  }
  return total;
}

function share({ cached, in: prompt }) {
  return cached === null || !prompt ? "n/a" : `${((100 * cached) / prompt).toFixed(1)}%`;
}

const BINS = 60;

function costs(run) {
  const groups = [...grouped(run.calls, ({ stage, role }) => `${stage} ${role}`)].sort(([a], [b]) => (a < b ? -1 : 1));
  const rows = [...groups.map(([name, calls]) => [name, sums(calls)]), ["all", sums(run.calls)]];
  const table = el(
    "table",
    {},
    el("caption", {}, "Cost by stage and role (replayed calls cost nothing)"),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        [
          "stage and role",
          "calls",
          "replayed",
          "tokens in",
          "tokens out",
          "cached",
          "cached share",
          "dollars",
          "model seconds",
        ].map((name) => el("th", { scope: "col" }, name)),
      ),
    ),
    el(
      "tbody",
      {},
      rows.map(([name, sum]) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, name),
          [
            shown(sum.calls),
            shown(sum.replayed),
            shown(sum.in),
            shown(sum.out),
            shown(sum.cached),
            share(sum),
            shown(sum.usd, 4),
            shown(sum.seconds, 1),
          ].map((cell) => el("td", {}, cell)),
        ),
      ),
    ),
  );
  const bars = barRows(
    rows
      .slice(0, -1)
      .filter(([, sum]) => sum.in !== null)
      .map(([name, sum]) => ({
        name,
        text: shown(sum.in + (sum.out || 0)),
        parts: [sum.cached || 0, sum.in - (sum.cached || 0), sum.out || 0].map((value, series) => ({ value, series })),
      })),
    { title: "Tokens by stage and role", unit: ["prompt, cached", "prompt, not cached", "reply"] },
  );
  const roles = [...new Set(run.calls.map(({ role }) => role))].sort();
  const size = Math.ceil(run.calls.length / BINS) || 1;
  const reuse = roles.map((role) => {
    const points = [];
    for (let from = 0; from < run.calls.length; from += size) {
      const sum = sums(run.calls.slice(from, from + size).filter((call) => call.role === role));
      if (sum.cached !== null && sum.in) points.push([from + size / 2, (100 * sum.cached) / sum.in]);
    }
    return { name: role, points };
  });
  return el(
    "section",
    {},
    el("h2", {}, "Cost and cache"),
    el(
      "div.charts",
      {},
      bars,
      lineChart({
        title: "Cached share of prompt tokens",
        series: reuse,
        xLabel: "call",
        yLabel: "percent",
        low: 0,
        high: 100,
      }),
    ),
    el("div.scroll", {}, table),
  );
}

function faults(run) {
  const failed = run.rollouts.filter((rollout) => rollout.fault);
  const events = run.steps.flatMap(({ events: all }, step) =>
    all.filter(({ event }) => event === "fault").map((event) => ({ step, event })),
  );
  if (!failed.length && !events.length) return el("p.note", {}, "No faults.");
  const kinds = [...grouped(failed, ({ stage, fault }) => `${stage}: ${fault.owner}, ${fault.kind}`)];
  return el(
    "section",
    {},
    el("h2", {}, "Faults"),
    el(
      "ul",
      {},
      kinds.map(([kind, all]) =>
        el(
          "li",
          {},
          `${kind}: ${all.length} `,
          el("a", { href: link(run, "rollouts", { rollout: all[0].key }) }, "first"),
        ),
      ),
      events.length > 0 &&
        el(
          "li",
          {},
          `${plural(events.length, "failed call")} of roles while adapting, `,
          `first at step ${events[0].step + 1}: ${events[0].event.role}, ${events[0].event.kind}`,
        ),
    ),
  );
}

/** The processes that made the run: when, how each ended, with which code and on which host. */
function records(run) {
  if (!run.processes.length) return null; // a folder of an older version
  const running = run.about.state === "running";
  const rows = run.processes.map(({ at, how, reason, seconds, commit, python, command, host, changes }, place) => {
    const open = running && place === run.processes.length - 1;
    const ended = `${how || (open ? "running" : "killed")}${typeof seconds === "number" ? ` after ${shown(seconds, 1)} s` : ""}`;
    const machine = [
      host.cpu,
      host.cores && plural(host.cores, "core"),
      host.memory_gib && `${host.memory_gib} GiB`,
      ...(host.gpus || []),
    ]
      .filter(Boolean)
      .join(", ");
    const cells = [
      el("span", { title: reason || null }, ended),
      commit || "n/a",
      python,
      changes.join(", ") || (place ? "same" : ""),
      `${machine}${host.id ? ` (${host.id})` : ""}`,
      el("code", {}, command || "n/a"),
    ];
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, at.replace("T", " ").replace("Z", "")),
      cells.map((cell) => el("td.words", {}, cell)),
    );
  });
  const heads = ["began (UTC)", "ended", "commit", "Python", "other software than before", "host", "command"].map(
    (name) => el("th.words", { scope: "col" }, name),
  );
  return el(
    "section",
    {},
    el("h2", {}, "Records"),
    el(
      "div.scroll",
      {},
      el(
        "table",
        {},
        el("caption", {}, "Processes that worked on the run"),
        el("thead", {}, el("tr", {}, heads)),
        el("tbody", {}, rows),
      ),
    ),
  );
}
