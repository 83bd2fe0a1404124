// A recursive-descent parser of one text. Pure.
#include "tests/sim/json.h"

#include <stdlib.h>
#include <string.h>

namespace sim {

namespace {

class Parser {
  public:
    Parser(const std::string &text, Json *json) : p_(text.c_str()), json_(json) {}

    bool All() {
        bool good = Value("");
        Space();
        return good && *p_ == 0;
    }

  private:
    void Space() { p_ += strspn(p_, " \t\r\n"); }

    bool Take(char c) {
        Space();
        if (*p_ != c) {
            return false;
        }
        p_++;
        return true;
    }

    bool String(std::string *out) {
        if (!Take('"')) {
            return false;
        }
        for (; *p_ && *p_ != '"'; p_++) {
            if (*p_ == '\\' && *++p_ == 0) {
                return false;
            }
            out->push_back(*p_);
        }
        return *p_++ == '"';
    }

    bool Members(const std::string &path, char end, bool named) {
        if (Take(end)) {
            return true;
        }
        for (int index = 0;; index++) {
            std::string name = std::to_string(index);
            if (named) {
                name.clear();
                if (!String(&name) || !Take(':')) {
                    return false;
                }
            }
            if (!Value(path.empty() ? name : path + "." + name)) {
                return false;
            }
            if (Take(end)) {
                return true;
            }
            if (!Take(',')) {
                return false;
            }
        }
    }

    bool Value(const std::string &path) {
        Space();
        if (Take('{')) {
            return Members(path, '}', true);
        }
        if (Take('[')) {
            return Members(path, ']', false);
        }
        if (*p_ == '"') {
            return String(&json_->text[path]);
        }
        for (const char *word : {"true", "false", "null"}) {
            if (strncmp(p_, word, strlen(word)) == 0) {
                json_->text[path] = word;
                p_ += strlen(word);
                return true;
            }
        }
        char *end;
        double value = strtod(p_, &end);
        if (end == p_) {
            return false;
        }
        p_ = end;
        json_->number[path] = value;
        return true;
    }

    const char *p_;
    Json *json_;
};

} // namespace

double Json::Number(const std::string &path) const {
    auto found = number.find(path);
    return found == number.end() ? 0 : found->second;
}

bool Json::Has(const std::string &path) const {
    return number.count(path) || text.count(path);
}

double Json::Sum(const std::string &prefix) const {
    double sum = 0;
    for (const auto &entry : number) {
        if (entry.first.rfind(prefix + ".", 0) == 0 &&
            entry.first.find('.', prefix.size() + 1) == std::string::npos) {
            sum += entry.second;
        }
    }
    return sum;
}

Json ParseJson(const std::string &text) {
    Json json;
    json.valid = Parser(text, &json).All();
    return json;
}

} // namespace sim
