/** Asks a notebook's kernel by messages; the only file that knows of its model. */
import { Refused } from "./errors.js";

const SLOW = 4000; // milliseconds without an answer until that is said
const SILENT = 1500; // milliseconds without the first of all answers

export class WidgetSource {
  /**
   * @param {{send: Function, on: Function, off: Function}} model - of the widget; other views may share it
   */
  constructor(model) {
    this.model = model;
    this.page = Math.random().toString(36).slice(2);
    this.number = 0;
    /** @type {Map<number, {answered: Function, refused: Function, timer: number}>} */
    this.open = new Map();
    this.changed = null;
    /** Called with true where nobody has answered yet, with false at the first answer. */
    this.silent = null;
    this.first = setTimeout(() => this.silent?.(true), SILENT);
    this.hear = (said) => this.#heard(said);
    model.on("msg:custom", this.hear);
  }

  /** The answer to one question; arguments as of `HttpSource.ask`. */
  ask(what, body, signal) {
    if (signal?.aborted) return Promise.reject(calledOff());
    this.number += 1;
    const { number, page, model } = this;
    return new Promise((answered, refused) => {
      const timer = setTimeout(() => this.slow?.(true), SLOW);
      this.open.set(number, { answered, refused, timer });
      signal?.addEventListener("abort", () => this.#end(number)?.refused(calledOff()));
      model.send({ kind: "ask", page, number, what, body });
    });
  }

  close() {
    this.model.off("msg:custom", this.hear);
    clearTimeout(this.first);
    for (const number of [...this.open.keys()]) this.#end(number);
  }

  /** Take a question off the list. */
  #end(number) {
    const question = this.open.get(number);
    this.open.delete(number);
    clearTimeout(question?.timer);
    return question;
  }

  #heard(said) {
    if (said?.kind === "changed") this.changed?.();
    if (said?.kind !== "answer" || said.page !== this.page) return;
    clearTimeout(this.first);
    this.silent?.(false);
    this.slow?.(false);
    const question = this.#end(said.number);
    if (!question) return;
    const { status, said: answer } = said;
    if (status === 200) question.answered(answer);
    else question.refused(new Refused(String(answer?.error ?? status), answer?.impossible === true));
  }
}

const calledOff = () => new DOMException("called off", "AbortError");
