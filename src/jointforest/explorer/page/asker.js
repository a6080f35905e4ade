/** Asks one question at a time; of those that wait only the newest is asked. */

export class Asker {
  /** @type {{what: string, body: object, note: object}|null} */
  #waiting = null;
  #asked = null;
  #controller = null;

  /**
   * @param {{ask: Function}} source
   * @param {(answer: object, note: object) => void} answered
   * @param {(error: Error, note: object) => void} failed
   */
  constructor(source, answered, failed) {
    Object.assign(this, { source, answered, failed });
  }

  /**
   * Ask. A question that waits is dropped; one under way is called off, but for a live one by a live one: while the
   * mouse moves something is always drawn.
   * @param {string} what
   * @param {object} body
   * @param {{live?: boolean}} note - comes back with the answer
   */
  ask(what, body, note = {}) {
    this.#waiting = { what, body, note };
    if (!this.#asked) this.#work();
    else if (!(this.#asked.note.live && note.live)) this.#controller.abort();
  }

  /** Whether a question is under way or waits. */
  get busy() {
    return this.#asked !== null;
  }

  async #work() {
    while (this.#waiting) {
      const question = (this.#asked = this.#waiting);
      this.#waiting = null;
      this.#controller = new AbortController();
      try {
        const answer = await this.source.ask(question.what, question.body, this.#controller.signal);
        this.answered(answer, question.note);
      } catch (error) {
        if (error.name !== "AbortError") this.failed(error, question.note);
      }
    }
    this.#asked = null;
  }
}

/**
 * A function that asks, and calls off what it asked before.
 * @param {{ask: Function}} source
 * @returns {(what: string, body: object) => Promise<object|null>} null if it was overtaken
 */
export function newest(source) {
  let controller = new AbortController();
  return async (what, body) => {
    controller.abort();
    const mine = (controller = new AbortController());
    try {
      const answer = await source.ask(what, body, mine.signal);
      return mine.signal.aborted ? null : answer;
    } catch (error) {
      if (error.name === "AbortError" || mine.signal.aborted) return null;
      throw error;
    }
  };
}
