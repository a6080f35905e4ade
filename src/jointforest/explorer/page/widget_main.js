/** Starts the page inside a cell of a notebook (anywidget). */
import { start } from "./explorer.js";
import { widget } from "./widget.js";

export default widget(start);
