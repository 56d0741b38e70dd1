"use strict";
// Asks for this very page every two seconds, takes its numbers over, keeps those of the last minutes and draws them.
// A number stands in <data data-key>; what is drawn from it, in elements with data-live, is not taken over.
(() => {
  const EVERY_MS = 2000, PATIENCE_MS = 5000, KEEP_S = 300, RATE_S = 10, QUANTILE_S = 30;
  const history = new Map(); // by key: [{t, value, buckets}], null where a new count begins
  let started = null, paused = false, timer = null;
  document.documentElement.classList.add("scripted");

  const seconds = () => performance.now() / 1000;

  // Taking numbers

  const readBuckets = (text) => text.split(" ").map((pair) => pair.split(":").map((n) => (n === "+Inf" ? Infinity : Number(n))));

  function remember(page) {
    const t = seconds(), start = page.documentElement.querySelector("#now").dataset.started;
    if (started !== null && start !== started) interrupt();
    started = start;
    for (const data of page.querySelectorAll("data[data-key]")) {
      const { key, buckets } = data.dataset;
      if (!history.has(key)) history.set(key, []);
      const samples = history.get(key);
      samples.push({ t, value: Number(data.value), buckets: buckets ? readBuckets(buckets) : null });
      while (samples.length > 1 && (samples[0] === null || samples[1] === null || samples[1].t < t - KEEP_S)) samples.shift();
    }
  }

  // What comes next is not to be compared with what was.
  function interrupt() {
    for (const samples of history.values()) if (samples.length && samples.at(-1) !== null) samples.push(null);
  }

  // The sample that lies a time before the i-th: the one before it at least, and none from before an interruption.
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

  // As Prometheus does it: linear within the bucket; beyond the last bound, that bound.
  function quantile(samples, i, q) {
    const now = samples[i], then = now && before(samples, i, QUANTILE_S);
    if (!then || !now.buckets || !then.buckets || now.buckets.length !== then.buckets.length) return null;
    const counts = now.buckets.map(([bound, count], n) => [bound, count - then.buckets[n][1]]);
    const wanted = q * counts.at(-1)[1];
    if (!(wanted > 0)) return null;
    let low = 0, below = 0;
    for (const [bound, count] of counts) {
      if (count >= wanted) return bound === Infinity ? low : low + (bound - low) * (wanted - below) / (count - below);
      low = bound;
      below = count;
    }
    return null;
  }

  // Words for numbers

  const grouped = (n) => n.toLocaleString("en-US");
  const plain = (n) => (n === null ? "–" : n === 0 ? "0" : n < 0.1 ? "<0.1" : n < 99.95 ? n.toFixed(1) : grouped(Math.round(n)));
  const whole = (n) => (n === null ? "–" : grouped(Math.round(n)));

  function time(s) {
    if (s === null || s === 0) return s === null ? "–" : "0 s";
    const [n, unit] = s < 0.001 ? [s * 1e6, "µs"] : s < 1 ? [s * 1000, "ms"] : s < 120 ? [s, "s"] : s < 7200 ? [s / 60, "min"] : [s / 3600, "h"];
    return `${n < 9.95 ? n.toFixed(1) : grouped(Math.round(n))} ${unit}`;
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
    const samples = samplesOf(row.querySelector("data").dataset.key);
    const level = row.dataset.row === "level";
    const words = level ? whole : plain;
    const points = series(samples, level ? (all, i) => all[i] && all[i].value : (all, i) => rate(all, i, 0));
    const now = level ? null : rate(samples, samples.length - 1, RATE_S);
    const [shown, plot] = row.querySelectorAll("[data-live]"), top = highest([points]);
    if (!level) shown.textContent = plain(now);
    const name = row.querySelector("th").textContent;
    draw(plot, [points], Math.max(top, 1e-9) * 1.1, `${name}${level ? "" : " a second"}, last 5 minutes: highest ${words(top)}`);
  }

  // A figure's parts that only a script needs: a number behind each name, the axes.
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

  function measuresOf(figure) {
    const { rates, quantiles, levels } = figure.dataset;
    if (quantiles) {
      const [half, most] = [0.5, 0.99].map((q) => (samples, i) => quantile(samples, i, q));
      return { keys: [quantiles, quantiles], plot: [half, most], now: [half, most], words: time, least: 0.001 };
    }
    const keys = (rates ?? levels).split(" "), level = (samples, i) => samples[i] && samples[i].value;
    const over = (span) => (samples, i) => rate(samples, i, span);
    return rates ? { keys, plot: keys.map(() => over(0)), now: keys.map(() => over(RATE_S)), words: plain, least: 1 }
      : { keys, plot: [level], now: [level], words: whole, least: 10 };
  }

  function drawFigure(figure) {
    furnish(figure);
    const { keys, plot, now, words, least } = measuresOf(figure), all = keys.map(samplesOf);
    const lines = all.map((samples, i) => series(samples, plot[i])), top = ceiling(highest(lines), least);
    const values = all.map((samples, i) => words(now[i](samples, samples.length - 1) ?? null));
    const items = [...figure.querySelectorAll("li")];
    items.forEach((item, i) => { item.lastChild.textContent = values[i]; });
    figure.scale.textContent = words(top).replace(/\.0\b/, "");
    const title = figure.querySelector("figcaption").textContent.trim();
    draw(figure.plot, lines, top, `${title}, last 5 minutes: highest ${words(highest(lines))}; now ` +
      items.map((item, i) => `${item.firstChild.textContent.trim()} ${values[i]}`).join(", "));
  }

  function drawAll() {
    document.querySelectorAll("tr[data-row]").forEach(drawRow);
    document.querySelectorAll("figure").forEach(drawFigure);
  }

  // Taking over what the server wrote, and leaving all else in its place: what is focused or marked stays so.

  function takeOver(old, fresh) {
    if (old.nodeName === "FIGURE" || old.dataset?.live !== undefined || old.nodeName === "SCRIPT" || old.nodeName === "STYLE") return;
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) return;
    if (old !== document.documentElement) {
      for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
      for (const name of old.getAttributeNames()) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    const alike = old.childNodes.length === fresh.childNodes.length &&
      [...old.childNodes].every((child, i) => child.nodeName === fresh.childNodes[i].nodeName);
    if (alike) [...old.childNodes].forEach((child, i) => takeOver(child, fresh.childNodes[i]));
    else old.replaceChildren(...[...fresh.childNodes].map((child) => document.importNode(child, true)));
  }

  function sayNoAnswer(reason) {
    interrupt();
    document.documentElement.classList.add("silent-page");
    const state = document.getElementById("state"), since = document.getElementById("now").textContent;
    const verdict = `No answer since ${since}`, item = document.createElement("li");
    if (state.className === "silent") return;
    state.className = "silent";
    state.querySelector(".verdict").textContent = verdict;
    item.textContent = `${reason}; the numbers below are from then`;
    state.querySelector("ul").replaceChildren(item);
    document.title = `no answer · ${document.title.split(" · ").slice(1).join(" · ")}`;
  }

  async function ask() {
    const response = await fetch(location.href.split("#")[0], { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!response.ok) throw new Error(`it answers ${response.status}`);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (!page.querySelector("#now[data-started]")) throw new Error("something else answers");
    return page;
  }

  async function turn() {
    try {
      const page = await ask();
      if (paused) return;
      document.documentElement.classList.remove("silent-page");
      remember(page);
      takeOver(document.documentElement, page.documentElement);
      document.title = page.title;
      drawAll();
    } catch (error) {
      if (!paused) sayNoAnswer(error.name === "TimeoutError" ? "it takes too long" : error instanceof TypeError ? "it cannot be reached" : error.message);
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
    document.getElementById("pause").addEventListener("click", togglePause);
    remember(document);
    drawAll();
    timer = setTimeout(turn, EVERY_MS);
  });
})();
