// Charts on Chart.js: the same axes, colours and words everywhere. Every chart
// has a title, a text for those who do not see it, and no animation.
import {el} from "./dom.js";
import {seconds} from "./format.js";

const alive = new Set();

// The colours of the scheme that is in force, by the names of the variables.
export function colors() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: of("text"),
    dim: of("dim"),
    grid: of("grid"),
    panel: of("panel"),
    accent: of("accent"),
    good: of("good"),
    warn: of("warn"),
    bad: of("bad"),
    series: ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"].map(of)
  };
}

export function forgetCharts() {
  for (const one of alive) one.destroy();
  alive.clear();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const one of alive) one.redraw();
});

function axis(color, {title, type = "linear", ticks, min, max, stacked, grid = true, reverse}) {
  const size = fontSize();
  return {
    type,
    min,
    max,
    stacked,
    reverse,
    title: {display: Boolean(title), text: title, color: color.dim, font: {size}},
    grid: {color: color.grid, display: grid},
    ticks: {
      color: color.dim,
      font: {size},
      maxRotation: 0,
      autoSkipPadding: 12,
      ...(ticks ? {callback: ticks} : {})
    },
  };
}

function fontSize() {
  return Math.round(parseFloat(getComputedStyle(document.documentElement).fontSize) * 0.78);
}

// Ticks of a logarithmic axis of times: 1, 2 and 5 of each decade.
export function secondsTick(value) {
  const mantissa = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
  const near = [1, 2, 5].some((one) => Math.abs(mantissa - one) < 1e-6);
  return near ? seconds(value).replace(/(\.\d*?)0+ /, "$1 ").replace(/\. /, " ") : "";
}

export function plainTick(value) {
  if (value >= 1e12) return `${value / 1e12} T`;
  if (value >= 1e9) return `${value / 1e9} G`;
  if (value >= 1e6) return `${value / 1e6} M`;
  return String(value);
}

// chart({title, note, label, type, x, y, datasets(colors), tooltip(point), onPoint(raw)}).
// `x`, `y`: axes as above, or what gives them. `datasets` is called again for other colours and new
// data. Returns {figure, redraw}.
export function chart({
  title,
  note = "",
  label,
  type = "scatter",
  x,
  y,
  datasets,
  labels = null,
  tooltip = null,
  onPoint = null,
  tall = false,
  legend = true,
  horizontal = false
}) {
  const canvas = el("canvas", {role: "img", "aria-label": label});
  const frame = el("div", {class: tall ? "chart tall" : "chart"}, canvas);
  const figure =
      el("figure", {}, el("figcaption", {}, title, note ? el("small", {}, note) : null), frame);
  let drawn = null;
  function configuration() {
    const color = colors();
    const size = fontSize();
    return {
      type,
      data: {labels, datasets: datasets(color)},
      options: {
        animation: false,
        responsive: true,
        maintainAspectRatio: false,
        normalized: true,
        indexAxis: horizontal ? "y" : "x",
        parsing: type === "bar" ? undefined : false,
        interaction: {
          mode: type === "bar" ? "index" : "nearest",
          axis: horizontal ? "y" : "xy",
          intersect: type !== "bar"
        },
        onClick: (event, elements) => {
          if (!onPoint || elements.length === 0) return;
          const {datasetIndex, index} = elements[0];
          onPoint(drawn.data.datasets[datasetIndex].data[index]);
        },
        scales: {
          x: axis(color, typeof x === "function" ? x() : x),
          y: axis(color, typeof y === "function" ? y() : y)
        },
        plugins: {
          legend: {
            display: legend,
            position: "bottom",
            labels: {color: color.text, usePointStyle: true, boxHeight: 7, font: {size}}
          },
          tooltip: {
            backgroundColor: color.text,
            titleColor: color.panel,
            bodyColor: color.panel,
            bodyFont: {size},
            titleFont: {size},
            ...(tooltip ? {callbacks: {title: () => "", label: (item) => tooltip(item.raw, item)}} :
                          {}),
          },
        },
      },
    };
  }
  const self = {
    figure,
    redraw() {
      // It takes its size from the page.
      if (!canvas.isConnected) {
        if (alive.has(self)) requestAnimationFrame(() => self.redraw());
        return;
      }
      const fresh = configuration();
      if (drawn === null) {
        drawn = new Chart(canvas, fresh);
      } else {
        // Which series the reader has hidden stays so.
        const hidden = drawn.data.datasets.map((one, index) => !drawn.isDatasetVisible(index));
        drawn.data = fresh.data;
        drawn.options = fresh.options;
        fresh.data.datasets.forEach((one, index) => {
          if (hidden[index]) one.hidden = true;
        });
        drawn.update("none");
      }
    },
    destroy() {
      if (drawn !== null) drawn.destroy();
      drawn = null;
    },
  };
  alive.add(self);
  requestAnimationFrame(() => self.redraw());
  return self;
}

// A horizontal line with a name.
export function level(name, value, from, to, color, dash) {
  return {
    label: name,
    type: "line",
    data: [{x: from, y: value}, {x: to, y: value}],
    borderColor: color,
    backgroundColor: color,
    borderWidth: 1.5,
    borderDash: dash,
    pointRadius: 0,
    pointHitRadius: 0,
    pointStyle: "line",
    order: 0
  };
}

// Lines between pairs of points, [[{x, y}, {x, y}], ...], under one name.
export function segments(name, pairs, color, dash = []) {
  return {
    label: name,
    type: "line",
    data: pairs.flatMap(([from, to]) => [from, to, {x: to.x, y: NaN}]),
    spanGaps: false,
    borderColor: color,
    backgroundColor: color,
    borderWidth: 1.5,
    borderDash: dash,
    pointRadius: 0,
    pointHitRadius: 0,
    pointStyle: "line",
    order: 3
  };
}

// A line that holds its value until the next point.
export function steps(name, data, color) {
  return {
    label: name,
    type: "line",
    data,
    stepped: true,
    borderColor: color,
    backgroundColor: color,
    borderWidth: 2,
    pointRadius: 0,
    pointHitRadius: 4,
    pointStyle: "line",
    order: 1
  };
}

export function points(name, data, color, style = "circle", filled = true) {
  return {
    label: name,
    data,
    pointStyle: style,
    pointRadius: data.length > 3000 ? 2 : 3.5,
    pointHoverRadius: 6,
    backgroundColor: filled ? color : "transparent",
    borderColor: color,
    borderWidth: filled ? 0 : 1.5,
    order: 2
  };
}
