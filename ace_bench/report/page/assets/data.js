/** The data blocks of the page: deflated JSON in base64. */
async function unpack(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (char) => char.charCodeAt(0));
  return inflated(new Blob([bytes]).stream());
}

function inflated(stream) {
  return new Response(stream.pipeThrough(new DecompressionStream("deflate"))).json();
}

const SNAPSHOT = 64;

/** Chains of texts, each stored as edits of the one before (see texts.py). */
class Texts {
  constructor({ lines, chains }) {
    this.lines = lines;
    this.chains = chains;
    this.kept = new Map();
  }

  length(chain) {
    return (this.chains[chain] || []).length;
  }

  /** Line numbers of a text; every SNAPSHOT-th text is cached. */
  numbers(chain, at) {
    let from = at;
    while (from >= 0 && !this.kept.has(`${chain}/${from}`)) from -= 1;
    let lines = from < 0 ? [] : this.kept.get(`${chain}/${from}`);
    for (let place = from + 1; place <= at; place += 1) {
      const edit = this.chains[chain][place];
      const next = [];
      for (let i = 0; i < edit.length; i += 1) {
        if (edit[i] < 0) next.push(-1 - edit[i]);
        else {
          const start = edit[i];
          i += 1;
          for (let n = 0; n < edit[i]; n += 1) next.push(lines[start + n]);
        }
      }
      lines = next;
      if (place % SNAPSHOT === 0) this.kept.set(`${chain}/${place}`, lines);
    }
    return lines;
  }

  text(chain, at) {
    return this.numbers(chain, at)
      .map((line) => this.lines[line])
      .join("\n");
  }
}

/** One run, with the indexes that the views need. */
class Run {
  constructor(raw, row, library) {
    Object.assign(this, raw);
    this.row = row;
    this.key = row.key;
    this.name = row.label; // the settings in which it differs from the other runs of the page
    this.library = library;
    raw.calls.forEach((call, place) => Object.assign(call, { place }));
    this.isPlaybook = ["playbook", "playbook_text"].includes(raw.kind);
    this.texts = new Texts(raw.texts);
    this.callsOf = grouped(raw.calls, (call) => call.session);
    this.triesOf = grouped(raw.rollouts, (rollout) => rollout.sample);
    this.byKey = new Map(raw.rollouts.map((rollout) => [rollout.key, rollout]));
    this.kept = new Map();
  }

  get marks() {
    return marksOf(this.about);
  }

  input(sample, name) {
    const found = this.samples.samples[sample];
    return found && name in found.inputs ? this.samples.texts[found.inputs[name]] : "";
  }

  inputs(sample) {
    const found = this.samples.samples[sample];
    return found ? Object.entries(found.inputs).map(([name, text]) => [name, this.samples.texts[text]]) : [];
  }

  /** Bullets by id after so many steps. */
  bullets(at) {
    let from = Math.floor(at / SNAPSHOT) * SNAPSHOT;
    while (from > 0 && !this.kept.has(from)) from -= SNAPSHOT;
    const bullets = new Map(from > 0 ? this.kept.get(from) : this.initial.map((bullet) => [bullet.id, bullet]));
    for (let step = from; step < at; step += 1) {
      for (const bullet of this.steps[step].set) bullets.set(bullet.id, bullet);
      for (const id of this.steps[step].removed) bullets.delete(id);
      if ((step + 1) % SNAPSHOT === 0) this.kept.set(step + 1, new Map(bullets));
    }
    return bullets;
  }

  /** The events of each bullet, with the number of their step. */
  get bulletEvents() {
    const found = new Map();
    const note = (id, step, event) => {
      if (!found.has(id)) found.set(id, []);
      found.get(id).push({ step, event });
    };
    this.steps.forEach(({ events }, index) => {
      for (const event of events) {
        const id = event.bullet || (event.operation && event.operation.id);
        if (id) note(id, index + 1, event);
        for (const other of event.merged || []) note(other, index + 1, { ...event, into: event.bullet });
      }
    });
    Object.defineProperty(this, "bulletEvents", { value: found });
    return found;
  }

  /** First rollouts in the order in which the run learnt from their samples. */
  get firstTries() {
    const found = [];
    const tries = this.rollouts.filter((rollout) => rollout.stage === "adapt" && rollout.trial === 0);
    const byStep = grouped(tries, (rollout) => rollout.sample);
    this.steps.forEach(({ epoch, samples }, step) => {
      for (const sample of samples) {
        const own = byStep.get(sample) || [];
        const first = own.find((rollout) => rollout.key.includes(`/epoch${epoch}/`)) || own[0];
        if (first) found.push({ step: step + 1, rollout: first });
      }
    });
    return found;
  }
}

function marksOf({ simulated, source, state }) {
  return [simulated && "simulated", source !== "real" && "sample data", state !== "finished" && state].filter(Boolean);
}

function grouped(items, key) {
  const groups = new Map();
  for (const item of items) {
    const name = key(item);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(item);
  }
  return groups;
}
