/** The panels there are, and how one is opened. */
import { el, iconButton } from "./dom.js";
import { CheckPanel } from "./check_panel.js";
import { ComparePanel } from "./compare_panel.js";
import { CLOSE } from "./icons.js";
import { HistoryPanel } from "./history_panel.js";
import { MapPanel } from "./map_panel.js";
import { ModePanel } from "./mode_panel.js";
import { PairPanel } from "./pair_panel.js";
import { ReasonsPanel } from "./reasons_panel.js";
import { RowPanel } from "./row_panel.js";
import { RowsPanel } from "./rows_panel.js";
import { WhyPanel } from "./why_panel.js";

const KINDS = {
  rows: RowsPanel,
  mode: ModePanel,
  why: WhyPanel,
  reasons: ReasonsPanel,
  map: MapPanel,
  pair: PairPanel,
  compare: ComparePanel,
  row: RowPanel,
  check: CheckPanel,
  history: HistoryPanel,
};
const TITLES = {
  rows: "Rows like this",
  mode: "Most probable row",
  why: "Groups of rows",
  reasons: "Why this prediction",
  map: "Map of columns",
  pair: "Two columns",
  compare: "Compare",
  row: "One row",
  check: "Suspicious cells",
  history: "History",
};

/** Names, titles and what they ask the source, in the order of their buttons. */
export const PANELS = Object.entries(TITLES).map(([name, title]) => ({ name, title, asks: name === "map" ? "depends" : name }));

/**
 * A section with one panel in it, and `update()`, to be called when the evidence has changed.
 * @param {string} name
 * @param {import("./explorer.js").Explorer} explorer
 */
export function openPanel(name, explorer) {
  if (!Object.hasOwn(KINDS, name)) return null;
  const close = iconButton(`close ${TITLES[name]}`, CLOSE, () => explorer.look({ panel: null }));
  const body = el("div", { class: "panel-body" });
  const section = el(
    "section",
    { "data-panel": name, "aria-label": TITLES[name] },
    el("header", {}, el("h2", {}, TITLES[name]), close),
    body,
  );
  const panel = new KINDS[name](explorer, body);
  section.update = () => panel.update();
  return section;
}
