#include "tests/fuzz/parse/forms.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>

#include "tests/fuzz/parse/check.h"

namespace {

bool In(const char *list, const std::string &word) {
    std::string all = std::string(" ") + list + " ";
    return all.find(" " + word + " ") != std::string::npos;
}

bool IsDigit(char c) {
    return c >= '0' && c <= '9';
}

bool IsWord(char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

bool IsBase64(char c) {
    return (IsWord(c) && c != '_' && c != '-') || c == '+' || c == '/' || c == '=';
}

// One character of a text; ends the process where the bytes are no UTF-8.
uint32_t Character(const std::string &text, size_t *at) {
    auto byte = [&](size_t i) -> uint32_t {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    uint32_t first = byte(*at), more = first < 0x80   ? 0
                                       : first < 0xc0 ? 9
                                       : first < 0xe0 ? 1
                                       : first < 0xf0 ? 2
                                       : first < 0xf8 ? 3
                                                      : 9;
    CHECK(more < 4);
    uint32_t c = more ? first & (0x3fu >> more) : first;
    for (uint32_t i = 1; i <= more; i++) {
        CHECK((byte(*at + i) & 0xc0) == 0x80);
        c = c << 6 | (byte(*at + i) & 0x3f);
    }
    CHECK(c >= least[more] && c < 0x110000 && (c < 0xd800 || c >= 0xe000));
    *at += more + 1;
    return c;
}

// What is read from left to right.
struct Scan {
    const std::string &text;
    size_t at = 0;

    char Now() const { return at < text.size() ? text[at] : '\0'; }
    bool Begins(const char *word) const { return text.compare(at, strlen(word), word) == 0; }
    bool Take(const char *word) {
        bool is = Begins(word);
        at += is ? strlen(word) : 0;
        return is;
    }
    void Need(const char *word) { CHECK(Take(word)); }
    void Space() {
        while (Now() && strchr(" \t\r\n", Now()))
            at++;
    }
    std::string Word() {
        size_t from = at;
        while (IsWord(Now()))
            at++;
        CHECK(at > from);
        return text.substr(from, at - from);
    }
};

// ---- JSON ----

void JsonString(Scan *s) {
    s->Need("\"");
    while (s->Now() != '"') {
        if (s->Take("\\u")) {
            for (int i = 0; i < 4; i++, s->at++)
                CHECK(isxdigit(static_cast<unsigned char>(s->Now())));
        } else if (s->Take("\\")) {
            CHECK(s->Now() && strchr("\"\\/bfnrt", s->Now()));
            s->at++;
        } else {
            CHECK(Character(s->text, &s->at) >= 0x20);
        }
    }
    s->at++;
}

void Digits(Scan *s) {
    CHECK(IsDigit(s->Now()));
    while (IsDigit(s->Now()))
        s->at++;
}

void JsonNumber(Scan *s) {
    s->Take("-");
    if (!s->Take("0"))
        Digits(s);
    if (s->Take("."))
        Digits(s);
    if (s->Take("e") || s->Take("E")) {
        if (!s->Take("+"))
            s->Take("-");
        Digits(s);
    }
}

void JsonValue(Scan *s, int depth);

void JsonParts(Scan *s, const char *close, bool keyed, int depth) {
    s->at++;
    s->Space();
    if (s->Take(close))
        return;
    for (;;) {
        s->Space();
        if (keyed) {
            JsonString(s);
            s->Space();
            s->Need(":");
        }
        JsonValue(s, depth + 1);
        if (s->Take(close))
            return;
        s->Need(",");
    }
}

void JsonValue(Scan *s, int depth) {
    CHECK(depth < 100);
    s->Space();
    if (s->Now() == '{')
        JsonParts(s, "}", true, depth);
    else if (s->Now() == '[')
        JsonParts(s, "]", false, depth);
    else if (s->Now() == '"')
        JsonString(s);
    else if (!s->Take("true") && !s->Take("false") && !s->Take("null"))
        JsonNumber(s);
    s->Space();
}

// ---- CSV ----

std::string Cell(Scan *s) {
    std::string cell;
    if (!s->Take("\"")) {
        while (s->Now() && !strchr(",\n", s->Now())) {
            CHECK(s->Now() != '"');
            cell += s->text[s->at++];
        }
        return cell;
    }
    while (!s->Begins("\"") || s->Begins("\"\"")) {
        CHECK(s->Now());
        s->Take("\"");
        cell += s->text[s->at++];
    }
    s->at++;
    return cell;
}

// A spreadsheet leaves quotes and blanks in front out.
bool IsFormula(const std::string &cell) {
    size_t at = cell.find_first_not_of(" \"");
    return at != std::string::npos && strchr("=+-@\t\r", cell[at]);
}

// ---- dot ----

void DotString(Scan *s) {
    s->Need("\"");
    while (!s->Take("\"")) {
        CHECK(s->Now());
        if (s->Take("\\")) {
            CHECK(s->Now() && strchr("\"\\nlr", s->Now()));
        }
        s->at++;
    }
    CHECK(s->Now() && strchr(";,] \n", s->Now()));
}

// ---- SVG ----

void XmlText(Scan *s, char end) {
    while (s->Now() != end) {
        if (s->Now() == '&') {
            CHECK(s->Take("&lt;") || s->Take("&gt;") || s->Take("&amp;") || s->Take("&quot;") ||
                  s->Take("&apos;") || s->Take("&#39;"));
            continue;
        }
        CHECK(s->Now() && s->Now() != '<');
        uint32_t c = Character(s->text, &s->at);
        CHECK(c == '\n' || (c >= 0x20 && c != 0x7f && (c < 0x80 || c >= 0xa0)));
        CHECK(c != 0xfffe && c != 0xffff);
    }
}

void XmlAttributes(Scan *s) {
    while (s->Take(" ")) {
        std::string name = s->Word();
        CHECK(
            In("version encoding xmlns width height viewBox font-family font-size font-weight x y "
               "class stroke fill d transform text-anchor stroke-width stroke-dasharray data-name "
               "data-x data-ns data-noise",
               name));
        s->Need("=\"");
        size_t from = s->at;
        XmlText(s, '"');
        std::string value = s->text.substr(from, s->at - from);
        if (In("width height x y d transform data-x data-ns data-noise", name))
            CHECK(value.find("nan") == std::string::npos && value.find("inf") == std::string::npos);
        s->at++;
    }
}

void XmlElement(Scan *s, int depth) {
    CHECK(depth < 20);
    s->Need("<");
    std::string name = s->Word();
    CHECK(In("svg title rect text g path", name));
    XmlAttributes(s);
    if (s->Take("/>"))
        return;
    s->Need(">");
    for (;;) {
        XmlText(s, '<');
        if (s->Take("</"))
            break;
        XmlElement(s, depth + 1);
    }
    s->Need((name + ">").c_str());
}

} // namespace

std::string Printed(const std::function<void(FILE *)> &print) {
    char *bytes = nullptr;
    size_t n = 0;
    FILE *to = open_memstream(&bytes, &n);
    CHECK(to);
    print(to);
    CHECK(fclose(to) == 0);
    std::string text(bytes, n);
    free(bytes);
    return text;
}

void CheckPlain(const std::string &text) {
    for (size_t at = 0; at < text.size();) {
        uint32_t c = Character(text, &at);
        CHECK(c == '\n' || (c >= 0x20 && c != 0x7f && (c < 0x80 || c >= 0xa0)));
        CHECK(c != 0x2028 && c != 0x2029 && c != 0x61c && c != 0x200e && c != 0x200f);
        CHECK((c < 0x202a || c > 0x202e) && (c < 0x2066 || c > 0x2069));
    }
    CHECK(text.empty() || text.back() == '\n');
}

std::vector<std::string> Lines(const std::string &text) {
    std::vector<std::string> lines;
    for (size_t from = 0, end; from < text.size(); from = end + 1) {
        end = text.find('\n', from);
        CHECK(end != std::string::npos);
        lines.push_back(text.substr(from, end - from));
    }
    return lines;
}

void CheckJson(const std::string &text) {
    Scan s{text};
    JsonValue(&s, 0);
    CHECK(s.at == text.size());
}

std::vector<std::vector<std::string>> CheckCsv(const std::string &text,
                                               const std::vector<bool> &numbers) {
    std::vector<std::vector<std::string>> rows;
    Scan s{text};
    while (s.Now()) {
        std::vector<std::string> row;
        do {
            row.push_back(Cell(&s));
            CHECK(row.size() <= numbers.size());
            CHECK(numbers[row.size() - 1] || !IsFormula(row.back()));
        } while (s.Take(","));
        s.Need("\n");
        CHECK(row.size() == numbers.size());
        rows.push_back(row);
    }
    CHECK(s.at == text.size());
    return rows;
}

void CheckDot(const std::string &text) {
    CheckPlain(text);
    Scan s{text};
    int open = 0;
    s.Need("digraph step {\n");
    for (open = 1; open; s.Space()) {
        s.Space();
        if (s.Now() == '"') {
            DotString(&s);
        } else if (s.Take("{")) {
            open++;
        } else if (s.Take("}")) {
            open--;
        } else if (!s.Take("->")) {
            CHECK(IsWord(s.Now()) || strchr("[]=;,#", s.Now()));
            s.at++;
        }
    }
    CHECK(s.at == text.size());
}

void CheckSvg(const std::string &text) {
    Scan s{text};
    s.Need("<?xml");
    XmlAttributes(&s);
    s.Need("?>\n");
    XmlElement(&s, 0);
    s.Space();
    CHECK(s.at == text.size());
}

void CheckScripts(const std::string &text) {
    CheckPlain(text);
    for (Scan s{text}; s.at < text.size(); s.Space()) {
        s.Need("<script type=\"");
        bool json = s.Take("application/json");
        if (!json)
            s.Need("text/plain");
        s.Need("\" id=\"");
        s.Word();
        s.Need("\">");
        std::string inside = text.substr(s.at, text.find('<', s.at) - s.at);
        if (json)
            CheckJson(inside);
        else
            CHECK(std::all_of(inside.begin(), inside.end(), IsBase64));
        s.at += inside.size();
        s.Need("</script>");
    }
}
