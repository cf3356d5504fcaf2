// The page: which view the address names, signing in, and whether updates come.
import {ApiError, get, setToken, token} from "./api.js";
import {forgetCharts} from "./charts.js";
import {el} from "./dom.js";
import {showBenchmark, showBenchmarks} from "./views/benchmarks.js";
import {showCandidate} from "./views/candidate.js";
import {showComparison} from "./views/compare.js";
import {showDatabase} from "./views/database.js";
import {showDevice} from "./views/device.js";
import {showDevices} from "./views/devices.js";
import {showJob} from "./views/job.js";
import {showJobs} from "./views/jobs.js";
import {showWorkload} from "./views/workload.js";
import {showWorkloads} from "./views/workloads.js";

// The parts of the address after "#/", and what shows them.
const VIEWS = [
  {parts: ["jobs"], show: showJobs},
  {parts: ["jobs", ":job"], show: showJob},
  {parts: ["workloads"], show: showWorkloads},
  {parts: ["workloads", ":workload"], show: showWorkload},
  {parts: ["devices"], show: showDevices},
  {parts: ["devices", ":device"], show: showDevice},
  {parts: ["database"], show: showDatabase},
  {parts: ["records", ":record"], show: showCandidate},
  {parts: ["compare"], show: showComparison},
  {parts: ["benchmarks"], show: showBenchmarks},
  {parts: ["benchmark"], show: showBenchmark},
];

const main = document.getElementById("main");
const live = document.getElementById("live");
const news = document.getElementById("news");

// What a view gets.
const page = {
  caller: {name: "", role: null, may_change: false},
  server: null,
  // Says a change to those who do not see it.
  announce(text) {
    news.textContent = text;
  },
  setLive(on) {
    live.textContent = on === null ? "" : on ? "live" : "not connected";
    live.classList.toggle("on", on === true);
  },
  title(text) {
    document.title = `${text} – Tilefarm`;
  },
};

let leave = null;  // ends what the view goes on doing
let shown = 0;

function parse(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  for (const view of VIEWS) {
    if (view.parts.length !== parts.length) continue;
    const values = {};
    const fits = view.parts.every((part, index) => {
      if (!part.startsWith(":")) return part === parts[index];
      values[part.slice(1)] = parts[index];
      return true;
    });
    if (fits) return {show: view.show, values, query: new URLSearchParams(query)};
  }
  return null;
}

async function route() {
  const address = location.hash || "#/jobs";
  const found = parse(address);
  if (leave) leave.abort();
  leave = new AbortController();
  const turn = ++shown;
  forgetCharts();
  page.setLive(null);
  markView(address);
  const root = el("div");
  main.replaceChildren(root);
  if (found === null) {
    root.append(
        el("h1", {tabindex: -1}, "There is no such view"),
        el("p", {}, el("a", {href: "#/jobs"}, "All jobs")));
  } else {
    root.append(el("p", {class: "dim"}, "Loading …"));
    try {
      await found.show(
          {root, page, signal: leave.signal, values: found.values, query: found.query});
    } catch (error) {
      if (turn !== shown) return;
      showError(root, error);
    }
  }
  if (turn !== shown) return;
  const heading = root.querySelector("h1");
  if (heading && turn > 1) {
    heading.tabIndex = -1;
    heading.focus({preventScroll: true});
    scrollTo(0, 0);
  }
}

function showError(root, error) {
  const unknown = error instanceof ApiError && error.status === 401;
  root.replaceChildren(
      el("h1", {}, unknown ? "Please sign in" : "That did not work"),
      el("p", {class: "error"}, error.message),
      unknown ? el("button", {type: "button", class: "primary", onclick: openSignIn}, "Sign in") :
                el("button", {type: "button", onclick: route}, "Try again"));
  page.title(unknown ? "Sign in" : "Error");
}

function markView(address) {
  const first = address.replace(/^#\/?/, "").split(/[/?]/)[0];
  const section = {records: "database", compare: "database", benchmark: "benchmarks"}[first] ??
      first;
  for (const link of document.querySelectorAll("#views a")) {
    if (link.getAttribute("href") === `#/${section}`) {
      link.setAttribute("aria-current", "page");
    } else {
      link.removeAttribute("aria-current");
    }
  }
}

// --- Signing in --------------------------------------------------------------

const dialog = document.getElementById("token-dialog");
const field = document.getElementById("token");
const complaint = document.getElementById("token-error");
const signIn = document.getElementById("sign-in");

function openSignIn() {
  complaint.textContent = "";
  field.value = "";
  dialog.showModal();
}

async function learnCaller() {
  try {
    page.caller = await get("caller");
  } catch (error) {
    page.caller = {name: "", role: null, may_change: false};
    if (token()) {
      setToken("");
      throw error;
    }
  }
  signIn.textContent = page.caller.may_change ? `Sign out ${page.caller.name}` : "Sign in";
}

signIn.addEventListener("click", async () => {
  if (!page.caller.may_change) return openSignIn();
  setToken("");
  await learnCaller();
  route();
});

dialog.addEventListener("close", async () => {
  if (dialog.returnValue !== "use") return;
  setToken(field.value.trim());
  field.value = "";
  try {
    await learnCaller();
    route();
  } catch (error) {
    openSignIn();
    complaint.textContent = error.message;
  }
});

// --- Beginning ---------------------------------------------------------------

addEventListener("hashchange", route);
try {
  await learnCaller();
} catch {
  // The stored token is no longer good; the page shows what it may.
}
try {
  page.server = await get("");
  document.querySelector(".brand").title = `tune-server ${page.server.release}`;
  if (page.server.demo) {
    document.querySelector(".brand").append(el("span", {class: "state warn"}, "demo"));
    signIn.hidden = true;
  }
} catch {
  // The view says what is wrong.
}
route();
