/** The page: asks a joint for its posterior given the evidence, and shows it on one card for each column. */
import "./card.js";
import "./legend.js";
import "./notice.js";
import "./sentence.js";
import "./toolbar.js";
import { IN_ADDRESS } from "./address.js";
import { Asker } from "./asker.js";
import { el, mark } from "./dom.js";
import { Gone, Refused } from "./errors.js";
import { reorder } from "./motion.js";
import { openPanel, PANELS } from "./panels.js";
import { History, conditionOn, readHash, withCondition, writeHash } from "./state.js";

/** With more columns, only the cards in sight are asked for while the mouse moves. */
const MANY = 40;
/** Panels that ask nothing but what the cards ask, so that a report has them, too. */
const LOCAL = new Set(["history", "compare"]);
const REST = 160; // milliseconds without a change until exact numbers are asked for, and the address is written
const PULSE = 5000; // milliseconds between looks at whether the joint is still there, and the same
const AGAIN = 1000; // milliseconds until a server that is gone is asked again
const LONG = 3000; // milliseconds until it is said why the first answer may take so long
const STARTING =
  "Getting ready. The very first start takes about half a minute, because code is compiled once. A joint of many columns takes a while, too.";

/**
 * Fill a node with the page.
 * @param {HTMLElement} root
 * @param {{ask: Function}} source - who answers for the joint; it may call `changed` and `slow`, which are set here
 * @param {object} [address] - where the view is kept
 */
export function start(root, source, address = IN_ADDRESS) {
  const explorer = new Explorer(root, source, address);
  explorer.open();
  return explorer;
}

export class Explorer {
  constructor(root, source, address) {
    this.root = root;
    this.source = source;
    this.address = address;
    /** By these the server knows which questions of which page are overtaken. */
    this.page = Math.random().toString(36).slice(2);
    this.number = 0;
    this.view = readHash(address.read());
    this.history = new History();
    this.asker = new Asker(
      source,
      (answer, note) => this.#answered(answer, note),
      (error, note) => this.#failed(error, note),
    );
    /** What was asked for last, and what was answered last. */
    this.evidence = this.view.given ? { text: this.view.given } : [];
    this.good = [];
    this.word = "";
    this.#build(root);
    this.#listen(root);
  }

  #build(root) {
    this.title = el("h1", { dir: "auto" }, "…");
    this.about = el("p", { class: "about", role: "status" }, "loading the joint");
    this.sentence = document.createElement("jf-sentence");
    this.notice = document.createElement("jf-notice");
    this.toolbar = document.createElement("jf-toolbar");
    this.toolbar.setPanels(PANELS);
    this.legend = document.createElement("jf-legend");
    this.grid = el("div", { class: "cards" });
    this.none = el("p", { class: "none", role: "status", hidden: true }, "No column has such a name.");
    this.aside = el("aside", { class: "panel", hidden: true });
    this.body = el(
      root.getRootNode() === document ? "main" : "div", // a page inside another one is not its main part
      { class: "main" },
      this.toolbar,
      this.legend,
      el("div", { class: "split" }, el("div", {}, this.grid, this.none), this.aside),
    );
    root.replaceChildren(
      el("header", { class: "top" }, el("div", { class: "name" }, this.title, this.about), this.sentence, this.notice),
      this.body,
    );
    this.watcher = new IntersectionObserver(
      (entries) =>
        entries.forEach(({ target, isIntersecting }) => {
          target.onScreen = isIntersecting;
          if (isIntersecting) target.draw();
        }),
      { rootMargin: "300px" },
    );
  }

  #listen(root) {
    const on = (name, act) => root.addEventListener(name, (event) => act(event.detail ?? {}, event));
    on("evidence", (detail, { target }) => this.#said(detail, target));
    on("sentence", ({ text }) => this.change({ text }, { from: this.sentence }));
    on("condition", ({ conditions }) => this.#also(conditions));
    on("evidence-all", ({ conditions }) => this.change(conditions));
    on("revert", () => this.#revert());
    on("undo", () => this.go(this.history.place - 1));
    on("redo", () => this.go(this.history.place + 1));
    on("step", ({ place }) => this.go(place));
    on("clear", () => this.change([]));
    on("find", ({ word }) => {
      this.word = word;
      this.#arrange();
    });
    on("sort", ({ sort }) => this.look({ sort }));
    on("scale", ({ scale }) => {
      this.look({ scale });
      this.redraw();
    });
    on("axis", ({ column, axis }) => this.#setAxis(column, axis));
    on("pin", ({ column }) => this.look({ pinned: toggled(this.view.pinned, this.columns[column].name) }));
    on("hide", ({ column }) => this.look({ hidden: toggled(this.view.hidden, this.columns[column].name) }));
    on("unhide", () => this.look({ hidden: [] }));
    on("panel", ({ name }) => this.look({ panel: name }));
    root.addEventListener("keydown", (event) => this.#key(event));
    this.life = new AbortController();
    this.address.follow(() => this.#navigated(), { signal: this.life.signal });
    if ("changed" in this.source) this.source.changed = () => this.#pulse();
    else this.pulse = setInterval(() => this.#pulse(), PULSE);
    this.source.slow = (isSlow) => this.#slow(isSlow);
  }

  /** Ask no more: the page is taken away. */
  close() {
    this.life.abort();
    this.watcher.disconnect();
    clearInterval(this.pulse);
    clearTimeout(this.retry);
    clearTimeout(this.rest);
    cancelAnimationFrame(this.frame);
  }

  #key(event) {
    const isText = event.target.matches?.("input, textarea, select");
    const letter = event.key.toLowerCase();
    if ((event.ctrlKey || event.metaKey) && !isText && (letter === "z" || letter === "y")) {
      event.preventDefault();
      this.go(this.history.place + (letter === "y" || event.shiftKey ? 1 : -1));
    } else if (event.key === "/" && !isText) {
      event.preventDefault();
      this.toolbar.find.focus();
    }
  }

  // ------------------------------------------------------------------------------------------------------ the joint

  /** Ask what the joint is, and make its cards. */
  async open() {
    const timer = setTimeout(() => this.notice.show("start", STARTING), LONG);
    try {
      const table = await this.source.ask("table", {});
      this.#gotTable(table, await this.#askPrior(table));
    } catch (error) {
      this.#failed(error, {});
    } finally {
      clearTimeout(timer);
      this.notice.clear("start");
    }
  }

  /** The answer without evidence, on the axes of the view; on none if one is refused. */
  async #askPrior(table) {
    const isThere = (chosen, column) => chosen.name === column.name && column.edges && (column.heavy || !chosen.log);
    this.view.axes = this.view.axes.filter((chosen) => table.columns.some((column) => isThere(chosen, column)));
    const place = (name) => table.columns.findIndex((column) => column.name === name);
    this.axes = this.view.axes.filter(isAsked).map(({ name, ...axis }) => ({ column: place(name), ...axis }));
    const ask = () => this.source.ask("posterior", { evidence: [], exact: false, columns: null, axes: this.axes });
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Refused) || !this.axes.length) throw error;
      [this.view.axes, this.axes] = [[], []];
      return ask();
    }
  }

  #gotTable(table, prior) {
    const isNew = this.table && this.table.version !== table.version;
    this.#back();
    this.table = table;
    const chosen = (column) => this.view.axes.find(({ name }) => name === column.name) ?? (column.is_time ? { survival: true } : null);
    this.columns = table.columns.map((column, place) => onAxis(column, chosen(column), prior.columns[place]));
    this.prior = prior;
    /** The answer that the cards are compared with while the panel is open. */
    this.kept = null;
    /** Suspicious cells of the table, and what was decided of them. */
    this.checked = null;
    this.answer = prior;
    this.good = [];
    this.sentence.setCan((what) => this.can(what));
    const hasTable = table.rows !== null;
    const isThere = ({ name, asks }) => LOCAL.has(name) || (this.can(asks) && (name !== "check" || hasTable));
    this.toolbar.showPanels(PANELS.filter(isThere));
    if (!this.can("text")) this.#forgetWords();
    this.title.textContent = table.title;
    this.about.textContent = table.said;
    this.address.entitle(`${table.title} · jointforest`);
    this.watcher.disconnect();
    this.cards = this.columns.map((column, place) => {
      const card = document.createElement("jf-card");
      card.setColumn(column, place, this.can("text"));
      if (card.axisButton) card.axisButton.hidden = !this.can("text"); // Python alone makes other bins
      this.watcher.observe(card);
      return card;
    });
    this.grid.replaceChildren(...this.cards);
    this.grid.style.setProperty("--label", `clamp(3.5rem, ${0.95 * this.#longestLabel()}ch, 42%)`); // letters are narrower than "0"
    this.view.pinned = this.view.pinned.filter((name) => this.#has(name));
    this.view.hidden = this.view.hidden.filter((name) => this.#has(name));
    if (isNew)
      this.notice.show("news", "The joint was replaced. This page shows the new one.", [
        "OK",
        () => this.notice.clear("news"),
      ]);
    this.#draw(prior, { live: false });
    if (!isNew && !this.view.given && !this.history.now) this.#remember(prior);
    this.#look();
    if (!Array.isArray(this.evidence) || this.evidence.length)
      this.change(this.evidence, { from: this.sentence, quiet: true });
    else this.#exact();
  }

  /** Letters of the longest level's name: all cards have room for it, so that equal shares are equally long bars. */
  #longestLabel() {
    const lengths = this.columns.flatMap(({ labels }) => (labels ?? []).slice(0, 100).map((label) => label.length));
    return lengths.reduce((most, n) => Math.max(most, n), 0);
  }

  /** Whether the source can answer; one that does not say can answer everything. */
  can(what) {
    return this.table?.can?.includes(what) ?? true;
  }

  /** The source does not read sentences: what the address says is not asked. */
  #forgetWords() {
    Object.assign(this.view, { given: "", a: "" });
    if (!Array.isArray(this.evidence)) this.evidence = [];
  }

  #has(name) {
    return this.columns.some((column) => column.name === name);
  }

  /** Another joint has taken the place of the one shown: start with it, keeping what was said. */
  #replaced() {
    this.history.inWords();
    const words = this.history.now?.sentence ?? this.view.given;
    this.evidence = words ? { text: words } : [];
    this.open();
  }

  /** See now and then whether the joint is there, and the same. */
  async #pulse() {
    if (document.visibilityState !== "visible" || this.asker.busy || this.isGone || !this.table) return;
    try {
      const { version } = await this.source.ask("posterior", { evidence: [], exact: false, columns: [] });
      if (version !== this.table.version) this.#replaced();
    } catch (error) {
      if (error instanceof Gone) this.#failed(error, {});
    }
  }

  // ------------------------------------------------------------------------------------------------------- evidence

  /** One card says something of its column. */
  #said({ column, condition, live, typed }, card) {
    const base = Array.isArray(this.evidence) ? this.evidence : this.good;
    this.change(withCondition(base, column, condition), { live, from: typed ? card : null });
  }

  /** Conditions on some columns, in the place of those before. */
  #also(conditions) {
    const base = Array.isArray(this.evidence) ? this.evidence : this.good;
    this.change(conditions.reduce((sum, condition) => withCondition(sum, condition.column, condition), base));
  }

  /**
   * Other evidence: ask, and show what comes back.
   * @param {import("./state.js").Evidence} evidence
   * @param {{live?: boolean, from?: object|null, step?: number}} note - from: who is told if it is refused
   */
  change(evidence, note = {}) {
    this.evidence = evidence;
    clearTimeout(this.rest);
    const columns = note.live && this.columns.length > MANY ? this.#inSight() : null;
    const began = performance.now();
    this.#state("asking");
    this.asker.ask(
      "posterior",
      { evidence, exact: false, columns, ...this.#asked() },
      { live: false, ...note, columns, evidence, began, axes: this.axes },
    );
  }

  /** By what the source knows a newer question, and how columns are to be shown. */
  #asked() {
    this.number += 1;
    return { page: this.page, id: this.number, axes: this.axes };
  }

  #inSight() {
    return this.cards
      .filter((card) => card.onScreen && !card.hidden)
      .map((card) => card.place)
      .sort((a, b) => a - b);
  }

  #answered(answer, note) {
    this.#back();
    if (answer.overtaken || note.axes !== this.axes) return undefined;
    if (answer.version !== this.table.version) return this.#replaced();
    if (!note.live) this.notice.clear("trouble");
    const columns = this.answer ? [...this.answer.columns] : [];
    (note.columns ?? this.columns.keys()).forEach((place, k) => {
      columns[place] = answer.columns[k];
    });
    this.answer = { ...answer, columns };
    if (note.exact && !answer.evidence.length) this.prior = answer;
    if (!note.live) this.#settled(answer, note);
    if (!this.frame)
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.#draw(this.answer, this.note);
      });
    this.note = note;
    return undefined;
  }

  /** The evidence that was asked for is the evidence now. */
  #settled(answer, note) {
    if (note.exact) return;
    if (note.from === this.sentence || !note.from) this.sentence.isEdited = false;
    this.good = answer.evidence;
    this.evidence = answer.evidence;
    if (note.step === undefined) this.#remember(answer);
    else this.history.go(note.step);
    this.sentence.setHistory(this.history);
    this.rest = setTimeout(() => {
      this.#exact();
      this.#writeAddress(); // not before: browsers take milliseconds for it
    }, REST);
  }

  /** Ask for exact means and intervals, and let the panel follow. */
  #exact() {
    this.asker.ask(
      "posterior",
      { evidence: this.good, exact: true, columns: null, ...this.#asked() },
      { exact: true, began: performance.now(), axes: this.axes },
    );
    if (this.view.panel) this.panel?.update();
  }

  #remember(answer) {
    const { evidence, sentence, probability, log_probability: log } = answer;
    this.history.push({ evidence, sentence, probability, log });
    this.sentence.setHistory(this.history);
  }

  /** Go to another step of the history. */
  go(step) {
    const { now } = this.history;
    const there = this.history.steps[step];
    if (!there || there === now) return;
    this.sentence.isEdited = false;
    this.change(there.evidence, { step });
  }

  #revert() {
    this.notice.clear("trouble");
    this.sentence.revert();
  }

  // -------------------------------------------------------------------------------------------------------- trouble

  #failed(error, note) {
    if (!(error instanceof Refused)) return this.#gone(error);
    this.#back();
    if (!this.table) return this.notice.show("trouble", error.message);
    if (note.live) return this.notice.show("trouble", kindly(error));
    this.#state("refused");
    if (!this.history.now) this.#remember(this.prior);
    this.#look();
    this.evidence = this.good;
    note.from?.refuse();
    if (note.from === this.sentence && note.quiet) this.sentence.write(note.evidence.text ?? "");
    if (!note.from) this.#draw(this.answer, { live: false });
    return this.notice.show("trouble", kindly(error), ["back to the last evidence", () => this.#backToGood()]);
  }

  #backToGood() {
    this.notice.clear("trouble");
    this.sentence.isEdited = false;
    this.change(this.good, { step: this.history.place });
  }

  #gone(error) {
    if (!(error instanceof Gone)) console.error(error);
    this.isGone = true;
    this.body.classList.add("gone");
    this.#state("gone");
    this.notice.show(
      "gone",
      "No answer: the explorer was stopped, or this address is no longer valid. " +
        "Nothing is lost. The page goes on by itself when the explorer runs again.",
    );
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.#tryAgain(), AGAIN);
  }

  /** An answer takes long: who is asked does something else, or was stopped. */
  #slow(isSlow) {
    if (!isSlow) return this.notice.clear("slow");
    return this.notice.show("slow", "No answer yet: Python is busy, or was stopped. The page goes on when it answers.");
  }

  async #tryAgain() {
    try {
      const table = this.table;
      const fresh = await this.source.ask("table", {});
      if (!table) await this.open();
      else if (fresh.version !== table.version) this.#replaced();
      else {
        this.#back();
        this.change(this.evidence);
      }
    } catch (error) {
      this.#gone(error);
    }
  }

  /** Somebody answers. */
  #back() {
    if (!this.isGone) return;
    this.isGone = false;
    clearTimeout(this.retry);
    this.body.classList.remove("gone");
    this.notice.clear("gone");
  }

  // -------------------------------------------------------------------------------------------------------- looking

  #draw(answer, note) {
    const live = Boolean(note.live);
    const evidence = Array.isArray(answer.evidence) ? answer.evidence : [];
    const top = this.#longest(answer);
    const { sentence } = answer;
    const kept = this.compared;
    const before = kept ?? this.prior;
    this.apart = answer.columns.map((now, k) => (kept ? distance(now, before.columns[k]) : now.moved));
    this.cards.forEach((card, place) => {
      const condition = conditionOn(evidence, place);
      const one = { now: answer.columns[place], before: before.columns[place], apart: this.apart[place], condition, live, top };
      card.update({ ...one, sentence, kept: kept?.sentence ?? null });
    });
    this.sentence.update(answer, { live });
    if (!live) this.#look();
    if (kept && !live) this.panel.update();
    this.#state(this.asker.busy ? "asking" : note.exact ? "exact" : "known");
    if (note.began !== undefined)
      performance.measure("known", { start: note.began, detail: { exact: Boolean(note.exact), live } });
  }

  /** The evidence kept as A, while the panel that compares is open. */
  get compared() {
    return this.view.panel === "compare" ? this.kept : null;
  }

  /** Keep an answer, which the cards are compared with while the panel is open. */
  keep(answer) {
    this.kept = answer;
    this.redraw();
    this.look({ a: this.can("text") ? answer.sentence : "" });
  }

  /** Draw what is known once more, because it is looked at in another way. */
  redraw() {
    this.#draw(this.answer, { live: false, exact: this.root.dataset.state === "exact" });
  }

  /** The share of a bar over the full width, the same on all cards: 1, or the greatest share of a level on the page. */
  #longest({ columns, evidence }) {
    if (this.view.scale !== "most") return 1;
    const before = (this.compared ?? this.prior).columns;
    const isFree = (k) => this.columns[k].levels && !conditionOn(evidence, k);
    const shares = [...columns.keys()].flatMap((k) => (isFree(k) ? [...columns[k].mass, ...before[k].mass] : []));
    return shares.reduce((most, x) => Math.max(most, x), 1e-12);
  }

  /** How fresh what is shown is: "asking", "known", "exact", "refused" or "gone". */
  #state(state) {
    this.root.dataset.state = state;
  }

  /** Show a column on another axis, from `low` to `high` or logarithmic; null: its own one. */
  async #setAxis(place, axis) {
    const axes = this.axes.filter(({ column }) => column !== place);
    if (isAsked(axis)) axes.push({ column: place, ...axis });
    const before = [this.prior, this.kept].filter(Boolean);
    const ask = ({ evidence }) => this.source.ask("posterior", { evidence, exact: true, columns: [place], axes });
    try {
      const found = await Promise.all(before.map(ask));
      before.forEach((answer, k) => {
        answer.columns = answer.columns.with(place, found[k].columns[0]);
      });
      const column = this.table.columns[place];
      this.columns[place] = onAxis(column, axis, found[0].columns[0]);
      this.axes = axes;
      this.view.axes = this.view.axes.filter(({ name }) => name !== column.name);
      if (isAsked(axis) || (column.is_time && !axis)) this.view.axes.push({ name: column.name, ...axis });
      this.answer = { ...this.answer, columns: this.answer.columns.with(place, found[0].columns[0]) }; // for the time being
      this.cards[place].setAxis(this.columns[place]);
      this.change(this.good, { step: this.history.place });
    } catch (error) {
      this.#failed(error, { live: true });
    }
  }

  /** Look in another way. */
  look(change) {
    Object.assign(this.view, change);
    this.#look();
    this.#writeAddress();
  }

  #look() {
    const kept = this.compared;
    this.toolbar.update(this.view);
    this.legend.update(this.view.scale, kept && kept.sentence);
    this.body.classList.toggle("comparing", kept !== null);
    this.#arrange();
    const isOther = (this.panel?.dataset.panel ?? null) !== this.view.panel;
    if (isOther && this.history.now) this.#openPanel();
  }

  /** Show a row of the table in the panel of one row. */
  openRow(at) {
    this.row = { rows: null, count: this.table.rows, at, cells: null, without: [] };
    this.look({ panel: "row" });
  }

  #openPanel() {
    if (!PANELS.some(({ name }) => name === this.view.panel)) this.view.panel = null;
    this.panel = this.view.panel ? openPanel(this.view.panel, this) : null;
    this.aside.hidden = !this.panel;
    this.aside.parentElement.classList.toggle("open", Boolean(this.panel));
    this.aside.replaceChildren(...(this.panel ? [this.panel] : []));
    this.panel?.update();
    if (this.kept) this.redraw();
  }

  /** Show the cards that are wanted, in the order that is wanted. */
  #arrange() {
    const word = this.word.trim().toLowerCase();
    const { pinned, hidden, sort } = this.view;
    for (const card of this.cards ?? []) {
      const { name } = card.column;
      const isPinned = pinned.includes(name);
      const isHidden = hidden.includes(name) || !name.toLowerCase().includes(word);
      if (card.hidden !== isHidden) card.hidden = isHidden;
      mark(card.pin, "aria-pressed", isPinned);
      card.classList.toggle("pinned", isPinned);
    }
    const isOneValue = ({ levels, edges, step }) => (levels ? levels.length < 2 : Boolean(step) && edges.length < 3);
    const rank = ({ column }) => (pinned.includes(column.name) ? 1 : isOneValue(column) ? -1 : 0); // such columns last
    const moved = (card) => (sort === "moved" || this.compared ? (this.apart?.[card.place] ?? 0) : 0);
    const order = [...(this.cards ?? [])].sort((a, b) => rank(b) - rank(a) || moved(b) - moved(a) || a.place - b.place);
    reorder(this.grid, order);
    this.none.hidden = order.some((card) => !card.hidden);
  }

  #writeAddress() {
    this.view.given = this.can("text") ? (this.answer?.sentence ?? "") : "";
    const hash = writeHash(this.view);
    this.address.write(hash);
  }

  /** The address was changed by hand, or a link was followed. */
  #navigated() {
    const view = readHash(this.address.read());
    const old = this.view;
    const isOther = view.given !== old.given;
    this.view = view;
    if (view.a !== old.a) this.kept = null;
    if (JSON.stringify(view.axes) !== JSON.stringify(old.axes)) {
      this.evidence = view.given ? { text: view.given } : [];
      return this.open();
    }
    this.#look();
    if (view.a !== old.a) this.panel?.update();
    if (isOther) this.change(view.given ? { text: view.given } : [], { from: this.sentence, quiet: true });
  }
}

/** A refusal in kind words; lines below the first point into the sentence, which the page shows itself. */
function kindly({ message, impossible }) {
  const [said] = message.split("\n");
  const sentence = said.charAt(0).toUpperCase() + said.slice(1);
  return impossible ? `No row can be like this. ${sentence}` : sentence;
}

/** How much probability two distributions have on different values, 0 to 1. */
function distance(a, b) {
  const [x, y] = [a, b].map(({ mass, outside = [] }) => [...mass, ...outside]);
  return 0.5 * x.reduce((sum, share, k) => sum + Math.abs(share - y[k]), 0);
}

/** Whether the source is asked for an axis; the whole axis and survival curves are made of what it answers anyway. */
function isAsked(axis) {
  return Boolean(axis?.log) || axis?.low !== undefined;
}

/** A column on an axis; the answer of its card has the edges of axes that are asked for. */
function onAxis(column, axis, { edges, beyond }) {
  if (isAsked(axis) && edges) return { ...column, edges, beyond, axis: axis.log ? "log" : "zoom" };
  return { ...column, axis: axis?.survival ? "survival" : null };
}

/** A list with a name put in, or taken out. */
function toggled(names, name) {
  return names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
}
