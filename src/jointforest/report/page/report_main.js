/** Starts the live part of a report, with the joint that the file carries. */
import { start } from "./explorer.js";
import { InPageSource } from "./in_page_source.js";

const live = document.getElementById("live");
live.hidden = false;
document.body.classList.toggle("framed", window.top !== window); // a page around it has said what this is
start(live, new InPageSource(JSON.parse(document.getElementById("joint").textContent)));
