/** The page of a joint of histories: one subject's rows with the next ones, or each column over row numbers. */
import "./notice.js";
import { IN_ADDRESS } from "./address.js";
import { Asker, newest } from "./asker.js";
import { breakable, el, iconButton, mark, named, say, svg } from "./dom.js";
import { Gone, Refused } from "./errors.js";
import { count, percent, writer } from "./format.js";
import { CLOSE } from "./icons.js";
import { isOdd, levelChart, numberChart, shareChart } from "./timeline.js";

/** Rows that pictures and the table of cells show: the last ones. */
const SHOWN = 60;
const MOST_STEPS = 50;
const PULSE = 5000; // milliseconds between looks at whether the joint is still there, and the same
const AGAIN = 1000; // milliseconds until a server that is gone is asked again
const TYPING = 200; // milliseconds without a key until subjects are looked for

/**
 * Fill a node with the page.
 * @param {HTMLElement} root
 * @param {{ask: Function}} source - who answers for the joint
 * @param {object} [address] - where the view is kept
 */
export function start(root, source, address = IN_ADDRESS) {
  const page = new HistoriesPage(root, source, address);
  page.open();
  return page;
}

class HistoriesPage {
  constructor(root, source, address) {
    Object.assign(this, { root, source, address });
    this.asker = new Asker(
      source,
      (answer, note) => this.#answered(answer, note),
      (error) => this.#failed(error),
    );
    this.find = newest(source);
    /** @type {{place?: number, seed?: number, steps: number, view: "one"|"all"}} */
    this.view = readAddress(address.read());
    this.life = new AbortController();
    this.#build();
    address.follow(() => this.#navigated(), { signal: this.life.signal });
    if ("changed" in source) source.changed = () => this.open();
    else this.pulse = setInterval(() => this.#pulse(), PULSE);
  }

  #build() {
    const { root } = this;
    this.title = el("h1", { dir: "auto" }, "…");
    this.about = el("p", { class: "about", role: "status" }, "loading the joint");
    this.who = el("p", { class: "who-now", role: "status" });
    this.word = el("input", {
      type: "search", class: "word", spellcheck: "false", placeholder: "type a part of its name",
      oninput: () => this.#look(TYPING), onfocus: () => this.#look(0),
    });
    this.wordLabel = el("label", {}, el("span", {}, "find a subject"), this.word);
    this.matches = el("div", { class: "matches", role: "group", "aria-label": "subjects found", hidden: true });
    this.steps = el("input", {
      type: "number", class: "steps", min: 0, max: MOST_STEPS, value: this.view.steps, onchange: () => this.#setSteps(),
    });
    this.views = [["one", "one subject"], ["all", "all subjects"]].map(([view, title]) =>
      el("button", { type: "button", "data-view": view, "aria-pressed": "false", onclick: () => this.#show(view) }, title),
    );
    this.notice = document.createElement("jf-notice");
    this.keys = el("div", { class: "time-keys" });
    this.grid = el("div", { class: "timelines" });
    this.editor = el("section", { class: "panel editor", "aria-label": "rows", hidden: true });
    this.body = el(
      root.getRootNode() === document ? "main" : "div",
      { class: "main" },
      this.keys,
      this.grid,
      this.editor,
    );
    root.replaceChildren(
      el(
        "header",
        { class: "top" },
        el("div", { class: "name" }, this.title, this.about),
        this.who,
        el(
          "div",
          { class: "who" },
          this.wordLabel,
          el("button", { type: "button", onclick: () => this.#draw() }, "draw a new subject"),
          el("label", {}, el("span", {}, "next rows"), this.steps),
          el("div", { class: "choice", role: "group", "aria-label": "view" }, ...this.views),
        ),
        this.matches,
        this.notice,
      ),
      this.body,
    );
  }

  /** Ask no more: the page is taken away. */
  close() {
    this.life.abort();
    clearInterval(this.pulse);
    clearTimeout(this.retry);
    clearTimeout(this.typing);
  }

  // ------------------------------------------------------------------------------------------------------ the joint

  /** Ask what the joint is, and show its first subject. */
  async open() {
    try {
      this.#gotTable(await this.source.ask("table", {}));
    } catch (error) {
      this.#failed(error);
    }
  }

  #gotTable(table) {
    this.#back();
    const isNew = this.table && this.table.version !== table.version;
    this.table = table;
    this.population = null;
    this.columns = table.columns;
    this.varying = table.columns.filter(({ constant }) => !constant);
    this.constants = table.columns.filter(({ constant }) => constant);
    say(this.title, table.title);
    say(this.about, table.said);
    this.address.entitle(`${table.title} · jointforest`);
    this.wordLabel.hidden = table.subjects === null;
    if (table.subjects === null || !(this.view.place < table.subjects)) this.view.place = undefined;
    if (isNew)
      this.notice.show("news", "The joint was replaced. This page shows the new one.", ["OK", () => this.notice.clear("news")]);
    this.#open(this.view);
  }

  #pulse() {
    if (document.visibilityState !== "visible" || this.asker.busy || this.isGone || !this.table) return;
    this.#isThere();
  }

  async #isThere() {
    try {
      const table = await this.source.ask("table", {});
      if (!this.table || table.version !== this.table.version) this.#gotTable(table);
      else this.#back();
    } catch (error) {
      this.#failed(error);
    }
  }

  // ---------------------------------------------------------------------------------------------------- the subject

  /** Show what a view says. */
  #open({ place, seed, view }) {
    if (view === "all") this.#show("all");
    else this.#show("one");
    if (place !== undefined) this.#choose({ place });
    else if (seed !== undefined || this.table.subjects === null) this.#choose({ seed: seed ?? 0 });
    else this.#choose({ place: 0 });
  }

  /** Look for subjects whose names contain what was typed. */
  #look(wait) {
    clearTimeout(this.typing);
    this.typing = setTimeout(async () => {
      try {
        const found = await this.find("subjects", { word: this.word.value });
        if (found) this.#list(found);
      } catch (error) {
        this.#failed(error);
      }
    }, wait);
  }

  #list({ found, subjects }) {
    const buttons = subjects.map(({ place, label, rows }) =>
      el(
        "button",
        { type: "button", "data-place": place, onclick: () => this.#choose({ place }) },
        named(label),
        " ",
        el("small", {}, rows === 1 ? "1 row" : `${count(rows)} rows`),
      ),
    );
    const more = found > subjects.length ? [el("small", {}, `and ${count(found - subjects.length)} more: type more of the name`)] : [];
    const none = el("small", { role: "status" }, "No subject of the table has such a name.");
    const close = iconButton("close the list of subjects", CLOSE, () => {
      this.matches.hidden = true;
    });
    this.matches.replaceChildren(...(found ? [...buttons, ...more] : [none]), close);
    this.matches.hidden = false;
  }

  /** Draw another subject than the one drawn last. */
  #draw() {
    this.#choose({ seed: (this.view.seed ?? -1) + 1 });
  }

  /** @param {{place: number}|{seed: number}} which */
  async #choose(which) {
    try {
      const found = await this.source.ask("history", which);
      this.view = { steps: this.view.steps, view: this.view.view, ...which };
      this.label = "seed" in which ? found.label : `${this.table.group} ${found.label}`;
      this.matches.hidden = true;
      this.unseen = found.unseen.length ? `; never seen, counted as empty: ${found.unseen.join(", ")}` : "";
      this.constant = found.constant;
      this.rows = found.rows;
      this.original = structuredClone({ constant: found.constant, rows: found.rows });
      this.good = null;
      this.answer = null;
      this.#ask();
    } catch (error) {
      this.#failed(error);
    }
  }

  #setSteps() {
    const steps = Math.round(Number(this.steps.value));
    this.view.steps = Number.isFinite(steps) ? Math.min(MOST_STEPS, Math.max(0, steps)) : 3;
    this.steps.value = this.view.steps;
    this.#ask();
  }

  /** Ask what is known of the rows as they are now. */
  #ask() {
    if (!this.rows) return;
    const { constant, rows } = this;
    this.grid.setAttribute("aria-busy", "true");
    this.asker.ask("forecast", { constant, rows, steps: this.view.steps }, { steps: this.view.steps });
  }

  #answered(answer, note) {
    this.#back();
    this.notice.clear("trouble");
    this.grid.removeAttribute("aria-busy");
    this.rows = answer.order.map((place) => this.rows[place]);
    this.good = structuredClone({ constant: this.constant, rows: this.rows });
    this.answer = { ...answer, steps: note.steps };
    this.#say();
    if (this.view.view === "one") this.#drawSubject();
    this.#drawEditor();
    this.#writeAddress();
  }

  #say() {
    if (this.view.view === "all") return say(this.who, "All subjects");
    const n = this.rows.length;
    const changed = this.#isChanged() ? ", changed" : "";
    return say(this.who, `${this.label}: ${n === 1 ? "1 row" : `${count(n)} rows`}${changed}${this.unseen ?? ""}`);
  }

  #isChanged() {
    return JSON.stringify({ constant: this.constant, rows: this.rows }) !== JSON.stringify(this.original);
  }

  // ------------------------------------------------------------------------------------------------------- pictures

  #show(view) {
    this.view.view = view;
    for (const button of this.views) mark(button, "aria-pressed", button.dataset.view === view);
    this.editor.hidden = view !== "one" || !this.rows;
    this.#writeAddress();
    if (this.rows || view === "all") this.#say();
    if (view === "all") this.#drawAll();
    else if (this.answer) this.#drawSubject();
  }

  #drawSubject() {
    const { answer } = this;
    const from = Math.max(0, this.rows.length - SHOWN);
    const cards = this.varying.map((column) => this.#subjectCard(column, answer.columns[this.columns.indexOf(column)], from));
    if (answer.ends.some((share) => share !== null))
      cards.unshift(
        card("The history has ended", shareChart({ name: "probability that the history ends before a next row", share: answer.ends }), [
          "Probability that there is no such next row.",
        ]),
      );
    const exact = answer.exact || !answer.steps ? "" : ` Sums over unknown cells are estimates from draws.`;
    this.keys.replaceChildren(
      key("a known cell", svg("circle", { class: "dot", cx: 11, cy: 7, r: 3.2 })),
      key("an unusual cell: fewer than 1% of drawn cells are less probable", svg("circle", { class: "dot odd", cx: 11, cy: 7, r: 5 })),
      key("an empty cell: what it may be, given all rows", svg("circle", { class: "dot filled-in", cx: 11, cy: 7, r: 3.2 })),
      key("next rows: mean, and the intervals that hold 50% and 90%", svg("rect", { class: "band", width: 22, height: 14 }), svg("rect", { class: "band inner", width: 22, height: 6, y: 4 })),
      el("span", {}, `Answers about a next row suppose that the history has it.${exact}`),
    );
    this.grid.replaceChildren(...cards);
  }

  #subjectCard(column, said, from) {
    const x = said.x.slice(from);
    const less = said.less.slice(from);
    const unknown = Object.fromEntries(
      Object.entries(said.unknown).flatMap(([i, found]) => (i >= from ? [[i - from, found]] : [])),
    );
    const next = this.answer.steps ? said.next : null;
    const notes = [];
    if (column.labels) {
      const shares = x.map((code, i) => (code === null ? (unknown[i]?.proba ?? null) : column.labels.map((_, k) => Number(k === code))));
      const chart = levelChart(column, { shares, known: x.map((code) => code !== null), next: next?.proba.filter((one) => one[0] !== null), from, less });
      if (next?.proba[0]?.[0] !== undefined && next.proba[0][0] !== null) notes.push(`Next row: ${mostProbable(column, next.proba[0])}.`);
      return card(column.name, chart, [...notes, ...missingNote(next)]);
    }
    const write = writer(column);
    if (next && next.mean[0] !== null) {
      const [low, , , high] = next.band[0];
      notes.push(`Next row: mean ${write.mean(next.mean[0])}, 90% from ${write.value(low)} to ${write.value(high)}.`);
    }
    return card(column.name, numberChart(column, { x, from, less, unknown, next }), [...notes, ...missingNote(next)]);
  }

  async #drawAll() {
    try {
      if (!this.population) {
        this.keys.replaceChildren(el("span", { class: "working" }, "drawing histories"));
        this.population = await this.source.ask("population", {});
      }
    } catch (error) {
      return this.#failed(error);
    }
    if (this.view.view === "all") this.#drawPopulation(this.population);
    return undefined;
  }

  #drawPopulation({ subjects, having, columns }) {
    const cards = this.varying.map((column) => {
      const { drawn, table } = columns[this.columns.indexOf(column)];
      const shares = ({ proba }) => proba.map((one) => (one[0] === null ? null : one));
      const chart = column.labels
        ? levelChart(column, { shares: shares(drawn), beside: table && shares(table) })
        : numberChart(column, {
            x: [],
            curves: [{ name: "drawn", ...drawn }, ...(table ? [{ name: "table", mean: table.mean, band: null }] : [])],
          });
      return card(column.name, chart, []);
    });
    if (this.table.ends)
      cards.unshift(
        card("Number of rows", shareChart({ name: "share of drawn subjects that have a row of each number", share: having.drawn, sign: "" }), [
          "Share of drawn subjects that have at least so many rows.",
        ]),
      );
    const beside = subjects.table
      ? [
          key(`the table: ${count(subjects.table)} subjects`, svg("circle", { class: "dot table", cx: 11, cy: 7, r: 3.2 })),
        ]
      : [];
    this.keys.replaceChildren(
      key(`drawn from the joint: ${count(subjects.drawn)} subjects; mean, and the intervals that hold 50% and 90%`, svg("rect", { class: "band", width: 22, height: 14 }), svg("rect", { class: "band inner", width: 22, height: 6, y: 4 })),
      ...beside,
      ...(subjects.table ? [el("span", {}, "Squares: drawn above, table below.")] : []),
    );
    this.grid.replaceChildren(...cards);
  }

  // --------------------------------------------------------------------------------------------- the table of cells

  #drawEditor() {
    const from = Math.max(0, this.rows.length - SHOWN);
    const shape = JSON.stringify([this.label, from, this.rows.length, this.answer.order.every((place, i) => place === i)]);
    if (shape !== this.shape || !this.answer.order.every((place, i) => place === i)) this.#buildEditor(from);
    this.shape = shape;
    this.editor.hidden = this.view.view !== "one";
    for (const input of this.editor.querySelectorAll("input[data-column]")) this.#updateInput(input);
    this.undo.disabled = !this.#isChanged();
  }

  #buildEditor(from) {
    const { time } = this.table;
    const names = [...(time ? [time.name] : []), ...this.varying.map(({ name }) => name)];
    const lists = this.columns
      .filter(({ labels }) => labels && labels.length <= 200)
      .map(({ labels, name }) => el("datalist", { id: this.#listOf(name) }, ...labels.map((label) => el("option", { value: label }))));
    const head = el("tr", {}, el("th", { scope: "col" }, "row"), ...names.map((name) => el("th", { scope: "col", title: name }, ...breakable(named(name)))), el("th"));
    const body = this.rows.slice(from).map((_, k) => {
      const i = from + k;
      const remove = iconButton(`remove row ${i + 1}`, CLOSE, () => this.#removeRow(i), { disabled: this.rows.length === 1 });
      return el("tr", {}, el("th", { scope: "row" }, count(i + 1)), ...names.map((name) => el("td", {}, this.#input(name, i))), el("td", {}, remove));
    });
    this.undo = el("button", { type: "button", onclick: () => this.#restore(this.original) }, "back to the first cells");
    const constants = this.constants.map(({ name }) => el("label", {}, el("span", {}, ...breakable(named(name))), this.#input(name, null)));
    this.editor.replaceChildren(
      el("header", {}, el("h2", {}, "Cells"), el("p", { class: "lead" }, "Change a cell, or empty it, and the pictures follow.", from ? ` The last ${SHOWN} rows are shown.` : "")),
      ...(constants.length ? [el("div", { class: "constants" }, ...constants)] : []),
      el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...body))),
      el(
        "div",
        { class: "row-of-buttons" },
        el("button", { type: "button", onclick: () => this.#addRow() }, "add the expected next row"),
        this.undo,
      ),
      ...lists,
    );
  }

  #listOf(name) {
    return `levels-${this.columns.findIndex((column) => column.name === name)}`;
  }

  #input(name, i) {
    const column = this.columns.find((one) => one.name === name);
    return el("input", {
      type: "text", spellcheck: "false", autocomplete: "off", "data-column": name, "data-row": i, dir: "auto",
      list: column?.labels && column.labels.length <= 200 ? this.#listOf(name) : null,
      "aria-label": i === null ? name : `${name}, row ${i + 1}`,
      onchange: (event) => this.#said(name, i, event.target.value),
    });
  }

  /** Show a cell's text, and of an empty cell what is expected. */
  #updateInput(input) {
    const { column: name, row } = input.dataset;
    const i = row === undefined ? null : Number(row);
    const here = i === null ? this.constant : this.rows[i];
    const was = i === null ? this.original.constant : this.original.rows[i];
    const place = this.columns.findIndex((column) => column.name === name);
    const said = this.answer.columns[place];
    const text = here[name] ?? "";
    if (input.value !== text) input.value = text;
    input.removeAttribute("aria-invalid");
    input.classList.toggle("changed", text !== (was?.[name] ?? ""));
    input.classList.toggle("odd", text !== "" && isOdd(said?.less[i ?? 0]));
    const unknown = said?.unknown[i ?? 0];
    input.placeholder = unknown ? `≈ ${expectedText(this.columns[place], unknown)}` : "unknown";
  }

  #said(name, i, text) {
    const cells = i === null ? this.constant : this.rows[i];
    cells[name] = text.trim() === "" ? null : text.trim();
    this.edited = [name, i];
    this.#ask();
  }

  /** A row with what is expected of the next one, to be changed. */
  #addRow() {
    const { answer, columns } = this;
    const expected = (column) => answer.columns[columns.indexOf(column)].next.expected;
    const row = Object.fromEntries(this.varying.map((column) => [column.name, expected(column)]));
    if (this.table.time) row[this.table.time.name] = answer.time.expected;
    this.rows = [...this.rows, row];
    this.edited = null;
    this.#ask();
  }

  #removeRow(i) {
    this.rows = this.rows.filter((_, k) => k !== i);
    this.edited = null;
    this.#ask();
  }

  #restore(cells) {
    ({ constant: this.constant, rows: this.rows } = structuredClone(cells));
    this.edited = null;
    this.shape = null;
    this.notice.clear("trouble");
    this.#ask();
  }

  // -------------------------------------------------------------------------------------------------------- trouble

  #failed(error) {
    this.grid.removeAttribute("aria-busy");
    if (!(error instanceof Refused)) return this.#gone(error);
    this.#back();
    if (this.edited) {
      const [name, i] = this.edited;
      const wrong = [...this.editor.querySelectorAll("input[data-column]")].find(
        ({ dataset }) => dataset.column === name && (dataset.row ?? null) === (i === null ? null : String(i)),
      );
      wrong?.setAttribute("aria-invalid", "true");
    }
    const action = this.good ? ["back to the last cells", () => this.#restore(this.good)] : null;
    return this.notice.show("trouble", error.message, action);
  }

  #gone(error) {
    if (!(error instanceof Gone)) console.error(error);
    this.isGone = true;
    this.body.classList.add("gone");
    this.notice.show(
      "gone",
      "No answer: the explorer was stopped, or this address is no longer valid. The page goes on when it runs again.",
    );
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.#isThere(), AGAIN);
  }

  /** Somebody answers. */
  #back() {
    if (!this.isGone) return;
    this.isGone = false;
    this.body.classList.remove("gone");
    this.notice.clear("gone");
    if (this.rows) this.#ask();
  }

  // -------------------------------------------------------------------------------------------------------- address

  #writeAddress() {
    const { place, seed, steps, view } = this.view;
    const said = new URLSearchParams({ steps });
    if (place !== undefined) said.set("subject", place);
    if (seed !== undefined) said.set("drawn", seed);
    if (view === "all") said.set("view", "all");
    this.address.write(`#${said}`);
  }

  #navigated() {
    this.view = readAddress(this.address.read());
    this.steps.value = this.view.steps;
    if (this.table) this.#open(this.view);
  }
}

/** The view that an address says. */
function readAddress(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name, most) => {
    const value = said.get(name);
    return value !== null && /^\d{1,9}$/.test(value) && Number(value) <= most ? Number(value) : undefined;
  };
  return {
    place: number("subject", Infinity),
    seed: number("drawn", Infinity),
    steps: number("steps", MOST_STEPS) ?? 3,
    view: said.get("view") === "all" ? "all" : "one",
  };
}

function card(name, chart, notes) {
  return el("section", { class: "time-card", "aria-label": name, "data-card": name }, el("h2", { dir: "auto" }, ...breakable(named(name))), chart, ...notes.map((note) => el("p", {}, note)));
}

const key = (text, ...shapes) => el("span", {}, svg("svg", { class: "timeline", viewBox: "0 0 22 14", "aria-hidden": "true" }, ...shapes), text);

/** The two most probable levels, with their probabilities. */
function mostProbable(column, shares) {
  const order = [...shares.keys()].sort((a, b) => shares[b] - shares[a]).slice(0, 2);
  return order.map((k) => `${named(column.labels[k])} ${percent(shares[k])}`).join(", ");
}

/** How probable it is that the cell of the next row is missing, where it ever is. */
const missingNote = (next) => (next && next.missing[0] > 0.0005 ? [`Missing in the next row: ${percent(next.missing[0])}.`] : []);

const expectedText = (column, { mean }) => (column.labels ? column.labels[mean] : writer(column).mean(mean));
