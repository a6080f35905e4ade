/** Which cards are shown in which order, and which panel is open. */
import { define, el, mark, say } from "./dom.js";
import { count } from "./format.js";

/** Says `find` with `detail.word`, `sort` with `detail.sort`, `unhide`, `panel` with `detail.name` (null: none). */
export class Toolbar extends HTMLElement {
  /** @param {{name: string, title: string}[]} panels */
  setPanels(panels) {
    this.find = el("input", {
      type: "search",
      class: "find",
      placeholder: "find a column",
      "aria-label": "find a column",
      spellcheck: "false",
      title: "find a column ( / )",
      oninput: () => this.#tell("find", { word: this.find.value }),
    });
    this.sorts = ["table", "moved"].map((sort) =>
      el(
        "button",
        {
          type: "button",
          "aria-pressed": "false",
          "data-sort": sort,
          onclick: () => this.#tell("sort", { sort }),
        },
        sort === "table" ? "table order" : "most moved",
      ),
    );
    this.hidden_ = el("button", { type: "button", class: "quiet", hidden: true, onclick: () => this.#tell("unhide") });
    this.panels = panels.map(({ name, title }) =>
      el(
        "button",
        {
          type: "button",
          "aria-pressed": "false",
          "data-panel": name,
          onclick: () => this.#toggle(name),
        },
        title,
      ),
    );
    this.append(
      this.find,
      el("div", { class: "choice", role: "group", "aria-label": "order of the cards" }, ...this.sorts),
      this.hidden_,
      el("div", { class: "choice asks", role: "group", "aria-label": "panels" }, ...this.panels),
    );
  }

  /** Show the buttons of these panels alone. */
  showPanels(panels) {
    const names = panels.map(({ name }) => name);
    for (const button of this.panels) button.hidden = !names.includes(button.dataset.panel);
  }

  /** @param {{sort: string, hidden: string[], panel: string|null}} view */
  update(view) {
    this.sorts[0].parentElement.hidden = view.panel === "compare"; // those that differ most come first
    for (const button of this.sorts) mark(button, "aria-pressed", button.dataset.sort === view.sort);
    for (const button of this.panels) mark(button, "aria-pressed", button.dataset.panel === view.panel);
    this.open = view.panel;
    this.hidden_.hidden = !view.hidden.length;
    say(this.hidden_, `show ${count(view.hidden.length)} hidden`);
  }

  #toggle(name) {
    this.#tell("panel", { name: this.open === name ? null : name });
  }

  #tell(name, detail = {}) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true }));
  }
}

define("jf-toolbar", Toolbar);
