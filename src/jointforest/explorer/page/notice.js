/** One line of news or trouble below the sentence, with something to do about it. */
import { define, el } from "./dom.js";

export class Notice extends HTMLElement {
  connectedCallback() {
    if (this.id) return;
    this.id = "trouble";
    this.setAttribute("role", "status");
    this.hidden = true;
  }

  /**
   * @param {"trouble"|"gone"|"news"|"slow"|"start"} kind
   * @param {string} text
   * @param {[string, () => void]|null} action - what a button says and does
   */
  show(kind, text, action = null) {
    if (this.kind === kind && this.said === text && !this.hidden) return;
    this.kind = kind;
    this.said = text;
    this.dataset.kind = kind;
    const button = action ? el("button", { type: "button", class: "quiet", onclick: action[1] }, action[0]) : null;
    this.replaceChildren(el("span", { dir: "auto" }, text), ...(button ? [button] : []));
    this.hidden = false;
  }

  /** Take away what was said, if it is of these kinds. */
  clear(...kinds) {
    if (!kinds.includes(this.kind)) return;
    this.hidden = true;
    this.kind = null;
    this.replaceChildren();
  }
}

define("jf-notice", Notice);
