/** What can go wrong with a question. */

/** The question was understood and refused: the message is for the user. */
export class Refused extends Error {
  /**
   * @param {string} message
   * @param {boolean} impossible - whether the evidence has probability 0
   */
  constructor(message, impossible = false) {
    super(message);
    this.impossible = impossible;
  }
}

/** Nobody answers. */
export class Gone extends Error {}
