/** Starts the page of histories inside a cell of a notebook (anywidget). */
import { start } from "./histories.js";
import { text as OF_HISTORIES } from "./histories.css";
import { widget } from "./widget.js";

export default widget(start, OF_HISTORIES);
