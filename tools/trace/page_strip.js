"use strict";
// Draws the ops of one step as cells in their order; a bar joins those of one graph. page.js makes it
// and calls it. It never changes what the search has found.

const CELLS_MAX = 40000; // of a step; more are not drawn

class Strip {
    constructor(page) {
        this.page = page;
        this.d = page.d;
        this.canvas = document.getElementById("strip");
        this.box = document.getElementById("strip-box");
        this.step = -1;
        this.op = -1; // place in the step of the chosen op
        this.box.addEventListener("pointermove", (event) => this.hover(event));
        this.box.addEventListener("pointerleave", () => this.page.tip(null));
        this.canvas.addEventListener("click", (event) => {
            const i = this.at(event);
            if (i >= 0) this.choose(i);
        });
        this.box.addEventListener("keydown", (event) => this.key(event));
        this.controls();
    }

    controls() {
        const get = (id) => document.getElementById("step-" + id);
        this.stream = get("stream");
        this.number = get("number");
        this.slider = get("slider");
        this.before = get("before");
        this.after = get("after");
        this.d.streamSteps.forEach((steps, stream) => {
            if (!steps.length) return;
            const option = element("option", `${stream}: ${count(steps.length)} steps`);
            option.value = stream;
            this.stream.append(option);
        });
        const take = (input) => {
            const steps = this.d.streamSteps[this.stream.value];
            const number = Math.min(Math.max(0, Math.round(Number(input.value)) || 0), steps.length - 1);
            this.show(steps[number]);
        };
        this.stream.addEventListener("change", () => take(this.number));
        this.number.addEventListener("change", () => take(this.number));
        this.slider.addEventListener("input", () => take(this.slider));
        this.before.addEventListener("click", () => this.show(this.alike(-1)));
        this.after.addEventListener("click", () => this.show(this.alike(1)));
        const next = document.getElementById("next-match");
        next.addEventListener("click", () => this.nextMatch());
        for (const control of [this.stream, this.number, this.slider, next])
            control.disabled = !this.d.lists.steps;
    }

    // The middle one of the steps that are most frequently alike; of two such, of the longer ones.
    usual() {
        let best = null;
        const longer = (steps) => this.d.stepOps[steps[0]] > this.d.stepOps[best[0]];
        for (const steps of this.d.signatureSteps)
            if (!best || steps.length > best.length || (steps.length === best.length && longer(steps)))
                best = steps;
        return best ? best[best.length >> 1] : -1;
    }

    // The next step of the same signature in that direction; -1: there is none.
    alike(by) {
        const steps = this.d.signatureSteps[this.d.stepSignature[this.step]];
        const at = steps.indexOf(this.step) + by;
        return at >= 0 && at < steps.length ? steps[at] : -1;
    }

    show(step) {
        if (step < 0) return;
        const d = this.d;
        this.step = step;
        this.op = -1;
        const stream = d.stepStream[step], steps = d.streamSteps[stream];
        this.ops = d.streamOps[stream].subarray(d.stepFirst[step], d.stepFirst[step] + d.stepOps[step]);
        this.stream.value = stream;
        this.number.max = this.slider.max = steps.length - 1;
        this.number.value = this.slider.value = d.stepNumber[step];
        this.before.disabled = this.alike(-1) < 0;
        this.after.disabled = this.alike(1) < 0;
        this.facts();
        this.draw();
    }

    facts() {
        const d = this.d, classCount = new Array(d.classes.length).fill(0), graphs = new Set();
        for (const op of this.ops) {
            classCount[d.opClass[op]]++;
            if (d.opClass[op] <= BUILT) graphs.add(d.opOut[op]);
        }
        const inGraphs = classCount[EXACT] + classCount[PATCHED] + classCount[BUILT];
        const times = d.signatureSteps[d.stepSignature[this.step]].length;
        const parts = [
            `step ${d.stepNumber[this.step]} of stream ${d.stepStream[this.step]}`,
            `${count(this.ops.length)} ops`,
            `${percent(inGraphs, this.ops.length)} in ${count(graphs.size)} graphs`,
            time(d.stepTime[this.step]),
            `signature ${d.lists.signatures[d.stepSignature[this.step]]}, in ${count(times)} ${times === 1 ? "step" : "steps"}`,
        ];
        if (this.ops.length > CELLS_MAX) parts.push(`the first ${count(CELLS_MAX)} are drawn`);
        document.getElementById("step-facts").textContent = parts.join(" \u00b7 ");
        document.getElementById("strip-op").textContent = "Point at a cell to see its op; click it to choose it.";
        this.page.legend("strip-legend", classCount);
        const data = this.page.data;
        data.step = d.stepNumber[this.step];
        data.stepOps = this.ops.length;
        data.stepInGraphs = inGraphs;
        data.stepGraphs = graphs.size;
    }

    layout() {
        const n = Math.min(this.ops ? this.ops.length : 0, CELLS_MAX);
        this.cell = n <= 300 ? 20 : n <= 2000 ? 14 : n <= 10000 ? 9 : 6;
        this.high = this.cell + (this.cell > 9 ? 8 : 3);
        this.wide = this.box.clientWidth;
        this.columns = Math.max(1, Math.floor((this.wide - 16) / this.cell));
        this.n = n;
    }

    draw() {
        this.layout();
        const d = this.d, lines = Math.max(1, Math.ceil(this.n / this.columns));
        const c = this.page.canvas(this.canvas, this.wide, lines * this.high + 14);
        const gap = this.cell > 6 ? 2 : 1;
        c.clearRect(0, 0, this.wide, lines * this.high + 14);
        for (let i = 0; i < this.n; i++) {
            const op = this.ops[i];
            const x = 8 + (i % this.columns) * this.cell, y = 8 + Math.floor(i / this.columns) * this.high;
            c.globalAlpha = this.page.hits && !this.page.hits[op] ? 0.2 : 1;
            c.fillStyle = this.page.colors[d.opClass[op]];
            c.fillRect(x, y, this.cell - gap, this.cell - gap);
            if (d.opClass[op] <= BUILT && this.cell > 6) {
                const joined = i + 1 < this.n && d.opOut[this.ops[i + 1]] === d.opOut[op];
                c.fillRect(x, y + this.cell, joined ? this.cell : this.cell - gap - 1, 2);
            }
            if (i === this.op) {
                c.globalAlpha = 1;
                c.strokeStyle = this.page.text;
                c.lineWidth = 2;
                c.strokeRect(x, y, this.cell - gap, this.cell - gap);
            }
        }
        c.globalAlpha = 1;
        this.page.data.cells = this.n;
    }

    at(event) {
        const place = this.canvas.getBoundingClientRect();
        const column = Math.floor((event.clientX - place.left - 8) / this.cell);
        const line = Math.floor((event.clientY - place.top - 8) / this.high);
        const i = line * this.columns + column;
        return column >= 0 && column < this.columns && line >= 0 && i < this.n ? i : -1;
    }

    hover(event) {
        const i = this.at(event);
        this.page.tip(i < 0 ? null : this.page.opLines(this.ops[i]), event.clientX, event.clientY);
    }

    choose(i) {
        this.op = i;
        const op = this.ops[i];
        document.getElementById("strip-op").textContent =
            `op ${i}: ${nameOf(this.d, op)}, ${shapeText(this.d, op)}. ${fateText(this.d, op)}`;
        this.draw();
    }

    // The next op of the trace that the search finds, behind the chosen one or the step's first.
    nextMatch() {
        const hits = this.page.hits, n = this.d.n;
        if (!hits || !this.ops) return;
        const from = this.op < 0 ? this.ops[0] : this.ops[this.op] + 1;
        for (let k = 0; k < n; k++)
            if (hits[(from + k) % n]) {
                this.showOp((from + k) % n);
                return;
            }
    }

    // The op in its step.
    showOp(op) {
        const step = this.d.opStep[op];
        if (step !== this.step) this.show(step);
        const i = this.ops.indexOf(op);
        if (i < this.n) this.choose(i);
    }

    key(event) {
        const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns }[event.key];
        if (event.ctrlKey || event.metaKey || event.altKey || !this.n) return;
        if (event.key === "n") this.nextMatch();
        if (by === undefined) return;
        event.preventDefault();
        this.choose(Math.min(Math.max(0, this.op < 0 ? 0 : this.op + by), this.n - 1));
    }
}
