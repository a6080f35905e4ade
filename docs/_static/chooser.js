// The page "Which learner?" as a chooser: three questions hide the sections that do not answer them. Without it all are shown.

const GOALS = {
  ask: "ask, fill in what is missing",
  rows: "synthetic rows",
  predict: "predict one column",
  odd: "find unusual rows",
  read: "a model to read",
  trained: "use a model that is trained already",
};
const ROWS = { few: "fewer than 500", some: "500 to 3,000", many: "more" };
const NEEDS = { nothing: "nothing else", sure: "rules, how far an answer can be trusted" };

// Ids of the sections that fit, best first.
function learners({ goal, rows, need }) {
  const boxes = "adversarialforest", states = "hiddentreeforest", any = "jf-fit";
  if (goal === "predict") return ["generativeforestclassifier-generativeforestregressor"];
  if (goal === "odd") return ["forestoutlierdetector"];
  if (goal === "read") return ["jointtree"];
  if (goal === "trained") return ["expectedpredictor-from-forest"];
  if (need === "sure") return goal === "rows" ? [boxes] : [boxes, "jointtree"];
  if (goal === "rows") return rows === "many" ? [states] : [any, rows === "few" ? boxes : states];
  return rows === "many" ? [any, states] : [any, boxes];
}

function question(name, legend, choices) {
  const set = document.createElement("fieldset");
  set.append(Object.assign(document.createElement("legend"), { textContent: legend }));
  for (const [value, text] of Object.entries(choices)) {
    const label = document.createElement("label");
    label.append(Object.assign(document.createElement("input"), { type: "radio", name, value }), text);
    set.append(label);
  }
  return set;
}

function start(page) {
  const sections = [...page.querySelectorAll(":scope > section")];
  const form = Object.assign(document.createElement("form"), { className: "chooser" });
  const said = Object.assign(document.createElement("output"), { className: "chooser-said" });
  const again = Object.assign(document.createElement("button"), { type: "reset", textContent: "Show all" });
  form.append(
    question("goal", "What for?", GOALS),
    question("rows", "How many rows?", ROWS),
    question("need", "What else?", NEEDS),
    said,
    again,
  );
  const show = () => {
    const asked = Object.fromEntries(new FormData(form));
    const fit = asked.goal ? learners(asked) : sections.map((section) => section.id);
    for (const section of sections) section.hidden = !fit.includes(section.id);
    const found = sections.filter((section) => !section.hidden).sort((a, b) => fit.indexOf(a.id) - fit.indexOf(b.id));
    const titles = found.map((section) => section.querySelector("h2").firstChild.textContent);
    said.value = asked.goal ? `Take: ${titles.join("; or ")}.` : "All learners are shown.";
    const only = ["ask", "rows"].includes(asked.goal ?? "ask");  // the other goals have one answer
    for (const set of form.querySelectorAll("fieldset:not(:first-child)")) set.disabled = !only;
  };
  form.addEventListener("change", show);
  form.addEventListener("reset", () => setTimeout(show));
  form.addEventListener("submit", (event) => event.preventDefault());
  page.insertBefore(form, sections[0]);
  show();
}

const page = document.getElementById("which-learner");
if (page) start(page);
