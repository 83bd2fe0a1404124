// Prints a case as text and as C. Pure functions of the case and of the text of machine.c.
#include <set>
#include <sstream>

#include "tests/fuzz/case.h"

namespace fuzz {

namespace {

const char machine[] =
#include "tests/fuzz/machine_text.h"
    ;

const char *const kinds[] = {"LEGACY",       "PER_THREAD", "BLOCKING",
                             "NON_BLOCKING", "URGENT",     "LOW_BLOCKING"};

// The parts of machine.c that a program needs, in order.
std::string Parts(const std::set<std::string> &wanted) {
    std::istringstream lines(machine);
    std::string out, part;
    bool take = false;
    for (std::string line; std::getline(lines, line);) {
        const std::string mark = "/*@ part ";
        if (line.compare(0, mark.size(), mark) == 0) {
            part = line.substr(mark.size(), line.find(" */") - mark.size());
            take = wanted.count(part) > 0;
        } else if (take) {
            out += line + "\n";
        }
    }
    return out;
}

std::string PrintProgram(const fuzz_program &p, size_t number) {
    std::ostringstream out;
    out << "\n/* verb, lane, other, buffer, every, phase, repeat, vary, value, size, grow, flags "
           "*/\n"
        << "static const struct op ops_" << number << "[] = {\n";
    for (unsigned i = 0; i < p.n_ops; i++) {
        const fuzz_op &o = p.op[i];
        out << "    {op_" << VerbName(o.verb) << ", " << +o.lane << ", " << +o.other << ", "
            << +o.buffer << ", " << +o.every << ", " << +o.phase << ", " << +o.repeat << ", "
            << +o.vary << ", " << o.value << ", " << o.size << ", " << o.grow << ", "
            << VerbFlags(o.verb) << "},\n";
    }
    out << "};\n\nstatic void program_" << number << "(struct machine *m) {\n"
        << "    m->steps = " << p.steps << ", m->threads = " << p.threads
        << ", m->lanes = " << p.lanes << ";\n"
        << "    m->ops = ops_" << number << ", m->n_ops = " << p.n_ops << ";\n";
    for (unsigned l = 0; l < p.lanes; l++) {
        out << "    m->lane[" << l << "] = (struct lane){.kind = " << kinds[p.kind[l]]
            << ", .thread = " << +p.thread[l] << "};\n";
    }
    out << "    run_and_tell(m);\n}\n";
    return out.str();
}

const char tell[] = R"(
/* What must be the same in every run: codes in order, and what is left in memory. */
static void run_and_tell(struct machine *m) {
    machine_run(m);
    for (unsigned i = 0; i < m->threads; i++)
        for (unsigned k = 0; k < m->n_codes[i]; k++)
            printf("thread %u op %u step %u: %d\n", i, m->codes[i][k].op, m->codes[i][k].step, m->codes[i][k].code);
    for (unsigned i = 0; i < m->lanes; i++)
        printf("lane %u: %016llx\n", i, (unsigned long long)lane_digest(&m->lane[i]));
    machine_end(m);
    memset(m->n_codes, 0, sizeof(m->n_codes));
}
)";

} // namespace

std::string ToC(const Case &c, const std::string &head) {
    std::ostringstream out;
    std::set<std::string> wanted = {"start", "run"};
    for (const auto &p : c.programs) {
        for (unsigned i = 0; i < p.n_ops; i++) {
            wanted.insert(std::string("op_") + VerbName(p.op[i].verb));
        }
    }
    out << "/*\n";
    std::istringstream lines(head);
    for (std::string line; std::getline(lines, line);) {
        out << " *" << (line.empty() ? "" : " ") << line << "\n";
    }
    out << " *\n * Build: cc -I$CUDA_HOME/include THIS.c -lcuda -lpthread. FUZZ_KERNELS names the "
           "image of the kernels\n"
        << " * (bazel-bin/harness/scenario/scenario_kernels.fatbin); the simulator takes any "
           "file.\n */\n"
        << Parts(wanted) << tell;
    for (size_t i = 0; i < c.programs.size(); i++) {
        out << PrintProgram(c.programs[i], i);
    }
    out << "\nint main(void) {\n    static struct machine m;\n"
        << "    const char *image = getenv(\"FUZZ_KERNELS\");\n"
        << "    machine_start(&m, image ? image : \"/proc/self/exe\");\n";
    for (size_t i = 0; i < c.programs.size(); i++) {
        out << "    program_" << i << "(&m);\n";
    }
    out << "    return 0;\n}\n";
    return out.str();
}

std::string ToText(const Case &c) {
    std::ostringstream out;
    for (const auto &entry : c.env) {
        out << "env " << entry.first << "=" << entry.second << "\n";
    }
    if (!c.fault.empty()) {
        out << "fault " << c.fault << "\n";
    }
    if (c.schedules) {
        out << "schedules " << c.schedules << " " << c.seed << "\n";
    }
    for (const auto &t : c.last) {
        out << "timing " << t.delay_us << " " << t.seed << " " << t.plan.seed << " " << t.plan.depth
            << " " << t.plan.points << " " << t.plan.by_takes << " " << t.plan.dropped << "\n";
    }
    for (const auto &p : c.programs) {
        out << "program " << p.steps << " " << p.threads << " " << p.lanes << "\n";
        for (unsigned l = 0; l < p.lanes; l++) {
            out << "lane " << kinds[p.kind[l]] << " " << +p.thread[l] << "\n";
        }
        out << "# op verb lane other buffer every phase repeat vary value size grow\n";
        for (unsigned i = 0; i < p.n_ops; i++) {
            const fuzz_op &o = p.op[i];
            out << "op " << VerbName(o.verb) << " " << +o.lane << " " << +o.other << " "
                << +o.buffer << " " << +o.every << " " << +o.phase << " " << +o.repeat << " "
                << +o.vary << " " << o.value << " " << o.size << " " << o.grow << "\n";
        }
    }
    return out.str();
}

namespace {

std::string ReadLane(std::istringstream *words, fuzz_program *p, unsigned number) {
    std::string kind;
    unsigned thread = 0;
    *words >> kind >> thread;
    for (unsigned k = 0; k < FUZZ_KINDS; k++) {
        if (kind == kinds[k] && number < p->lanes && thread < p->threads) {
            p->kind[number] = static_cast<uint8_t>(k);
            p->thread[number] = static_cast<uint8_t>(thread);
            return "";
        }
    }
    return "not a lane";
}

std::string ReadOp(std::istringstream *words, fuzz_program *p) {
    std::string verb;
    unsigned n[7], value;
    int size, grow;
    *words >> verb;
    for (unsigned &number : n) {
        *words >> number;
    }
    *words >> value >> size >> grow;
    if (!*words || p->n_ops == FUZZ_OPS_MAX || n[0] >= p->lanes || n[1] >= p->lanes || n[3] == 0 ||
        n[3] > 255 || n[4] >= n[3] || n[5] > 255) {
        return "not an op";
    }
    for (unsigned v = 0; v < FUZZ_VERBS; v++) {
        if (verb == VerbName(v)) {
            p->op[p->n_ops++] = {
                static_cast<uint8_t>(v),    static_cast<uint8_t>(n[0]), static_cast<uint8_t>(n[1]),
                static_cast<uint8_t>(n[2]), static_cast<uint8_t>(n[3]), static_cast<uint8_t>(n[4]),
                static_cast<uint8_t>(n[5]), static_cast<uint8_t>(n[6]), value,
                static_cast<int16_t>(size), static_cast<int16_t>(grow)};
            return "";
        }
    }
    return "no verb " + verb;
}

} // namespace

std::string FromText(const std::string &text, Case *c) {
    std::istringstream lines(text);
    unsigned lane = 0, at = 0;
    *c = {};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string word, error;
        at++;
        if (!(words >> word) || word[0] == '#') {
            continue;
        }
        if (word == "env") {
            size_t equal = line.find('=');
            if (equal == std::string::npos) {
                error = "no =";
            } else {
                c->env[line.substr(4, equal - 4)] = line.substr(equal + 1);
            }
        } else if (word == "fault") {
            words >> c->fault;
        } else if (word == "schedules") {
            words >> c->schedules >> c->seed;
            error = words ? "" : "not a number of schedules and a seed";
        } else if (word == "timing") {
            Timing t = {};
            words >> t.delay_us >> t.seed >> t.plan.seed >> t.plan.depth >> t.plan.points >>
                t.plan.by_takes >> t.plan.dropped;
            error = words ? "" : "not a timing";
            c->last.push_back(t);
        } else if (word == "program") {
            fuzz_program p = {};
            words >> p.steps >> p.threads >> p.lanes;
            if (!words || p.threads < 1 || p.threads > FUZZ_THREADS || p.lanes < 1 ||
                p.lanes > FUZZ_LANES) {
                error = "not a program";
            }
            c->programs.push_back(p);
            lane = 0;
        } else if (c->programs.empty()) {
            error = "no program yet";
        } else if (word == "lane") {
            error = ReadLane(&words, &c->programs.back(), lane++);
        } else if (word == "op") {
            error = ReadOp(&words, &c->programs.back());
        } else {
            error = "not understood";
        }
        if (!error.empty()) {
            return "line " + std::to_string(at) + ": " + error;
        }
    }
    return c->programs.empty() ? "no program" : "";
}

} // namespace fuzz
