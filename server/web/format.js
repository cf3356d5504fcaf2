// Numbers and names for people. A value that is not known is "–".

const NOTHING = "–";

// "1.234 ms": four digits.
export function seconds(value) {
  if (!(value > 0)) return NOTHING;
  if (value >= 1) return `${digits(value)} s`;
  if (value >= 1e-3) return `${digits(value * 1e3)} ms`;
  if (value >= 1e-6) return `${digits(value * 1e6)} µs`;
  return `${digits(value * 1e9)} ns`;
}

function digits(value) {
  return value >= 1000 ? value.toFixed(0) : value.toPrecision(4);
}

export function count(value) {
  return value === null || value === undefined ? NOTHING : value.toLocaleString("en");
}

export function percent(share) {
  return share >= 0 ? `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %` : NOTHING;
}

// "12.3×" of a time before and one after.
export function times(before, after) {
  if (!(before > 0) || !(after > 0)) return NOTHING;
  const factor = before / after;
  return `${factor >= 100 ? factor.toFixed(0) : factor.toPrecision(3)}×`;
}

export function gflops(value) {
  if (!(value > 0)) return NOTHING;
  return value >= 1000 ? `${(value / 1000).toPrecision(3)} TFLOPS` :
                         `${value.toPrecision(3)} GFLOPS`;
}

// "2:05", "1:02:05".
export function clock(value) {
  if (!(value >= 0)) return NOTHING;
  const total = Math.round(value);
  const two = (number) => String(number).padStart(2, "0");
  const minutes = Math.floor(total / 60) % 60, hours = Math.floor(total / 3600);
  return hours > 0 ? `${hours}:${two(minutes)}:${two(total % 60)}` :
                     `${minutes}:${two(total % 60)}`;
}

// "2026-01-31 12:00" in the reader's zone.
export function date(text) {
  const at = new Date(text);
  if (!text || Number.isNaN(at.getTime())) return NOTHING;
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${
      two(at.getHours())}:${two(at.getMinutes())}`;
}

// A target's key without the features that the processor lacks or adds.
export function shortTarget(key) {
  return key.split(",").filter((part) => !/^[+-]/.test(part)).join(",");
}

export function shortHash(hash) {
  return hash.slice(0, 12);
}

// "box" of "box@0123456789ab".
export function deviceName(id) {
  return id.replace(/@[0-9a-f]+$/, "");
}

// "clock mhz 3700, load 1.2" of an object, or of one as text.
export function pairs(object) {
  let known = object ?? {};
  if (typeof known === "string") {
    try {
      known = JSON.parse(known || "{}");
    } catch {
      return object;
    }
  }
  return Object.entries(known)
      .map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`)
      .join(", ");
}

// "AMD EPYC, znver5, L1 48 KiB, L2 1024 KiB, L3 32768 KiB" of a model's text.
export function deviceModel(text) {
  const parts =
      new Map(text.split(";").map((part) => part.split("=")).filter((part) => part.length === 2));
  if (parts.size === 0) return text;
  const caches =
      ["l1", "l2", "l3"]
          .filter((name) => Number(parts.get(name)) > 0)
          .map((name) => `${name.toUpperCase()} ${Math.round(Number(parts.get(name)) / 1024)} KiB`);
  return [parts.get("brand"), parts.get("cpu"), ...caches].filter(Boolean).join(", ");
}

export function unit(value, name) {
  return value > 0 ? `${value.toFixed(0)} ${name}` : NOTHING;
}

// A part of an address.
export function part(text) {
  return encodeURIComponent(text);
}
