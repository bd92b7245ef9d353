package invoice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/idempotency"
)

const defaultDigits = 6

// errTakeNumbers tells a failure at the counter, which all invoices of a series need, from one at a key or an order.
var errTakeNumbers = errors.New("take invoice numbers")

// defaultPrefix is the series of a role that the tenant has not set up.
func defaultPrefix(role erpapi.Role) string {
	switch role {
	case erpapi.RoleCreditNote:
		return "CN"
	case erpapi.RoleCorrection:
		return "COR"
	default:
		return "INV"
	}
}

// counter is what is counted without a hole: the invoices of one prefix, dated in one year.
type counter struct {
	prefix string
	year   int32
}

// number is a place in a series: INV-2026-000001. More numbers than the digits can hold make it longer.
type number struct {
	counter
	digits int16
	count  int64
}

func (n number) String() string {
	return fmt.Sprintf("%s-%04d-%0*d", n.prefix, n.year, n.digits, n.count)
}

// year of a valid draft is that of its issue date: no clock decides into which year's series an invoice goes.
func (d *draft) year() int32 {
	day, _ := time.Parse(time.DateOnly, d.request.IssueDate)
	return int32(day.Year())
}

type roleYear struct {
	role string
	year int32
}

// takeNumbers gives the members the next numbers of their series, one block per series and year. The counters stay
// locked until tx ends, so others wait; on rollback the numbers were never taken.
func takeNumbers(ctx context.Context, tx pgx.Tx, round []*member, patience time.Duration) error {
	rows, err := erpdb.New(tx).InvoiceCounterTake(ctx, counterParams(round, patience))
	if err != nil {
		return fmt.Errorf("%w: %w", errTakeNumbers, err)
	}
	series, next := map[roleYear]number{}, map[counter]int64{}
	for _, row := range rows {
		from := counter{row.Prefix, row.Year}
		series[roleYear{row.Role, row.Year}] = number{counter: from, digits: row.Digits}
		next[from] = row.FirstNumber
	}
	for _, m := range round {
		m.number = series[m.roleYear()]
		m.number.count = next[m.number.counter]
		next[m.number.counter]++
	}
	return nil
}

func (m *member) roleYear() roleYear { return roleYear{string(m.Request.Role), m.draft.year()} }

func counterParams(round []*member, patience time.Duration) erpdb.InvoiceCounterTakeParams {
	params := erpdb.InvoiceCounterTakeParams{
		TenantID: round[0].Tenant, DefaultDigits: defaultDigits, LockTimeout: idempotency.LockTimeout(patience),
	}
	index := map[roleYear]int{}
	for _, m := range round {
		at := m.roleYear()
		i, known := index[at]
		if !known {
			i = len(index)
			index[at] = i
			params.Roles = append(params.Roles, at.role)
			params.Years = append(params.Years, at.year)
			params.DefaultPrefixes = append(params.DefaultPrefixes, defaultPrefix(m.Request.Role))
			params.Counts = append(params.Counts, 0)
		}
		params.Counts[i]++
	}
	return params
}
