// Opens a page in headless Chromium without a network.
#ifndef CUSPLICE_TESTS_HTML_CHROMIUM_H
#define CUSPLICE_TESTS_HTML_CHROMIUM_H

#include <map>
#include <string>
#include <vector>

// Debian's chromium or what is as good; "" where there is none.
std::string FindChromium();

struct Rendered {
    std::string dom;     // as it stood after the scripts had run
    std::string console; // lines that the page wrote to the console, errors among them
    std::string log;     // all of stderr
    std::map<std::string, std::string> data; // data- attributes of the body
};

// Opens a file of this machine. `offline`: names are not resolved, and the proxy is not there.
Rendered Render(const std::string &page, bool offline, unsigned limit_s = 100,
                unsigned width = 1400);

// Texts of the `title` of every cell, by row, of the table in the element of that id.
std::vector<std::vector<std::string>> Cells(const std::string &dom, const std::string &id);

std::string Unescaped(std::string text);

#endif
