#include "tests/html/chromium.h"
#include "tests/text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <regex>
#include <sstream>

namespace {

std::string Replaced(std::string text, const std::string &what, const std::string &with) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

} // namespace

std::string FindChromium() {
    for (const char *name : {"/usr/bin/chromium", "/usr/bin/chromium-browser",
                             "/usr/bin/google-chrome-stable", "/usr/bin/google-chrome"})
        if (access(name, X_OK) == 0)
            return name;
    return "";
}

std::string Unescaped(std::string text) {
    for (const auto &[what, with] : {std::pair<const char *, const char *>{"&lt;", "<"},
                                     {"&gt;", ">"},
                                     {"&quot;", "\""},
                                     {"&nbsp;", "\xc2\xa0"},
                                     {"&amp;", "&"}})
        text = Replaced(text, what, with);
    return text;
}

Rendered Render(const std::string &page, bool offline, unsigned limit_s, unsigned width) {
    static std::atomic<unsigned> number{0};
    std::string own = testing::TempDir() + "/chromium" + std::to_string(number++);
    std::string command = "HOME=" + own + " timeout " + std::to_string(limit_s) + " " +
                          FindChromium() +
                          " --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage"
                          " --disable-background-networking --disable-component-update"
                          " --no-first-run --window-size=" +
                          std::to_string(width) +
                          ",1000 --virtual-time-budget=2000"
                          " --enable-logging=stderr --user-data-dir=" +
                          own + "/profile";
    if (offline)
        command += " --proxy-server=127.0.0.1:9 '--host-resolver-rules=MAP * ~NOTFOUND'";
    command += " --dump-dom 'file://" + page + "' >" + own + ".dom 2>" + own + ".log";
    std::string setup = "mkdir -p " + own + " && ";
    Rendered rendered;
    int status = system((setup + command).c_str());
    rendered.dom = ReadFile(own + ".dom");
    rendered.log = ReadFile(own + ".log");
    EXPECT_EQ(status, 0) << command << "\n" << rendered.log;
    std::stringstream lines(rendered.log);
    for (std::string line; std::getline(lines, line);)
        if (line.find("CONSOLE") != std::string::npos)
            rendered.console += line + "\n";
    size_t body = rendered.dom.find("<body");
    if (body == std::string::npos)
        return rendered;
    std::string tag = rendered.dom.substr(body, rendered.dom.find('>', body) - body);
    static const std::regex attribute("data-([a-z-]+)=\"([^\"]*)\"");
    for (std::sregex_iterator at(tag.begin(), tag.end(), attribute), end; at != end; ++at)
        rendered.data[(*at)[1]] = Unescaped((*at)[2]);
    return rendered;
}

std::vector<std::vector<std::string>> Cells(const std::string &dom, const std::string &id) {
    std::vector<std::vector<std::string>> rows;
    size_t at = dom.find("id=\"" + id + "\""), end = dom.find("</tbody>", at);
    for (at = dom.find("<tbody>", at); (at = dom.find("<tr", at)) < end; at++) {
        size_t row_end = dom.find("</tr>", at);
        rows.emplace_back();
        for (size_t cell = at; (cell = dom.find(" title=\"", cell)) < row_end;) {
            cell += strlen(" title=\"");
            rows.back().push_back(Unescaped(dom.substr(cell, dom.find('"', cell) - cell)));
        }
    }
    return rows;
}
