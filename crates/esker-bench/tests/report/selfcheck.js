// Looks at the page as it is laid out and writes what it finds into the document. Problems are
// sentences; a sound page has none.
(function () {
  const problems = [];
  const say = (text) => { if (problems.length < 40) problems.push(text); };
  const width = document.documentElement.clientWidth;
  const page = document.documentElement.scrollWidth;
  if (page > width) say("the page is " + page + " px wide in " + width);

  const visible = (e) => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0; };
  const scrolls = (e) => e.closest(".scroll") !== null || e.closest("details:not([open])") !== null;
  for (const e of document.querySelectorAll("body *")) {
    if (!visible(e) || scrolls(e)) continue;
    const r = e.getBoundingClientRect();
    if (r.right > width + 0.5 || r.left < -0.5) {
      say(e.tagName + "." + (e.getAttribute("class") || "") + " reaches from " + r.left + " to " + r.right + ": " + e.textContent.slice(0, 40));
    }
  }

  const overlap = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2.5;
  let bars = 0, lines = 0, charts = 0;
  for (const chart of document.querySelectorAll("svg.chart")) {
    const box = chart.getBoundingClientRect();
    if (getComputedStyle(chart).display === "none") continue; // the other width is shown
    charts += 1;
    const name = chart.querySelector("title").textContent;
    if (box.width < 200 || box.height < 60) say(name + ": the picture is " + box.width + " by " + box.height);
    const texts = [...chart.querySelectorAll("text")].filter((t) => t.textContent !== "");
    const boxes = texts.map((t) => t.getBoundingClientRect());
    for (let i = 0; i < texts.length; i++) {
      if (boxes[i].left < box.left - 1 || boxes[i].right > box.right + 1 ||
          boxes[i].top < box.top - 1 || boxes[i].bottom > box.bottom + 3) {
        say(name + ": '" + texts[i].textContent + "' leaves the picture");
      }
      if (parseFloat(getComputedStyle(texts[i]).fontSize) * box.width / chart.viewBox.baseVal.width < 8.5) {
        say(name + ": '" + texts[i].textContent + "' is too small to read");
      }
      for (let k = i + 1; k < texts.length; k++) {
        if (overlap(boxes[i], boxes[k])) {
          say(name + ": '" + texts[i].textContent + "' overlaps '" + texts[k].textContent + "'");
        }
      }
    }
    const rects = [...chart.querySelectorAll("rect.bar")];
    bars += rects.length;
    for (const rect of rects) {
      const r = rect.getBoundingClientRect();
      if (r.left < box.left || r.right > box.right || r.height < 5 || r.height > 30) {
        say(name + ": a bar is " + r.width + " by " + r.height + " from " + r.left);
      }
      for (let i = 0; i < texts.length; i++) {
        if (overlap(r, boxes[i])) say(name + ": a bar overlaps '" + texts[i].textContent + "'");
      }
    }
    for (const line of chart.querySelectorAll("path")) {
      lines += 1;
      const r = line.getBoundingClientRect();
      if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1) {
        say(name + ": a line leaves the picture");
      }
      if (r.width < 5) say(name + ": a line is only " + r.width + " px wide");
      if (getComputedStyle(line).stroke === "none") say(name + ": a line has no colour");
    }
    if (rects.length === 0 && chart.querySelectorAll("path").length === 0) say(name + " is empty");
  }

  // Text and what is behind it have to differ.
  const luminance = (color) => {
    const part = color.match(/[\d.]+/g).slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4)));
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const contrast = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = getComputedStyle(document.body).backgroundColor;
  const seen = new Set();
  for (const e of document.querySelectorAll("p, th, td, summary, h1, h2, h3, h4, text")) {
    const style = getComputedStyle(e);
    const color = e.tagName === "text" ? style.fill : style.color;
    if (seen.has(color)) continue;
    seen.add(color);
    if (contrast(color, ground) < 4.5) say("text in " + color + " on " + ground + " is hard to read");
  }

  const out = document.createElement("pre");
  out.id = "selfcheck";
  out.textContent = JSON.stringify({
    viewport: window.innerWidth, page, charts, bars, lines, problems,
    dark: luminance(ground) < 0.2,
  });
  window.top.document.body.appendChild(out);
})();
