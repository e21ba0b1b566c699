const WIDE = Math.max(320, Math.min(640, window.innerWidth - 70)); // the text of a chart stays readable on a phone
const HIGH = 220;
const PAD = { left: 48, right: 12, top: 10, bottom: 30 };

/** Lines over a common axis: series are {name, points: [[x, y], ...], dots}; the same numbers follow as a table. */
function lineChart({ title, note = "", series, xLabel, yLabel, low = null, high = null }) {
  const drawn = series.filter(({ points }) => points.length);
  if (!drawn.length) return el("figure.chart", {}, el("figcaption", {}, title), el("p.note", {}, "No data."));
  const all = drawn.flatMap(({ points }) => points);
  const xs = range(all.map(([x]) => x));
  const ys = range(
    all.map(([, y]) => y),
    low,
    high,
  );
  const x = (value) => PAD.left + ((value - xs[0]) / (xs[1] - xs[0] || 1)) * (WIDE - PAD.left - PAD.right);
  const y = (value) => HIGH - PAD.bottom - ((value - ys[0]) / (ys[1] - ys[0] || 1)) * (HIGH - PAD.top - PAD.bottom);
  const plot = svg("svg", {
    viewBox: `0 0 ${WIDE} ${HIGH}`,
    role: "img",
    "aria-label": `${title}: ${drawn.map(spoken).join("; ")}`,
  });
  for (const tick of ticks(
    ys,
    4,
    all.every(([, at]) => Number.isInteger(at)),
  )) {
    plot.append(
      svg("line", { class: "grid", x1: PAD.left, x2: WIDE - PAD.right, y1: y(tick), y2: y(tick) }),
      svg("text", { class: "tick", x: PAD.left - 6, y: y(tick) + 4, "text-anchor": "end" }, short(tick)),
    );
  }
  for (const tick of ticks(
    xs,
    6,
    all.every(([at]) => Number.isInteger(at)),
  ))
    plot.append(
      svg("text", { class: "tick", x: x(tick), y: HIGH - PAD.bottom + 16, "text-anchor": "middle" }, short(tick)),
    );
  plot.append(svg("text", { class: "tick", x: WIDE - PAD.right, y: HIGH - 2, "text-anchor": "end" }, xLabel));
  drawn.forEach(({ points, dots }, index) => {
    const place = series.indexOf(drawn[index]);
    if (points.length > 1 && !dots) {
      plot.append(
        svg("polyline", {
          class: `line c${place}`,
          points: points.map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`).join(" "),
        }),
      );
    } else {
      for (const [px, py] of points) plot.append(svg("circle", { class: `dot c${place}`, cx: x(px), cy: y(py), r: 4 }));
    }
  });
  const readout = el("p.readout", { "aria-hidden": "true" }, `${yLabel} by ${xLabel}`);
  hover(plot, drawn, { x, xs, xLabel, yLabel, readout });
  const legend = el(
    "p.legend",
    {},
    drawn.map((one) => el(`span.key.c${series.indexOf(one)}`, {}, one.name)),
  );
  return el("figure.chart", {}, el("figcaption", {}, title), note && el("p.note", {}, note), legend, plot, readout);
}

function hover(plot, series, { x, xs, xLabel, yLabel, readout }) {
  const mark = svg("line", { class: "mark", y1: PAD.top, y2: HIGH - PAD.bottom, x1: -9, x2: -9 });
  plot.append(mark);
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    const inner = WIDE - PAD.left - PAD.right;
    const at = xs[0] + (((event.clientX - box.left) * (WIDE / box.width) - PAD.left) / inner) * (xs[1] - xs[0]);
    const near = series.map(({ name, points }) => [
      name,
      points.reduce((a, b) => (Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a)),
    ]);
    const [, [px]] = near.reduce((a, b) => (Math.abs(b[1][0] - at) < Math.abs(a[1][0] - at) ? b : a));
    fill(mark, { x1: x(px), x2: x(px) });
    readout.textContent = `${xLabel} ${short(px)}: ${near.map(([name, [, py]]) => `${name} ${short(py)}`).join(", ")}`;
  });
  plot.addEventListener("pointerleave", () => {
    fill(mark, { x1: -9, x2: -9 });
    readout.textContent = `${yLabel} by ${xLabel}`;
  });
}

/** Shares of a whole as one horizontal bar a row. */
function barRows(rows, { title, unit }) {
  const most = Math.max(1, ...rows.map(({ parts }) => parts.reduce((sum, { value }) => sum + value, 0)));
  const bars = rows.map(({ name, parts, text }) => {
    const bar = svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" });
    let from = 0;
    for (const { value, series } of parts) {
      bar.append(
        svg("rect", { class: `bar c${series}`, x: (100 * from) / most, y: 0, width: (100 * value) / most, height: 8 }),
      );
      from += value;
    }
    return el("div.barrow", {}, el("span.name", {}, name), el("span.track", {}, bar), el("span.value", {}, text));
  });
  return el(
    "figure.chart",
    {},
    el("figcaption", {}, title),
    unit &&
      el(
        "p.legend",
        {},
        unit.map((name, index) => el(`span.key.c${index}`, {}, name)),
      ),
    bars,
  );
}

function range(values, low = null, high = null) {
  let [min, max] = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  if (low !== null) min = Math.min(low, min);
  if (high !== null) max = Math.max(high, max);
  return min === max ? [min - 1, max + 1] : [min, max];
}

/** Round numbers in a range; whole ones for what is counted. */
function ticks([from, to], count, whole) {
  const rough = Math.max((to - from) / count, whole ? 1 : 0);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
  const found = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to + step / 1e6; tick += step) found.push(tick);
  return found;
}

function short(value) {
  if (Math.abs(value) >= 10_000) return `${+(value / 1000).toFixed(1)}k`;
  return String(+value.toFixed(Math.abs(value) < 10 ? 2 : 1));
}

function spoken({ name, points }) {
  const [first, last] = [points[0], points[points.length - 1]];
  return `${name} from ${short(first[1])} to ${short(last[1])}`;
}
