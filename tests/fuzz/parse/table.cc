// Target: tables in their four formats, and the plot of bench, with any texts and numbers. Each
// keeps what its format promises. (trace.cc covers dot.)
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/parse/bytes.h"
#include "tests/fuzz/parse/check.h"
#include "tests/fuzz/parse/forms.h"
extern "C" {
#include "tools/bench/plot.h"
#include "tools/trace/table.h"
}

namespace {

void Columns(Bytes *in, unsigned n, table_column *columns) {
    static const char *const keys[] = {"calls", "share", "host_ns", "bytes", "kernel", "x"};
    for (unsigned i = 0; i < n; i++)
        columns[i] = {keys[i], static_cast<table_unit>(in->Below(TABLE_PLACE + 1))};
}

bool IsReal(table_unit unit) {
    return unit == TABLE_REAL || unit == TABLE_PERCENT;
}

void Fill(Bytes *in, table *t) {
    for (unsigned n = in->Below(4); n; n--)
        if (in->Below(2))
            table_note(t, "file", in->Text().c_str());
        else
            table_note_number(t, "ops", in->Integer());
    for (unsigned rows = in->Below(12); rows && !in->Empty(); rows--) {
        table_value *row = table_row(t);
        for (unsigned i = 0; i < t->n_columns; i++) {
            double real = in->Below(2) ? in->Number<double>() : in->Byte();
            if (t->columns[i].unit == TABLE_TEXT)
                row[i].text = in->Below(8) ? table_keep(t, in->Text().c_str()) : nullptr;
            else if (IsReal(t->columns[i].unit))
                row[i].real = isfinite(real) ? real : 0; // what reports make is
            else
                row[i].number = in->Integer();
        }
    }
}

struct Shown {
    std::vector<unsigned> columns;
    size_t rows;
};

// One line for each row and note, two for the head in Markdown.
void CheckMarkdown(const std::string &text, const table &t, const Shown &shown) {
    std::vector<std::string> lines = Lines(text);
    size_t notes = t.notes_in_md && t.n_notes ? t.n_notes + 1 : 0;
    CHECK(lines.size() >= notes + 2 + shown.rows);
    CHECK(!strcasestr(text.c_str(), "://") && !strcasestr(text.c_str(), "www."));
    for (size_t i = 0; i < lines.size(); i++) {
        size_t bars = 0;
        bool escaped = false;
        for (char c : lines[i]) {
            CHECK(c != '<' || escaped);
            bars += c == '|' && !escaped;
            escaped = c == '\\' && !escaped;
        }
        if (i >= notes && i < notes + 2 + shown.rows)
            CHECK(bars == shown.columns.size() + 1);
    }
}

bool IsOrdinary(const std::string &text) {
    for (char c : text)
        if (!isalnum(static_cast<unsigned char>(c)) && !strchr("_ ():*&,\"", c))
            return false;
    return true;
}

// Ordinary texts are read back as they are.
void CheckRows(const std::string &text, const table &t, const Shown &shown) {
    std::vector<bool> numbers;
    for (unsigned column : shown.columns)
        numbers.push_back(t.columns[column].unit != TABLE_TEXT);
    std::vector<std::vector<std::string>> rows = CheckCsv(text, numbers);
    CHECK(rows.size() == shown.rows + 1 && Lines(text).size() == rows.size());
    std::multiset<std::string> cells;
    for (const auto &row : rows)
        cells.insert(row.begin(), row.end());
    for (size_t i = 0; i < t.n_rows && shown.rows == t.n_rows; i++)
        for (unsigned column : shown.columns) {
            const char *is = t.values[i * t.n_columns + column].text;
            if (t.columns[column].unit == TABLE_TEXT && is && IsOrdinary(is))
                CHECK(cells.count(is));
        }
}

void Print(table *t, table_view view, const Shown &shown) {
    char error[200];
    CHECK(table_check(t, &view, error, sizeof error));
    for (table_format format : {TABLE_TEXTUAL, TABLE_CSV, TABLE_JSON, TABLE_MD}) {
        view.format = format;
        std::string text = Printed([&](FILE *to) { table_print(t, &view, to); });
        CHECK(!t->failed);
        CheckPlain(text);
        size_t also = t->also && t->also->n_rows ? t->also->n_rows + 2 + t->also->n_notes : 0;
        if (format == TABLE_TEXTUAL)
            CHECK(Lines(text).size() == t->n_notes + 1 + shown.rows + also);
        else if (format == TABLE_CSV)
            CheckRows(text, *t, shown);
        else if (format == TABLE_JSON)
            CheckJson(text);
        else
            CheckMarkdown(text, *t, shown);
    }
}

void Table(Bytes *in) {
    table_column columns[6], others[6];
    unsigned n = 1 + in->Below(6), m = 1 + in->Below(6);
    table t, also;
    memset(&t, 0, sizeof t);
    memset(&also, 0, sizeof also);
    Columns(in, n, columns);
    Columns(in, m, others);
    table_init(&t, "kernels", columns, n, columns[in->Below(n)].key);
    table_init(&also, "others", others, m, others[0].key);
    t.notes_in_md = in->Below(2);
    Fill(in, &t);
    if (in->Below(2)) {
        t.also = &also;
        Fill(in, &also);
    }
    table_view view = {};
    std::string sort = in->Below(2) ? "-" : "", fields;
    sort += columns[in->Below(n)].key;
    Shown shown = {{}, t.n_rows};
    view.sort = sort.c_str();
    for (unsigned i = in->Below(4); i; i--) {
        shown.columns.push_back(in->Below(n));
        fields += (fields.empty() ? "" : ",") + std::string(columns[shown.columns.back()].key);
    }
    view.fields = fields.empty() ? nullptr : fields.c_str();
    for (unsigned i = 0; i < n && fields.empty(); i++)
        shown.columns.push_back(i);
    view.top = in->Below(4);
    if (view.top && view.top < t.n_rows)
        shown.rows = view.top;
    Print(&t, view, shown);
    // A field that there is not is named, whatever it is.
    char error[60];
    std::string wrong = in->Text();
    view.fields = wrong.c_str();
    CHECK(table_check(&t, &view, error, sizeof error) ||
          (*error && memchr(error, 0, sizeof error)));
    table_free(&t);
    table_free(&also);
}

void Plot(Bytes *in) {
    std::deque<std::string> texts;
    std::deque<std::vector<plot_point>> points;
    std::vector<plot_series> series;
    auto text = [&] {
        texts.push_back(in->Text());
        return texts.back().c_str();
    };
    plot p = {};
    p.title = text();
    p.subtitle = text();
    for (unsigned n = in->Below(5); n && !in->Empty(); n--) {
        points.emplace_back();
        plot_series one = {};
        one.name = text();
        one.level = in->Below(2);
        one.baseline = in->Below(2);
        for (unsigned k = one.level ? 1 : in->Below(70); k && !in->Empty(); k--) {
            uint32_t x = in->Below(2) ? in->Number<uint32_t>() : in->Byte();
            double ns = in->Below(2) ? in->Number<double>() : in->Byte();
            double noise = in->Below(2) ? in->Number<double>() : 0;
            double scale = in->Below(2) ? in->Number<double>() : 0;
            points.back().push_back({x ? x : 1, ns, noise, scale});
        }
        std::sort(points.back().begin(), points.back().end(),
                  [](const plot_point &a, const plot_point &b) { return a.x < b.x; });
        one.points = points.back().data();
        one.n = static_cast<unsigned>(points.back().size());
        series.push_back(one);
    }
    p.series = series.data();
    p.n = static_cast<unsigned>(series.size());
    std::string svg = Printed([&](FILE *to) { plot_svg(&p, to); });
    CheckPlain(svg);
    CheckSvg(svg);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Bytes in(data, size);
    if (in.Below(4) == 3)
        Plot(&in);
    else
        Table(&in);
    return 0;
}
