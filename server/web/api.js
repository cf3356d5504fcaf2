// The server's API (docs/openapi.yaml). The token, where there is one, is kept
// by the tab alone.

const BASE = "/api/v1";
const TOKEN_KEY = "tilefarm-token";

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export function token() {
  return sessionStorage.getItem(TOKEN_KEY) ?? "";
}

export function setToken(value) {
  if (value) {
    sessionStorage.setItem(TOKEN_KEY, value);
  } else {
    sessionStorage.removeItem(TOKEN_KEY);
  }
}

function headers() {
  return token() ? {Authorization: `Bearer ${token()}`} : {};
}

async function answerOf(response) {
  if (response.ok) return response.json();
  let error = {code: "unknown", message: `The server answers ${response.status}.`};
  try {
    error = (await response.json()).error ?? error;
  } catch {
    // Not JSON: the status says it.
  }
  throw new ApiError(response.status, error.code, error.message);
}

// get("jobs", {limit: 10}).
export async function get(path, parameters = {}) {
  const query = new URLSearchParams(
      Object.entries(parameters)
          .filter(([, value]) => value !== "" && value !== null && value !== undefined));
  const address = `${BASE}${path ? `/${path}` : ""}${query.size > 0 ? `?${query}` : ""}`;
  return answerOf(await fetch(address, {headers: headers()}));
}

export async function post(path, body = {}) {
  return answerOf(await fetch(`${BASE}/${path}`, {
    method: "POST",
    headers: {...headers(), "Content-Type": "application/json"},
    body: JSON.stringify(body),
  }));
}

// Saves an answer as a file.
export async function save(path, name) {
  const blob = new Blob([JSON.stringify(await get(path))], {type: "application/json"});
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// Calls take(event, data) for each event until `signal` aborts, and connects
// again where the stream ends; began(true) says that it stands, and that the
// caller should read the state now; began(false) that it does not. A browser's
// EventSource sends no token.
export async function watch(path, signal, began, take) {
  let wait = 1000;
  while (!signal.aborted) {
    try {
      const response = await fetch(`${BASE}/${path}`, {headers: headers(), signal});
      if (!response.ok) await answerOf(response);
      wait = 1000;
      await began(true);
      await readEvents(response.body, take);
    } catch (error) {
      if (signal.aborted) return;
      // Another token, or another address, is what helps.
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) {
        began(false);
        return;
      }
    }
    if (signal.aborted) return;
    began(false);
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, 30000);
  }
}

async function readEvents(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (true) {
    const {done, value} = await reader.read();
    if (done) return;
    text += value;
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      let event = "", data = "";
      for (const line of lines) {
        if (line.startsWith("event: ")) event = line.slice(7);
        if (line.startsWith("data: ")) data += line.slice(6);
      }
      if (event) take(event, JSON.parse(data));
    }
  }
}
