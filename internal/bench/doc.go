// Package bench measures the built programs against what the database underneath allows, on a PostgreSQL server of its own.
// Every figure is a ratio of two things measured in the same run in alternation (A B A B), since ratios hold where absolute
// figures do not. docs/performance.md has the method and the tables.
//
// It uses the programs as anybody would, by HTTP, commands and settings, so that it measures what is delivered. The load
// comes from this process, on the same processors.
package bench
