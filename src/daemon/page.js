"use strict";
// Fetches /status every two seconds and fills the tables with its numbers. Keeps the numbers of the last five minutes and
// draws them. A number that is drawn has a key, which its <data data-key> and the data- attributes of the figures name.
(() => {
  const EVERY_MS = 2000, TIMEOUT_MS = 5000, KEEP_S = 300, RATE_S = 10;
  const history = new Map(); // key: [{t, value}], with null where counting was interrupted
  let startTime = null, paused = false, timer = null;
  document.documentElement.classList.add("scripted");

  const seconds = () => performance.now() / 1000;
  const byId = (id) => document.getElementById(id);

  // Numbers of /status, by key

  const endOf = (outcome) => (outcome === "accepted" ? "accepted" : ["unavailable", "error"].includes(outcome) ? "failed" : "refused");
  const sum = (counts) => Object.values(counts).reduce((a, b) => a + b, 0);

  // The requests of some sources, by key: by outcome, and by whether they were accepted, refused or failed.
  function countRequests(sources) {
    const numbers = { "requests/accepted": 0, "requests/refused": 0, "requests/failed": 0 };
    for (const [outcome, n] of sources.flatMap(Object.entries)) {
      numbers[`outcome/${outcome}`] = (numbers[`outcome/${outcome}`] ?? 0) + n;
      numbers[`requests/${endOf(outcome)}`] += n;
    }
    return numbers;
  }

  function recentTimes(status) {
    const numbers = {};
    for (const name of ["ackSeconds", "deliverySeconds"]) {
      for (const q of ["p50", "p99"]) if (status[name]) numbers[`${name}/${q}`] = status[name].recent[q];
    }
    return numbers;
  }

  function countRouted(status) {
    const keyed = (prefix, counts) => Object.fromEntries(Object.entries(counts).map(([name, n]) => [`${prefix}/${name}`, n]));
    return { ...keyed("event", status.events), ...keyed("reason", status.quarantined), ...status.transactions,
      events: sum(status.events), quarantined: sum(status.quarantined), duplicates: status.duplicates, lag: status.lagRecords,
      remembered: status.rememberedIds };
  }

  const numbersOf = (status) => ({ ...(status.requests ? countRequests(Object.values(status.requests)) : {}),
    ...(status.events ? countRouted(status) : {}), ...recentTimes(status) });

  function remember(status, numbers) {
    const t = seconds();
    if (startTime !== null && status.startTimeSeconds !== startTime) interrupt();
    startTime = status.startTimeSeconds;
    for (const [key, value] of Object.entries(numbers)) {
      if (!history.has(key)) history.set(key, []);
      const samples = history.get(key);
      samples.push({ t, value });
      while (samples.length > 1 && (samples[0] === null || samples[1] === null || samples[1].t < t - KEEP_S)) samples.shift();
    }
  }

  // Later samples must not be compared with earlier ones.
  function interrupt() {
    for (const samples of history.values()) if (samples.length && samples.at(-1) !== null) samples.push(null);
  }

  // The sample about `span` seconds before the i-th, at least the one before it; null across an interruption.
  function before(samples, i, span) {
    let j = i - 1;
    if (j < 0 || samples[j] === null) return null;
    while (j > 0 && samples[j - 1] !== null && samples[j].t > samples[i].t - span + 0.5) j--;
    return samples[j];
  }

  function rate(samples, i, span) {
    const now = samples[i], then = now && before(samples, i, span);
    return then && now.value >= then.value ? (now.value - then.value) / (now.t - then.t) : null;
  }

  const level = (samples, i) => samples[i]?.value ?? null;

  // Text

  const grouped = (n) => n.toLocaleString("en-US");
  const plain = (n) => (n === null ? "–" : n === 0 ? "0" : n < 0.1 ? "<0.1" : n < 99.95 ? n.toFixed(1) : grouped(Math.round(n)));
  const whole = (n) => (n === null ? "–" : grouped(Math.round(n)));

  // A time with a single unit; a longer one, such as an age, with two.
  function time(s) {
    if (s === null || s === 0) return s === null ? "–" : "0 s";
    const [n, unit] = s < 0.001 ? [s * 1e6, "µs"] : s < 1 ? [s * 1000, "ms"] : s < 120 ? [s, "s"] : s < 7200 ? [s / 60, "min"] : [s / 3600, "h"];
    return `${n < 9.95 ? n.toFixed(1) : grouped(Math.round(n))} ${unit}`;
  }

  function duration(s) {
    const n = Math.max(0, Math.floor(s)), parts = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];
    const part = parts.find(([unit]) => n >= (unit === 86400 ? 2 * unit : unit));
    if (!part) return `${n} s`;
    const [large, largeName, small, smallName] = part;
    return `${Math.floor(n / large)} ${largeName} ${Math.floor(n % large / small)} ${smallName}`;
  }

  // Tables

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  // A name may break after its punctuation.
  const breakable = (name) => name.split(/(?<=[._\-/:])/).flatMap((part, i) => (i ? [element("wbr", {}), part] : [part]));

  // A row has a name, cells, each a text or {key, value}, a class, and, when its number is drawn, `drawn`: rate or level.
  function makeRow({ name, cells, drawn }) {
    const row = element("tr", drawn ? { "data-row": drawn } : {}, element("th", { scope: "row" }, ...breakable(name)));
    for (const { key } of cells) row.append(element("td", {}, ...(key ? [element("data", { "data-key": key })] : [])));
    if (drawn) row.append(element("td", { class: "rate" }), element("td", { class: "plot" }));
    return row;
  }

  // Change only what has changed, so that a focus or a selection stays.
  function fill(id, rows) {
    const body = byId(id), names = JSON.stringify(rows.map(({ name }) => name));
    if (body.names !== names) body.replaceChildren(...rows.map(makeRow));
    body.names = names;
    rows.forEach(({ cells, className }, i) => {
      body.rows[i].className = className ?? "";
      cells.forEach((cell, n) => {
        const place = body.rows[i].cells[n + 1];
        if (!cell.key) return setText(place, cell);
        place.firstChild.setAttribute("value", cell.value);
        return setText(place.firstChild, grouped(cell.value));
      });
    });
    body.closest("table").hidden = body.nodeName === "TBODY" && rows.length === 0;
  }

  const countRow = (numbers, key, name, drawn = "rate") =>
    ({ name, cells: [{ key, value: numbers[key] }], drawn, className: numbers[key] === 0 ? "nil" : "" });
  const countRows = (numbers, prefix) => Object.keys(numbers).filter((key) => key.startsWith(`${prefix}/`))
    .map((key) => countRow(numbers, key, key.slice(prefix.length + 1)));

  const timeRow = (status, key, name, words = time) =>
    ({ name, cells: [words(status[key].p50), words(status[key].p99), grouped(status[key].count)] });

  function fillReceiver(status, numbers) {
    const ends = ["accepted", "refused", "failed"];
    fill("outcomes", countRows(numbers, "outcome"));
    fill("sources", Object.entries(status.requests).map(([source, outcomes]) => {
      const counts = countRequests([outcomes]);
      return { name: source || "no source", cells: ends.map((end) => grouped(counts[`requests/${end}`])) };
    }));
    fill("all-sources", [{ name: "all sources", cells: ends.map((end) => ({ key: `requests/${end}`, value: numbers[`requests/${end}`] })) }]);
    fill("receiver-times", [timeRow(status, "ackSeconds", "from request to answer"), timeRow(status, "verifySeconds", "verifying a signature")]);
  }

  function fillRouter(status, numbers) {
    const roundedUp = (n) => whole(n === null ? null : Math.ceil(n));
    fill("kinds", countRows(numbers, "event"));
    fill("all-kinds", [countRow(numbers, "events", "all kinds")]);
    fill("reasons", countRows(numbers, "reason"));
    fill("all-reasons", [countRow(numbers, "quarantined", "all reasons")]);
    fill("work", [countRow(numbers, "lag", "lag, in records", "level"),
      { name: "age of the oldest record", cells: [time(status.oldestRecordSeconds === null ? 0 : Math.max(0, Date.parse(status.time) / 1000 - status.oldestRecordSeconds)), "", ""] },
      countRow(numbers, "duplicates", "duplicates dropped"), countRow(numbers, "committed", "transactions committed"),
      countRow(numbers, "aborted", "transactions aborted"), countRow(numbers, "remembered", "delivery-ids remembered", "level")]);
    fill("partitions", status.partitions.map(({ partition, state, cause, lagRecords }) =>
      ({ name: String(partition), cells: [state, cause, grouped(lagRecords)], className: ["routing", "restoring"].includes(state) ? "words" : "words down" })));
    fill("router-times", [timeRow(status, "deliverySeconds", "from reception to event"), timeRow(status, "commitSeconds", "committing a batch"),
      timeRow(status, "batchRecords", "records in a batch", roundedUp)]);
  }

  function keyRows(status) {
    const left = status.certificateExpirySeconds - Date.parse(status.time) / 1000;
    const rows = (status.secrets ?? []).map(({ source, file, modifiedSeconds }) =>
      ({ name: `${source}, ${file}`, cells: [`${duration(Date.parse(status.time) / 1000 - modifiedSeconds)} old`], className: "words" }));
    if (status.certificateExpirySeconds !== undefined) {
      rows.push({ name: "TLS certificate", cells: [left > 0 ? `${duration(left)} left` : "expired"], className: left > 0 ? "words" : "words down" });
    }
    return rows;
  }

  function fillProcess(status) {
    const brokers = status.brokers.map(({ broker, up, roundTripSeconds }) =>
      ({ name: broker, cells: [up ? "connected" : "down", time(roundTripSeconds)], className: up ? "words" : "words down" }));
    setText(byId("kafka-state"), status.kafkaReachable ? "reachable" : "away");
    fill("brokers", brokers.length ? brokers : [{ name: "none known yet", cells: ["–", "–"], className: "words" }]);
    fill("clients", Object.entries(status.kafkaClients).map(([name, { requests, errors, timeouts, queuedRecords }]) =>
      ({ name, cells: [requests, errors, timeouts, queuedRecords].map(grouped) })));
    fill("keys", keyRows(status));
    fill("versions", Object.entries(status.versions).map(([name, version]) => ({ name, cells: [version], className: "words" })));
  }

  function fillHeader(status) {
    const verdict = status.ready ? "Ready" : "Not ready", reasons = Object.entries(status.roles).map(([role, reason]) => `${role}: ${reason}`);
    const items = [...byId("roles").children].map((item) => item.textContent);
    document.title = `${verdict} · ${status.instance} · Gatepost`;
    setText(byId("instance"), status.instance);
    byId("state").className = status.ready ? "ready" : "unready";
    setText(byId("verdict"), verdict);
    if (items.join("\n") !== reasons.join("\n")) byId("roles").replaceChildren(...reasons.map((reason) => element("li", {}, reason)));
    byId("now").dateTime = status.time;
    setText(byId("now"), status.time.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC"));
    setText(byId("uptime"), duration(status.uptimeSeconds));
  }

  function show(status, numbers) {
    const has = { receiver: status.requests !== undefined, router: status.events !== undefined };
    for (const part of document.querySelectorAll("[data-role]")) part.hidden = !has[part.dataset.role];
    fillHeader(status);
    if (has.receiver) fillReceiver(status, numbers);
    if (has.router) fillRouter(status, numbers);
    fillProcess(status);
    byId("numbers").hidden = false;
  }

  // Drawing

  // The next round number that is not below.
  function ceiling(value, least) {
    const power = 10 ** Math.floor(Math.log10(Math.max(value, least)));
    return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((n) => n * power).find((n) => n >= value * 0.9999 && n >= least);
  }

  function outline(points, top, t) {
    let text = "", pen = "M";
    for (const [at, value] of points) {
      if (value === null) {
        pen = "M";
        continue;
      }
      const x = (1000 * (1 - (t - at) / KEEP_S)).toFixed(1), y = (100 - 100 * value / top).toFixed(2);
      text += pen === "M" ? `M${x} ${y}h0` : `L${x} ${y}`;
      pen = "L";
    }
    return text;
  }

  function draw(place, lines, top, label) {
    let svg = place.querySelector("svg");
    if (!svg) {
      svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      for (const [name, value] of [["viewBox", "0 0 1000 100"], ["preserveAspectRatio", "none"], ["role", "img"]]) svg.setAttribute(name, value);
      place.append(svg);
    }
    const t = seconds();
    while (svg.childElementCount < lines.length) svg.append(document.createElementNS(svg.namespaceURI, "path"));
    lines.forEach((points, i) => svg.children[i].setAttribute("d", outline(points, top, t)));
    svg.setAttribute("aria-label", label);
  }

  const series = (samples, measure) => samples.map((sample, i) => [sample ? sample.t : 0, measure(samples, i)]);
  const highest = (lines) => Math.max(0, ...lines.flat().map(([, value]) => value ?? 0));
  const samplesOf = (key) => history.get(key) ?? [];

  function drawRow(row) {
    const samples = samplesOf(row.querySelector("data").dataset.key), isLevel = row.dataset.row === "level";
    const words = isLevel ? whole : plain;
    const points = series(samples, isLevel ? level : (all, i) => rate(all, i, 0)), top = highest([points]);
    if (!isLevel) setText(row.querySelector(".rate"), plain(rate(samples, samples.length - 1, RATE_S)));
    draw(row.querySelector(".plot"), [points], Math.max(top, 1e-9) * 1.1,
      `${row.cells[0].textContent}${isLevel ? "" : " a second"}, last 5 minutes: highest ${words(top)}`);
  }

  // Add to a figure a number behind each name, and the axes.
  function furnish(figure) {
    if (figure.querySelector("b")) return;
    for (const item of figure.querySelectorAll("li")) item.append(" ", document.createElement("b")); // <output> is read out each time it changes
    const [above, plot, below] = ["axis", "plot", "axis"].map((name) => {
      const part = document.createElement("div");
      part.className = name;
      figure.append(part);
      return part;
    });
    above.append(document.createElement("span"));
    for (const text of ["5 minutes ago", "now"]) {
      const mark = document.createElement("span");
      mark.textContent = text;
      below.append(mark);
    }
    figure.plot = plot;
    figure.scale = above.firstChild;
  }

  // What a figure draws, how it writes the values, and the least height of its axis.
  function measuresOf(figure) {
    const { rates, times, levels } = figure.dataset, keys = (rates ?? times ?? levels).split(" ");
    const over = (span) => (samples, i) => rate(samples, i, span);
    if (rates) return { keys, plot: over(0), now: over(RATE_S), words: plain, least: 1 };
    return times ? { keys, plot: level, now: level, words: time, least: 0.001 } : { keys, plot: level, now: level, words: whole, least: 10 };
  }

  function drawFigure(figure) {
    furnish(figure);
    const { keys, plot, now, words, least } = measuresOf(figure), all = keys.map(samplesOf);
    const lines = all.map((samples) => series(samples, plot)), top = ceiling(highest(lines), least);
    const values = all.map((samples) => words(now(samples, samples.length - 1)));
    const items = [...figure.querySelectorAll("li")];
    items.forEach((item, i) => setText(item.lastChild, values[i]));
    setText(figure.scale, words(top).replace(/\.0\b/, ""));
    const title = figure.querySelector("figcaption").textContent.trim();
    draw(figure.plot, lines, top, `${title}, last 5 minutes: highest ${words(highest(lines))}; now ` +
      items.map((item, i) => `${item.firstChild.textContent.trim()} ${values[i]}`).join(", "));
  }

  function drawAll() {
    document.querySelectorAll("tr[data-row]").forEach(drawRow);
    document.querySelectorAll("figure:not([hidden])").forEach(drawFigure);
  }

  // Fetching

  function showNoAnswer(reason) {
    interrupt();
    document.documentElement.classList.add("silent-page");
    if (byId("state").className === "silent") return;
    const since = byId("now").textContent;
    byId("state").className = "silent";
    setText(byId("verdict"), since ? `No answer since ${since}` : "No answer");
    byId("roles").replaceChildren(element("li", {}, since ? `${reason}; the numbers below are from then` : reason));
    document.title = `no answer · ${document.title.split(" · ").slice(-2).join(" · ")}`;
  }

  function unreachable(error) { // fetch() throws a TypeError for each failure of the network
    throw error.name === "TypeError" ? new Error("not reachable") : error;
  }

  async function fetchStatus() {
    const response = await fetch("status", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(unreachable);
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    const status = await response.json();
    if (status?.startTimeSeconds === undefined) throw new SyntaxError();
    return status;
  }

  const reasonOf = (error) => ({ TimeoutError: "timeout", SyntaxError: "not an answer of gatepostd",
    TypeError: "an answer of another version of gatepostd; reload this page" })[error.name] ?? error.message;

  async function turn() {
    try {
      const status = await fetchStatus(), numbers = numbersOf(status);
      if (paused) return;
      document.documentElement.classList.remove("silent-page");
      remember(status, numbers);
      show(status, numbers);
      drawAll();
    } catch (error) {
      if (!paused) showNoAnswer(reasonOf(error));
    } finally {
      clearTimeout(timer);
      if (!paused) timer = setTimeout(turn, EVERY_MS);
    }
  }

  function togglePause(event) {
    paused = !paused;
    event.target.setAttribute("aria-pressed", String(paused));
    clearTimeout(timer);
    if (paused) interrupt();
    else turn();
  }

  document.addEventListener("DOMContentLoaded", () => {
    byId("pause").addEventListener("click", togglePause);
    turn();
  });
})();
