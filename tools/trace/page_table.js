"use strict";
// The page's tables: a click on a head sorts, the search filters, and a hundred rows are drawn at a
// time. page.js makes them. They never change the rows that the report gave.

const ROWS = 100, SHORT = 16;

function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
}

const SCALES = { ns: [1000, ["ns", "\u00b5s", "ms", "s"]], bytes: [1024, ["B", "KiB", "MiB", "GiB"]] };

// One unit for a column, as in the tables of cusplice report: the largest value has five digits at
// most. [1, ""]: its values have none.
function scaleOf(values, unit) {
    const [base, names] = SCALES[unit] || [1, [""]];
    let most = values.reduce((most, value) => Math.max(most, Math.abs(value || 0)), 0), at = 0;
    for (; at < names.length - 1 && most >= 100000; at++) most /= base;
    return [base ** at, names[at]];
}

// null: not known.
function cellText(value, unit, scale) {
    if (value === null) return "\u2013";
    if (unit === "count") return count(value);
    if (unit === "percent") return value.toFixed(1) + "\u2009%";
    if (unit in SCALES) return scale === 1 ? count(value) : (value / scale).toFixed(1);
    return value;
}

// One of the page's tables. `click` is told the row that was clicked.
class Table {
    constructor(place, name, source, click) {
        this.place = place;
        this.place.dataset.name = name;
        this.columns = source.columns;
        this.rows = source.rows;
        this.all = source.all;
        this.click = click;
        this.limit = ROWS;
        const values = (key) => this.rows.map((row) => row[key]);
        this.scales = new Map(this.columns.map(([key, unit]) => [key, scaleOf(values(key), unit)]));
        this.query = "";
        this.sort = null; // as the report sorted it
        this.down = true;
        this.draw();
    }

    shown() {
        const texts = this.columns.filter((c) => c[1] === "text").map((c) => c[0]);
        const rows = this.query
            ? this.rows.filter((row) => texts.some((key) => row[key].toLowerCase().includes(this.query)))
            : [...this.rows];
        if (!this.sort) return rows;
        const key = this.sort, sign = this.down ? -1 : 1;
        const text = this.columns.find((c) => c[0] === key)[1] === "text";
        const number = (value) => (value === null ? -1 : value);
        return rows.sort((a, b) =>
            text ? sign * (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0) : sign * (number(a[key]) - number(b[key])),
        );
    }

    head() {
        const row = element("tr");
        for (const [key, unit] of this.columns) {
            const cell = element("th", undefined, unit === "text" ? "text" : "");
            const name = key.replace(/_ns$/, "").replace(/_/g, " ") + " " + this.scales.get(key)[1];
            const button = element("button", name.trim());
            button.type = "button";
            button.dataset.key = key;
            button.addEventListener("click", () => {
                this.down = this.sort === key ? !this.down : unit !== "text";
                this.sort = key;
                this.draw();
                this.place.querySelector(`button[data-key="${key}"]`).focus();
            });
            if (this.sort === key) {
                cell.setAttribute("aria-sort", this.down ? "descending" : "ascending");
                button.textContent += this.down ? " \u25be" : " \u25b4";
            }
            cell.append(button);
            row.append(cell);
        }
        const head = element("thead");
        head.append(row);
        return head;
    }

    // Short words stay whole; of others a line may end anywhere.
    classOf([key, unit]) {
        if (unit !== "text") return "";
        return this.rows.some((row) => row[key].length > SHORT) ? "text" : "text short";
    }

    draw() {
        const rows = this.shown(), body = element("tbody"), table = element("table");
        const classes = new Map(this.columns.map((column) => [column[0], this.classOf(column)]));
        for (const row of rows.slice(0, this.limit)) {
            const line = element("tr", undefined, this.click ? "link" : "");
            for (const [key, unit] of this.columns) {
                const cell = element("td", undefined, classes.get(key));
                cell.append(element("span", cellText(row[key], unit, this.scales.get(key)[0])));
                cell.title = row[key] === null ? "not known" : unit === "ns" ? count(row[key]) + " ns" : String(row[key]);
                line.append(cell);
            }
            if (this.click) line.addEventListener("click", () => this.click(row));
            body.append(line);
        }
        table.append(this.head(), body);
        this.place.replaceChildren(table);
        this.place.dataset.rows = rows.length;
        this.tail(rows.length);
    }

    tail(rows) {
        if (rows === 0)
            this.place.append(element("p", this.query ? "No row matches the search." : "None.", "quiet"));
        if (rows > this.limit) {
            const more = element("button", `${count(rows - this.limit)} more rows`, "more");
            more.type = "button";
            more.addEventListener("click", () => {
                this.limit += 1000;
                this.draw();
            });
            this.place.append(more);
        }
        if (this.all > this.rows.length) {
            const text = `The first ${count(this.rows.length)} of ${count(this.all)} rows are in this page; cusplice report prints all.`;
            this.place.append(element("p", text, "quiet"));
        }
    }

    search(query) {
        if (query === this.query) return;
        this.query = query;
        this.limit = ROWS;
        this.draw();
    }
}

// ---- what stands around breaks ----

// The most frequent of a map's keys, "a \u00d712, b".
function most(map, n) {
    const sorted = [...map].sort((a, b) => b[1] - a[1]);
    const texts = sorted.slice(0, n).map(([key, times]) => (times > 1 ? `${key} \u00d7${count(times)}` : key));
    return texts.join(", ") + (sorted.length > n ? `, ${count(sorted.length - n)} more` : "");
}

function addTo(map, key) {
    map.set(key, (map.get(key) || 0) + 1);
}

// Gives each row of the breaks the kernels that it concerns, and those right before and after them
// in the same step.
function addAround(d) {
    const rows = new Map();
    for (const row of d.tables.breaks.rows)
        rows.set(JSON.stringify([row.how, row.reason, row.by]), {
            row, ops: new Map(), before: new Map(), after: new Map(),
        });
    const keys = new Map(); // what an op's numbers say of its row
    const rowOf = (op) => {
        if (d.opClass[op] <= BUILT) return null;
        const out = d.opOut[op], alone = out < 0 && d.opAlone[op] ? d.lists.alone[d.opAlone[op] - 1] : null;
        const number = out >= 0 ? -1 - out : d.opAlone[op];
        if (!keys.has(number)) {
            const key =
                out >= 0
                    ? ["flush", d.lists.texts[d.outVariant[out]], d.lists.texts[d.outSegment[out]]]
                    : alone && alone[0]
                      ? ["eager", alone[1], alone[2]]
                      : ["open", "", ""];
            keys.set(number, rows.get(JSON.stringify(key)));
        }
        return keys.get(number);
    };
    for (const list of d.streamOps)
        for (let i = 0; i < list.length; i++) {
            const op = list[i];
            if (d.opClass[op] <= BUILT) continue;
            const at = rowOf(op);
            if (!at) continue;
            addTo(at.ops, nameOf(d, op));
            const before = list[i - 1], after = list[i + 1];
            if (i > 0 && d.opStep[before] === d.opStep[op] && rowOf(before) !== at)
                addTo(at.before, nameOf(d, before));
            if (i + 1 < list.length && d.opStep[after] === d.opStep[op] && rowOf(after) !== at)
                addTo(at.after, nameOf(d, after));
        }
    for (const { row, ops, before, after } of rows.values()) {
        row.kernels = most(ops, 3);
        row.before = most(before, 2);
        row.after = most(after, 2);
        const texts = row.how === "eager" ? whyOf(d, row.by) : d.causes.get(row.by);
        row.advice = texts && texts[0] ? `${texts[0]}: ${texts[1]}` : "";
    }
    d.tables.breaks.columns.push(["kernels", "text"], ["before", "text"], ["after", "text"], ["advice", "text"]);
}
