#include "tests/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "tests/within.h"

Terminal::Terminal(const std::vector<std::string> &command, std::map<std::string, std::string> env,
                   unsigned columns, unsigned rows)
    : columns_(columns), rows_(rows), page_(rows, std::vector<std::string>(columns, " ")),
      other_(page_) {
    struct winsize size = {};
    size.ws_col = (unsigned short)columns;
    size.ws_row = (unsigned short)rows;
    std::vector<std::string> texts;
    for (const auto &[key, value] : env)
        texts.push_back(key + "=" + value);
    std::vector<char *> argv, variables;
    for (const std::string &word : command)
        argv.push_back(const_cast<char *>(word.c_str()));
    for (const std::string &text : texts)
        variables.push_back(const_cast<char *>(text.c_str()));
    argv.push_back(nullptr);
    variables.push_back(nullptr);
    pid_ = forkpty(&fd_, nullptr, nullptr, &size);
    if (pid_ == 0) {
        execve(argv[0], argv.data(), variables.data());
        _exit(127);
    }
    fcntl(fd_, F_SETFD, FD_CLOEXEC);
}

Terminal::~Terminal() {
    if (!over_) {
        kill(pid_, SIGKILL);
        waitpid(pid_, &status_, 0);
    }
    close(fd_);
}

void Terminal::Pump() {
    char bytes[4096];
    struct pollfd ready = {fd_, POLLIN, 0};
    while (poll(&ready, 1, 0) > 0) {
        ssize_t n = read(fd_, bytes, sizeof bytes);
        if (n <= 0)
            return;
        raw_.append(bytes, (size_t)n);
        for (ssize_t i = 0; i < n; i++)
            Take(bytes[i]);
    }
}

void Terminal::Settle() {
    Within(60, [&] {
        Pump();
        size_t before = raw_.size();
        std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
        std::string stat((std::istreambuf_iterator<char>(file)), {});
        size_t name_end = stat.rfind(')');
        bool sleeps = name_end != std::string::npos && stat.compare(name_end, 3, ") S") == 0;
        Pump();
        return sleeps && raw_.size() == before;
    });
}

void Terminal::Send(const std::string &keys) {
    ssize_t done = write(fd_, keys.data(), keys.size());
    (void)done;
}

void Terminal::Resize(unsigned columns, unsigned rows) {
    struct winsize size = {};
    size.ws_col = (unsigned short)columns;
    size.ws_row = (unsigned short)rows;
    columns_ = columns;
    rows_ = rows;
    for (Page *page : {&page_, &other_}) {
        page->resize(rows);
        for (auto &row : *page)
            row.resize(columns, " ");
    }
    row_ = row_ < rows ? row_ : rows - 1;
    column_ = column_ < columns ? column_ : columns;
    ioctl(fd_, TIOCSWINSZ, &size); // the kernel sends SIGWINCH
}

int Terminal::Wait() {
    over_ = Within(getenv("CUS_TEST_EMULATED") ? 400 : 60, [&] {
        Pump();
        return waitpid(pid_, &status_, WNOHANG) == pid_;
    });
    Pump();
    if (!over_)
        return -1000;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
}

bool Terminal::Echoes() const {
    struct termios now;
    return tcgetattr(fd_, &now) == 0 && (now.c_lflag & ECHO) && (now.c_lflag & ICANON);
}

std::string Terminal::Row(unsigned row) const {
    std::string text;
    for (const std::string &cell : page_.at(row - 1))
        text += cell;
    return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::string Terminal::Text() const {
    std::string text;
    for (unsigned row = 1; row <= rows_; row++)
        text += Row(row) + "\n";
    return text;
}

void Terminal::Feed() {
    if (++row_ < rows_)
        return;
    row_ = rows_ - 1;
    scrolled_ = true;
    page_.erase(page_.begin());
    page_.emplace_back(columns_, " ");
}

// A line that is full goes on in the next one with its next character, and not before.
void Terminal::Put(const std::string &cell) {
    if (column_ >= columns_) {
        wrapped_ = true;
        column_ = 0;
        Feed();
    }
    coloured_ |= attribute_;
    page_[row_][column_++] = cell;
}

void Terminal::Erase(unsigned from_row, unsigned from_column, unsigned to_row) {
    for (unsigned row = from_row; row < to_row; row++, from_column = 0)
        for (unsigned column = from_column; column < columns_; column++)
            page_[row][column] = " ";
}

void Terminal::Control(const std::string &arguments, char final) {
    unsigned first = (unsigned)atoi(arguments.c_str());
    if (final == 'H') {
        size_t middle = arguments.find(';');
        unsigned second =
            middle == std::string::npos ? 1 : (unsigned)atoi(arguments.c_str() + middle + 1);
        row_ = (first ? first : 1) - 1;
        row_ = row_ < rows_ ? row_ : rows_ - 1;
        column_ = (second ? second : 1) - 1;
    } else if (final == 'K' && arguments.empty()) {
        Erase(row_, column_, row_ + 1);
    } else if (final == 'J' && (arguments.empty() || first == 2)) {
        Erase(first == 2 ? 0 : row_, first == 2 ? 0 : column_, rows_);
    } else if (final == 'm') {
        attribute_ = first != 0;
    } else if (arguments == "?25" && (final == 'h' || final == 'l')) {
        cursor_ = final == 'h';
    } else if (arguments == "?1049" && (final == 'h' || final == 'l') &&
               alternate_ != (final == 'h')) {
        alternate_ = final == 'h';
        std::swap(page_, other_);
        row_ = column_ = 0;
    } else {
        unknown_ += "\033[" + arguments + final;
    }
}

void Terminal::Take(char byte) {
    pending_ += byte;
    if (pending_[0] == '\033') {
        if (pending_.size() == 2 && byte != '[')
            unknown_ += pending_;
        else if (pending_.size() < 3 || byte < '@')
            return;
        else
            Control(pending_.substr(2, pending_.size() - 3), byte);
    } else if (byte == '\r') {
        column_ = 0;
    } else if (byte == '\n') {
        Feed();
    } else if ((unsigned char)byte < 32) {
        unknown_ += byte;
    } else if (((unsigned char)byte & 0xc0) == 0x80 && column_) {
        page_[row_][column_ - 1] += byte; // of a character of several bytes
    } else {
        Put(pending_);
    }
    pending_.clear();
}
