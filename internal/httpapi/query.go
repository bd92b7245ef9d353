package httpapi

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/problem"
)

// query reads the parameters of a list. One that is not known, stands twice or can't be read is a problem that
// names the known ones: a filter with a typing error must not look like "everything".
func query(c echo.Context, known ...string) (url.Values, error) {
	values, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return nil, problem.New(problem.MalformedRequest, "The query can't be read.")
	}
	for name, given := range values {
		if !slices.Contains(known, name) {
			return nil, problem.New(problem.MalformedRequest, "There is no parameter %.80q. Known are %s.", name, strings.Join(known, ", "))
		}
		if len(given) > 1 {
			return nil, problem.New(problem.MalformedRequest, "The parameter %s stands twice.", name)
		}
		if strings.ContainsRune(given[0], 0) {
			return nil, problem.New(problem.MalformedRequest, "The parameter %s holds the character U+0000.", name)
		}
		if !utf8.ValidString(given[0]) {
			return nil, problem.New(problem.MalformedRequest, "The parameter %s is not UTF-8 text.", name)
		}
	}
	return values, nil
}

// refuseNoText: nothing that the database can't have text of is served anywhere.
func refuseNoText(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if path := c.Request().URL.Path; !utf8.ValidString(path) || strings.ContainsRune(path, 0) {
			return problem.New(problem.NotFound, "Nothing is served under this path.")
		}
		return next(c)
	}
}

// pathParam is a path parameter as meant: Echo leaves it percent-encoded where the path as a whole was.
func pathParam(c echo.Context, name string) (string, error) {
	raw := c.Param(name)
	if c.Request().URL.RawPath == "" {
		return raw, nil
	}
	plain, err := url.PathUnescape(raw)
	if err != nil {
		return "", problem.New(problem.NotFound, "Nothing is served under this path.")
	}
	return plain, nil
}
