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
  const utc = (date) => `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;

  const translate = (within) => {
    within.querySelectorAll("time[datetime]").forEach((time) => {
      const date = new Date(time.dateTime);
      if (Number.isNaN(date.getTime())) return;
      if (time.hasAttribute("data-moment")) time.textContent = own(date);
      else time.title = own(date) === utc(date) ? utc(date) : `${own(date)} (${utc(date)})`;
    });
    within.querySelectorAll("title[data-utc]").forEach((title) => {
      const given = title.dataset.utc || title.textContent;
      title.dataset.utc = given;
      title.textContent = given.replace(/(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC/, (_, date, time) => own(new Date(`${date}T${time}Z`)));
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

  // A page that moves: when nothing has come for a while, it says of when its numbers are, and listens anew.
  const PATIENCE = 4000;
  let heard = Date.now(), every = 1000, source, retried = 0;
  const listen = () => {
    const element = document.querySelector("turbo-stream-source");
    const stream = element?.streamSource;
    if (!stream) { source = undefined; return tell(false); }
    if (stream !== source) {
      if (!source) heard = Date.now();
      source = stream;
      stream.addEventListener("message", () => { heard = Date.now(); tell(false); });
      stream.addEventListener("every", (event) => { every = Number(event.data) || every; });
      stream.addEventListener("error", () => setTimeout(listen, 500));
    }
    const late = Date.now() - heard > Math.max(PATIENCE, 3 * every);
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
      time.dateTime = new Date(heard).toISOString();
      time.textContent = own(new Date(heard));
      time.title = utc(new Date(heard));
    }
    box.hidden = !lost;
  };
  setInterval(listen, 500);
  on("turbo:load", () => { heard = Date.now(); listen(); });

  // The values of a plot where one points at it, touches it, or has gone with the arrow keys.
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
  const numbers = (svg) => ["from", "span", "first", "place"].map((name) => Number(svg.dataset[name]));
  const linesOf = (svg) =>
    [...svg.querySelectorAll("[data-said]")].map((line) => ({ label: line.dataset.label, colour: line.dataset.class, said: line.dataset.said.split(";") }));
  const show = (svg, part) => {
    const [from, span, first, place] = numbers(svg);
    const lines = linesOf(svg);
    const last = Math.max(...lines.map((line) => line.said.length)) - 1;
    if (lines.every((line) => line.said.join("") === "")) return hide();
    const index = Math.min(Math.max(Math.round((from + part * span - first) / place), 0), last);
    shown = { id: svg.id, part, index, last };
    const at = first + index * place;
    const [box, hair] = readout();
    const row = (colour, label, value) => {
      const line = document.createElement("div");
      const swatch = document.createElement("span");
      swatch.className = `chart-swatch line-${colour}`;
      const strong = document.createElement("strong");
      strong.textContent = value;
      line.append(swatch, `${label} `, strong);
      return line;
    };
    const head = document.createElement("div");
    head.className = "readout-time";
    const date = new Date(at);
    head.textContent = `${span > 86_400_000 ? `${day(date)} ` : ""}${clock(date)}:${two(date.getSeconds())} ${zoneOf(date)}`;
    box.replaceChildren(head, ...lines.map((line) => row(line.colour, line.label, line.said[index] || "none")));
    box.hidden = hair.hidden = false;
    const frame = svg.getBoundingClientRect();
    const x = frame.left + Math.min(Math.max((at - from) / span, 0), 1) * frame.width;
    hair.style.left = `${x}px`;
    hair.style.top = `${frame.top}px`;
    hair.style.height = `${frame.height}px`;
    const room = document.documentElement.clientWidth - box.offsetWidth - 8;
    const beside = x + 12 + box.offsetWidth < document.documentElement.clientWidth - 8 ? x + 12 : x - 12 - box.offsetWidth;
    box.style.left = `${Math.min(Math.max(beside, 8), Math.max(room, 8))}px`;
    box.style.top = `${Math.max(frame.top, 8)}px`;
  };
  const hide = () => {
    shown = undefined;
    for (const id of ["readout", "crosshair"]) { const box = document.getElementById(id); if (box) box.hidden = true; }
  };
  const refresh = () => {
    if (!shown) return;
    const svg = document.getElementById(shown.id);
    if (svg) show(svg, shown.part); else hide();
  };
  const point = (event) => {
    const svg = event.target.closest?.("[data-plot]");
    const frame = svg?.getBoundingClientRect();
    if (svg) show(svg, (event.clientX - frame.left) / frame.width);
    else if (shown && document.activeElement?.id !== shown.id) hide();
  };
  on("pointermove", point);
  on("pointerdown", point);
  on("focusin", (event) => { if (event.target.matches("[data-plot]:focus-visible")) show(event.target, 1); });
  on("focusout", (event) => { if (event.target.matches("[data-plot]")) hide(); });
  on("keydown", (event) => {
    const svg = event.target.closest?.("[data-plot]");
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 };
    if (!svg) return;
    if (event.key === "Escape") return hide();
    if (!(event.key in steps)) return;
    event.preventDefault();
    const [from, span, first, place] = numbers(svg);
    const index = Math.min(Math.max((shown?.index ?? 1e9) + steps[event.key], 0), shown?.last ?? 1e9);
    show(svg, (first + index * place - from) / span);
  });
  addEventListener("scroll", refresh, { passive: true });
  addEventListener("resize", refresh);
  on("turbo:before-cache", hide);
})();
