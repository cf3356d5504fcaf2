// All devices: how many are in which state, what each did in the last hour.
import {get, watch} from "../api.js";
import {barCell, el, facts, liveTable, panel, put, stateBadge} from "../dom.js";
import {count, date, part, percent, shortTarget, unit} from "../format.js";
import {stateLegend, stateStrip} from "../strip.js";

export async function showDevices({root, page, signal}) {
  page.title("Devices");
  const devices = new Map();
  const tiles = el("div"), strip = el("div");
  const list = liveTable(
      "Devices", COLUMNS, {sort: 0, empty: "No device has connected yet: start rpc-worker."});
  let history = {at: [], letters: {}, devices: {}};

  function fill() {
    const counts = new Map();
    for (const one of devices.values()) counts.set(one.state, (counts.get(one.state) ?? 0) + 1);
    const rate = [...devices.values()].reduce((sum, one) => sum + one.trials_per_second, 0);
    tiles.replaceChildren(facts(
        [
          ["devices", count(devices.size)],
          ...[...counts].sort().map(([state, number]) => [state, count(number)]),
          ["trials a second", rate.toFixed(1)]
        ],
        "tiles"));
    const rows =
        [...devices.values()].map((one) => ({...one, busy: lastBusy(history.devices[one.name])}));
    list.update(rows);
  }
  function fillStrip() {
    const rows = Object.entries(history.devices).map(([name, one]) => ({name, ...one}));
    const minutes =
        history.at.length > 1 ? Math.round((history.at.at(-1) - history.at[0]) / 60000) : 0;
    strip.replaceChildren(
        el("figure", {},
           el("figcaption", {}, "States",
              el("small", {},
                 `A row for each device by name, the last hour, of which ${
                     minutes} minutes are known; a stronger blue is a busier device.`)),
           stateStrip({
             rows,
             columns: history.at.length,
             label: `States of ${rows.length} devices over the last ${
                 minutes} minutes; the table has the current ones.`,
             onRow: (row) => {
               location.hash = `#/devices/${part(row.name)}`;
             }
           }),
           stateLegend(history.letters)));
  }
  async function load() {
    const [{devices: all}, past] = await Promise.all([get("devices"), get("history")]);
    devices.clear();
    for (const one of all) devices.set(one.name, one);
    history = past;
    fill();
    fillStrip();
  }
  await load();
  put(root, el("h1", {}, "Devices"),
      el("p", {class: "under"}, "What measures, and how well it is."), tiles,
      el("div", {class: "grid"}, el("section", {class: "panel wide"}, strip),
         el("section", {class: "panel wide"}, list.element)));
  const again = setInterval(async () => {
    if (document.hidden) return;
    history = await get("history").catch(() => history);
    if (!signal.aborted) fillStrip();
  }, 30000);
  signal.addEventListener("abort", () => clearInterval(again));
  watch(
      "events", signal,
      (on) => {
        page.setLive(on);
        return on ? load() : null;
      },
      (event, data) => {
        if (event !== "devices") return;
        for (const one of data.devices) devices.set(one.name, one);
        for (const name of data.gone) devices.delete(name);
        fill();
      });
}

function lastBusy(one) {
  if (!one || one.busy.length === 0) return null;
  const recent = [...one.busy.slice(-6)].map(Number);
  return recent.reduce((sum, value) => sum + value, 0) / recent.length / 9;
}

const COLUMNS = [
  {
    title: "Device",
    value: (one) => one.name,
    cell: (one) => el("a", {href: `#/devices/${part(one.name)}`}, one.name)
  },
  {
    title: "State",
    value: (one) => one.state,
    cell: (one) => [stateBadge(one.state), one.unsteady ? [" ", stateBadge("unsteady")] : null]
  },
  {
    title: "Busy, last minute",
    value: (one) => one.busy,
    cell: (one) => one.busy === null ? "–" : barCell(one.busy, percent(one.busy))
  },
  {
    title: "Trials / s",
    value: (one) => one.trials_per_second,
    number: true,
    cell: (one) => one.trials_per_second.toFixed(1)
  },
  {
    title: "Clock",
    value: (one) => one.clock_mhz,
    number: true,
    cell: (one) => unit(one.clock_mhz, "MHz")
  },
  {
    title: "Temperature",
    value: (one) => one.temperature_c,
    number: true,
    cell: (one) => unit(one.temperature_c, "°C")
  },
  {title: "Model", value: (one) => one.model, wrap: true, cell: (one) => one.model},
  {title: "Target", value: (one) => one.target, cell: (one) => shortTarget(one.target)},
  {title: "Last seen", value: (one) => one.last_seen, cell: (one) => date(one.last_seen)},
  {title: "Why it gets no work", value: (one) => one.reason, wrap: true, cell: (one) => one.reason},
];
