/** What a trained model predicts for a row: in expectation over the unknown cells, and for the complete row. */
import { el } from "./dom.js";
import { number, percent } from "./format.js";

/** Classes with a bar of their own. */
const MOST = 6;

/**
 * @param {{library: string, classes: string[]|null, expected: number[]|null, error: number[], own: number[]|null}} found
 */
export function predictionOf({ library, classes, expected, error, own }) {
  return el(
    "section",
    { class: "prediction", "aria-label": "expected prediction" },
    el("h3", {}, "Expected prediction"),
    el("p", { class: "note" }, `${library}, averaged over what the unknown cells may be.`),
    expected === null
      ? el("p", { class: "trouble" }, "The known cells have probability 0 under the joint.")
      : classes
        ? shares(classes, expected, error, own)
        : amount(expected[0], error[0], own),
  );
}

function amount(expected, error, own) {
  return el(
    "p",
    { class: "amount" },
    el("b", {}, number(expected)),
    el("span", {}, plusMinus(error, number)),
    el("small", {}, own === null ? "cells that the model reads are missing" : `for the complete row ${number(own[0])}`),
  );
}

/** A bar a class, the most probable first; a tick where the model itself puts it. */
function shares(classes, expected, error, own) {
  const order = [...classes.keys()].sort((a, b) => expected[b] - expected[a] || a - b);
  const lines = order.slice(0, MOST).map((k) => {
    const [fill, tick] = [el("i"), el("u", { hidden: own === null })];
    fill.style.width = `${100 * expected[k]}%`;
    if (own !== null) tick.style.insetInlineStart = `${100 * own[k]}%`;
    return el(
      "div",
      { "data-class": classes[k] },
      el("dt", { dir: "auto" }, classes[k]),
      el(
        "dd",
        {},
        el("span", { class: "share", "aria-hidden": "true" }, fill, tick),
        el("b", {}, percent(expected[k])),
        el("span", {}, plusMinus(error[k], (x) => (100 * x).toFixed(1))),
        el("small", {}, own === null ? "" : `complete row ${percent(own[k])}`),
      ),
    );
  });
  const rest = order.slice(MOST).reduce((sum, k) => sum + expected[k], 0);
  const more = order.length > MOST ? el("p", { class: "note" }, `${order.length - MOST} others, ${percent(rest)}`) : null;
  const said = own === null ? el("p", { class: "note" }, "Cells that the model reads are missing.") : null;
  return el("div", {}, el("dl", {}, ...lines), more, said);
}

/** The standard error of a mean over draws; nothing where it is exact. */
function plusMinus(error, write) {
  return error > 0 ? ` ± ${write(error)}` : "";
}
