/** The most probable row given the evidence. */
import { newest } from "./asker.js";
import { breakable, el, named } from "./dom.js";
import { number, superscript } from "./format.js";
import { conditionOn } from "./state.js";
import { fill } from "./fill.js";

export class ModePanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.ask = newest(explorer.source);
    this.answer = el("div");
    body.append(el("p", { class: "lead" }, "The most probable row that meets the evidence, as far as the search found."), this.answer);
  }

  update() {
    return fill(this.answer, this.ask("mode", { evidence: this.explorer.good }), (answer) => this.#show(answer));
  }

  #show({ row, log_density: log, bound, certified }) {
    const known = new Set(
      this.explorer.columns.filter((_, k) => conditionOn(this.explorer.good, k)).map(({ name }) => name),
    );
    const lines = Object.entries(row).map(([name, text]) =>
      el(
        "div",
        { class: known.has(name) ? "known" : "" },
        el("dt", { dir: "auto" }, ...breakable(named(name))),
        el("dd", { dir: "auto" }, text ?? "missing"),
      ),
    );
    const sure = certified
      ? "No row is more probable: this is proven."
      : `Another row may be more probable, at most ${times(bound - log)} times.`;
    return [
      el("dl", { class: "pairs" }, ...lines),
      el("p", { class: "note" }, `log-density ${log.toFixed(2).replace("-", "−")}. ${sure}`),
    ];
  }
}

/** A difference of log-densities as a factor. */
function times(nats) {
  const factor = Math.exp(nats);
  return factor < 1e6 ? number(Number(factor.toPrecision(2))) : `10${superscript(Math.ceil(nats / Math.LN10))}`;
}
