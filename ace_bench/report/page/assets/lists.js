const CHUNK = 60;

/** A list that makes its items as they come into view; all of them before printing. */
class LazyList {
  constructor(make, { empty = "Nothing matches.", node = el("ul.list"), frame = node } = {}) {
    this.make = make;
    this.empty = empty;
    this.node = node; // holds the items
    this.end = el("div.end");
    this.root = el("div", {}, frame, this.end);
    this.items = [];
    this.done = 0;
    new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.grow(), {
      rootMargin: "600px",
    }).observe(this.end);
    window.addEventListener("beforeprint", () => this.root.isConnected && this.grow(this.items.length));
  }

  show(items) {
    this.items = items;
    this.done = 0;
    this.node.replaceChildren();
    this.grow();
    if (!items.length)
      this.node.append(
        this.node.tagName === "TBODY"
          ? el("tr.empty", {}, el("td", { colspan: 99 }, this.empty))
          : el("li.empty", {}, this.empty),
      );
  }

  grow(count = CHUNK) {
    const next = this.items.slice(this.done, this.done + count);
    this.done += next.length;
    this.node.append(...next.map((item) => this.make(item)));
    if (next.length && this.done < this.items.length) requestAnimationFrame(() => this.near() && this.grow());
  }

  near() {
    return this.root.isConnected && this.end.getBoundingClientRect().top < window.innerHeight + 600;
  }

  /** Make items up to one and return its element. */
  reach(item) {
    const place = this.items.indexOf(item);
    if (place >= this.done) this.grow(place + 1 - this.done);
    return place < 0 ? null : this.node.children[place];
  }
}
