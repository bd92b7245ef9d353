package httpapi

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// Whatever stands in X-Forwarded-For, a caller's address is an address, written in one way only, and is the connection's own unless that
// is a trusted proxy's: then it is one that the header names or the connection's, and no trusted one with an untrusted one to the
// right of it.
func FuzzCallersAddress(f *testing.F) {
	for _, header := range []string{
		"", "203.0.113.7", "1.1.1.1, 203.0.113.7", "203.0.113.7, 10.1.2.3", "10.1.2.3", " 10.0.0.1 ,\t10.0.0.2", "::ffff:203.0.113.7", "::ffff:10.0.0.9", "[2001:db8::1]", "2001:DB8:0::1",
		"2001:db8::1%eth0", "unknown", "203.0.113.7:80", ",", "10.0.0.1,", "x, 10.0.0.1", "1.1.1.1\x00", "010.0.0.1", "fd00::1, fd00::2", "FD00:0::0001",
	} {
		f.Add("10.0.0.1:4711", header, "")
		f.Add("203.0.113.9:4711", header, "198.51.100.1")
	}
	f.Add("[fd00::5]:1", "2001:db8::1", "10.0.0.1")
	f.Add("[::ffff:10.0.0.1]:1", "203.0.113.7", "")
	f.Add("@", "203.0.113.7", "") // a Unix socket
	_, four, _ := net.ParseCIDR("10.0.0.0/8")
	_, six, _ := net.ParseCIDR("fd00::/8")
	networks := []*net.IPNet{four, six}
	extract, direct := callersAddress(networks), callersAddress(nil)
	f.Fuzz(func(t *testing.T, remote, header, second string) {
		connection, err := netip.ParseAddrPort(remote)
		if err != nil || connection.Addr().Zone() != "" {
			return // net/http gives only such
		}
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = connection.String()
		r.Header = http.Header{"X-Forwarded-For": {header}, "X-Real-Ip": {header}, "Forwarded": {"for=" + header}}
		named := header
		if second != "" {
			r.Header.Add("X-Forwarded-For", second)
			named += "," + second
		}
		own := connection.Addr().Unmap()
		if got := direct(r); netip.MustParseAddr(got).Unmap() != own {
			t.Fatalf("%s is told as %s where nobody is trusted", remote, got)
		}
		got := extract(r)
		address, err := netip.ParseAddr(got)
		if err != nil || address.Unmap().String() != got {
			t.Fatalf("%s, %q: the caller is %q (%v)", remote, named, got, err)
		}
		var way []netip.Addr // from the farthest
		for _, text := range strings.Split(named, ",") {
			text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "["), "]")
			if a, err := netip.ParseAddr(text); err == nil {
				way = append(way, a.Unmap())
			} else {
				way = append(way, netip.Addr{})
			}
		}
		way = append(way, own)
		trusted := func(a netip.Addr) bool {
			return a.IsValid() && (four.Contains(a.AsSlice()) || six.Contains(a.AsSlice()))
		}
		if !trusted(own) && address != own {
			t.Fatalf("%s, who is no proxy, is told as %s", remote, got)
		}
		at := slices.Index(way, address)
		if at < 0 {
			t.Fatalf("%s, %q: the caller is %s", remote, named, got)
		}
		if address == own {
			return
		}
		for _, proxy := range way[at+1:] {
			if !trusted(proxy) && !slices.Contains(way[at+1:], address) {
				t.Fatalf("%s, %q: the caller is %s, by the word of %s", remote, named, got, proxy)
			}
		}
	})
}
