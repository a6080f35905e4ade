/** Which parts of the joint carry the answer, as rules. */
import { newest } from "./asker.js";
import { el } from "./dom.js";
import { percent } from "./format.js";
import { fill } from "./fill.js";

export class WhyPanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.ask = newest(explorer.source);
    this.answer = el("div");
    body.append(
      el("p", { class: "lead" }, "The groups of rows that the answers come from, with their shares. The largest group comes first."),
      this.answer,
    );
  }

  update() {
    return fill(this.answer, this.ask("why", { evidence: this.explorer.good }), ({ text, items }) =>
      items?.length ? [el("ol", { class: "why" }, ...items.map(item))] : [el("pre", { dir: "auto" }, text)],
    );
  }
}

function item({ weight, rules }) {
  const bar = el("span", { class: "weight" }, el("i"));
  bar.firstChild.style.width = `${100 * Math.min(1, weight)}%`;
  return el(
    "li",
    {},
    el("b", {}, percent(weight)),
    bar,
    el("ul", {}, ...(rules.length ? rules : ["any row"]).map((rule) => el("li", { dir: "auto" }, rule))),
  );
}
