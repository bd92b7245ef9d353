package httpapi

import (
	"bytes"
	"encoding/base64"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

// pagePolicy is what pages may load and do: our own style sheet, images and script, nothing inline, nothing from
// elsewhere. The script may ask for pages again, forms go to this service.
const pagePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const (
	startPage  = "/"
	flashLife  = time.Minute
	maxFlash   = 1000 // bytes
	refusalKey = "refusal"
)

// layout is what stands around a page: its title, the links of whoever looks at it, who that is, and what they are to
// be told. The message of a redirect is read once: it is gone with this page.
func (s *server) layout(c echo.Context, title, here string) web.Layout {
	who := identity(c)
	l := web.Layout{Title: title, Service: s.look.service, Here: here, LogIn: "/login", Flash: s.flash(c)}
	for _, link := range s.look.nav() {
		if link.needs == 0 || who.May(link.needs) {
			l.Nav = append(l.Nav, link.Link)
		}
	}
	if !who.Zero() {
		l.User = &web.User{Name: who.Name, DisplayName: who.DisplayName, Role: string(who.Role), Tenant: who.Tenant}
	}
	return l
}

// show answers with a page. Its status is 200, or that of the refusal behind s.again.
func (s *server) show(c echo.Context, page web.Page) error {
	status := http.StatusOK
	if p := refusal(c); p != nil {
		k, _ := kindOf(p.Type)
		status = k.status
	}
	return s.showAs(c, status, page)
}

func (s *server) showAs(c echo.Context, status int, page web.Page) error {
	return s.showUnder(c, pagePolicy, status, page)
}

func (s *server) showUnder(c echo.Context, policy string, status int, page web.Page) error {
	var out bytes.Buffer
	if err := s.web.Write(&out, page); err != nil { // an error, not half a page
		return err
	}
	c.Response().Header().Set("Content-Security-Policy", policy)
	return c.HTMLBlob(status, out.Bytes())
}

// done answers a form whose action succeeded: on to a page of ours, which tells what was done.
func (s *server) done(c echo.Context, path, text string) error {
	for len(text) > maxFlash {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	s.setCookie(c, s.cookieName("flash"), base64.RawURLEncoding.EncodeToString([]byte(text)), flashLife)
	return c.Redirect(http.StatusSeeOther, path)
}

// again answers a form whose action was refused with the page that the form stood on, made by its own handler: the
// reason on top, and the status that the API would answer. An error that is no problem stays one.
func (s *server) again(c echo.Context, err error, page echo.HandlerFunc) error {
	p := problem.As(err)
	if p == nil || p.Type == problem.Internal {
		return err
	}
	s.metrics.problem(p.Type)
	if p.RetryAfter > 0 {
		c.Response().Header().Set(echo.HeaderRetryAfter, retryAfter(p.RetryAfter))
	}
	c.Set(refusalKey, p)
	return page(c)
}

// refusal is why the form's action was refused, on a page behind s.again; else nil.
func refusal(c echo.Context) *problem.Problem {
	p, _ := c.Get(refusalKey).(*problem.Problem)
	return p
}

// flash is what the page is to tell first: why an action was refused, or what the redirect to it said.
func (s *server) flash(c echo.Context) *web.Flash {
	if p := refusal(c); p != nil {
		return &web.Flash{Kind: web.FlashRefused, Text: refusalText(p)}
	}
	name := s.cookieName("flash")
	value := s.cookieValue(c, name)
	if value == "" {
		return nil
	}
	s.setCookie(c, name, "", -1)
	text, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(text) == 0 || len(text) > maxFlash || !utf8.Valid(text) || base64.RawURLEncoding.EncodeToString(text) != value {
		return nil
	}
	return &web.Flash{Kind: web.FlashDone, Text: string(text)}
}

// refusalText is a refusal for people, with what is wrong in each place.
func refusalText(p *problem.Problem) string {
	text := p.Detail
	if text == "" {
		k, _ := kindOf(p.Type)
		text = k.title + "."
	}
	var wrong []string
	for _, e := range p.Errors {
		wrong = append(wrong, strings.TrimPrefix(e.Pointer, "/")+": "+e.Detail)
	}
	if len(wrong) > 0 {
		text += " " + strings.Join(wrong, "; ")
	}
	return text
}

// tellOnPage tells an error to a person.
func (s *server) tellOnPage(c echo.Context, p *problem.Problem) error {
	k, ok := kindOf(p.Type)
	if !ok {
		p = problem.New(problem.Internal, internalDetail)
		k, _ = kindOf(p.Type)
	}
	page := web.Fault{
		Layout: s.layout(c, k.title, ""), Status: k.status, Happened: refusalText(p), RequestID: requestID(c),
		Next: explain(k.problemType).next, Links: []web.Link{{Href: startPage, Text: "Start page"}},
		Problem: &web.Link{Href: ProblemPath(k.problemType), Text: string(k.problemType)},
	}
	if p.RetryAfter > 0 {
		c.Response().Header().Set(echo.HeaderRetryAfter, retryAfter(p.RetryAfter))
		page.RetryAfter = inWords(p.RetryAfter)
	}
	return s.showAs(c, k.status, page)
}

// inWords is a time to wait as a person says it, rounded up.
func inWords(d time.Duration) string {
	count, unit := int64(math.Ceil(d.Seconds())), "second"
	if count > 90 {
		count, unit = int64(math.Ceil(d.Minutes())), "minute"
	}
	if count != 1 {
		unit += "s"
	}
	return strconv.FormatInt(count, 10) + " " + unit
}
