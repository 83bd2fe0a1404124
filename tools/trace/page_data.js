"use strict";
// Unpacks the page's columns of numbers into typed arrays, and works out what follows from them;
// page.js calls it once. html_data.c says what the columns are. It never touches what is shown.

function json(id) {
    return JSON.parse(document.getElementById(id).textContent);
}

function unpackBytes(id) {
    const element = document.getElementById(id);
    const text = element.textContent;
    element.remove();
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return bytes;
}

// The `n` numbers of a column, in an array of that type.
function column(id, n, Type) {
    const bytes = unpackBytes("c-" + id);
    const values = new Type(n);
    let at = 0;
    for (let i = 0; i < n; i++) {
        let byte = bytes[at++];
        let value = byte & 127;
        for (let scale = 128; byte > 127; scale *= 128) {
            byte = bytes[at++];
            value += (byte & 127) * scale;
        }
        values[i] = value;
    }
    if (at !== bytes.length) throw new Error(`column ${id} does not have ${n} numbers`);
    return values;
}

const unzigzag = (v) => (v % 2 ? -(v + 1) / 2 : v / 2);

// Differences to sums, in place.
function sums(values) {
    for (let i = 1; i < values.length; i++) values[i] += values[i - 1];
    return values;
}

// Numbers of items by group: lists[g] are those i with group[i] = g, in their order.
function byGroup(group, groups) {
    const count = new Uint32Array(groups);
    for (let i = 0; i < group.length; i++) count[group[i]]++;
    const lists = Array.from(count, (n) => new Uint32Array(n));
    count.fill(0);
    for (let i = 0; i < group.length; i++) lists[group[i]][count[group[i]]++] = i;
    return lists;
}

const EXACT = 0, PATCHED = 1, BUILT = 2, FLUSHED = 3, OPEN = 4, EAGER = 5, EAGERS = 6;

function unpackOps(d) {
    const n = d.lists.ops;
    d.n = n;
    d.opTime = sums(column("op-time", n, Float64Array));
    d.opHost = column("op-host", n, Uint32Array);
    d.opShape = column("op-shape", n, Uint32Array);
    d.opStream = column("op-stream", n, Uint32Array);
    d.opThread = column("op-thread", n, Uint32Array);
    d.opAlone = column("op-alone", n, Uint32Array);
    const packed = column("op-out", n, Float64Array);
    d.opOut = new Int32Array(n);
    let last = 0;
    for (let i = 0; i < n; i++) {
        if (packed[i]) last += unzigzag(packed[i] - 1);
        d.opOut[i] = packed[i] ? last : -1;
    }
}

function unpackOthers(d) {
    const m = d.lists.outs, s = d.lists.shapes, t = d.lists.steps;
    for (const key of ["host", "build", "n", "how", "segment", "variant", "patched"])
        d["out" + key[0].toUpperCase() + key.slice(1)] = column("out-" + key, m, Uint32Array);
    d.shapeKind = column("shape-kind", s, Uint32Array);
    d.shapeDims = [];
    for (let i = 0; i < 7; i++) d.shapeDims.push(column("shape-d" + i, s, Uint32Array));
    d.stepStream = column("step-stream", t, Uint32Array);
    d.stepOps = column("step-n", t, Uint32Array);
    d.stepSignature = column("step-signature", t, Uint32Array);
    d.stepTime = column("step-time", t, Float64Array);
    d.gpuTime = column("gpu-time", d.lists.gpu, Float64Array);
    const ran = sums(column("gpu-op", d.lists.gpu, Uint32Array));
    d.gpuBegin = column("gpu-begin", d.lists.gpu, Float64Array).map((v, i) => d.opTime[ran[i]] + unzigzag(v));
    d.gpuOf = new Int32Array(d.n).fill(-1); // by op
    ran.forEach((op, i) => (d.gpuOf[op] = i));
}

// One class for each way in which an op can have gone out; each has a colour.
function classes(d) {
    d.classes = [
        { key: "exact", label: "graph, launched as it was", color: "--exact" },
        { key: "patched", label: "graph, patched", color: "--patched" },
        { key: "built", label: "graph, built for this launch", color: "--built" },
        { key: "flushed", label: "deferred, then issued one by one", color: "--flushed" },
        { key: "open", label: "deferred when the trace ends", color: "--open" },
    ];
    const eagers = [...new Set(d.lists.alone.filter((a) => a[0]).map((a) => a[1]))];
    const classOf = new Map();
    eagers.forEach((key, i) => {
        const at = EAGER + Math.min(i, EAGERS - 1);
        classOf.set(key, at);
        if (d.classes[at]) d.classes[at].label += ", " + (key || "no reason");
        else
            d.classes[at] = {
                key: "eager",
                label: "eager: " + (key || "no reason"),
                color: "--eager" + (at - EAGER),
            };
    });
    d.opClass = new Uint8Array(d.n);
    d.classCount = new Float64Array(d.classes.length);
    for (let i = 0; i < d.n; i++) {
        const out = d.opOut[i], alone = d.opAlone[i] ? d.lists.alone[d.opAlone[i] - 1] : null;
        const cls =
            out >= 0
                ? outClass(d, out)
                : alone && alone[0]
                  ? classOf.get(alone[1])
                  : OPEN;
        d.opClass[i] = cls;
        d.classCount[cls]++;
    }
}

// An exact launch has the shapes that its graph holds; nodes may have been patched nevertheless.
function outClass(d, out) {
    const how = d.outHow[out];
    return how === 0 ? FLUSHED : how === 3 ? BUILT : how === 2 || d.outPatched[out] ? PATCHED : EXACT;
}

function orderSteps(d) {
    d.streamOps = byGroup(d.opStream, d.lists.streams);
    d.streamSteps = byGroup(d.stepStream, d.lists.streams);
    d.stepFirst = new Uint32Array(d.lists.steps);
    d.stepNumber = new Uint32Array(d.lists.steps);
    d.opStep = new Uint32Array(d.n);
    d.streamSteps.forEach((steps, stream) => {
        let first = 0;
        steps.forEach((step, number) => {
            d.stepFirst[step] = first;
            d.stepNumber[step] = number;
            for (let i = 0; i < d.stepOps[step]; i++) d.opStep[d.streamOps[stream][first + i]] = step;
            first += d.stepOps[step];
        });
    });
    d.signatureSteps = byGroup(d.stepSignature, d.lists.signatures.length);
}

function unpack() {
    const d = {
        totals: json("totals"),
        facts: json("facts"),
        lists: json("lists"),
        tables: {},
    };
    for (const name of ["kernels", "breaks", "cache", "segments"]) {
        const table = json("table-" + name);
        d.tables[name] = { columns: table.columns, all: table.all, rows: table.report.rows };
    }
    // Texts of flushes, and what each of them means and what to do about it.
    d.causes = new Map(d.lists.texts.map((text) => [text[0], text.slice(1)]));
    d.lists.texts = d.lists.texts.map((text) => text[0]);
    unpackOps(d);
    unpackOthers(d);
    classes(d);
    orderSteps(d);
    return d;
}

// ---- words ----

function count(n) {
    return String(n).replace(/\B(?=(\d{3})+$)/g, "\u2009");
}

function time(ns) {
    const units = ["ns", "\u00b5s", "ms", "s"];
    let at = 0;
    let value = ns;
    while (at < 3 && Math.abs(value) >= 1000) {
        value /= 1000;
        at++;
    }
    return (at ? value.toFixed(value >= 100 ? 1 : 2) : String(Math.round(value))) + "\u2009" + units[at];
}

function bytesText(n) {
    const units = ["B", "KiB", "MiB", "GiB"];
    let at = 0;
    while (at < 3 && n >= 1024) {
        n /= 1024;
        at++;
    }
    return (at ? n.toFixed(1) : n) + "\u2009" + units[at];
}

const percent = (part, whole) => (whole ? ((100 * part) / whole).toFixed(1) : "0.0") + "\u2009%";

const kindOf = (d, op) => d.lists.kinds[d.shapeKind[d.opShape[op]]];
const nameOf = (d, op) => kindOf(d, op).name;

function shapeText(d, op) {
    const kind = kindOf(d, op), shape = d.opShape[op];
    const dims = d.shapeDims.map((column) => column[shape]);
    const wide = dims[0] + dims[1] * 4294967296;
    if (kind.op === 1) return `memset, ${count(wide)} elements of ${kind.elem} bytes`;
    if (kind.op === 2) return `copy, ${bytesText(wide)}`;
    if (kind.op === 3) return "record of an event";
    if (kind.op === 4) return "wait for an event";
    const text = `grid ${dims.slice(0, 3).join("\u00d7")}, block ${dims.slice(3, 6).join("\u00d7")}`;
    return dims[6] ? `${text}, ${bytesText(dims[6])} shared` : text;
}

const whyOf = (d, key) => (Object.hasOwn(d.facts.why, key) ? d.facts.why[key] : undefined);
const advice = (texts) => (texts && texts[0] ? `: ${texts[0]}. Advice: ${texts[1]}` : "");

// What became of an op, in one sentence.
function fateText(d, op) {
    const out = d.opOut[op], alone = d.opAlone[op] ? d.lists.alone[d.opAlone[op] - 1] : null;
    const failed = alone && alone[3] ? `, result ${alone[3]}` : "";
    if (out < 0) {
        if (!alone || !alone[0]) return "deferred when the trace ends" + failed;
        const text = `eager: ${alone[1]}${alone[2] ? ` (${alone[2]})` : ""}${failed}`;
        return text + advice(whyOf(d, alone[2]));
    }
    if (!d.outHow[out])
        return `deferred, then issued one by one: ${d.lists.texts[d.outVariant[out]]}, by ${d.lists.texts[d.outSegment[out]]}${failed}${advice(d.causes.get(d.lists.texts[d.outSegment[out]]))}`;
    return outText(d, out) + failed;
}

function outText(d, out) {
    if (!d.outHow[out])
        return `flush of ${count(d.outN[out])} ops: ${d.lists.texts[d.outVariant[out]]}, by ${d.lists.texts[d.outSegment[out]]}`;
    const patched = d.outPatched[out], cls = outClass(d, out);
    const how = cls === BUILT ? "built" : cls === PATCHED ? `${count(patched)} ${patched === 1 ? "node" : "nodes"} patched` : "as it was";
    const built = d.outBuild[out] ? ` in ${time(d.outBuild[out])}` : "";
    return `graph of ${count(d.outN[out])} ops, ${how}${built}: segment ${d.outSegment[out]}, variant ${d.outVariant[out]}, launched in ${time(d.outHost[out])}`;
}
