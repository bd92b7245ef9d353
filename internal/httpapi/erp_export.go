package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/orderfile"
)

const (
	exportTime     = 15 * time.Minute // for a whole file
	exportPatience = 30 * time.Second // for a reader to take the next part of it
)

// exportInvoices streams all invoices that fit as CSV. It holds none of them, and no connection while the reader takes its time.
// A file that can't be finished is cut off, so that it never looks whole.
func (e erp) exportInvoices(c echo.Context) error {
	values, err := query(c, invoiceParams()...)
	if err != nil {
		return err
	}
	f, err := invoiceSearch(values)
	if err != nil {
		return err
	}
	ctx, cancel := beyondDeadline(c.Request().Context(), exportTime)
	defer cancel()
	out := &download{c: c}
	w, err := orderfile.NewInvoiceWriter(out)
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodHead {
		err = e.desk.Each(ctx, identity(c).Tenant, f, func(inv *erpapi.Invoice) error { return w.Write(inv) })
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil && out.begun {
		e.log.ErrorContext(ctx, "export cut off", "error", err)
		panic(http.ErrAbortHandler)
	}
	return err
}

// beyondDeadline is ctx with a later deadline. It still ends when the caller goes away.
func beyondDeadline(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return longer, func() { stop(); cancel() }
}

// download begins the answer with its first byte: what goes wrong before is told on a page.
type download struct {
	c     echo.Context
	begun bool
}

func (d *download) Write(part []byte) (int, error) {
	response := d.c.Response()
	if !d.begun {
		d.begun = true
		response.Header().Set(echo.HeaderContentType, "text/csv; charset=utf-8; header=present")
		response.Header().Set(echo.HeaderContentDisposition, `attachment; filename="invoices.csv"`)
		response.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(response.Writer).SetWriteDeadline(time.Now().Add(exportPatience)) // where it can be set
	return response.Write(part)
}
