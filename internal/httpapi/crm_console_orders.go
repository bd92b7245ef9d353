package httpapi

import (
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/crm"
	"invoicebridge/web"
)

func (h crmSide) showOrder(c echo.Context) error {
	source, err := pathParam(c, "source")
	if err != nil {
		return err
	}
	order, err := pathParam(c, "order")
	if err != nil {
		return err
	}
	ctx, tenant := c.Request().Context(), identity(c).Tenant
	detail, err := h.orders.GetOrder(ctx, tenant, source, order)
	if err != nil {
		return err
	}
	history, err := h.console.OrderHistory(ctx, tenant, source, order)
	if err != nil {
		return err
	}
	page := web.CRMOrder{
		Layout: h.layout(c, detail.Order+" · "+detail.Source, operationsPath), Source: detail.Source, Order: detail.Order,
		State: web.State{Tone: web.ToneGood, Text: string(detail.Status)}, Version: strconv.FormatInt(detail.Version, 10),
		Created: web.At(detail.CreatedAt), Updated: web.At(detail.UpdatedAt), Minimised: web.AtPtr(detail.MinimisedAt),
		Lines: operationLines(detail.Operations), Versions: versionLines(history.Versions), Findings: h.divergenceLines(c, history.Divergences),
		Content: prettyJSON(detail.Content), NoneWanted: "The order wants no invoice.",
	}
	if detail.Status == crm.OrderCancelled {
		page.State, page.NoneWanted = web.State{Tone: web.ToneOff, Text: "cancelled"}, "The order was cancelled before it wanted an invoice."
	}
	if identity(c).May(auth.MayWrite) && detail.MinimisedAt == nil {
		page.ByHand = &web.Link{
			Href: listing{newOrderPath, url.Values{}}.href("source", detail.Source, "order", detail.Order),
			Text: "A newer version by hand", About: "Changes what was not sent yet; what was sent stays, and is reported.",
		}
	}
	return h.show(c, page)
}

func prettyJSON(text jsontext.Value) string {
	pretty := text.Clone()
	if err := pretty.Indent(jsontext.WithIndent("  ")); err != nil {
		return string(text)
	}
	return string(pretty)
}
