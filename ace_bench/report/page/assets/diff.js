const MOST_CELLS = 25_000_000;

/** What changed from one list to another: [{kind: "same" | "del" | "ins", items}], by their longest common subsequence. */
function diff(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail])
    tail += 1;
  const parts = [];
  const push = (kind, items) => {
    if (!items.length) return;
    const last = parts[parts.length - 1];
    if (last && last.kind === kind) last.items.push(...items);
    else parts.push({ kind, items: [...items] });
  };
  push("same", a.slice(0, head));
  middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail), push);
  push("same", a.slice(a.length - tail));
  return parts;
}

function middle(a, b, push) {
  const wide = b.length + 1;
  if (!a.length || !b.length || a.length * wide > MOST_CELLS) {
    push("del", a);
    push("ins", b);
    return;
  }
  const longest = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * wide + j] =
        a[i] === b[j]
          ? longest[(i + 1) * wide + j + 1] + 1
          : Math.max(longest[(i + 1) * wide + j], longest[i * wide + j + 1]);
    }
  }
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      push("same", [a[i]]);
      i += 1;
      j += 1;
    } else if (longest[(i + 1) * wide + j] >= longest[i * wide + j + 1]) {
      push("del", [a[i]]);
      i += 1;
    } else {
      push("ins", [b[j]]);
      j += 1;
    }
  }
  push("del", a.slice(i));
  push("ins", b.slice(j));
}

/** Words, numbers, single other signs and the space between them. */
function wordsOf(text) {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
}

/** Two texts as one, with what only one of them has marked. */
function markedText(before, after) {
  return diff(wordsOf(before), wordsOf(after)).map(({ kind, items }) =>
    kind === "same" ? items.join("") : el(kind, {}, items.join("")),
  );
}

/** An answer and its reference, both with the parts marked that differ: parts of a list by their place, else words. */
function markedAnswer(answer, gold) {
  const [ours, theirs] = [answer.split(/([,;\n])/), gold.split(/([,;\n])/)];
  const equal = (a, b) => a.trim().toLowerCase() === b.trim().toLowerCase();
  if (ours.length > 1 && ours.length === theirs.length) {
    const differs = (place) => place % 2 === 0 && !equal(ours[place], theirs[place]);
    const marked = (parts, kind) => parts.map((part, place) => (differs(place) ? el(kind, {}, part) : part));
    const count = ours.filter((_, place) => differs(place)).length;
    return {
      answer: marked(ours, "del"),
      gold: marked(theirs, "ins"),
      note: count ? `${count} of ${(ours.length + 1) / 2} parts differ.` : "",
    };
  }
  const parts = diff(wordsOf(answer), wordsOf(gold));
  if (parts.every(({ kind, items }) => kind !== "same" || !items.join("").trim()))
    return { answer: [answer], gold: [gold], note: "" };
  const side = (kind) =>
    parts
      .filter((part) => part.kind === "same" || part.kind === kind)
      .map((part) => (part.kind === kind ? el(kind, {}, part.items.join("")) : part.items.join("")));
  return { answer: side("del"), gold: side("ins"), note: "" };
}
