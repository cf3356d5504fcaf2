// The roofline of a workload: what its arithmetic and its data allow, and where
// its candidates are (Williams, Waterman and Patterson, 2009).
import {lookOf} from "./candidates.js";
import {chart, plainTick, points} from "./charts.js";
import {gflops, seconds} from "./format.js";

const DECADES = [1, 2, 5];

function rateTick(value) {
  const mantissa = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
  return DECADES.some((one) => Math.abs(mantissa - one) < 1e-6) ? gflops(value / 1e9) : "";
}

// What the modelled peak is called: the clock that a system reports is often the
// base clock, which a core exceeds.
export function peakName(roofline) {
  return roofline.clock_is_measured ? "modelled peak" : "modelled peak at the reported clock";
}

// Why candidates may stand above the peak.
function reasonAbove(roofline) {
  return roofline.clock_is_measured ?
      " Candidates stand above the peak: their schedules need fewer operations than the program as written." :
      " Candidates stand above the peak: the core runs faster than the reported clock, or schedules need fewer operations.";
}

export function rooflineChart({roofline, candidates, onPoint}) {
  const intensity = roofline.bytes > 0 ? roofline.flops / roofline.bytes : 0;
  const timed = candidates.filter((one) => one.seconds > 0 && roofline.flops > 0);
  const peak = roofline.peak_flops_per_second;
  const above = peak && timed.some((one) => roofline.flops / one.seconds > peak);
  const left = Math.min(intensity / 8 || 0.1, 0.25), right = Math.max(intensity * 8, 64);
  return chart({
    title: "Roofline",
    note: peak ?
        `Limits by typical rates per cycle at ${
            roofline.clock_is_measured ? "the measured clock" :
                                         "the clock that the system reports"}: a model, not a measurement. ` +
            "Every candidate moves at least its inputs and outputs once, so all stand at that intensity; " +
            "the roofs of nearer caches hold for data that stay there." +
            (above ? reasonAbove(roofline) : "") :
        "The clock of this device is not known, or it is no processor: there are no roofs.",
    label:
        "Roofline: rate of every candidate over the operations per byte of the workload, below the modelled limits.",
    tall: true,
    x: {
      title: "operations per byte of inputs and outputs",
      type: "logarithmic",
      min: left,
      max: right,
      ticks: plainTick
    },
    y: {title: "operations per second", type: "logarithmic", ticks: rateTick},
    onPoint: (point) => point.candidate && onPoint && onPoint(point.candidate),
    tooltip: (point) => point.candidate ?
        [
          `record ${point.candidate.record}`,
          `${gflops(point.y / 1e9)}, ${seconds(point.candidate.seconds)}`
        ] :
        gflops(point.y / 1e9),
    datasets(color) {
      const sets = [];
      roofline.bandwidths.forEach((one, index) => {
        const ridge = peak / one.bytes_per_second;
        const from = Math.min(left, ridge), to = Math.min(right, Math.max(ridge, left));
        sets.push(roof(
            `${one.level} ${(one.bytes_per_second / 1e9).toFixed(0)} GB/s`,
            [
              {x: from, y: from * one.bytes_per_second},
              {x: to, y: Math.min(peak, to * one.bytes_per_second)}
            ],
            color.series[[5, 3, 1][index % 3]]));
      });
      if (peak)
        sets.push(roof(
            `${peakName(roofline)}, ${gflops(peak / 1e9)}`, [{x: left, y: peak}, {x: right, y: peak}], color.bad));
      const data =
          timed.map((one) => ({x: intensity, y: roofline.flops / one.seconds, candidate: one}));
      const look = timed.length > 0 ? lookOf(timed[0]) : {style: "circle"};
      sets.push(points(`candidates (${timed.length})`, data, color.series[0], look.style));
      return sets;
    },
  });
}

function roof(name, data, color) {
  return {
    label: name,
    type: "line",
    data,
    borderColor: color,
    backgroundColor: color,
    borderWidth: 2,
    pointRadius: 0,
    pointHitRadius: 3,
    pointStyle: "line",
    order: 3
  };
}
