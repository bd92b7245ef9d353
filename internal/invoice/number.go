package invoice

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	tenant string
	role   string
	year   int32
}

// takeNumbers takes the next numbers of the members' series, one block per series and year; what it gives waits for them
// and hands them out. The counters stay locked until tx ends, so others wait; on rollback the numbers were never taken.
func takeNumbers(ctx context.Context, tx *transaction, round []*member, patience time.Duration) (done func() error) {
	taken := tx.statements().InvoiceCounterTake(ctx, []erpdb.InvoiceCounterTakeParams{counterParams(round, patience)})
	return func() error {
		rows, err := one(taken.Query)
		if err != nil {
			return fmt.Errorf("%w: %w", errTakeNumbers, err)
		}
		handOut(round, rows)
		return nil
	}
}

// counterOf is a counter among those of all tenants.
type counterOf struct {
	tenant string
	counter
}

func handOut(round []*member, rows []erpdb.InvoiceCounterTakeRow) {
	series, next := map[roleYear]number{}, map[counterOf]int64{}
	for _, row := range rows {
		from := counter{row.Prefix, row.Year}
		series[roleYear{row.TenantID, row.Role, row.Year}] = number{counter: from, digits: row.Digits}
		next[counterOf{row.TenantID, from}] = row.FirstNumber
	}
	for _, m := range round {
		m.number = series[m.roleYear()]
		from := counterOf{m.Tenant, m.number.counter}
		m.number.count = next[from]
		next[from]++
	}
}

func (m *member) roleYear() roleYear {
	return roleYear{m.Tenant, string(m.Request.Role), m.draft.year()}
}

func counterParams(round []*member, patience time.Duration) erpdb.InvoiceCounterTakeParams {
	params := erpdb.InvoiceCounterTakeParams{
		DefaultDigits: defaultDigits, LockTimeout: idempotency.LockTimeout(patience),
	}
	index := map[roleYear]int{}
	for _, m := range round {
		at := m.roleYear()
		i, known := index[at]
		if !known {
			i = len(index)
			index[at] = i
			params.TenantIds = append(params.TenantIds, at.tenant)
			params.Roles = append(params.Roles, at.role)
			params.Years = append(params.Years, at.year)
			params.DefaultPrefixes = append(params.DefaultPrefixes, defaultPrefix(m.Request.Role))
			params.Counts = append(params.Counts, 0)
		}
		params.Counts[i]++
	}
	return params
}
