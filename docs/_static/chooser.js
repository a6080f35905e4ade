// The page "Choose a learner": three questions hide the learners that do not answer them. Without JavaScript all are shown.

const GOALS = {
  ask: "ask questions, impute",
  rows: "synthetic rows",
  predict: "predict one column",
  odd: "find unusual rows",
  read: "a model to read",
  subjects: "several rows for each subject",
  trained: "use a trained model",
};
const ROWS = { few: "fewer than 500", some: "500 to 3,000", many: "more" };
const NEEDS = { nothing: "nothing else", boxes: "rules, or robustness of a prediction" };

// Ids of the sections of the learners that fit, best first.
function learners({ goal, rows, need }) {
  const boxes = "adversarialforest", states = "hiddentreeforest", any = "jf-fit";
  const predictor = "jointclassifier-jointregressor", forest = "generativeforestclassifier-generativeforestregressor";
  if (goal === "predict") return need === "boxes" ? [forest] : [predictor, forest];
  if (goal === "odd") return ["forestoutlierdetector"];
  if (goal === "read") return ["jointtree"];
  if (goal === "subjects") return ["historyforest"];
  if (goal === "trained") return ["expectedpredictor-from-forest"];
  if (need === "boxes") return goal === "rows" ? [boxes] : [boxes, "jointtree"];
  if (goal === "rows") return rows === "many" ? [states] : [any, rows === "few" ? boxes : states];
  return rows === "many" ? [any, states] : [any, boxes];
}

// A group of radio buttons, one per choice.
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

// Puts the form in front of the learners of the given section, and hides those that do not fit the answers.
function start(section) {
  const learnerSections = [...section.querySelectorAll(":scope > section")];
  const form = Object.assign(document.createElement("form"), { className: "chooser" });
  const advice = Object.assign(document.createElement("output"), { className: "chooser-advice" });
  const reset = Object.assign(document.createElement("button"), { type: "reset", textContent: "Show all" });
  form.append(
    question("goal", "What do you want?", GOALS),
    question("rows", "How many rows are there?", ROWS),
    question("need", "What else do you need?", NEEDS),
    advice,
    reset,
  );
  const show = () => {
    const answers = Object.fromEntries(new FormData(form));
    const fitting = answers.goal ? learners(answers) : learnerSections.map((learner) => learner.id);
    for (const learner of learnerSections) learner.hidden = !fitting.includes(learner.id);
    const shown = learnerSections.filter((learner) => !learner.hidden);
    shown.sort((a, b) => fitting.indexOf(a.id) - fitting.indexOf(b.id));
    const titles = shown.map((learner) => learner.querySelector("h3").firstChild.textContent);
    advice.value = answers.goal ? `Take ${titles.join(", or ")}.` : "All learners are shown.";
    const [, rows, need] = form.querySelectorAll("fieldset");  // disabled where the answer would change nothing
    rows.disabled = !["ask", "rows"].includes(answers.goal ?? "ask");
    need.disabled = !["ask", "rows", "predict"].includes(answers.goal ?? "ask");
  };
  form.addEventListener("change", show);
  form.addEventListener("reset", () => setTimeout(show));
  form.addEventListener("submit", (event) => event.preventDefault());
  section.insertBefore(form, learnerSections[0]);
  show();
}

const section = document.getElementById("learners");
if (section && document.getElementById("choose-a-learner")) start(section);
