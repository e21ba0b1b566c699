/** Make an element: el("p.note", {title: "x"}, child, ...). Text children become text nodes, never markup. */
function el(spec, attributes = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  fill(node, attributes);
  node.append(
    ...children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined && child !== false)
      .map((child) => (typeof child === "string" ? visible(child) : child)),
  );
  return node;
}

/** Text with its direction controls as words: one of them would turn around what stands behind it, such as a score. */
function visible(text) {
  return text.replace(
    /[\u202a-\u202e\u2066-\u2069]/g,
    (sign) => `⟨U+${sign.codePointAt(0).toString(16).toUpperCase()}⟩`,
  );
}

/** The same for SVG. */
function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(node, attributes);
  node.append(...children);
  return node;
}

const READ = ["title", "aria-label", "data-label"]; // attributes that a reader sees or hears

function fill(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(name, value === true ? "" : READ.includes(name) ? visible(String(value)) : value);
  }
}

/** A disclosure whose content is made when it is first opened. */
function lazy(summary, make, { open = false, classes = "" } = {}) {
  const node = el("details" + classes, { open }, el("summary", {}, summary));
  const build = () => {
    if (node.open && node.childElementCount === 1) node.append(...[make()].flat(Infinity));
  };
  node.addEventListener("toggle", build);
  build();
  return node;
}

/** A place for what is still being read. */
function later(promise, make) {
  const node = el("div", {}, el("p.note", {}, "Reading …"));
  promise.then(
    (found) => node.replaceChildren(...[make(found)].flat(Infinity)),
    (error) => node.replaceChildren(el("p.warning", {}, `This cannot be shown: ${error.message}`)),
  );
  return node;
}

function field(label, control) {
  fill(control, { "aria-label": label }); // a label's text would include all options of a select
  return el("label.field", {}, el("span", {}, label), control);
}

function select(options, chosen, onchange) {
  const node = el("select", { onchange: () => onchange(node.value) });
  for (const [value, label] of options)
    node.append(el("option", { value, selected: String(value) === String(chosen) }, label));
  return node;
}

/** Call only after a pause, so that typing in a search field stays smooth. */
function debounced(act, wait = 80) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, wait);
  };
}

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Unknown is not zero. */
function shown(value, digits = 0) {
  if (value === null || value === undefined) return "n/a";
  return digits ? value.toFixed(digits) : number.format(value);
}

function plural(count, word) {
  return `${shown(count)} ${word}${count === 1 ? "" : "s"}`;
}
