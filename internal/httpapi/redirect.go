package httpapi

import (
	"net/url"
	"strings"
)

// localPath is target if it is a path on this service, with or without a query, and the start page if it is anything
// else. Browsers read an address more generously than RFC 3986: a backslash is a slash to them, tabs and line ends are
// left out (WHATWG URL Standard, 4.4), so that /\evil.test and /<tab>/evil.test would lead to another host. What holds
// one of these is refused, percent-encoded or not, for somebody else may decode it.
func localPath(target string) string {
	decoded, err := url.PathUnescape(target)
	if err != nil || !plainPath(target) || !plainPath(decoded) {
		return startPage
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "" || u.Opaque != "" || u.User != nil || u.Host != "" || u.Fragment != "" {
		return startPage
	}
	return u.RequestURI()
}

// plainPath: one slash, and not two, in front, and nothing that a browser would read as something else. What follows
// the question mark leads nowhere.
func plainPath(text string) bool {
	path, _, _ := strings.Cut(text, "?")
	if !strings.HasPrefix(path, "/") || strings.Contains(path, "//") {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r == '\\' || r < 0x20 || r == 0x7f })
}
