"use strict";
// The page as a whole: totals, facts, colours, tooltips, the search, and the start. The browser runs
// it last. A text of the trace gets into the page as textContent, never as HTML.

class Page {
    constructor() {
        this.data = document.body.dataset;
        this.d = unpack();
        this.hits = null; // by op: the search finds it
        this.tipBox = document.getElementById("tip");
        addAround(this.d);
        this.style();
        this.top();
        this.facts();
        this.strip = new Strip(this);
        const tables = this.d.tables;
        this.tables = [
            new Table(document.getElementById("t-breaks"), "breaks", tables.breaks),
            new Table(document.getElementById("t-kernels"), "kernels", tables.kernels, (row) => this.ask(row.name)),
            new Table(document.getElementById("t-cache"), "cache", tables.cache, (row) => this.showSignature(row)),
            new Table(document.getElementById("t-segments"), "segments", tables.segments),
        ];
        const usual = this.strip.usual();
        if (usual >= 0) this.strip.show(usual);
        this.listen();
        this.tell();
    }

    // What was counted from the columns, for whoever compares it with the totals.
    tell() {
        const n = this.d.classCount;
        this.data.ops = this.d.n;
        this.data.inGraphs = n[EXACT] + n[PATCHED] + n[BUILT];
        this.data.flushed = n[FLUSHED];
        this.data.open = n[OPEN];
        this.data.eager = n.slice(EAGER).reduce((a, b) => a + b, 0);
        this.data.graphLaunches = this.d.outHow.reduce((a, how) => a + (how > 0 ? 1 : 0), 0);
        this.data.steps = this.d.lists.steps;
        this.data.ready = "yes";
    }

    style() {
        const style = getComputedStyle(document.documentElement);
        const value = (name) => style.getPropertyValue(name).trim();
        this.colors = this.d.classes.map((c) => value(c.color));
        this.text = value("--text");
    }

    // A canvas of that size in CSS pixels, its context scaled to the screen's.
    canvas(canvas, wide, high) {
        const scale = window.devicePixelRatio || 1;
        const w = Math.round(wide * scale), h = Math.round(high * scale);
        if (canvas.width !== w || canvas.height !== h) {
            canvas.width = w;
            canvas.height = h;
            canvas.style.width = wide + "px";
            canvas.style.height = high + "px";
        }
        const context = canvas.getContext("2d");
        context.setTransform(scale, 0, 0, scale, 0, 0);
        return context;
    }

    // ---- what stands on top ----

    top() {
        const t = this.d.totals, facts = this.d.facts.facts;
        const program = Array.isArray(facts.argv) ? facts.argv.join(" ") : this.d.facts.trace;
        document.getElementById("title").textContent = program;
        document.title = "cusplice: " + program;
        const tiles = [
            ["ops", count(t.ops), "ops"],
            ["share", percent(t.in_graphs, t.ops), "in graphs"],
            ["graph_launches", count(t.graph_launches), "graph launches"],
            ["eager", count(t.eager), "eager"],
            ["flushed", count(t.flushed), "flushed"],
            ["steps", count(t.steps), "steps"],
            ["signatures", count(t.signatures), "signatures"],
            ["duration_ns", time(t.duration_ns), "recorded"],
        ];
        for (const [key, value, label] of tiles) {
            const tile = element("div", undefined, "tile");
            tile.dataset.key = key;
            tile.append(element("b", value), element("span", label));
            document.getElementById("tiles").append(tile);
        }
        const warn = (text) => document.getElementById("warnings").append(element("p", text, "warning"));
        if (t.lost_records)
            warn(`${count(t.lost_records)} records found no room and are missing, ${count(t.lost_ops)} ops among them: the numbers are too small.`);
        if (t.imported) warn(`The trace is imported ${t.imported}.`);
        if (!t.closed) warn("The recording did not end in good order: the end is missing.");
        if (t.torn_bytes) warn(`${count(t.torn_bytes)} bytes at the end of the file are torn and left out.`);
        if (t.open) warn(`${count(t.open)} ${t.open === 1 ? "op is" : "ops are"} deferred when the trace ends.`);
    }

    // The moment of the first event, by the clock pair of the facts; without events that of the pair.
    // null: not known.
    date() {
        const clock = this.d.facts.facts.clock;
        if (!clock || typeof clock.realtime_ns !== "number" || typeof clock.monotonic_ns !== "number")
            return null;
        const begin = this.d.facts.begin_ns || clock.monotonic_ns;
        const date = new Date((clock.realtime_ns - clock.monotonic_ns + begin) / 1e6);
        return Number.isNaN(date.getTime()) ? null : date.toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC");
    }

    facts() {
        const facts = this.d.facts.facts, t = this.d.totals, list = document.getElementById("facts-list");
        const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
        const add = (name, value) => {
            if (value === undefined || value === null || value === "") return;
            if (typeof value === "object" && !Object.keys(value).length) return; // [] and {}: nothing to say
            list.append(element("dt", name), element("dd", text(value)));
        };
        add("program", Array.isArray(facts.argv) ? facts.argv.join(" ") : undefined);
        add("executable", facts.exe);
        add("GPU", facts.gpu);
        add("driver", typeof facts.driver === "number" ? `CUDA ${Math.floor(facts.driver / 1000)}.${Math.floor((facts.driver % 1000) / 10)}` : facts.driver);
        const capability = facts.compute_capability;
        add("GPU capability", typeof capability === "number" ? (capability / 10).toFixed(1) : capability);
        add("date", this.date());
        add("trace", `${this.d.facts.trace} (format ${this.d.facts.version}${facts.cusplice ? ", cusplice " + text(facts.cusplice) : ""})`);
        add("streams, threads", `${t.streams}, ${t.threads}`);
        const options = facts.options && typeof facts.options === "object" ? facts.options : {};
        const changed = Object.keys(options)
            .filter((key) => key !== "record" && options[key] !== this.d.facts.defaults[key])
            .map((key) => `${key} = ${text(options[key])}`);
        add("options", changed.length ? changed.join(", ") : facts.options ? "as built in" : undefined);
        if (Array.isArray(facts.rules) && facts.rules.length)
            add("rules", facts.rules.map((rule) => (rule && rule.policy ? `${rule.policy} = ${rule.pattern}` : text(rule))).join(", "));
        const shown = ["argv", "exe", "gpu", "driver", "cusplice", "options", "rules", "clock", "compute_capability", "imported"];
        for (const key of Object.keys(facts)) if (!shown.includes(key)) add(key.replace(/_/g, " "), facts[key]);
    }

    legend(id, counts) {
        const place = document.getElementById(id);
        place.replaceChildren();
        this.d.classes.forEach((c, i) => {
            if (!counts[i]) return;
            const item = element("span"), mark = element("i");
            mark.style.background = `var(${c.color})`;
            item.dataset.key = c.key;
            item.append(mark, `${c.label}: ${count(counts[i])}`);
            place.append(item);
        });
    }

    // ---- tooltips ----

    opLines(op) {
        const d = this.d;
        return [
            nameOf(d, op),
            shapeText(d, op),
            fateText(d, op),
            `stream ${d.opStream[op]}, thread ${d.lists.threads[d.opThread[op]].filter(Boolean).join(" ")}, at ${time(d.opTime[op])}, call took ${time(d.opHost[op])}`,
            ...(d.gpuOf[op] >= 0
                ? [`on the GPU at ${time(d.gpuBegin[d.gpuOf[op]])} for ${time(d.gpuTime[d.gpuOf[op]])}`]
                : []),
            ...[kindOf(d, op).symbol, kindOf(d, op).file].filter(Boolean),
        ];
    }

    tip(lines, x, y) {
        this.tipBox.hidden = !lines;
        if (!lines) return;
        const [name, ...rest] = lines;
        this.tipBox.replaceChildren(element("b", name), ...rest.map((line) => element("div", line)));
        const wide = this.tipBox.offsetWidth, high = this.tipBox.offsetHeight;
        this.tipBox.style.left = Math.max(4, Math.min(x + 14, window.innerWidth - wide - 8)) + "px";
        this.tipBox.style.top = (y + 18 + high > window.innerHeight ? Math.max(4, y - high - 10) : y + 18) + "px";
    }

    // ---- the search ----

    ask(text) {
        document.getElementById("search").value = text;
        this.search(text);
    }

    search(text) {
        const query = text.trim().toLowerCase(), d = this.d;
        for (const table of this.tables) table.search(query);
        this.hits = null;
        let found = 0;
        if (query) {
            const has = (s) => (s ? s.toLowerCase().includes(query) : false);
            const kinds = d.lists.kinds.map((k) => (k && (has(k.name) || has(k.symbol)) ? 1 : 0));
            const alone = [0, ...d.lists.alone.map((a) => (a[0] && (has(a[1]) || has(a[2])) ? 1 : 0))];
            const texts = d.lists.texts.map((t) => (has(t) ? 1 : 0));
            const flushes = d.outHow.map((how, i) => (!how && (texts[d.outSegment[i]] || texts[d.outVariant[i]]) ? 1 : 0));
            this.hits = new Uint8Array(d.n);
            for (let i = 0; i < d.n; i++) {
                const out = d.opOut[i];
                if (!kinds[d.shapeKind[d.opShape[i]]] && !alone[d.opAlone[i]] && !(out >= 0 && flushes[out])) continue;
                this.hits[i] = 1;
                found++;
            }
        }
        document.getElementById("found").textContent = query ? `${count(found)} ops found` : "";
        this.data.found = found;
        this.strip.draw();
    }

    showSignature(row) {
        const at = this.d.lists.signatures.indexOf(row.signature);
        if (at < 0) return;
        const steps = this.d.signatureSteps[at];
        this.strip.show(steps[steps.length >> 1]);
        document.getElementById("step").scrollIntoView();
    }

    listen() {
        const input = document.getElementById("search");
        let later = 0;
        input.addEventListener("input", () => {
            clearTimeout(later);
            later = setTimeout(() => this.search(input.value), this.d.n > 200000 ? 200 : 0);
        });
        input.addEventListener("keydown", (event) => {
            if (event.key === "Enter") this.strip.nextMatch();
        });
        document.addEventListener("keydown", (event) => {
            if (event.key !== "/" || event.target.matches("input, select")) return;
            event.preventDefault();
            input.focus();
        });
        const draw = () => {
            this.style();
            this.strip.draw();
        };
        window.addEventListener("resize", draw);
        window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    }
}

function failure(text) {
    const place = document.getElementById("failure");
    place.textContent = "This page could not be drawn: " + text;
    place.hidden = false;
    document.body.dataset.error = text;
}

window.addEventListener("error", (event) => failure(event.message));
const page = new Page();
