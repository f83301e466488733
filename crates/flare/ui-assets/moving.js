// What pages do with time: moments in the reader's own zone, numbers that come by themselves or have stopped to come, and
// the values of a plot under the pointer.
(() => {
  "use strict";
  const on = (name, act) => document.addEventListener(name, act);
  const two = (number) => String(number).padStart(2, "0");

  // Moments. The server writes them in UTC; here they become the reader's, with the name of the zone.
  const names = new Intl.DateTimeFormat("en", { timeZoneName: "short" });
  const zoneOf = (date) => names.formatToParts(date).find((part) => part.type === "timeZoneName").value;
  const day = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const clock = (date) => `${two(date.getHours())}:${two(date.getMinutes())}`;
  const own = (date) => `${day(date)} ${clock(date)}:${two(date.getSeconds())} ${zoneOf(date)}`;
  const both = (date) => (own(date) === utc(date) ? utc(date) : `${own(date)} (${utc(date)})`);
  const utc = (date) => `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;

  const translate = (within) => {
    within.querySelectorAll("time[datetime]").forEach((time) => {
      const date = new Date(time.dateTime);
      if (Number.isNaN(date.getTime())) return;
      if (time.hasAttribute("data-moment")) time.textContent = own(date);
      else time.title = both(date);
    });
    // What a bar says by itself only a pointer finds, and late; here it is kept for all who ask.
    within.querySelectorAll("[data-bars] title").forEach((title) => {
      title.parentElement.dataset.said = title.textContent.replace(/(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC/, (_, date, time) => both(new Date(`${date}T${time}Z`)));
      title.remove();
    });
    within.querySelectorAll("[data-zone]").forEach((zone) => { zone.textContent = zoneOf(new Date()); });
    within.querySelectorAll("[data-times]").forEach(place);
    within.querySelectorAll("[data-zoned]").forEach(zoned);
  };

  // The round moments below a plot, by the reader's clock.
  const place = (svg) => {
    const [from, span, step] = ["from", "span", "step"].map((name) => Number(svg.dataset[name]));
    const away = (at) => -new Date(at).getTimezoneOffset() * 60_000;
    const marks = [];
    for (let at = Math.ceil((from + away(from)) / step) * step - away(from); at <= from + span; at += step) {
      const x = ((at - from) / span) * 100;
      if (x < 4 || x > 96) continue;
      const date = new Date(at);
      const text = step < 60_000 ? `${clock(date)}:${two(date.getSeconds())}` : step < 86_400_000 ? clock(date) : day(date).slice(5);
      marks.push(mark("line", { x1: `${x}%`, x2: `${x}%`, y1: 0, y2: 4 }), mark("text", { x: `${x}%`, y: 16 }, text));
    }
    svg.replaceChildren(...marks);
  };
  const mark = (name, attributes, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };

  // A moment that is typed is one of the reader's zone: the server is told how far that is from UTC.
  const zoned = (box) => {
    const input = box.querySelector("input[type=datetime-local]");
    const typed = new Date(input.value);
    const date = Number.isNaN(typed.getTime()) ? new Date() : typed;
    box.querySelector("label").textContent = `Since, in ${zoneOf(date)}`;
    box.querySelector("input[type=hidden]").value = String(-date.getTimezoneOffset());
  };
  on("input", (event) => { const box = event.target.closest("[data-zoned]"); if (box) zoned(box); });

  // Before it is shown, so that nothing is seen to change.
  on("DOMContentLoaded", () => translate(document));
  on("turbo:before-render", (event) => translate(event.detail.newBody));
  on("turbo:before-frame-render", (event) => translate(event.detail.newFrame));
  on("turbo:before-stream-render", (event) => {
    const content = event.target.querySelector("template")?.content;
    if (content) translate(content);
    requestAnimationFrame(() => requestAnimationFrame(refresh));
  });

  // A page that moves: when nothing has come for a while, it says of when its numbers are, and listens anew. A node that
  // has nothing new to show still says that it is there.
  const PATIENCE = 4000;
  let heard = Date.now(), drawn = heard, every = 1000, source, retried = 0;
  const listen = () => {
    const element = document.querySelector("turbo-stream-source");
    const stream = element?.streamSource;
    if (!stream) { source = undefined; return tell(false); }
    if (stream !== source) {
      if (!source) heard = drawn = Date.now();
      source = stream;
      stream.addEventListener("message", () => { heard = drawn = Date.now(); tell(false); });
      stream.addEventListener("alive", () => { heard = Date.now(); });
      stream.addEventListener("every", (event) => { every = Number(event.data) || every; });
      stream.addEventListener("error", () => setTimeout(listen, 500));
    }
    const late = Date.now() - heard > PATIENCE || Date.now() - drawn > Math.max(PATIENCE, 3 * every);
    const broken = stream.readyState !== EventSource.OPEN && Date.now() - heard > 1500;
    if (late || broken) tell(true);
    // A browser tries again by itself, but not after every kind of failure.
    const given = stream.readyState === EventSource.CLOSED || late;
    if (given && Date.now() - retried > 3000) {
      retried = Date.now();
      element.replaceWith(element.cloneNode(true));
    }
  };
  const tell = (lost) => {
    const box = document.getElementById("lost");
    if (!box || box.hidden === !lost) return;
    if (lost) {
      const time = box.querySelector("time");
      time.dateTime = new Date(drawn).toISOString();
      time.textContent = own(new Date(drawn));
      time.title = utc(new Date(drawn));
    }
    box.hidden = !lost;
  };
  setInterval(listen, 500);
  on("turbo:load", () => { heard = drawn = Date.now(); listen(); });

  // The values of a plot where one points at it, touches it, or has gone with the arrow keys. A plot is of lines over time, or
  // of bars.
  let shown;
  const readout = () => {
    let box = document.getElementById("readout");
    if (!box) {
      box = document.createElement("div");
      box.id = "readout";
      box.className = "readout";
      box.setAttribute("role", "status");
      box.hidden = true;
      const hair = document.createElement("div");
      hair.id = "crosshair";
      hair.hidden = true;
      document.querySelector("main").append(hair, box);
    }
    return [box, document.getElementById("crosshair")];
  };
  const part = (name, text, ...inner) => {
    const element = document.createElement("div");
    element.className = name;
    element.append(...inner, text);
    return element;
  };
  /** Shows rows beside a place of a plot, in pixels from the left of the window. */
  const put = (svg, x, rows) => {
    const [box, hair] = readout();
    box.replaceChildren(...rows);
    box.hidden = hair.hidden = false;
    const frame = svg.getBoundingClientRect();
    hair.style.left = `${x}px`;
    hair.style.top = `${frame.top}px`;
    hair.style.height = `${frame.height}px`;
    const room = document.documentElement.clientWidth - box.offsetWidth - 8;
    const beside = x + 12 <= room ? x + 12 : x - 12 - box.offsetWidth;
    box.style.left = `${Math.min(Math.max(beside, 8), Math.max(room, 8))}px`;
    box.style.top = `${Math.max(frame.top, 8)}px`;
  };
  const numbers = (svg) => ["from", "span", "first", "place"].map((name) => Number(svg.dataset[name]));
  const linesOf = (svg) =>
    [...svg.querySelectorAll("[data-said]")].map((line) => ({ label: line.dataset.label, colour: line.dataset.class, said: line.dataset.said.split(";") }));
  const moment = (date, days) => {
    const here = `${clock(date)}:${two(date.getSeconds())} ${zoneOf(date)}`;
    const there = `${date.toISOString().slice(11, 19)} UTC`;
    return `${days ? `${day(date)} ` : ""}${here}${here === there ? "" : ` (${there})`}`;
  };
  const showLines = (svg, share) => {
    const [from, span, first, place] = numbers(svg);
    const lines = linesOf(svg);
    const last = Math.max(...lines.map((line) => line.said.length)) - 1;
    if (lines.every((line) => line.said.join("") === "")) return hide();
    const index = Math.min(Math.max(Math.round((from + share * span - first) / place), 0), last);
    shown = { id: svg.id, share, index, last };
    const at = first + index * place;
    const row = ({ colour, label, said }) => {
      const swatch = document.createElement("span");
      swatch.className = `chart-swatch line-${colour}`;
      const value = document.createElement("strong");
      value.textContent = said[index] || "none";
      return part("", value, swatch, `${label} `);
    };
    const frame = svg.getBoundingClientRect();
    const x = frame.left + Math.min(Math.max((at - from) / span, 0), 1) * frame.width;
    put(svg, x, [part("readout-time", moment(new Date(at), span > 86_400_000)), ...lines.map(row)]);
  };
  const barsOf = (svg) => {
    const number = (bar, name) => Number(bar.getAttribute(name));
    const bars = [...svg.querySelectorAll("[data-said]")].map((bar) => ({ from: number(bar, "x"), width: number(bar, "width"), said: bar.dataset.said }));
    return bars.sort((a, b) => a.from - b.from);
  };
  const showBars = (svg, share) => {
    const bars = barsOf(svg);
    if (bars.length === 0) return hide();
    const away = ({ from, width }) => Math.max(from - share * 100, share * 100 - from - width, 0);
    const index = bars.reduce((best, bar, at) => (away(bar) < away(bars[best]) ? at : best), 0);
    shown = { id: svg.id, share, index, last: bars.length - 1 };
    const { from, width, said } = bars[index];
    const frame = svg.getBoundingClientRect();
    put(svg, frame.left + ((from + width / 2) / 100) * frame.width, [part("", said)]);
  };
  const PLOTS = "[data-plot], [data-bars]";
  const show = (svg, share) => (svg.hasAttribute("data-bars") ? showBars : showLines)(svg, share);
  /** Where the one with this number is, as a share of the width. */
  const shareOf = (svg, index) => {
    if (svg.hasAttribute("data-bars")) {
      const bar = barsOf(svg)[index];
      return bar ? (bar.from + bar.width / 2) / 100 : 1;
    }
    const [from, span, first, place] = numbers(svg);
    return (first + index * place - from) / span;
  };
  const hide = () => {
    shown = undefined;
    for (const id of ["readout", "crosshair"]) { const box = document.getElementById(id); if (box) box.hidden = true; }
  };
  const refresh = () => {
    if (!shown) return;
    const svg = document.getElementById(shown.id);
    if (svg) show(svg, shown.share); else hide();
  };
  const point = (event) => {
    const svg = event.target.closest?.(PLOTS);
    const frame = svg?.getBoundingClientRect();
    if (svg) show(svg, (event.clientX - frame.left) / frame.width);
    else if (shown && document.activeElement?.id !== shown.id) hide();
  };
  on("pointermove", point);
  on("pointerdown", point);
  on("focusin", (event) => { if (event.target.matches(":focus-visible") && event.target.matches(PLOTS)) show(event.target, 1); });
  on("focusout", (event) => { if (event.target.matches(PLOTS)) hide(); });
  on("keydown", (event) => {
    const svg = event.target.closest?.(PLOTS);
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 };
    if (!svg) return;
    if (event.key === "Escape") return hide();
    if (!(event.key in steps)) return;
    event.preventDefault();
    const index = Math.min(Math.max((shown?.index ?? 1e9) + steps[event.key], 0), shown?.last ?? 1e9);
    show(svg, shareOf(svg, index));
  });
  addEventListener("scroll", refresh, { passive: true });
  addEventListener("resize", refresh);
  on("turbo:before-cache", hide);
})();
