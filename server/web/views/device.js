// One device: its state, its last hour and day, its log, and orders.
import {get, post} from "../api.js";
import {chart} from "../charts.js";
import {el, facts, panel, put, stateBadge, table} from "../dom.js";
import {clock, date, pairs, part, percent, shortTarget, unit} from "../format.js";
import {stateLegend, stateStrip} from "../strip.js";

const ORDERS = [
  {action: "drain", text: "Drain", fits: (one) => !["draining", "drained"].includes(one.state)},
  {
    action: "resume",
    text: "Resume",
    fits: (one) => ["draining", "drained", "quarantined", "paused"].includes(one.state)
  },
  {action: "quarantine", text: "Quarantine", fits: (one) => one.state !== "quarantined"},
];

export async function showDevice({root, page, signal, values}) {
  const address = `devices/${part(values.device)}`;
  const [device, history] = await Promise.all([get(address), get("history")]);
  page.title(device.name);
  const head = el("div");
  function fillHead(one) {
    head.replaceChildren(
        el("p", {class: "crumbs"}, el("a", {href: "#/devices"}, "Devices"), " / ", one.name),
        el("h1", {}, one.name, " ", stateBadge(one.state),
           one.unsteady ? [" ", stateBadge("unsteady")] : null),
        el("p", {class: "under"}, one.model, one.reason ? ` · ${one.reason}` : ""),
        page.caller.may_change ? orders(one, address, page, fillHead) : "");
  }
  fillHead(device);
  const past = history.devices[device.name];
  put(root, head,
      el("div", {class: "grid"}, panel("", busyChart(device).figure),
         panel("", clockChart(device).figure),
         past ? panel(
                    "",
                    el("figure", {}, el("figcaption", {}, "States of the last hour"), stateStrip({
                         rows: [{name: device.name, ...past}],
                         columns: history.at.length,
                         label: "States of the last hour; the log below says when they changed."
                       }),
                       stateLegend(history.letters))) :
                null,
         panel("Facts", facts([
                 ["Target", shortTarget(device.target)], ["Isolation", device.isolation],
                 ["Last seen", date(device.last_seen)],
                 ["Busy since the server started", clock(device.busy_seconds)],
                 ["Leases", device.leases], ["Clock", unit(device.clock_mhz, "MHz")],
                 ["Temperature", unit(device.temperature_c, "°C")],
                 [
                   "Reserved",
                   device.reserved_for ?
                       `for ${device.reserved_for} until ${date(device.reserved_until)}` :
                       ""
                 ],
                 ["Labels", pairs(device.labels)], ["Libraries", pairs(device.libraries)],
                 ["Latest measurement", pairs(device.device_state)]
               ])),
         el("section", {class: "panel wide"}, el("h2", {}, "Log"), logTable(device.log))));
}

function orders(device, address, page, done) {
  const answer = el("span", {class: "error", role: "alert"});
  return el(
      "p", {class: "buttons"},
      ORDERS.filter((one) => one.fits(device))
          .map(
              (one) =>
                  el("button", {
                    type: "button",
                    onclick: async (event) => {
                      event.target.disabled = true;
                      try {
                        const changed =
                            await post(`${address}/${one.action}`, {reason: "on the dashboard"});
                        page.announce(`${device.name} is ${changed.state}`);
                        done(changed);
                      } catch (error) {
                        answer.textContent = error.message;
                        event.target.disabled = false;
                      }
                    }
                  },
                     one.text)),
      answer);
}

const MINUTE = 60000;

function lineOf(history, values, name, color) {
  const now = history.at.at(-1) ?? 0;
  return {
    label: name,
    type: "line",
    borderColor: color,
    backgroundColor: color,
    borderWidth: 1.5,
    pointRadius: 0,
    pointHitRadius: 5,
    data: history.at.map((at, index) => ({x: (at - now) / MINUTE, y: values[index]}))
              .filter((one) => one.y !== null)
  };
}

function busyChart(device) {
  return chart({
    title: "Use in the last hour",
    note: "The share of the time in which it measured.",
    label: "Share of the time in which the device measured, in the last hour.",
    type: "line",
    x: {title: "minutes ago", min: -60, max: 0, ticks: (value) => -value || 0},
    y: {title: "busy", min: 0, max: 1, ticks: (value) => percent(value)},
    legend: false,
    tooltip: (point) => percent(point.y),
    datasets: (color) => [lineOf(device.hour, device.hour.busy, "busy", color.series[0])],
  });
}

function clockChart(device) {
  return chart({
    title: "Clock and temperature",
    note: "At the latest measurement of each time. The clock is measured on x86-64, elsewhere as the system reports it.",
    label: "Clock in MHz and temperature in degrees, in the last hour.",
    type: "line",
    x: {title: "minutes ago", min: -60, max: 0, ticks: (value) => -value || 0},
    y: {title: "MHz · °C", min: 0},
    tooltip: (point, item) => `${item.dataset.label}: ${point.y}`,
    datasets: (color) =>
        [lineOf(device.hour, device.hour.clock_mhz, "clock (MHz)", color.series[0]),
         lineOf(device.hour, device.hour.temperature_c, "temperature (°C)", color.series[1])],
  });
}

function logTable(log) {
  return table(
      "Log",
      [
        {title: "At", value: (one) => one.at, cell: (one) => date(one.at)},
        {title: "Who", value: (one) => one.actor, cell: (one) => one.actor},
        {title: "What", value: (one) => one.action, cell: (one) => one.action},
        {title: "Detail", value: (one) => one.detail, wrap: true, cell: (one) => one.detail},
      ],
      [...log].reverse(), {empty: "Nothing has happened to it."});
}
