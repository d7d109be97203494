// catalogue.cpp - tags in C++: scope guards, several tags at once, and containers that go on growing under them.
//
//     c++ -o catalogue catalogue.cpp && tally run -- ./catalogue && tally report catalogue.*.tally
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <tally/tally.hpp>

class catalogue {
  public:
    void read(const std::string &shelf, int books) {
        tally::tag where("Catalogue", shelf); // two tags, both gone at the end of the function
        auto &titles = shelves_[shelf];
        titles.reserve(books);
        for (int i = 0; i < books; i++)
            titles.push_back("A title too long for the small-string buffer " + std::to_string(i));
    }

    // An exception leaves the tag stack as it was before the guard, as it does with everything that has a destructor.
    void read_or_fail(const std::string &shelf) {
        tally::tag where("Catalogue", "broken");
        auto doomed = std::make_unique<std::vector<char>>(100000);
        throw std::runtime_error("no such shelf: " + shelf);
    }

    std::size_t size() const {
        std::size_t count = 0;
        for (const auto &shelf : shelves_)
            count += shelf.second.size();
        return count;
    }

  private:
    std::map<std::string, std::vector<std::string>> shelves_;
};

int main() {
    catalogue books;
    books.read("history", 200);
    books.read("poetry", 50);
    try {
        books.read_or_fail("alchemy");
    } catch (const std::runtime_error &error) {
        std::printf("%s\n", error.what());
    }
    {
        tally::tag index("Index");
        std::vector<int> numbers(books.size());
        std::printf("%zu books\n", numbers.size());
    }
    return 0;
}
