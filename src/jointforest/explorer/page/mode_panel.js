/** The most probable row given what is known. */
import { newest } from "./asker.js";
import { breakable, el } from "./dom.js";
import { conditionOn } from "./state.js";
import { fill } from "./fill.js";

export class ModePanel {
  constructor(explorer, body) {
    this.explorer = explorer;
    this.ask = newest(explorer.source);
    this.answer = el("div");
    body.append(el("p", { class: "lead" }, "The one most probable completion of what is known."), this.answer);
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
        el("dt", { dir: "auto" }, ...breakable(name)),
        el("dd", { dir: "auto" }, text ?? "missing"),
      ),
    );
    const sure = certified
      ? "Certified: no row is more probable."
      : `Not certified: another row may be more probable by at most ${(bound - log).toFixed(2)} nats.`;
    return [
      el("dl", { class: "pairs" }, ...lines),
      el("p", { class: "note" }, `log-density ${log.toFixed(2).replace("-", "−")}. ${sure}`),
    ];
  }
}
