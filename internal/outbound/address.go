package outbound

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// ParseBase reads the address that a service's paths are appended to. It refuses what would be lost or shown later: an
// address with credentials, a query or a fragment. Its errors never repeat the address.
func ParseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		// url.Parse's error repeats the address, and with it a password.
		return nil, errors.New("the address is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the address must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("the address names no host")
	case u.User != nil:
		return nil, errors.New("the address must not hold a user name or password; give the credential by reference")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("the address must not have a query or a fragment")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return u, nil
}

// Address is base with path elements appended, each escaped, and a query.
func Address(base *url.URL, query url.Values, elements ...string) string {
	u := *base
	u.RawPath = u.EscapedPath()
	for _, e := range elements {
		u.Path += "/" + e
		u.RawPath += "/" + escapeElement(e)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// escapeElement keeps an element in its place: "." and ".." would lead to another one.
func escapeElement(e string) string {
	if e == "." || e == ".." {
		return strings.ReplaceAll(e, ".", "%2E")
	}
	return url.PathEscape(e)
}

// IsJSON says whether h declares a JSON body (application/json, or a type ending in +json as of RFC 6839).
func IsJSON(h http.Header) bool {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}
