package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/problem"
)

// refuseOtherSites turns away what a page of another site makes a browser send, at the API, too. Browsers say where
// such a request comes from (Sec-Fetch-Site, Origin); other clients send neither header and pass.
func (s *server) refuseOtherSites(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.sites.Check(c.Request()) != nil {
			return problem.New(problem.Forbidden, "A page of another site sent this. Only the service's own pages may.")
		}
		return next(c)
	}
}

// ownSites takes the address that browsers reach the service by for its own, also where a proxy changes the host.
func ownSites(publicURL string) (*http.CrossOriginProtection, error) {
	sites := http.NewCrossOriginProtection()
	if publicURL == "" {
		return sites, nil
	}
	u, err := url.Parse(publicURL)
	if err != nil {
		return nil, fmt.Errorf("public URL: %w", err)
	}
	if err := sites.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
		return nil, fmt.Errorf("public URL: %w", err)
	}
	return sites, nil
}

// callersAddress reads the caller's address off the connection or, where the connection is a trusted proxy's, out of
// the header that the proxy added to (RFC 7239, 5.2, in its older form). An address has one text, however the header writes it.
func callersAddress(trusted []*net.IPNet) echo.IPExtractor {
	extract := extractAddress(trusted)
	return func(r *http.Request) string {
		text := extract(r)
		if address, err := netip.ParseAddr(text); err == nil {
			return address.Unmap().String()
		}
		return text
	}
}

func extractAddress(trusted []*net.IPNet) echo.IPExtractor {
	if len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, network := range trusted {
		options = append(options, echo.TrustIPRange(network))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}
