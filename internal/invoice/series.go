package invoice

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/problem"
)

// prefixForm has no hyphen, so that the parts of a number can't be confused: A-2026-1 is of no series "A-2026".
var prefixForm = regexp.MustCompile(`^[A-Z0-9]{1,16}$`)

const maxDigits = 12

// SetSeries makes a tenant's invoices of a role take their numbers from the series with this prefix from now on, and
// writes down who changed it and why. Series with one prefix are one series. Numbers already given stay.
//
// It fails with problem malformed-request for a bad value and not-found for an unknown tenant.
func (s *Service) SetSeries(ctx context.Context, tenant, role, prefix string, digits int, by audit.By) error {
	if err := checkSeries(role, prefix, digits, by); err != nil {
		return err
	}
	err := pgx.BeginFunc(ctx, s.db.Of(tenant), func(tx pgx.Tx) error {
		queries := erpdb.New(tx)
		err := queries.InvoiceSeriesUpsert(ctx, erpdb.InvoiceSeriesUpsertParams{
			TenantID: tenant, Role: role, Prefix: prefix, Digits: int16(digits),
		})
		if err != nil {
			return err
		}
		return writeAudit(ctx, queries, tenant, "series.set", fmt.Sprintf("%s = %s, %d digits", role, prefix, digits), by)
	})
	if violates(err, seriesOfTenant) {
		return noTenant(tenant)
	}
	if err != nil {
		return s.readFailed(ctx, "set invoice series", err)
	}
	return nil
}

func checkSeries(role, prefix string, digits int, by audit.By) error {
	var wrong []problem.FieldError
	refuse := func(pointer, detail string) {
		wrong = append(wrong, problem.FieldError{Pointer: pointer, Detail: detail})
	}
	if !slices.Contains(erpapi.Roles(), erpapi.Role(role)) {
		refuse("/role", "must be one of advance, partial, final, credit_note, correction")
	}
	if !prefixForm.MatchString(prefix) {
		refuse("/prefix", "must be 1 to 16 capital letters and digits")
	}
	if digits < 1 || digits > maxDigits {
		refuse("/digits", fmt.Sprintf("must be from 1 to %d", maxDigits))
	}
	if strings.TrimSpace(by.Actor) == "" {
		refuse("/actor", "is missing")
	}
	if strings.TrimSpace(by.Reason) == "" {
		refuse("/reason", "is missing")
	}
	if len(wrong) == 0 {
		return nil
	}
	p := problem.New(problem.MalformedRequest, "The series can't be set: %s %s.", wrong[0].Pointer, wrong[0].Detail)
	p.Errors = wrong
	return p
}
