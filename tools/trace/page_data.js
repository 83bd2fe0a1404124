"use strict";
// What is in the page, unpacked: columns of numbers into typed arrays, and what follows from them.
// html_data.c says what the columns are. Boxes are what the timeline shows: ops, then outs (graph
// launches and flushes), then calls, then ops as they ran on the GPU, numbered through.

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
function byGroup(group, groups, offset = 0) {
    const count = new Uint32Array(groups);
    for (let i = 0; i < group.length; i++) count[group[i]]++;
    const lists = Array.from(count, (n) => new Uint32Array(n));
    count.fill(0);
    for (let i = 0; i < group.length; i++) lists[group[i]][count[group[i]]++] = i + offset;
    return lists;
}

const EXACT = 0, PATCHED = 1, BUILT = 2, FLUSHED = 3, OPEN = 4, CALL = 5, EAGER = 6, EAGERS = 6;

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
    const m = d.lists.outs, c = d.lists.calls, s = d.lists.shapes, t = d.lists.steps;
    d.m = m;
    d.outTime = sums(column("out-time", m, Float64Array));
    for (const key of ["host", "build", "stream", "n", "how", "piece", "variant", "patched"])
        d["out" + key[0].toUpperCase() + key.slice(1)] = column("out-" + key, m, Uint32Array);
    d.c = c;
    d.callTime = sums(column("call-time", c, Float64Array));
    for (const key of ["host", "stream", "thread", "label"])
        d["call" + key[0].toUpperCase() + key.slice(1)] = column("call-" + key, c, Uint32Array);
    d.shapeKind = column("shape-kind", s, Uint32Array);
    d.shapeDims = [];
    for (let i = 0; i < 7; i++) d.shapeDims.push(column("shape-d" + i, s, Uint32Array));
    d.stepStream = column("step-stream", t, Uint32Array);
    d.stepOps = column("step-n", t, Uint32Array);
    d.stepSignature = column("step-signature", t, Uint32Array);
    d.stepBegin = sums(column("step-begin", t, Float64Array).map(unzigzag));
    d.stepTime = column("step-time", t, Float64Array);
    d.g = d.lists.gpu;
    d.gpuOp = sums(column("gpu-op", d.g, Uint32Array));
    d.gpuBegin = column("gpu-begin", d.g, Float64Array).map((v, i) => d.opTime[d.gpuOp[i]] + unzigzag(v));
    d.gpuTime = column("gpu-time", d.g, Float64Array);
}

// One class for each way in which an op can have gone out; each has a colour.
function classes(d) {
    d.classes = [
        { key: "exact", label: "graph, launched as it was", color: "--exact" },
        { key: "patched", label: "graph, patched", color: "--patched" },
        { key: "built", label: "graph, built for this launch", color: "--built" },
        { key: "flushed", label: "withheld, then issued one by one", color: "--flushed" },
        { key: "open", label: "withheld when the trace ends", color: "--open" },
        { key: "call", label: "call that is no op", color: "--call" },
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
    d.classCount[CALL] = d.c;
}

function outClass(d, out) {
    const how = d.outHow[out];
    return how === 0 ? FLUSHED : how === 2 ? PATCHED : how === 3 ? BUILT : EXACT;
}

function orderSteps(d) {
    d.streamOps = byGroup(d.opStream, d.lists.streams.length);
    d.streamSteps = byGroup(d.stepStream, d.lists.streams.length);
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

// Begin, end and class of every box. An out's begins with the first of its ops.
function boxes(d) {
    const all = d.n + d.m + d.c + d.g;
    d.boxBegin = new Float64Array(all);
    d.boxEnd = new Float64Array(all);
    d.boxClass = new Uint8Array(all);
    d.boxBegin.set(d.opTime);
    d.boxBegin.set(d.outTime, d.n);
    d.boxBegin.set(d.callTime, d.n + d.m);
    d.boxClass.set(d.opClass);
    d.boxClass.fill(CALL, d.n + d.m);
    d.outFirst = new Int32Array(d.m).fill(-1);
    for (let i = 0; i < d.n; i++) {
        d.boxEnd[i] = d.opTime[i] + d.opHost[i];
        const out = d.opOut[i];
        if (out >= 0 && d.outFirst[out] < 0) {
            d.outFirst[out] = i;
            d.boxBegin[d.n + out] = Math.min(d.opTime[i], d.outTime[out]);
        }
    }
    for (let i = 0; i < d.m; i++) {
        d.boxEnd[d.n + i] = d.outTime[i] + d.outHost[i];
        d.boxClass[d.n + i] = outClass(d, i);
    }
    for (let i = 0; i < d.c; i++) d.boxEnd[d.n + d.m + i] = d.callTime[i] + d.callHost[i];
    d.gpuOf = new Int32Array(d.g ? d.n : 0).fill(-1); // by op
    for (let i = 0, box = d.n + d.m + d.c; i < d.g; i++, box++) {
        d.gpuOf[d.gpuOp[i]] = i;
        d.boxBegin[box] = d.gpuBegin[i];
        d.boxEnd[box] = d.gpuBegin[i] + d.gpuTime[i];
        d.boxClass[box] = d.opClass[d.gpuOp[i]];
    }
}

// Ops and calls of each thread, as boxes in the order of time.
function threadBoxes(d) {
    const threads = d.lists.threads.length;
    const count = new Uint32Array(threads);
    for (let i = 0; i < d.n; i++) count[d.opThread[i]]++;
    for (let i = 0; i < d.c; i++) count[d.callThread[i]]++;
    const lists = Array.from(count, (n) => new Uint32Array(n));
    count.fill(0);
    let op = 0, call = 0;
    while (op < d.n || call < d.c) {
        if (call === d.c || (op < d.n && d.opTime[op] <= d.callTime[call])) {
            lists[d.opThread[op]][count[d.opThread[op]]++] = op;
            op++;
        } else {
            lists[d.callThread[call]][count[d.callThread[call]]++] = d.n + d.m + call;
            call++;
        }
    }
    return lists;
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
    boxes(d);
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
        if (!alone || !alone[0]) return "withheld when the trace ends" + failed;
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
    const how = ["", "as it was", `${count(d.outPatched[out])} nodes patched`, "built"][d.outHow[out]] || "as it was";
    const built = d.outBuild[out] ? ` in ${time(d.outBuild[out])}` : "";
    return `graph of ${count(d.outN[out])} ops, ${how}${built}: segment ${d.outSegment[out]}, variant ${d.outVariant[out]}, launched in ${time(d.outHost[out])}`;
}
