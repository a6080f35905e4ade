/** Asks a server by POST; the only file that knows of HTTP. */
import { Gone, Refused } from "./errors.js";

/** What a server says that does not know this page's address: another one has taken its place. */
const NOT_OURS = new Set([401, 403, 404]);

export class HttpSource {
  /** @param {string} base - the address that the page came from */
  constructor(base = document.baseURI) {
    this.base = base;
  }

  /**
   * The answer to one question: an object, or text where the answer is a table of text.
   * @param {string} what - "table", "posterior", "rows", ...
   * @param {object} body
   * @param {AbortSignal} [signal]
   * @throws {Refused|Gone|DOMException} DOMException "AbortError" where the signal says so
   */
  async ask(what, body, signal) {
    const response = await this.#post(new URL(`ask/${what}`, this.base), body, signal);
    const type = response.headers.get("content-type") ?? "";
    if (response.ok && type.startsWith("text/csv")) return response.text();
    if (NOT_OURS.has(response.status) || !type.startsWith("application/json"))
      throw new Gone(`unexpected answer ${response.status}`);
    const answer = await response.json();
    if (!response.ok) throw new Refused(String(answer.error ?? response.statusText), answer.impossible === true);
    return answer;
  }

  /** The response; Gone if there is none. */
  async #post(address, body, signal) {
    const headers = { "Content-Type": "application/json" };
    try {
      return await fetch(address, { method: "POST", headers, body: JSON.stringify(body), signal, cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Gone(error.message);
    }
  }
}
