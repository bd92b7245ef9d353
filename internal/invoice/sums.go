package invoice

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/bojanz/currency"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/shopspring/decimal"

	"invoicebridge/internal/erpdb"
)

// What sums may cost: they share their processors with issuing.
const (
	maxSummed    = 200_000
	sumsPatience = 3 * time.Second
)

// Amounts are the net, VAT and gross of some invoices of one currency, with the currency's decimals.
type Amounts struct {
	Invoices        int64
	Net, VAT, Gross string
}

// Sum is what the invoices of one currency come to. Credit notes have positive amounts and are counted apart; Balance is the
// invoices less the credit notes.
type Sum struct {
	Currency              string
	Invoices, CreditNotes Amounts
	Balance               Amounts // its Invoices is the number of both
}

// Sums are exact, or not there.
type Sums struct {
	ByCurrency []Sum
	// Invoices is how many there are in all.
	Invoices int64
	// Beyond says that there are too many to be summed while somebody waits; then there are no sums. Narrowing helps.
	Beyond bool
}

// Sums adds up all invoices that fit, whatever page of them is looked at. Without any, and with a currency in the filter, there is
// one Sum of zeros. It fails as Search does.
func (s *Service) Sums(ctx context.Context, tenant string, f Search) (Sums, error) {
	params, err := searchParams(tenant, f)
	if err != nil {
		return Sums{}, err
	}
	var rows []erpdb.InvoiceSearchSumsRow
	err = s.searching(ctx, tenant, func(queries *erpdb.Queries) (err error) {
		if err := queries.InvoiceSearchPatience(ctx, strconv.FormatInt(sumsPatience.Milliseconds(), 10)); err != nil {
			return err
		}
		rows, err = queries.InvoiceSearchSums(ctx, sumsParams(params, maxSummed))
		return err
	})
	if tookTooLong(err) && ctx.Err() == nil {
		return Sums{Beyond: true}, nil
	}
	if err != nil {
		return Sums{}, s.readFailed(ctx, "add up invoices", err)
	}
	return addUp(rows, f.Currency)
}

func tookTooLong(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == "57014" // query_canceled, by statement_timeout
}

func addUp(rows []erpdb.InvoiceSearchSumsRow, wanted string) (sums Sums, err error) {
	by := map[string]*ledger{}
	var order []string
	if _, known := currency.GetDigits(wanted); known {
		by[wanted], order = &ledger{}, []string{wanted}
	}
	for _, row := range rows {
		l := by[row.Currency]
		if l == nil {
			l = &ledger{}
			by[row.Currency], order = l, append(order, row.Currency)
		}
		if err := l.add(row); err != nil {
			return Sums{}, err
		}
		sums.Invoices += row.Invoices
	}
	if sums.Invoices >= maxSummed {
		return Sums{Beyond: true}, nil
	}
	for _, code := range order {
		sums.ByCurrency = append(sums.ByCurrency, by[code].sum(code))
	}
	return sums, nil
}

// ledger adds exactly. Its columns are invoices, credit notes.
type ledger struct {
	count           [2]int64
	net, vat, gross [2]decimal.Decimal
}

func (l *ledger) add(row erpdb.InvoiceSearchSumsRow) error {
	column := 0
	if row.CreditNotes {
		column = 1
	}
	l.count[column] += row.Invoices
	for _, part := range []struct {
		to   *decimal.Decimal
		text string
	}{{&l.net[column], row.Net}, {&l.vat[column], row.Vat}, {&l.gross[column], row.Gross}} {
		amount, err := decimal.NewFromString(part.text)
		if err != nil {
			return fmt.Errorf("a sum of the database is no number: %w", err)
		}
		*part.to = part.to.Add(amount)
	}
	return nil
}

func (l *ledger) sum(code string) Sum {
	digits := int32(2)
	if known, ok := currency.GetDigits(code); ok {
		digits = int32(known)
	}
	column := func(i int) Amounts {
		return Amounts{l.count[i], money(l.net[i], digits), money(l.vat[i], digits), money(l.gross[i], digits)}
	}
	return Sum{
		Currency: code, Invoices: column(0), CreditNotes: column(1),
		Balance: Amounts{
			l.count[0] + l.count[1], money(l.net[0].Sub(l.net[1]), digits),
			money(l.vat[0].Sub(l.vat[1]), digits), money(l.gross[0].Sub(l.gross[1]), digits),
		},
	}
}

// money writes an amount with the currency's decimals, or more if it has more; there is no negative zero.
func money(a decimal.Decimal, digits int32) string {
	return a.StringFixed(max(digits, -a.Exponent()))
}
