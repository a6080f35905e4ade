/** Starts the page of histories with a joint that a server on this machine answers for. */
import { start } from "./histories.js";
import { HttpSource } from "./http_source.js";

start(document.body, new HttpSource());
