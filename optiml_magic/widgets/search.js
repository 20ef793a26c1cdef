// The live view of a search: draws what the traits of SearchView (search.py) say. What a person
// does is sent as {kind: ...}; node, roofline, report and edit are answered by a message of the same
// kind. Data reach the page as text nodes; of the report, built anew, only what is listed below.

const TRAITS = [
  "task", "device", "reason", "baseline", "budget", "seconds", "hint", "state", "stopping", "paused",
  "ended", "elapsed", "doing", "spent", "evaluations", "best", "program", "diff", "findings",
  "refused", "verdicts", "steps", "reported",
];
const TABS = {
  tree: "Tree", program: "Best kernel", diff: "Diff", findings: "Findings", roofline: "Roofline",
  report: "Report",
};
const STATES = { running: "running", stopped: "stopped", done: "done", failed: "failed" };
const SEVERITIES = { critical: "bad", warning: "warn", note: "faint" };
const UNHEARD = "The kernel has not answered yet: some kernels get messages only between cells.";
const INTERRUPT =
  "The notebook's interrupt (\u25a0, or Ctrl-C) ends the search as well, and keeps what was found.";
const UNHEARD_AFTER = 3000; // ms
const SILENT_AFTER = 10000; // ms; a kernel that lives sends the elapsed seconds every second
const REPORT_AFTER = 1000; // ms; a view that the notebook's own output replaces is gone by then
const ROW = 22; // px, as in search.css
const INDENT = 16; // px, where there is room for the depth of the tree
const DEEPEST = 220; // px of indentation at most

// ---- elements

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children); // strings become text nodes
  return made;
}

function described(tag, className, attributes, ...children) {
  const made = element(tag, className, ...children);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function svg(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

function button(className, text, title, act) {
  const made = described("button", className, { type: "button", title }, text);
  made.addEventListener("click", act);
  return made;
}

function write(target, text) {
  if (target.textContent !== text) target.textContent = text; // keeps a reader's selection
}

const faint = (text) => element("div", "optiml-faint", text);
const words = (name) => name.replaceAll("_", " ");

function ratio(value) {
  return `${value < 100 ? Number(value.toPrecision(3)) : Math.round(value)}x`;
}

function duration(seconds) {
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const rest = Math.floor(seconds % 60);
  return `${Math.floor(seconds / 60)} min${rest ? ` ${rest} s` : ""}`;
}

// ---- the head: state, buttons, how far it is, the best

function buildHead(send) {
  const clock = { heard: Date.now(), asked: 0 };
  const ask = (message) => {
    clock.asked ||= Date.now();
    send(message);
  };
  const stop = button("optiml-stop", "Stop",
    "End the search after the evaluation in flight; what was found is kept", () => {
      if (stop.disabled) return; // one message, however often it is clicked
      stop.disabled = true;
      ask({ kind: "stop" });
    });
  const pause = button("optiml-pause", "Pause", "", () => ask({ kind: pause.dataset.kind }));
  const bar = described("div", "optiml-bar", { role: "progressbar", "aria-label": "evaluations" });
  const head = {
    clock, send: ask, stop, pause, bar,
    task: element("span", "optiml-task"),
    device: element("span", "optiml-faint"),
    state: element("span", "optiml-state"),
    fill: element("div", "optiml-fill"),
    count: element("span", "optiml-count"),
    verdicts: element("span", "optiml-verdicts"),
    spent: element("div", "optiml-faint"),
    best: described("div", "optiml-lead", { "aria-live": "polite" }),
    notice: described("div", "optiml-notice", { role: "status" }),
  };
  bar.append(head.fill);
  head.all = [
    element("div", "optiml-row",
      element("div", "optiml-grow", head.task, head.device),
      element("div", "optiml-steer", head.state, pause, stop)),
    bar,
    element("div", "optiml-row optiml-faint", head.count, head.verdicts),
    head.spent,
    head.best,
    head.notice,
  ];
  return head;
}

function drawHead(head, get) {
  const state = STATES[get("state")] ?? "failed";
  const running = state === "running";
  const now = get("stopping") ? "stopping" : get("paused") ? "paused" : get("doing") || state;
  write(head.task, get("task"));
  write(head.device, `${get("device")}: ${get("reason")}`);
  write(head.state, running ? now : state);
  head.state.dataset.state = running && get("paused") ? "paused" : state;
  drawBar(head, get, running);
  const counts = Object.entries(get("verdicts")).map(([name, count]) => `${count} ${words(name)}`);
  write(head.verdicts, counts.join(", "));
  write(head.spent, get("spent"));
  drawBest(head.best, get);
  head.stop.hidden = head.pause.hidden = !running || Boolean(get("hint"));
  head.stop.disabled = head.stop.disabled || get("stopping");
  head.pause.disabled = head.stop.disabled;
  head.pause.dataset.kind = get("paused") ? "resume" : "pause";
  write(head.pause, get("paused") ? "Resume" : "Pause");
  head.pause.title = get("paused")
    ? "Go on with the search" : "Wait after the evaluation in flight";
}

function drawBar(head, get, running) {
  const [done, budget, limit] = [get("evaluations"), get("budget"), get("seconds")];
  const [elapsed, ended] = [get("elapsed"), get("ended")];
  const spent = Math.max(budget ? done / budget : 0, limit ? elapsed / limit : 0);
  const part = get("state") === "done" ? 1 : Math.min(1, spent);
  head.fill.style.width = `${Math.round(100 * part)}%`;
  head.bar.setAttribute("aria-valuemin", "0");
  head.bar.setAttribute("aria-valuemax", String(budget));
  head.bar.setAttribute("aria-valuenow", String(Math.min(done, budget)));
  const took = elapsed ? ` in ${duration(elapsed)}` : ""; // a replay takes no time
  const said = [`${done} of ${budget} evaluations${took}`];
  if (done > 1 && elapsed) said.push(`${Math.round((60 * done) / elapsed)} a minute`);
  if (running) said.push(left(done, budget, elapsed, limit));
  if (ended) said.push(ended);
  write(head.count, said.filter(Boolean).join(" \u00b7 "));
}

function left(done, budget, elapsed, limit) {
  const most = limit ? Math.max(0, limit - elapsed) : Infinity;
  if (done < 2) return limit ? `at most ${duration(most)} left` : "";
  return `about ${duration(Math.min(most, (Math.max(0, budget - done) * elapsed) / done))} left`;
}

function drawBest(target, get) {
  const best = get("best");
  if (best.title === undefined) {
    write(target, get("state") === "running" ? `Evaluating ${get("baseline")}.` : "");
  } else if (best.speedup === 1 && !best.significant) {
    write(target, `Nothing beats ${get("baseline")} yet.`);
  } else {
    const gain = element("strong", "", `${ratio(best.speedup)} ${best.source}`);
    const between = ` (between ${ratio(best.low)} and ${ratio(best.high)})`;
    const lead = best.significant ? "" : "No significant change yet; the fastest is ";
    const made = element("div", "", lead, gain, `${between}: #${best.id} ${best.title}`);
    if (made.textContent !== target.textContent) target.replaceChildren(...made.childNodes);
  }
}

function notice(get, { heard, asked }) {
  const [now, running] = [Date.now(), get("state") === "running"];
  if (running && get("stopping")) return "Stopping: the evaluation in flight is the last one.";
  if (asked && now - asked > UNHEARD_AFTER) return running ? `${UNHEARD} ${INTERRUPT}` : UNHEARD;
  if (!running) return "";
  if (now - heard > SILENT_AFTER) {
    return `Nothing heard from the kernel for ${Math.round((now - heard) / 1000)} s.`;
  }
  if (get("paused")) return "Paused: the evaluation in flight is finished, then the search waits.";
  return get("hint");
}

// ---- the tree: rows of a list in the order of a walk, the branches drawn behind them

function walk(steps) {
  const known = new Set(steps.map((step) => step.id));
  const children = new Map();
  for (const step of steps) {
    const parent = known.has(step.parent) ? step.parent : null;
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(step);
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

function kind(step, best) {
  if (step.id === best.id && (best.significant || step.id === 0)) return "best";
  if (step.verdict === "passed") return "passed";
  return step.verdict === "duplicate" ? "duplicate" : "failed";
}

function figure(step, source) {
  if (step.verdict === "duplicate") return step.detail;
  if (step.verdict !== "passed") return words(step.verdict);
  return step.speedup === null || step.id === 0 ? "" : `${ratio(step.speedup)} ${source}`;
}

function buildTree(choose) {
  const branches = svg("path", { class: "optiml-branch" });
  const behind = svg("svg", { class: "optiml-branches", "aria-hidden": "true" });
  behind.append(branches);
  const list = described("div", "optiml-tree", {
    role: "tree", "aria-label": "steps of the search", "data-lm-suppress-shortcuts": "true",
  }, behind);
  const rows = new Map(); // by the number of the step
  let [walked, chosen, reached] = [[], null, 0];

  function make({ id }) {
    const row = element("div", "", element("span", "optiml-mark"),
      element("span", "optiml-number", `#${id}`), element("span", "optiml-title"),
      element("span", "optiml-end"));
    row.setAttribute("role", "treeitem");
    row.addEventListener("click", () => select(id));
    mark(row, id);
    rows.set(id, row);
    return row;
  }
  function mark(row, id) {
    row.tabIndex = id === reached ? 0 : -1; // one stop for the Tab key; arrows go on from there
    row.setAttribute("aria-selected", String(id === chosen));
  }
  function reach(id, selected = chosen) {
    const before = [reached, chosen];
    [reached, chosen] = [id, selected];
    for (const number of [...before, id]) if (rows.has(number)) mark(rows.get(number), number);
  }
  function select(id) {
    reach(id, id);
    choose(id);
  }
  function draw(steps, best) {
    walked = walk(steps);
    list.setAttribute("aria-busy", String(!walked.length)); // else an empty tree is an error
    const indent = Math.min(INDENT, DEEPEST / Math.max(1, ...walked.map((row) => row.depth)));
    const x = (row) => 12 + indent * row.depth;
    const y = (row) => ROW * (row.index + 0.5);
    let next = behind.nextSibling;
    for (const row of walked) {
      const drawn = rows.get(row.step.id) ?? make(row.step);
      drawRow(drawn, row, kind(row.step, best), best.source ?? "", x(row) - 7);
      if (drawn === next) next = next.nextSibling;
      else list.insertBefore(drawn, next);
    }
    const path = walked.filter((row) => row.above)
      .map((row) => `M${x(row.above)} ${y(row.above) + 7}V${y(row)}H${x(row) - 8}`);
    branches.setAttribute("d", path.join(""));
    behind.setAttribute("height", String(ROW * walked.length));
  }
  list.addEventListener("keydown", (event) => {
    const at = walked.findIndex((row) => row.step.id === reached);
    const below = walked[at + 1];
    const to = {
      ArrowDown: below,
      ArrowUp: walked[at - 1],
      ArrowLeft: walked[at]?.above,
      ArrowRight: below?.above === walked[at] ? below : undefined,
      Home: walked[0],
      End: walked.at(-1),
    };
    if (event.key === "Enter" || event.key === " ") select(reached);
    else if (!(event.key in to)) return;
    else if (to[event.key]) {
      reach(to[event.key].step.id);
      rows.get(reached).focus();
    }
    event.preventDefault();
  });
  return { list, draw };
}

const SHOWN = new WeakMap(); // what a row shows

function drawRow(drawn, row, name, source, indentation) {
  const { step, depth } = row;
  const [, , title, end] = drawn.children;
  const shown = JSON.stringify([step, depth, name, source, indentation]);
  if (SHOWN.get(drawn) === shown) return; // most rows of a long search
  SHOWN.set(drawn, shown);
  drawn.className = `optiml-node optiml-${name}`;
  drawn.style.paddingLeft = `${indentation}px`;
  drawn.setAttribute("aria-level", String(depth + 1));
  drawn.title = `#${step.id} ${step.title}\n${words(step.verdict)}${step.detail ? `: ${step.detail}` : ""}`;
  write(title, step.title);
  write(end, figure(step, source));
}

// ---- programs, diffs, findings

function code(text) {
  return described("pre", "optiml-code", { tabindex: "0" }, text);
}

function coloured(diff) {
  const names = { "+": "optiml-added", "-": "optiml-removed", "@": "optiml-faint" };
  const made = code("");
  made.append(...diff.split("\n").map((line) => element("span", names[line[0]] ?? "", `${line}\n`)));
  return made;
}

function listed(findings) {
  return element("ul", "", ...findings.map((finding) => element("li", "",
    element("span", `optiml-${SEVERITIES[finding.severity] ?? "faint"}`, `${finding.severity} `),
    finding.cause,
    ...(finding.advice ? [element("div", "optiml-faint", `try: ${finding.advice}`)] : []))));
}

function drawDiff(target, diff, baseline) {
  target.replaceChildren(diff ? coloured(diff) : faint(`Still ${baseline}: nothing beats it.`));
}

function drawProgram(target, program) {
  target.replaceChildren(program ? code(program) : faint("Nothing verified yet."));
}

function drawFindings(target, findings, refused, best) {
  const below = refused.flatMap(({ program, reasons }) => [
    faint(`Not tried on ${program}:`),
    element("ul", "", ...reasons.map((reason) => element("li", "", reason)))]);
  const from = best.significant && findings[0]?.step !== best.id ? ", which the best was made from" : "";
  const above = findings.length
    ? [faint(`On step #${findings[0].step}${from}:`), listed(findings)] : [faint("No findings yet.")];
  target.replaceChildren(...above, ...below);
}

// ---- one step in full, and its program edited by hand

function buildNode(send, open) {
  const panel = described("div", "optiml-detail", { role: "region", "aria-label": "chosen step" },
    faint("Choose a step to see its program, its diff, its verdict and what was found."));
  const drafts = new Map(); // texts that were not sent yet, by step
  const answer = described("div", "optiml-faint", { role: "status" });
  let wanted = null;

  function choose(id) {
    if (id !== wanted) write(answer, "");
    wanted = id;
    send({ kind: "node", id });
    if (!answer.isConnected) panel.replaceChildren(faint(`Asking the kernel for #${id}.`));
  }
  function draw(node) {
    if (node.id !== wanted) return;
    const diff = folded(`Diff against #${node.parent}`, coloured(node.diff));
    diff.hidden = !node.diff;
    panel.replaceChildren(...about(node), diff,
      folded("Program", ...program(node, (editing) => { diff.open = !editing; })));
    panel.scrollTop = 0;
  }
  function program(node, changed) {
    const shown = code(node.program);
    const text = described("textarea", "optiml-code optiml-text", {
      "aria-label": `program of #${node.id}`, spellcheck: "false", "data-lm-suppress-shortcuts": "true",
    });
    const edit = button("optiml-small", "Edit", "Change this program by hand", () => show(true));
    const evaluate = button("optiml-small", "Evaluate",
      "Have the program evaluated next, as a child of this step", () => {
        write(answer, "Sent to the kernel.");
        send({ kind: "edit", parent: node.id, program: text.value });
      });
    const cancel = button("optiml-small", "Cancel", "Forget the changes", () => {
      drafts.delete(node.id);
      show(false);
      edit.focus();
    });
    text.addEventListener("input", () => drafts.set(node.id, text.value));
    function show(editing) {
      text.value = drafts.get(node.id) ?? node.program;
      text.rows = Math.min(24, text.value.split("\n").length + 1);
      shown.hidden = editing;
      edit.hidden = editing || !open();
      text.hidden = evaluate.hidden = cancel.hidden = !editing;
      changed(editing); // an editor needs the room
      if (editing) text.focus();
    }
    show(drafts.has(node.id));
    return [element("div", "optiml-row", edit, evaluate, cancel, answer), shown, text];
  }
  function answered({ parent, refused }) {
    if (!refused) drafts.delete(parent);
    if (parent === wanted) write(answer, refused ? `Not taken: ${refused}.` : "Taken: it is evaluated next.");
  }
  return { panel, choose, draw, answered };
}

function about(node) {
  const gain = node.speedup !== null && node.verdict === "passed" && node.id
    ? `, ${ratio(node.speedup)} ${node.source}` : "";
  const from = node.parent === null ? "" : `, made from #${node.parent}`;
  const why = node.line ? `line ${node.line}: ${node.why}` : node.why;
  const said = [
    why, node.fix && `Fix: ${node.fix}`, node.rationale, node.expected && `Expected: ${node.expected}`,
    node.came && `What came: ${node.came}`,
  ];
  return [
    element("div", "optiml-heading", `#${node.id} ${node.title}`),
    faint(`${words(node.verdict)}${gain}${from}, by ${node.proposer}`),
    ...said.filter(Boolean).map((text) => element("div", "", text)),
    ...(node.findings.length ? [listed(node.findings)] : []),
  ];
}

function folded(title, ...children) {
  return described("details", "", { open: "" }, element("summary", "", title), ...children);
}

// ---- the roofline: drawn by the kernel, asked for where it is looked at

function buildRoofline(panel, send, get) {
  let [asked, answer, colour] = [null, null, ""];
  function draw() {
    if (panel.hidden) return;
    const best = get("best").id ?? null;
    if (best !== null && best !== asked) {
      asked = best;
      send({ kind: "roofline" });
    }
    const now = getComputedStyle(panel).color;
    if (now === colour) return;
    colour = now;
    panel.replaceChildren(answer ? pictured(answer, colour) : faint("Drawing."));
  }
  function answered(content) {
    [answer, colour] = [content, ""];
    draw();
  }
  return { draw, answered };
}

function pictured({ svg: text, told }, colour) {
  if (!text) return faint(`No roofline: ${told}.`);
  const image = described("img", "optiml-picture", { alt: told });
  // In an image no script runs and nothing is loaded, whatever the text is.
  const own = text.replace("<svg ", `<svg color="${colour}" `);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(own)}`;
  return image;
}

// ---- the report, where the notebook's own output cannot come: a page loaded in mid-search

const TAGS = new Set(
  ("a b br caption code col colgroup dd details div dl dt em figcaption figure h1 h2 h3 h4 hr i img li " +
   "ol p pre s small span strong sub summary sup table tbody td tfoot th thead tr u ul").split(" "));
const ATTRIBUTES = new Set(
  "alt class colspan height lang open role rowspan scope src start style title width".split(" "));

function safe(name, value) {
  if (name === "src") return /^data:image\/(png|svg\+xml)[;,]/.test(value);
  if (name === "style") return !/url|@|\\|expression|position/i.test(value);
  return ATTRIBUTES.has(name) || /^aria-[a-z]+$/.test(name);
}

function rebuilt(node) {
  if (node.nodeType === Node.TEXT_NODE) return [node.data];
  if (!TAGS.has(node.localName)) return [];
  const made = element(node.localName, "", ...[...node.childNodes].flatMap(rebuilt));
  for (const { name, value } of node.attributes) if (safe(name, value)) made.setAttribute(name, value);
  return [made];
}

function drawReport(panel, html) {
  const parsed = new DOMParser().parseFromString(html, "text/html"); // runs and loads nothing
  panel.replaceChildren(...[...parsed.body.childNodes].flatMap(rebuilt));
}

// ---- tabs

function buildTabs(changed) {
  const mark = Math.random().toString(36).slice(2); // several views are on one page
  const bar = described("div", "optiml-tabs", {
    role: "tablist", "aria-label": "the search in detail", "data-lm-suppress-shortcuts": "true",
  });
  const [tabs, panels] = [{}, {}];
  for (const [name, title] of Object.entries(TABS)) {
    const [tabId, panelId] = [`optiml-tab-${name}-${mark}`, `optiml-panel-${name}-${mark}`];
    tabs[name] = described("button", "optiml-tab", {
      type: "button", role: "tab", id: tabId, "aria-controls": panelId,
    }, title);
    panels[name] = described("div", "optiml-panel", {
      role: "tabpanel", id: panelId, "aria-labelledby": tabId, "data-panel": name, tabindex: "0",
    });
    tabs[name].addEventListener("click", () => choose(name));
  }
  function choose(chosen) {
    for (const name of Object.keys(TABS)) {
      tabs[name].setAttribute("aria-selected", String(name === chosen));
      tabs[name].tabIndex = name === chosen ? 0 : -1;
      panels[name].hidden = name !== chosen;
    }
    changed();
  }
  bar.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const shown = Object.keys(TABS).filter((name) => !tabs[name].hidden);
    const at = shown.findIndex((name) => tabs[name] === event.target);
    const name = shown[(at + by + shown.length) % shown.length];
    choose(name);
    tabs[name].focus();
  });
  bar.append(...Object.values(tabs));
  return { all: [bar, ...Object.values(panels)], tabs, panels, choose };
}

// ---- all of it

function render({ model, el }) {
  const get = (name) => model.get(name);
  const send = (message) => model.send(message);
  const head = buildHead(send);
  const { all, tabs, panels, choose } = buildTabs(() => roofline.draw());
  const node = buildNode(head.send, () => get("state") === "running");
  const tree = buildTree(node.choose);
  const roofline = buildRoofline(panels.roofline, send, get);
  panels.tree.append(tree.list, node.panel);
  tabs.report.hidden = true;
  choose("tree");
  const root = element("div", "optiml-search", ...head.all, ...all);
  el.append(root);

  const painters = {
    steps: () => tree.draw(get("steps"), get("best")),
    program: () => drawProgram(panels.program, get("program")),
    diff: () => drawDiff(panels.diff, get("diff"), get("baseline")),
    findings: () => drawFindings(panels.findings, get("findings"), get("refused"), get("best")),
  };
  const answers = {
    node: node.draw,
    edit: node.answered,
    roofline: roofline.answered,
    report: ({ html }) => {
      drawReport(panels.report, html);
      tabs.report.hidden = false;
      choose("report");
    },
  };
  const tell = () => write(head.notice, notice(get, head.clock));
  const changed = new Set(Object.keys(painters));
  let asking = 0;
  const paint = () => {
    drawHead(head, get);
    if (changed.has("best")) changed.add("steps").add("findings"); // both say which it is
    if (changed.has("refused")) changed.add("findings"); // one panel has both
    for (const name of changed) painters[name]?.();
    changed.clear();
    roofline.draw();
    tell();
    if (get("reported") && !asking) {
      asking = setTimeout(() => root.isConnected && send({ kind: "report" }), REPORT_AFTER);
    }
  };
  // Several traits change at a time; they are painted once, when all are in.
  let waiting = false;
  const listeners = TRAITS.map((name) => [`change:${name}`, () => {
    changed.add(name);
    head.clock.heard = Date.now();
    if (name === "stopping" || name === "paused") head.clock.asked = 0;
    if (!waiting) queueMicrotask(() => { waiting = false; paint(); });
    waiting = true;
  }]);
  listeners.push(["msg:custom", (content) => {
    Object.assign(head.clock, { heard: Date.now(), asked: 0 });
    answers[content.kind]?.(content);
  }]);
  for (const [event, listener] of listeners) model.on(event, listener);
  const ticking = setInterval(tell, 1000);
  paint();
  return () => {
    clearInterval(ticking);
    clearTimeout(asking);
    for (const [event, listener] of listeners) model.off(event, listener);
  };
}

export default { render };
