/** The evidence given so far, step by step. */
import { el } from "./dom.js";
import { oneIn } from "./format.js";

export class HistoryPanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.list = el("ol", { class: "steps" });
    body.append(this.list);
  }

  update() {
    const { steps, place } = this.explorer.history;
    this.list.replaceChildren(
      ...steps.map((step, k) =>
        el(
          "li",
          {},
          el(
            "button",
            {
              type: "button",
              class: "step",
              "aria-current": k === place ? "step" : null,
              onclick: () => this.explorer.go(k),
            },
            el("span", { dir: "auto" }, step.sentence || "no evidence"),
            el("small", {}, step.sentence ? odds(step) : ""),
          ),
        ),
      ),
    );
  }
}

function odds({ probability, log }) {
  return probability === null ? "one exact point" : oneIn(probability, log);
}
