/*
 * tally.hpp - scope guards for C++11 and later over tally.h; the header alone is enough, as there.
 *
 *     tally::tag scene("Scene", name);            // pushes both, in this order, until the end of the scope
 *     tally::override_stack on(state);            // this thread on another thread's tag stack
 *     tally::pause_thread quiet;                  // allocations are matched but not reported
 *
 * Guards can be neither copied nor moved, because what they undo is the order of the scopes. They never throw.
 */
#ifndef TALLY_HPP
#define TALLY_HPP

#include <cstdint>
#include <string>
#include <type_traits>

#include "tally.h"

namespace tally {

namespace detail {
struct scope_only {
    scope_only() = default;
    scope_only(const scope_only &) = delete;
    scope_only &operator=(const scope_only &) = delete;
    scope_only(scope_only &&) = delete;
    scope_only &operator=(scope_only &&) = delete;
    /* On the stack, where scopes are. */
    static void *operator new(std::size_t) = delete;
    static void *operator new[](std::size_t) = delete;
};

/* A literal stays where it is; anything else is copied. */
template <std::size_t N> inline std::uint32_t push(const char (&literal)[N]) { return tally_scope_push(literal); }
template <std::size_t N> inline std::uint32_t push(char (&buffer)[N]) { return tally_scope_push_copy(buffer); }
inline std::uint32_t push(const std::string &name) { return tally_scope_push_copy(name.c_str()); }
template <typename Pointer> struct is_text { static const bool value = false; };
template <> struct is_text<const char *> { static const bool value = true; };
template <> struct is_text<char *> { static const bool value = true; };
template <typename Text> inline typename std::enable_if<is_text<Text>::value, std::uint32_t>::type push(Text name) {
    return tally_scope_push_copy(name);
}
} // namespace detail

/* One or several tags, popped together at the end of the scope or by release(). */
class tag : detail::scope_only {
  public:
    template <typename... Names> explicit tag(Names &&...names) noexcept {
        if (tally_on_()) push_all(names...);
    }
    ~tag() { release(); }
    /* Ends the scope early; a second call does nothing. */
    void release() noexcept {
        if (scope_ != 0) tally_scope_pop(scope_);
        scope_ = 0;
    }

  private:
    void push_all() noexcept {}
    template <typename First, typename... Rest> void push_all(First &first, Rest &...rest) noexcept {
        const std::uint32_t scope = detail::push(first);
        if (scope_ == 0) scope_ = scope; /* popping to the first takes the others with it */
        push_all(rest...);
    }
    std::uint32_t scope_ = 0;
};

/* A position in the tag tree, to be handed to another thread. */
class stack_state {
  public:
    static stack_state current() noexcept {
        stack_state state;
        (void)tally_stack_get(&state.state_);
        return state;
    }
    const tally_stack *get() const noexcept { return &state_; }

  private:
    tally_stack state_ = {0, 0, 0};
};

class override_stack : detail::scope_only {
  public:
    explicit override_stack(const stack_state &state) noexcept : on_(tally_override_begin(state.get(), &mark_) == 0) {}
    ~override_stack() {
        if (on_) (void)tally_override_end(&mark_);
    }

  private:
    tally_stack mark_ = {0, 0, 0};
    bool on_;
};

class pause_thread : detail::scope_only {
  public:
    pause_thread() noexcept { tally_pause_thread_begin(); }
    ~pause_thread() { tally_pause_thread_end(); }
};

class pause_all : detail::scope_only {
  public:
    pause_all() noexcept { tally_pause_all_begin(); }
    ~pause_all() { tally_pause_all_end(); }
};

} // namespace tally

#endif
