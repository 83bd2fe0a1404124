"use strict";
// Streams and threads by host time. Where boxes are few they are drawn one by one; where they are
// many each column of pixels shows how the boxes that begin in it divide among the classes, from
// counts that are kept for every BLOCK boxes: so that a picture takes as long for a million ops as
// for a thousand.

const GUTTER = 168, AXIS = 24, BLOCK = 32, TRACKS_MAX = 64, SPAN_MIN = 500;

class Lane {
    constructor(d, items, label, high) {
        this.d = d;
        this.items = items;
        this.label = label;
        this.high = high;
        const classes = d.classes.length, blocks = Math.floor(items.length / BLOCK) + 1;
        this.counts = new Uint32Array(classes * blocks);
        const sum = new Uint32Array(classes);
        for (let i = 0; i < items.length; i++) {
            if (i % BLOCK === 0) this.counts.set(sum, classes * (i / BLOCK));
            sum[d.boxClass[items[i]]]++;
        }
        if (items.length % BLOCK === 0) this.counts.set(sum, classes * (blocks - 1));
    }

    // How many boxes begin before a time.
    before(time) {
        let low = 0, high = this.items.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.d.boxBegin[this.items[middle]] < time) low = middle + 1;
            else high = middle;
        }
        return low;
    }

    // Boxes of each class among the first `n`; and of what is found.
    countsAt(n, into) {
        const classes = this.d.classes.length, block = Math.floor(n / BLOCK);
        for (let k = 0; k < classes; k++) into[k] = this.counts[block * classes + k];
        for (let i = block * BLOCK; i < n; i++) into[this.d.boxClass[this.items[i]]]++;
    }

    find(hits) {
        this.hitCounts = null;
        if (!hits) return;
        this.hitCounts = new Uint32Array(this.items.length + 1);
        for (let i = 0; i < this.items.length; i++)
            this.hitCounts[i + 1] = this.hitCounts[i] + hits[this.items[i]];
    }
}

class Timeline {
    constructor(page) {
        this.page = page;
        this.d = page.d;
        this.canvas = document.getElementById("lanes");
        this.box = document.getElementById("lanes-box");
        this.end = Math.max(1, this.d.totals.duration_ns);
        for (let i = 0; i < this.d.boxEnd.length; i++)
            if (this.d.boxEnd[i] > this.end) this.end = this.d.boxEnd[i];
        this.from = 0;
        this.to = this.end;
        this.op = -1;
        this.makeLanes();
        this.listen();
    }

    makeLanes() {
        const d = this.d, outs = byGroup(d.outStream, d.lists.streams.length, d.n);
        const gpu = byGroup(d.gpuOp.map((op) => d.opStream[op]), d.lists.streams.length, d.n + d.m + d.c);
        const kinds = ["", "legacy", "per thread", "created", "unknown"];
        this.lanes = [];
        d.streamOps.forEach((ops, stream) => {
            if (!ops.length || this.lanes.length >= 3 * TRACKS_MAX) return;
            outs[stream].sort((a, b) => d.boxBegin[a] - d.boxBegin[b]);
            this.lanes.push(new Lane(d, ops, [`stream ${stream}`, kinds[d.lists.streams[stream]] || ""], 24));
            this.lanes.push(new Lane(d, outs[stream], ["", "graphs, flushes"], 18));
            gpu[stream].sort((a, b) => d.boxBegin[a] - d.boxBegin[b]);
            if (gpu[stream].length) this.lanes.push(new Lane(d, gpu[stream], ["", "on the GPU"], 18));
        });
        this.threads = this.lanes.length;
        threadBoxes(d).forEach((items, thread) => {
            if (!items.length || this.lanes.length >= this.threads + TRACKS_MAX) return;
            const [tid, name] = d.lists.threads[thread];
            this.lanes.push(new Lane(d, items, [`thread ${tid}`, name], 24));
        });
        let y = AXIS + 4;
        this.lanes.forEach((lane, i) => {
            if (i && lane.label[0]) y += 10;
            lane.y = y;
            y += lane.high + 2;
        });
        this.high = y + 8;
    }

    // ---- moving ----

    go(from, to) {
        const span = Math.min(Math.max(to - from, SPAN_MIN), this.end * 1.02);
        const middle = (from + to) / 2;
        this.from = Math.min(Math.max(middle - span / 2, -span * 0.02), this.end - span * 0.5);
        this.to = this.from + span;
        this.draw();
    }

    zoom(by, at = (this.from + this.to) / 2) {
        const span = Math.min(Math.max((this.to - this.from) * by, SPAN_MIN), this.end * 1.02);
        const share = (at - this.from) / (this.to - this.from);
        this.go(at - span * share, at + span * (1 - share));
    }

    move(share) {
        const by = (this.to - this.from) * share;
        this.go(this.from + by, this.to + by);
    }

    showStep(step) {
        const begin = this.d.stepBegin[step], span = Math.max(this.d.stepTime[step], SPAN_MIN);
        this.go(begin - span * 0.05, begin + span * 1.05);
    }

    chosen(op) {
        this.op = op;
        const begin = this.d.opTime[op];
        if (begin < this.from || begin > this.to) this.go(begin - (this.to - this.from) / 2, begin + (this.to - this.from) / 2);
        else this.draw();
    }

    nextMatch() {
        const hits = this.page.hits;
        if (!hits) return;
        for (let i = 0; i < this.d.n; i++) {
            const op = (this.op + 1 + i) % this.d.n;
            if (!hits[op]) continue;
            this.op = op;
            const span = Math.min(this.to - this.from, 50 * Math.max(this.d.opHost[op], 2000));
            this.go(this.d.opTime[op] - span / 2, this.d.opTime[op] + span / 2);
            this.page.strip.showOp(op);
            return;
        }
    }

    timeAt(x) {
        return this.from + ((x - GUTTER) / (this.wide - GUTTER)) * (this.to - this.from);
    }

    listen() {
        const x = (event) => event.clientX - this.canvas.getBoundingClientRect().left;
        this.canvas.addEventListener("wheel", (event) => {
            event.preventDefault();
            if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
                this.move((event.deltaX || event.deltaY) / this.wide);
            else this.zoom(Math.exp(Math.min(Math.max(event.deltaY, -200), 200) / 300), this.timeAt(x(event)));
        }, { passive: false });
        this.canvas.addEventListener("pointerdown", (event) => {
            if (event.button) return;
            this.drag = { x: x(event), from: this.from, to: this.to, range: event.shiftKey, moved: false };
            this.canvas.setPointerCapture(event.pointerId);
        });
        this.canvas.addEventListener("pointermove", (event) => this.pointer(event, x(event)));
        this.canvas.addEventListener("pointerup", (event) => this.drop(event, x(event)));
        this.canvas.addEventListener("pointercancel", () => (this.drag = null));
        this.canvas.addEventListener("pointerleave", () => this.page.tip(null));
        this.box.addEventListener("keydown", (event) => {
            if (event.ctrlKey || event.metaKey || event.altKey) return;
            const keys = {
                "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), w: () => this.zoom(0.6),
                "-": () => this.zoom(1.6), s: () => this.zoom(1.6), 0: () => this.go(0, this.end),
                Home: () => this.go(0, this.end), n: () => this.nextMatch(),
                ArrowLeft: () => this.move(-0.15), a: () => this.move(-0.15),
                ArrowRight: () => this.move(0.15), d: () => this.move(0.15),
            };
            if (!keys[event.key]) return;
            event.preventDefault();
            keys[event.key]();
        });
        const button = (id, act) => document.getElementById(id).addEventListener("click", act);
        button("zoom-in", () => this.zoom(0.5));
        button("zoom-out", () => this.zoom(2));
        button("zoom-all", () => this.go(0, this.end));
        button("next-match", () => this.nextMatch());
    }

    pointer(event, x) {
        const drag = this.drag;
        if (!drag) {
            const box = this.boxAt(x, event.clientY - this.canvas.getBoundingClientRect().top);
            this.page.tip(box < 0 ? null : this.page.boxLines(box), event.clientX, event.clientY);
            return;
        }
        drag.moved = drag.moved || Math.abs(x - drag.x) > 3;
        if (!drag.moved) return;
        this.page.tip(null);
        this.canvas.classList.add("dragging");
        if (drag.range) {
            drag.now = x;
            this.draw();
        } else {
            const by = ((drag.x - x) / (this.wide - GUTTER)) * (drag.to - drag.from);
            this.go(drag.from + by, drag.to + by);
        }
    }

    drop(event, x) {
        const drag = this.drag;
        this.drag = null;
        this.canvas.classList.remove("dragging");
        if (!drag) return;
        if (drag.moved && drag.range) this.go(this.timeAt(Math.min(drag.x, x)), this.timeAt(Math.max(drag.x, x)));
        if (drag.moved) return;
        let box = this.boxAt(x, event.clientY - this.canvas.getBoundingClientRect().top);
        if (box >= this.d.n && box < this.d.n + this.d.m) box = this.d.outFirst[box - this.d.n];
        if (box >= this.d.n + this.d.m + this.d.c) box = this.d.gpuOp[box - this.d.n - this.d.m - this.d.c];
        if (box < 0 || box >= this.d.n) return;
        this.op = box;
        this.page.strip.showOp(box);
        this.draw();
    }

    // The last box that begins before this place and reaches it, two pixels allowed; -1: none.
    boxAt(x, y) {
        const lane = this.lanes.find((l) => y >= l.y && y < l.y + l.high);
        if (!lane || x < GUTTER) return -1;
        const pixel = (this.to - this.from) / (this.wide - GUTTER), at = this.timeAt(x);
        const last = lane.before(at + pixel);
        for (let i = last - 1; i >= 0 && i >= last - 64; i--)
            if (this.d.boxEnd[lane.items[i]] >= at - 2 * pixel) return lane.items[i];
        return -1;
    }

    // ---- drawing ----

    draw() {
        this.wide = this.box.clientWidth;
        const c = this.page.canvas(this.canvas, this.wide, this.high);
        this.painted = this.rects = 0;
        c.clearRect(0, 0, this.wide, this.high);
        c.font = "11px system-ui, sans-serif";
        c.textBaseline = "middle";
        c.save();
        c.beginPath();
        c.rect(GUTTER, 0, this.wide - GUTTER, this.high);
        c.clip();
        this.drawStep(c);
        this.drawAxis(c);
        for (const lane of this.lanes) this.drawLane(c, lane);
        if (this.drag && this.drag.range && this.drag.now !== undefined) {
            c.fillStyle = this.page.shade;
            c.fillRect(Math.min(this.drag.x, this.drag.now), 0, Math.abs(this.drag.now - this.drag.x), this.high);
        }
        c.restore();
        this.drawLabels(c);
        document.getElementById("range").textContent =
            `${time(Math.max(0, this.from))} to ${time(Math.min(this.end, this.to))} of ${time(this.end)}, host time`;
        this.page.data.painted = this.painted;
        this.page.data.rects = this.rects;
    }

    xAt(t) {
        return GUTTER + ((t - this.from) / (this.to - this.from)) * (this.wide - GUTTER);
    }

    drawStep(c) {
        const step = this.page.strip ? this.page.strip.step : -1;
        if (step < 0) return;
        const x = this.xAt(this.d.stepBegin[step]);
        c.fillStyle = this.page.shade;
        c.fillRect(x, AXIS, Math.max(1, this.xAt(this.d.stepBegin[step] + this.d.stepTime[step]) - x), this.high);
    }

    drawAxis(c) {
        const span = this.to - this.from, rough = span / Math.max(2, (this.wide - GUTTER) / 110);
        const ten = Math.pow(10, Math.floor(Math.log10(rough)));
        const by = [1, 2, 5, 10].find((f) => f * ten >= rough) * ten;
        c.textAlign = "left";
        for (let t = Math.ceil(Math.max(0, this.from) / by) * by; t <= this.to; t += by) {
            const x = Math.round(this.xAt(t)) + 0.5;
            c.fillStyle = this.page.line;
            c.fillRect(x - 0.5, AXIS - 6, 1, this.high);
            c.fillStyle = this.page.quiet;
            c.fillText(this.tick(t, by), x + 4, AXIS / 2);
        }
    }

    // A time with as many digits as tell it from its neighbour.
    tick(t, by) {
        const [unit, name] = by >= 1e9 ? [1e9, "s"] : by >= 1e6 ? [1e6, "ms"] : by >= 1e3 ? [1e3, "\u00b5s"] : [1, "ns"];
        return count(Math.round(t / unit)) + "\u2009" + name;
    }

    drawLabels(c) {
        for (const lane of this.lanes) {
            const y = lane.y + lane.high / 2;
            c.textAlign = "left";
            c.fillStyle = this.page.text;
            c.fillText(lane.label[0], 8, y, 84);
            c.fillStyle = this.page.quiet;
            c.fillText(lane.label[1], lane.label[0] ? 92 : 8, y, lane.label[0] ? GUTTER - 98 : GUTTER - 14);
        }
    }

    drawLane(c, lane) {
        let first = lane.before(this.from);
        const end = lane.before(this.to);
        for (let i = first - 1, least = first - 64; i >= 0 && i >= least; i--)
            if (this.d.boxEnd[lane.items[i]] > this.from) first = i;
        this.painted += end - first;
        if (end - first > 2 * (this.wide - GUTTER)) this.drawMany(c, lane);
        else this.drawFew(c, lane, first, end);
        c.globalAlpha = 1;
    }

    drawFew(c, lane, first, end) {
        const hits = this.page.hits, d = this.d;
        for (let i = first; i < end; i++) {
            const box = lane.items[i];
            const x = Math.max(this.xAt(d.boxBegin[box]), GUTTER - 2);
            const wide = Math.min(this.xAt(d.boxEnd[box]), this.wide + 2) - x;
            c.globalAlpha = hits && !hits[box] ? 0.18 : 1;
            c.fillStyle = this.page.colors[d.boxClass[box]];
            c.fillRect(x, lane.y, wide > 3 ? wide - 0.6 : Math.max(wide, 1), lane.high);
            this.rects++;
            if (wide > 34) this.drawName(c, lane, box, x, wide);
            if (box === this.op || (d.g && this.op >= 0 && box === d.n + d.m + d.c + d.gpuOf[this.op])) {
                c.globalAlpha = 1;
                c.strokeStyle = this.page.text;
                c.lineWidth = 2;
                c.strokeRect(x, lane.y, Math.max(wide, 2), lane.high);
            }
        }
    }

    drawName(c, lane, box, x, wide) {
        let text = this.page.boxName(box);
        const room = wide - 8;
        if (c.measureText(text).width > room) {
            const letters = Math.floor((room / c.measureText(text).width) * text.length) - 1;
            if (letters < 3) return;
            text = text.slice(0, letters) + "\u2026";
        }
        c.fillStyle = this.page.onBox;
        c.textAlign = "left";
        c.fillText(text, x + 4, lane.y + lane.high / 2 + 0.5);
    }

    drawMany(c, lane) {
        const d = this.d, classes = d.classes.length, hits = lane.hitCounts;
        const was = new Uint32Array(classes), now = new Uint32Array(classes);
        let before = lane.before(this.from);
        lane.countsAt(before, was);
        for (let x = GUTTER; x < this.wide; x++) {
            const after = lane.before(this.timeAt(x + 1));
            if (after === before) {
                const box = lane.items[before - 1];
                if (before && d.boxEnd[box] > this.timeAt(x)) {
                    c.globalAlpha = this.page.hits && !this.page.hits[box] ? 0.18 : 1;
                    c.fillStyle = this.page.colors[d.boxClass[box]];
                    c.fillRect(x, lane.y, 1, lane.high);
                    this.rects++;
                }
                continue;
            }
            lane.countsAt(after, now);
            let y = lane.y;
            c.globalAlpha = hits ? 0.18 : 1;
            for (let k = 0; k < classes; k++) {
                if (now[k] === was[k]) continue;
                // What is rare is still seen.
                const high = Math.max(1.5, ((now[k] - was[k]) / (after - before)) * lane.high);
                c.fillStyle = this.page.colors[k];
                c.fillRect(x, Math.min(y, lane.y + lane.high - 1.5), 1, Math.min(high, lane.y + lane.high - y));
                y = Math.min(y + high, lane.y + lane.high - 1.5);
                this.rects++;
            }
            if (hits && hits[after] > hits[before]) {
                c.globalAlpha = 1;
                c.fillStyle = this.page.hit;
                const high = Math.max(4, ((hits[after] - hits[before]) / (after - before)) * lane.high);
                c.fillRect(x, lane.y + lane.high - high, 1, high);
            }
            was.set(now);
            before = after;
        }
    }
}
