// Runs a program in a pseudo-terminal, and knows what a user would see there. It understands the
// few sequences that this tree's programs send, and keeps what it does not understand.
#ifndef CUSPLICE_TESTS_TERMINAL_H
#define CUSPLICE_TESTS_TERMINAL_H

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

class Terminal {
  public:
    // The environment of the test is not the program's; without TERM there is none.
    Terminal(const std::vector<std::string> &command, std::map<std::string, std::string> env,
             unsigned columns, unsigned rows);
    ~Terminal();
    Terminal(const Terminal &) = delete;

    void Pump(); // takes in what was written so far
    // The same until the program sleeps and nothing is left to read: what it draws is whole.
    void Settle();
    void Send(const std::string &keys);
    void Resize(unsigned columns, unsigned rows);
    // Reads until the program has ended. Its exit status, or -signal; -1000: it did not end.
    int Wait();

    pid_t Pid() const { return pid_; }
    std::string Row(unsigned row) const; // from 1 on, without the blanks at its end
    std::string Text() const;            // all rows, each with a newline
    const std::string &Raw() const { return raw_; }
    const std::string &Unknown() const { return unknown_; }
    bool Coloured() const { return coloured_; } // some text had an attribute
    bool Wrapped() const { return wrapped_; }   // a line was longer than the window
    bool Scrolled() const { return scrolled_; } // something left at the top
    bool Alternate() const { return alternate_; }
    bool Cursor() const { return cursor_; }
    bool Echoes() const; // does the terminal echo what is typed, line by line?

  private:
    using Page = std::vector<std::vector<std::string>>;
    void Take(char byte);
    void Control(const std::string &arguments, char final);
    void Put(const std::string &cell);
    void Feed();
    void Erase(unsigned from_row, unsigned from_column, unsigned to_row);

    int fd_ = -1;
    pid_t pid_ = -1;
    bool over_ = false;
    int status_ = 0;
    unsigned columns_, rows_, row_ = 0, column_ = 0;
    Page page_, other_; // shown; the one that comes back
    std::string raw_, pending_, unknown_;
    bool coloured_ = false, wrapped_ = false, scrolled_ = false, alternate_ = false;
    bool cursor_ = true, attribute_ = false;
};

#endif
