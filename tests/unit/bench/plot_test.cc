// Promise: the same numbers give the same plot bytes, places follow the numbers, and texts cannot
// break it.
#include "tools/bench/plot.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "tests/text.h"

namespace {

const plot_point kLine[] = {{4, 4000, 0, 0}, {16, 2000, 100, 0}, {64, 1000, 0, 0}};
const plot_point kLevel[] = {{0, 4000, 0, 0}};

std::string Draw(const std::vector<plot_series> &series, const char *title = "program") {
    plot plot = {title, "below", series.data(), static_cast<unsigned>(series.size())};
    char *text = nullptr;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    plot_svg(&plot, to);
    fclose(to);
    std::string svg(text, bytes);
    free(text);
    return svg;
}

const std::vector<plot_series> kSeries = {{"eager", kLevel, 1, true, true},
                                          {"piecewise", kLine, 3, false, false}};

TEST(Plot, SameNumbersSameBytes) {
    std::string svg = Draw(kSeries);
    EXPECT_EQ(svg, Draw(kSeries));
    EXPECT_EQ(Count(svg, "class=\"series\""), 2u);
    EXPECT_EQ(Count(svg, "class=\"point\""), 4u);
    EXPECT_EQ(Count(svg, "class=\"error\""), 4u);
}

// The axis of times goes from 0 below to 4 us above, that of sizes by the power.
TEST(Plot, PlacesFollowTheNumbers) {
    std::string svg = Draw(kSeries);
    EXPECT_NE(svg.find("d=\"M106.0 66.0L326.0 236.0L546.0 321.0\""), std::string::npos) << svg;
    EXPECT_NE(svg.find("stroke-dasharray=\"6 4\" d=\"M76 66.0H596\""), std::string::npos) << svg;
    EXPECT_NE(svg.find("d=\"M326.0 244.5V227.5M"), std::string::npos) << svg; // 100 ns to each side
    EXPECT_NE(svg.find(">time of a step (us)<"), std::string::npos);
    for (const char *tick : {">0<", ">1<", ">2<", ">3<", ">4<", ">16<", ">64<"})
        EXPECT_EQ(Count(svg, tick), 1u + (tick[1] == '4')) << tick; // 4 us and segments of 4
}

// 2000 and 100 ns by 1.5: where 3000 and 150 would be. What they are is told nevertheless.
TEST(Plot, APointIsDrawnByItsScale) {
    const plot_point scaled[] = {{4, 4000, 0, 0.5}, {16, 2000, 100, 1.5}, {64, 1000, 0, 0}};
    std::string svg = Draw({{"eager", kLevel, 1, true, true}, {"cells", scaled, 3, false, false}});
    EXPECT_NE(svg.find("d=\"M106.0 236.0L326.0 151.0L546.0 321.0\""), std::string::npos) << svg;
    EXPECT_NE(svg.find("d=\"M326.0 163.8V138.2M"), std::string::npos) << svg;
    EXPECT_NE(svg.find("data-x=\"16\" data-ns=\"2000\" data-noise=\"100\""), std::string::npos);
}

TEST(Plot, SeriesDifferWithoutColour) {
    std::vector<plot_series> series;
    for (int i = 0; i < 7; i++)
        series.push_back({"s", kLine, 3, false, false});
    std::string svg = Draw(series), rest = svg;
    std::vector<std::string> looks;
    for (size_t at = 0;
         (at = svg.find("class=\"line\" stroke-dasharray=\"", at)) != std::string::npos; at++) {
        size_t marker = svg.find(" d=\"", svg.find("class=\"marker\"", at));
        looks.push_back(svg.substr(at, svg.find(" d=", at) - at) +
                        svg.substr(marker, svg.find("\"/>", marker) - marker));
    }
    ASSERT_EQ(looks.size(), 7u);
    for (size_t i = 0; i < looks.size(); i++)
        for (size_t k = 0; k < i; k++)
            EXPECT_NE(looks[i], looks[k]);
}

TEST(Plot, NoTextBreaksIt) {
    plot_series series = {"<a & \"b\">\n.\x01.\xff", kLine, 3, false, false};
    std::string svg = Draw({series}, "</svg>");
    EXPECT_NE(svg.find(">&lt;a &amp; &quot;b&quot;&gt;?.?.?</text>"), std::string::npos) << svg;
    EXPECT_NE(svg.find(">&lt;/svg&gt;<"), std::string::npos);
    EXPECT_EQ(Count(svg, "</svg>"), 1u);
    // What XML 1.0 forbids, what turns the direction, half a character; one that is none of these.
    series.name = "\xef\xbf\xbf|\xc2\x9b|\xe2\x80\xae|'|\xc3|\xc3\xa9";
    svg = Draw({series});
    EXPECT_NE(svg.find(">?|?|?|&#39;|?|\xc3\xa9</text>"), std::string::npos) << svg;
    std::string name(1000, 'x');
    series.name = name.c_str();
    EXPECT_NE(Draw({series}).find(std::string(39, 'x') + "...</text>"), std::string::npos);
}

TEST(Plot, FewNumbersAreEnough) {
    const plot_point nothing[] = {{2, 0, 0, 0}};
    EXPECT_NE(Draw({}).find("</svg>"), std::string::npos);
    std::string svg =
        Draw({{"zero", nothing, 1, false, false}, {"none", nothing, 0, false, false}});
    EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
    EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
    EXPECT_EQ(Count(svg, "class=\"series\""), 1u);
}

} // namespace
