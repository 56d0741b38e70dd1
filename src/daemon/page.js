"use strict";
// Fetches /status every two seconds and fills the tables with its numbers. Keeps the numbers of the last five minutes and
// draws them. A number that is drawn has a key, which its <data data-key> and the data- attributes of the figures name.
(() => {
  const EVERY_MS = 2000, TIMEOUT_MS = 5000, KEEP_S = 300, RATE_S = 10, SHOWN = 5;
  const OLD_S = 60, CERTIFICATE_S = 14 * 86400; // from then on the state warns
  const history = new Map(); // key: [{t, value}], with null where counting was interrupted
  let startTime = null, ahead = 0, paused = false, timer = null; // ahead: the daemon's clock, in seconds
  document.documentElement.classList.add("scripted");

  const seconds = () => performance.now() / 1000;
  const serverNow = () => seconds() + ahead;
  const byId = (id) => document.getElementById(id);

  // Numbers of /status, by key

  const endOf = (outcome) => (outcome === "accepted" ? "accepted" : ["unavailable", "error"].includes(outcome) ? "failed" : "refused");
  const sum = (counts) => Object.values(counts).reduce((a, b) => a + b, 0);

  // The requests of some sources, by key: by outcome, and by whether they were accepted, refused or failed.
  function countRequests(sources) {
    const numbers = { "requests/accepted": 0, "requests/refused": 0, "requests/failed": 0 };
    for (const [outcome, n] of sources.flatMap(Object.entries)) {
      numbers[`outcome/${outcome}`] = (numbers[`outcome/${outcome}`] ?? 0) + n;
      if (outcome !== "probe") numbers[`requests/${endOf(outcome)}`] += n; // of `gatepost doctor`: no delivery
    }
    return numbers;
  }

  // A router knows the lag of the partitions that it has, from their position on; null: not known.
  const knowsLag = ({ state, committedOffset }) => committedOffset !== null || ["standby", "unassigned"].includes(state);
  const lagOf = ({ lagRecords, partitions }) => (partitions.every(knowsLag) && partitions.some(({ state }) => state !== "standby") ? lagRecords : null);

  function countRouted(status) {
    const keyed = (prefix, counts) => Object.fromEntries(Object.entries(counts).map(([name, n]) => [`${prefix}/${name}`, n]));
    return { ...keyed("event", status.events), ...keyed("reason", status.quarantined), ...status.transactions,
      events: sum(status.events), quarantined: sum(status.quarantined), duplicates: status.duplicates, lag: lagOf(status),
      remembered: status.rememberedIds,
      ...(status.state ? { stateFiles: status.state.files, stateBytes: status.state.bytes, stateErrors: status.state.errors } : {}) };
  }

  const countSpooled = ({ records, written, drained, refusedRecords, segments, uncountedSegments, damagedSegments, lostRecords, errors }) => ({
    "spool/records": records, "spool/written": written, "spool/drained": drained, "spool/refused": refusedRecords, "spool/segments": segments,
    "spool/uncounted": uncountedSegments, "spool/damaged": damagedSegments, "spool/lost": lostRecords,
    ...Object.fromEntries(Object.entries(errors).map(([name, n]) => [`spoolError/${name}`, n])) });

  const numbersOf = (status) => ({ ...(status.requests ? countRequests(Object.values(status.requests)) : {}),
    ...(status.spool ? countSpooled(status.spool) : {}), ...(status.events ? countRouted(status) : {}) });

  function remember(status, numbers) {
    const t = seconds();
    if (startTime !== null && status.startTimeSeconds !== startTime) interrupt();
    startTime = status.startTimeSeconds;
    ahead = Date.parse(status.time) / 1000 - t;
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

  function size(bytes) {
    const unit = bytes < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10));
    return `${unit ? (bytes / 1024 ** unit).toFixed(1).replace(".0", "") : bytes} ${["bytes", "KiB", "MiB", "GiB", "TiB"][unit]}`;
  }

  function duration(s) {
    const n = Math.max(0, Math.floor(s)), parts = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];
    const part = parts.find(([unit]) => n >= (unit === 86400 ? 2 * unit : unit));
    if (!part) return `${n} s`;
    const [large, largeName, small, smallName] = part;
    return `${Math.floor(n / large)} ${largeName} ${Math.floor(n % large / small)} ${smallName}`;
  }

  // With a single unit, so that its width hardly changes.
  function age(s) {
    const [unit, name] = s < 120 ? [1, "s"] : s < 7200 ? [60, "min"] : s < 2 * 86400 ? [3600, "h"] : [86400, "d"];
    return `${Math.max(0, Math.floor(s / unit))} ${name}`;
  }

  // Tables

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  const joined = (parts) => parts.filter((part) => part).join(", ");
  const plural = (n, word) => `${grouped(n)} ${word}${n === 1 ? "" : "s"}`;

  function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  // A name may break after its punctuation. All texts become text nodes: paths, names and causes come from the network.
  const breakable = (name) => name.split(/(?<=[._\-/:,=])/).flatMap((part, i) => (i ? [element("wbr", {}), part] : [part]));
  const moment = (at) => new Date(at * 1000).toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");

  // A cell is a text, or has a text, the time of an event, and small lines below, which are cells.
  function cellNodes(cell) {
    if (typeof cell === "string") return breakable(cell);
    const time = cell.at === undefined ? [] : [element("time", { "data-at": cell.at, datetime: new Date(cell.at * 1000).toISOString(), title: moment(cell.at) })];
    return [...breakable(cell.text ?? ""), ...time, ...(cell.small ?? []).map((line) => element("small", {}, ...cellNodes(line)))];
  }

  const makeFacts = ({ cells, className }) => element("tr", { class: className ?? "" }, element("th", { scope: "row" }, ...cellNodes(cells[0])),
    ...cells.slice(1).map((cell) => element("td", {}, ...cellNodes(cell))));

  // Show or hide a table, and what stands for it while it is empty.
  function showTable(body, isEmpty) {
    const instead = byId(`${body.id}-empty`);
    body.closest("table").hidden = isEmpty;
    if (instead) instead.hidden = !isEmpty;
  }

  // Rows are {cells, className}. Change only what has changed, so that a focus or a selection stays.
  function fillFacts(id, rows) {
    const body = byId(id), now = JSON.stringify(rows);
    if (body.shown !== now) body.replaceChildren(...rows.map(makeFacts));
    body.shown = now;
    showTable(body, rows.length === 0);
  }

  const makeCount = ({ name, key }) => element("tr", {}, element("th", { scope: "row" }, ...breakable(name)),
    element("td", {}, element("data", { "data-key": key })));

  // Rows are {name, key, value}; those that are 0 are left out.
  function fillCounts(id, all) {
    const body = byId(id), rows = all.filter(({ value }) => value !== 0), names = JSON.stringify(rows.map(({ name }) => name));
    if (body.shown !== names) body.replaceChildren(...rows.map(makeCount));
    body.shown = names;
    rows.forEach(({ value }, i) => {
      const place = body.rows[i].querySelector("data");
      place.setAttribute("value", value ?? "");
      setText(place, whole(value));
    });
    showTable(body, rows.length === 0);
  }

  const countRow = (numbers, key, name) => ({ name, key, value: numbers[key] });
  const countRows = (numbers, prefix) => Object.keys(numbers).filter((key) => key.startsWith(`${prefix}/`))
    .map((key) => countRow(numbers, key, key.slice(prefix.length + 1)));

  function showAges() {
    const now = serverNow();
    for (const place of document.querySelectorAll("time[data-at]")) setText(place, `${age(now - place.dataset.at)} ago`);
  }

  // Sections

  function groupBy(all, keyOf) {
    const groups = new Map();
    for (const each of all) groups.set(keyOf(each), [...(groups.get(keyOf(each)) ?? []), each]);
    return groups;
  }

  // The last events, of which the first SHOWN are shown.
  function fillEvents(id, events, cells) {
    fillFacts(id, events.slice(0, SHOWN).map((each) => ({ cells: cells(each) })));
    const more = byId(`${id}-more`);
    more.hidden = events.length <= SHOWN;
    setText(more, `${events.length - SHOWN} more in /status and gatepost status.`);
  }

  const requestsIn = (numbers, ...ends) => joined(ends.map((end) => numbers[`requests/${end}`] && `${grouped(numbers[`requests/${end}`])} ${end}`));

  function fillRefused(status, numbers) {
    const refused = numbers["requests/refused"], failed = numbers["requests/failed"];
    setText(byId("refused-count"), refused + failed === 0 ? "" : `${requestsIn(numbers, "refused", "failed")} since the start`);
    fillEvents("refusals", status.refusals ?? [], (each) => [
      { at: each.timeSeconds, small: each.count > 1 ? [`${grouped(each.count)} times`] : [] },
      { text: each.outcome, small: [joined([each.source, each.status ? String(each.status) : "connection closed"])] },
      { text: each.detail || "–", small: [joined([each.client && `from ${each.client}`, each.requestId && `request ${each.requestId}`])] }]);
    byId("refusals-empty").hidden = refused + failed > 0 || (status.refusals ?? []).length > 0;
  }

  function fillQuarantined(status, numbers) {
    setText(byId("quarantined-count"), numbers.quarantined === 0 ? "" : `${grouped(numbers.quarantined)} since the start, released ones included; gatepost quarantine list shows which wait`);
    fillCounts("reasons", countRows(numbers, "reason"));
    const recent = status.recentlyQuarantined ?? [], groups = groupBy(recent, (each) => [each.reason, each.source, each.detail].join("\n"));
    fillEvents("recent", [...groups.values()], ([each, ...others]) => [
      { at: each.timeSeconds, small: others.length ? [`${others.length + 1} times`] : [] },
      { text: each.reason, small: each.source ? [each.source] : [] },
      { text: each.detail || "–", small: [joined([each.deliveryId, `at ${each.partition}/${each.offset} of deliveries`])] }]);
    byId("recent-empty").hidden = numbers.quarantined > 0 || (status.recentlyQuarantined ?? []).length > 0;
  }

  function fillSources({ requests }) {
    const rows = Object.entries(requests).filter(([name, outcomes]) => name || sum(outcomes) > 0);
    fillFacts("sources", rows.map(([name, outcomes]) =>
      ({ cells: [name || "no source", requestsIn(countRequests([outcomes]), "accepted", "refused", "failed") || "none yet"] })));
  }

  // 0, 1, 2, 5 as 0–2, 5
  function ranges(numbers) {
    const parts = [];
    for (const n of numbers) {
      if (parts.length && parts.at(-1)[1] === n - 1) parts.at(-1)[1] = n;
      else parts.push([n, n]);
    }
    return parts.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(", ");
  }

  function toRead(partitions) {
    const n = partitions.reduce((total, each) => total + each.restoreRecords, 0);
    return n ? `${grouped(n)} deliveries to read` : "";
  }

  // A row for each state and cause.
  function partitionRows(partitions) {
    return [...groupBy(partitions, (each) => joined([each.state, each.cause]))].map(([name, members]) => ({
      cells: [joined([name, toRead(members)]), ranges(members.map((each) => each.partition)), members.every(knowsLag) ? grouped(members.reduce((n, each) => n + each.lagRecords, 0)) : "–"],
      className: isWell(members[0]) ? "" : "down" }));
  }

  function fillRouter(status, numbers) {
    fillQuarantined(status, numbers);
    fillCounts("kinds", countRows(numbers, "event"));
    fillFacts("partitions", partitionRows(status.partitions));
    fillCounts("work", [countRow(numbers, "lag", "lag, in records"), countRow(numbers, "duplicates", "duplicates dropped"),
      countRow(numbers, "committed", "transactions committed"), countRow(numbers, "aborted", "transactions aborted"),
      countRow(numbers, "remembered", "delivery-ids remembered"),
      ...(status.state ? [countRow(numbers, "stateFiles", "files of the state"), countRow(numbers, "stateBytes", "bytes of the state"),
        countRow(numbers, "stateErrors", "errors of the state")] : [])]);
  }

  function fillReceiver(status, numbers) {
    fillRefused(status, numbers);
    fillCounts("outcomes", countRows(numbers, "outcome"));
  }

  function fillSpool({ spool }, numbers) {
    const { spoolingSinceSeconds, oldestSeconds, bytes, limitBytes, lostBytes, syncSeconds } = spool;
    setText(byId("spool-state"), spoolingSinceSeconds ? "deliveries go to it" : bytes ? "not empty" : "empty");
    fillCounts("spooled", [countRow(numbers, "spool/records", "deliveries not in Kafka yet"), countRow(numbers, "spool/written", "written"),
      countRow(numbers, "spool/drained", "drained"), countRow(numbers, "spool/refused", "refused by Kafka"),
      countRow(numbers, "spool/segments", "segments"), countRow(numbers, "spool/uncounted", "segments to be counted"),
      countRow(numbers, "spool/damaged", "damaged segments"), countRow(numbers, "spool/lost", "deliveries lost"), ...countRows(numbers, "spoolError").map((row) => ({ ...row, name: `error: ${row.name}` }))]);
    fillFacts("spool-facts", [["size", `${size(bytes)} of ${size(limitBytes)}`], ...(spoolingSinceSeconds ? [["in use", { text: "began ", at: spoolingSinceSeconds }]] : []),
      ...(oldestSeconds ? [["oldest", { text: "received ", at: oldestSeconds }]] : []), ...(lostBytes ? [["lost", size(lostBytes)]] : []),
      ...(syncSeconds.count ? [["disk", `half within ${time(syncSeconds.p50)}, 99 % within ${time(syncSeconds.p99)}`]] : [])].map((cells) => ({ cells })));
  }

  function fillKafka(status) {
    setText(byId("kafka-state"), status.kafkaReachable ? "reachable" : "away");
    fillFacts("brokers", status.brokers.map(({ broker, up, roundTripSeconds }) =>
      ({ cells: [broker, up ? "connected" : "down", time(roundTripSeconds)], className: up ? "" : "down" })));
  }

  function fillConfiguration(status) {
    const { file, loadedSeconds } = status.configuration, left = status.certificateExpirySeconds - serverNow();
    fillFacts("objects", [["file", file], ["loaded", { at: loadedSeconds }],
      ...(status.certificateExpirySeconds === undefined ? [] : [["certificate", left > 0 ? `expires in ${duration(left)}, ${moment(status.certificateExpirySeconds)}` : "expired"]]),
      ["version", status.versions.gatepostd]].map((cells) => ({ cells })));
  }

  // State

  const isWell = ({ state }) => ["routing", "restoring", "standby"].includes(state);

  function spoolWarnings({ spoolingSinceSeconds, records, bytes, limitBytes, refusedRecords, damagedSegments, lostRecords }) {
    return [spoolingSinceSeconds && `deliveries only on this machine's disk: ${grouped(records)}`,
      bytes > limitBytes / 2 && `the spool has ${size(bytes)} of ${size(limitBytes)}`, refusedRecords && `Kafka refuses ${plural(refusedRecords, "record")} of the spool`,
      damagedSegments && `${plural(damagedSegments, "segment")} of the spool damaged`,
      lostRecords && `${plural(lostRecords, "record")} lost from the spool`].filter((text) => text);
  }

  // What an operator should look at although all roles are ready.
  function warnings(status) {
    const bad = (status.partitions ?? []).filter((each) => !isWell(each)), now = serverNow();
    const found = partitionRows(bad).map(({ cells: [state, partitions] }) => `partition ${partitions}: ${state}`);
    for (const { broker, up } of status.brokers) if (!up && status.kafkaReachable) found.push(`broker ${broker} is down`);
    if (status.configuration?.awaitingRestart.length) found.push(`changed, applied by a restart only: ${joined(status.configuration.awaitingRestart)}`);
    if (status.misconfiguredTopics) found.push(`${plural(status.misconfiguredTopics, "topic")} without the required settings; see gatepost topics list`);
    if (status.oldestRecordSeconds && now - status.oldestRecordSeconds > OLD_S) found.push(`a delivery has waited to be routed since ${moment(status.oldestRecordSeconds)}`);
    if (status.spool) found.push(...spoolWarnings(status.spool));
    if (status.certificateExpirySeconds - now < CERTIFICATE_S) found.push(`the certificate expires at ${moment(status.certificateExpirySeconds)}`);
    return found;
  }

  function causes(status) {
    const since = status.kafkaUnreachableSinceSeconds ? ` since ${moment(status.kafkaUnreachableSinceSeconds)}` : "";
    const kafka = status.kafkaProblem ? [`Kafka unreachable${since}: ${status.kafkaProblem}`] : [];
    const roles = [...groupBy(Object.entries(status.roles), ([, reason]) => reason)].map(([reason, members]) =>
      `${joined(members.map(([role]) => role))}: ${kafka.length ? reason.replace(`: ${status.kafkaProblem}`, "") : reason}`);
    return [...kafka, ...roles, ...warnings(status)];
  }

  function showState(className, verdict, lines) {
    const items = [...byId("causes").children].map((item) => item.textContent);
    byId("state").className = className;
    setText(byId("verdict"), verdict);
    if (items.join("\n") !== lines.join("\n")) byId("causes").replaceChildren(...lines.map((line) => element("li", {}, line)));
  }

  function fillHeader(status) {
    const n = warnings(status).length, word = status.ready ? "Ready" : "Not ready";
    document.title = `${word} · ${status.instance} · Gatepost`;
    setText(byId("instance"), status.instance);
    showState(status.ready ? (n ? "warned" : "ready") : "unready", status.ready && n ? `Ready, with ${plural(n, "warning")}` : word, causes(status));
    byId("now").dateTime = status.time;
    setText(byId("now"), moment(Date.parse(status.time) / 1000));
    setText(byId("uptime"), duration(status.uptimeSeconds));
  }

  function show(status, numbers) {
    const has = { receiver: status.requests !== undefined, router: status.events !== undefined, spool: status.spool !== undefined };
    for (const part of document.querySelectorAll("[data-role]")) part.hidden = !has[part.dataset.role];
    fillHeader(status);
    if (has.receiver) fillReceiver(status, numbers);
    if (has.spool) fillSpool(status, numbers);
    if (has.router) fillRouter(status, numbers);
    if (has.receiver) fillSources(status);
    fillKafka(status);
    fillConfiguration(status);
    showAges();
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

  // Add to a figure a number behind each name, its scale and its plot.
  function furnish(figure) {
    if (figure.plot) return;
    for (const item of figure.querySelectorAll("li")) item.append(" ", document.createElement("b")); // <output> is read out each time it changes
    figure.scale = element("span", {});
    figure.plot = element("div", {});
    figure.append(element("div", { class: "axis" }, element("span", {}, "5 min"), figure.scale), figure.plot);
  }

  // What a figure draws, how it writes the values, and the least height of its axis.
  function measuresOf(figure) {
    const { rates, levels } = figure.dataset, keys = (rates ?? levels).split(" ");
    const over = (span) => (samples, i) => rate(samples, i, span);
    if (rates) return { keys, plot: over(0), now: over(RATE_S), words: plain, least: 1 };
    return { keys, plot: level, now: level, words: whole, least: 10 };
  }

  function drawFigure(figure) {
    furnish(figure);
    const { keys, plot, now, words, least } = measuresOf(figure), all = keys.map(samplesOf);
    const lines = all.map((samples) => series(samples, plot)), top = ceiling(highest(lines), least);
    const values = all.map((samples) => words(now(samples, samples.length - 1)));
    const items = [...figure.querySelectorAll("li")];
    items.forEach((item, i) => {
      setText(item.lastChild, values[i]);
      item.className = ["0", "–"].includes(values[i]) ? "nil" : "";
    });
    setText(figure.scale, `to ${words(top).replace(/\.0\b/, "")}`);
    const title = figure.querySelector("figcaption").textContent.trim();
    draw(figure.plot, lines, top, `${title}, last 5 minutes: highest ${words(highest(lines))}; now ` +
      items.map((item, i) => `${item.firstChild.textContent.trim()} ${values[i]}`).join(", "));
  }

  // Fetching

  function showNoAnswer(reason) {
    const since = byId("now").textContent;
    interrupt();
    document.documentElement.classList.add("silent-page");
    showState("silent", since ? `No answer since ${since}` : "No answer", [since ? `${reason}; the numbers below are from then` : reason]);
    document.title = `no answer · ${document.title.split(" · ").slice(-2).join(" · ")}`;
    showAges();
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
      document.querySelectorAll("figure:not([hidden])").forEach(drawFigure);
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
