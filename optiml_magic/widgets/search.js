// The live view of a search. Draws what the traits of SearchView (search.py) say and sends one
// message, {kind: "stop"}. Data reaches the page through textContent alone.

const TRAITS = [
  "task", "device", "reason", "baseline", "budget", "seconds", "hint", "state", "stopping", "ended",
  "elapsed", "doing", "evaluations", "best", "program", "diff", "findings", "refused", "verdicts", "steps",
];
const TABS = { tree: "Tree", program: "Best kernel", diff: "Diff", findings: "Findings" };
const STATES = { running: "running", stopped: "stopped", done: "done", failed: "failed" };
const SEVERITIES = { critical: "bad", warning: "warn", note: "faint" };
const UNHEARD =
  "The kernel has not heard this yet: some hear buttons only between cells. The notebook's " +
  "interrupt (\u25a0, or Ctrl-C) ends the search as well, and keeps what was found.";
const UNHEARD_AFTER = 3000; // ms
const SILENT_AFTER = 10000; // ms; a kernel that lives sends the elapsed seconds every second
const ROW = 22; // px
const INDENT = 18; // px
const TITLE = 80; // characters of a step's title in the tree; the tooltip has all

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children); // strings become text nodes
  return made;
}

function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

function write(target, text) {
  if (target.textContent !== text) target.textContent = text; // keeps a reader's selection
}

function ratio(value) {
  return `${value < 100 ? Number(value.toPrecision(3)) : Math.round(value)}x`;
}

const words = (name) => name.replaceAll("_", " ");

function duration(seconds) {
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const rest = Math.floor(seconds % 60);
  return `${Math.floor(seconds / 60)} min${rest ? ` ${rest} s` : ""}`;
}

function buildHead(stop) {
  const head = {
    task: element("span", "optiml-task"),
    device: element("span", "optiml-faint"),
    state: element("span", "optiml-state"),
    bar: element("div", "optiml-bar"),
    fill: element("div", "optiml-fill"),
    count: element("span"),
    verdicts: element("span", "optiml-verdicts"),
    best: element("div", "optiml-lead"),
    notice: element("div", "optiml-notice"),
    stop,
  };
  head.bar.setAttribute("role", "progressbar");
  head.bar.setAttribute("aria-label", "evaluations");
  head.bar.append(head.fill);
  head.notice.setAttribute("role", "status");
  head.all = [
    element("div", "optiml-row",
      element("div", "optiml-grow", head.task, head.device), head.state, stop),
    head.bar,
    element("div", "optiml-row optiml-faint", head.count, head.verdicts),
    head.best,
    head.notice,
  ];
  return head;
}

function drawHead(head, get) {
  const state = STATES[get("state")] ?? "failed";
  const stopping = state === "running" && get("stopping");
  write(head.task, get("task"));
  write(head.device, `${get("device")}: ${get("reason")}`);
  write(head.state, stopping ? "stopping" : state);
  head.state.dataset.state = state;
  drawBar(head, get);
  const counts = Object.entries(get("verdicts")).map(([name, count]) => `${count} ${words(name)}`);
  write(head.verdicts, counts.join(", "));
  drawBest(head.best, get);
  head.stop.hidden = state !== "running" || Boolean(get("hint"));
  head.stop.disabled = head.stop.disabled || stopping;
}

function drawBar(head, get) {
  const [done, budget, limit] = [get("evaluations"), get("budget"), get("seconds")];
  const spent = Math.max(budget ? done / budget : 0, limit ? get("elapsed") / limit : 0);
  const part = get("state") === "done" ? 1 : Math.min(1, spent);
  head.fill.style.width = `${Math.round(100 * part)}%`;
  head.bar.setAttribute("aria-valuemin", "0");
  head.bar.setAttribute("aria-valuemax", String(budget));
  head.bar.setAttribute("aria-valuenow", String(done));
  const most = limit ? ` of at most ${duration(limit)}` : "";
  const after = get("ended") ? `; ${get("ended")}` : most;
  const rate = done > 1 ? `, ${Math.round(60 * done / get("elapsed"))} a minute` : "";
  const now = get("doing") ? `; ${get("doing")}${rate}` : "";
  write(head.count, `${done} of ${budget} evaluations in ${duration(get("elapsed"))}${after}${now}`);
}

function drawBest(target, get) {
  const best = get("best");
  if (best.title === undefined) {
    write(target, get("state") === "running" ? `Evaluating ${get("baseline")}.` : "");
  } else if (best.speedup === 1 && !best.significant) {
    write(target, `Nothing beats ${get("baseline")} yet.`);
  } else {
    const gain = `${ratio(best.speedup)} ${best.source}`;
    const between = `(between ${ratio(best.low)} and ${ratio(best.high)})`;
    const lead = best.significant ? "" : "No significant change yet; the fastest is ";
    target.replaceChildren(
      lead, element("strong", "", gain), ` ${between}: #${best.id} ${best.title}`);
  }
}

function notice(get, now, heard, pressed) {
  if (get("state") !== "running") return "";
  if (get("stopping")) return "Stopping: the evaluation in flight is the last one.";
  if (pressed && now - pressed > UNHEARD_AFTER) return UNHEARD;
  if (now - heard > SILENT_AFTER) {
    return `Nothing heard from the kernel for ${Math.round((now - heard) / 1000)} s.`;
  }
  return get("hint");
}

function walk(steps) {
  const known = new Set(steps.map((step) => step.id));
  const children = new Map();
  for (const step of steps) {
    const parent = known.has(step.parent) ? step.parent : null;
    children.set(parent, [...(children.get(parent) ?? []), step]);
  }
  const rows = [];
  const open = (children.get(null) ?? []).map((step) => ({ step, depth: 0, above: null })).reverse();
  while (open.length) {
    const row = { ...open.pop(), index: rows.length };
    rows.push(row);
    for (const step of [...(children.get(row.step.id) ?? [])].reverse()) {
      open.push({ step, depth: row.depth + 1, above: row });
    }
  }
  return rows;
}

const left = (row) => 12 + INDENT * row.depth;
const top = (row) => ROW * (row.index + 0.5);

function branch(row) {
  const path = `M${left(row.above)} ${top(row.above) + 6}V${top(row)}H${left(row) - 7}`;
  return svg("path", { class: "optiml-branch", d: path });
}

function kind(step, best) {
  if (step.id === best.id && (best.significant || step.id === 0)) return "best";
  if (step.verdict === "passed") return "passed";
  return step.verdict === "duplicate" ? "duplicate" : "failed";
}

function mark(row, name) {
  const [x, y] = [left(row), top(row)];
  if (name === "failed") {
    return svg("path", { class: "optiml-mark", d: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8` });
  }
  return svg("circle", { class: "optiml-mark", cx: x, cy: y, r: name === "best" ? 6 : 4.5 });
}

function label(row, name, source) {
  const { step } = row;
  const shown = step.title.length > TITLE ? `${step.title.slice(0, TITLE - 1)}\u2026` : step.title;
  const known = name !== "failed" && name !== "duplicate" && step.speedup !== null;
  const end = known
    ? step.id === 0 ? "" : `  ${ratio(step.speedup)} ${source}`
    : `  ${name === "duplicate" ? step.detail : words(step.verdict)}`;
  const text = svg("text", { x: left(row) + 12, y: top(row) + 4 },
    svg("tspan", { class: "optiml-number" }, `#${step.id} `), shown,
    svg("tspan", { class: "optiml-end" }, end));
  return { text, length: `#${step.id} ${shown}${end}`.length };
}

function drawTree(target, steps, best) {
  const source = best.source ?? "";
  const rows = walk(steps);
  let width = 0;
  const nodes = rows.map((row) => {
    const name = kind(row.step, best);
    const { text, length } = label(row, name, source);
    width = Math.max(width, left(row) + 20 + 7 * length);
    const { title, verdict, detail } = row.step;
    const said = `#${row.step.id} ${title}\n${verdict}${detail ? `: ${detail}` : ""}`;
    return svg("g", { class: `optiml-node optiml-${name}`, role: "listitem" },
      svg("title", {}, said), mark(row, name), text);
  });
  const branches = rows.filter((row) => row.above).map(branch);
  const height = ROW * rows.length;
  target.replaceChildren(svg("svg",
    { width, height, role: "list", "aria-label": "steps of the search" }, ...branches, ...nodes));
}

function drawDiff(target, diff, baseline) {
  if (!diff) return target.replaceChildren(faint(`Still ${baseline}: nothing beats it.`));
  const names = { "+": "optiml-added", "-": "optiml-removed", "@": "optiml-faint" };
  const lines = diff.split("\n").map((line) => element("span", names[line[0]] ?? "", `${line}\n`));
  return target.replaceChildren(element("pre", "optiml-code", ...lines));
}

function drawProgram(target, program) {
  target.replaceChildren(
    program ? element("pre", "optiml-code", program) : faint("Nothing verified yet."));
}

function drawRefused(groups) {
  return groups.flatMap(({ program, reasons }) => [
    element("div", "optiml-faint", `Not tried on ${program}:`),
    element("ul", "", ...reasons.map((reason) => element("li", "", reason)))]);
}

function drawFindings(target, findings, refused) {
  const below = drawRefused(refused);
  if (!findings.length) return target.replaceChildren(faint("No findings yet."), ...below);
  const items = findings.map((finding) => element("li", "",
    element("span", `optiml-${SEVERITIES[finding.severity] ?? "faint"}`, `${finding.severity} `),
    finding.cause,
    ...(finding.advice ? [element("div", "optiml-faint", `try: ${finding.advice}`)] : [])));
  return target.replaceChildren(
    element("div", "optiml-faint", `On step #${findings[0].step}:`), element("ul", "", ...items),
    ...below);
}

const faint = (text) => element("div", "optiml-faint", text);

function buildTabs() {
  const bar = element("div", "optiml-tabs");
  bar.setAttribute("role", "tablist");
  const panels = {};
  const tabs = Object.entries(TABS).map(([name, title]) => {
    const tab = element("button", "optiml-tab", title);
    const panel = element("div", "optiml-panel");
    tab.type = "button";
    tab.setAttribute("role", "tab");
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-label", title);
    panel.dataset.panel = name;
    panels[name] = panel;
    tab.addEventListener("click", () => choose(tab));
    return tab;
  });
  const order = Object.values(panels);
  function choose(chosen) {
    tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      order[at].hidden = tab !== chosen;
    });
  }
  bar.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.stopPropagation(); // the notebook would move to another cell
    const at = (tabs.indexOf(document.activeElement) + by + tabs.length) % tabs.length;
    choose(tabs[at]);
    tabs[at].focus();
  });
  bar.append(...tabs);
  choose(tabs[0]);
  return { all: [bar, ...order], panels };
}

function buildStop(model, pressed) {
  const stop = element("button", "optiml-stop", "Stop");
  stop.type = "button";
  stop.title = "End the search after the evaluation in flight; what was found is kept";
  stop.addEventListener("click", () => {
    if (stop.disabled) return; // one message, however often it is clicked
    stop.disabled = true;
    model.send({ kind: "stop" });
    pressed();
  });
  return stop;
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const clock = { heard: Date.now(), pressed: 0 };
  const head = buildHead(buildStop(model, () => (clock.pressed = Date.now())));
  const { all, panels } = buildTabs();
  el.append(element("div", "optiml-search", ...head.all, ...all));

  const painters = {
    steps: () => drawTree(panels.tree, get("steps"), get("best")),
    program: () => drawProgram(panels.program, get("program")),
    diff: () => drawDiff(panels.diff, get("diff"), get("baseline")),
    findings: () => drawFindings(panels.findings, get("findings"), get("refused")),
  };
  const tell = () => write(head.notice, notice(get, Date.now(), clock.heard, clock.pressed));
  const changed = new Set(Object.keys(painters));
  const paint = () => {
    drawHead(head, get);
    if (changed.has("best")) changed.add("steps"); // the best is marked in the tree
    if (changed.has("refused")) changed.add("findings"); // one panel has both
    for (const name of changed) painters[name]?.();
    changed.clear();
    tell();
  };
  // Several traits change at a time; they are painted once, when all are in.
  let waiting = false;
  const listeners = TRAITS.map((name) => [`change:${name}`, () => {
    changed.add(name);
    clock.heard = Date.now();
    if (!waiting) queueMicrotask(() => { waiting = false; paint(); });
    waiting = true;
  }]);
  for (const [event, listener] of listeners) model.on(event, listener);
  const ticking = setInterval(tell, 1000);
  paint();
  return () => {
    clearInterval(ticking);
    for (const [event, listener] of listeners) model.off(event, listener);
  };
}

export default { render };
