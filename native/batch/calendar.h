// Where dates are in the calendar: their month, weekday and hour, as positions from 0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

enum class CalendarPart : uint8_t { kMonth, kWeekday, kHour };

constexpr size_t num_positions(CalendarPart part) {
  return part == CalendarPart::kMonth ? 12 : part == CalendarPart::kWeekday ? 7 : 24;
}

// Quotient and remainder as in Python, for a divisor above 0: the remainder is at least 0.
constexpr int64_t floor_mod(int64_t number, int64_t by) {
  const int64_t rest = number % by;
  return rest < 0 ? rest + by : rest;
}
constexpr int64_t floor_div(int64_t number, int64_t by) { return number / by - (number % by < 0 ? 1 : 0); }

// The position of a date that is stored as days, or as microseconds, since 1970-01-01: January, Monday and midnight
// are 0. No number overflows.
constexpr size_t calendar_position(CalendarPart part, bool is_micros, int64_t number) {
  constexpr int64_t kHourMicros = 3'600'000'000, kDayMicros = 24 * kHourMicros;
  if (part == CalendarPart::kHour) return static_cast<size_t>(floor_mod(number, kDayMicros) / kHourMicros);
  const int64_t days = is_micros ? floor_div(number, kDayMicros) : number;
  if (part == CalendarPart::kWeekday) return static_cast<size_t>((floor_mod(days, 7) + 3) % 7);
  // A cycle of the calendar has 400 years. It is counted from 1 March of the year 0, so that a leap day is the last
  // day of its year.
  constexpr int64_t kCycleDays = 146'097, kDaysBefore1970 = 719'468 % kCycleDays;
  const int64_t day = (floor_mod(days, kCycleDays) + kDaysBefore1970) % kCycleDays;
  const int64_t year = (day - day / 1460 + day / 36'524 - day / 146'096) / 365;
  const int64_t day_of_year = day - (year * 365 + year / 4 - year / 100);
  return static_cast<size_t>(((day_of_year * 5 + 2) / 153 + 2) % 12);  // March, the first month, is 2
}

}  // namespace penstock
