package main

import (
	"slices"
	"strings"
)

// untidy does to rows what happens to files between two systems, without changing what they say: blanks around ids
// and amounts, values of an order only in its first row, rows of an order apart, rows without anything.
func untidy(header []string, rows [][]string) [][]string {
	column := func(name string) int { return slices.Index(header, name) }
	id, price := column("order"), column("unit_price")
	var out [][]string
	var later [][]string // rows that come after the next order
	for i, row := range rows {
		first := i == 0 || rows[i-1][id] != row[id]
		last := i == len(rows)-1 || rows[i+1][id] != row[id]
		row = slices.Clone(row)
		if !first && i%3 == 0 {
			leaveToFirstRow(header, row)
		}
		switch i % 17 {
		case 3:
			row[id] += "\u00a0"
		case 8:
			row[id] = " " + row[id] + " "
		case 11:
			row[price] += " "
		}
		if !first && last && i%5 == 0 {
			later = append(later, row)
			continue
		}
		out = append(out, row)
		if last && len(later) > 0 && later[0][id] != row[id] && strings.TrimSpace(later[0][id]) != strings.TrimSpace(row[id]) {
			out, later = append(out, later...), nil
		}
		if i%90 == 60 {
			out = append(out, make([]string, len(row)))
		}
	}
	return append(out, later...)
}

// leaveToFirstRow empties what an order's first row has said.
func leaveToFirstRow(header, row []string) {
	for i, name := range header {
		if strings.HasPrefix(name, "customer_") || strings.HasPrefix(name, "metadata.") ||
			slices.Contains([]string{"currency", "issue_date", "due_date", "expected_gross", "note"}, name) {
			row[i] = ""
		}
	}
}
