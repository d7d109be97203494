// Work for a C++ compiler: standard headers that are mostly templates, and instances of our own, wide and deep.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct fibonacci { static constexpr long value = fibonacci<N - 1>::value + fibonacci<N - 2>::value; };
template <> struct fibonacci<0> { static constexpr long value = 0; };
template <> struct fibonacci<1> { static constexpr long value = 1; };

template <int N> struct number { int value = N; };

template <int... N> long sum_of_maps(std::integer_sequence<int, N...>) {
    long sum = 0;
    ((sum +=
      [] {
          std::map<int, number<N>> by_number;
          std::unordered_map<long, std::vector<number<N>>> lists;
          by_number[N].value = N;
          lists[N].push_back(number<N>{});
          return by_number[N].value + lists[N].front().value;
      }()),
     ...);
    return sum;
}

template <int... N> auto wide_tuple(std::integer_sequence<int, N...>) { return std::make_tuple(number<N>{}...); }

template <int... N> std::variant<number<N>...> wide_variant(std::integer_sequence<int, N...>) { return number<0>{}; }

int main() {
    std::regex pattern("(a|b)*c[0-9]+");
    auto tuple = wide_tuple(std::make_integer_sequence<int, 12>());
    auto variant = wide_variant(std::make_integer_sequence<int, 12>());
    long seen = std::visit([](auto &alternative) -> long { return alternative.value; }, variant);
    std::cout << fibonacci<80>::value << ' ' << sum_of_maps(std::make_integer_sequence<int, 6>()) << ' '
              << std::get<11>(tuple).value << ' ' << seen << ' ' << std::regex_match("abc1", pattern) << '\n';
}
