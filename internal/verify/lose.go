package verify

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"invoicebridge/internal/wire"
)

// through is the endpoint by way of a TCP proxy.
func (e endpoint) through(p *wire.Proxy) endpoint {
	near := newEndpoint("http://"+p.Addr(), e.token)
	near.client.Transport = &http.Transport{DisableKeepAlives: true}
	return near
}

// losing is the endpoint for a caller whose connection breaks when the answer begins. It is for services that can be
// reached by TLS only, where a proxy can't tell the answer's first byte.
func (e endpoint) losing() endpoint {
	lossy := newEndpoint(e.base, e.token)
	dialer := &net.Dialer{}
	lossy.client.Transport = &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			return &breaking{Conn: conn}, err
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			secure := tls.Dialer{NetDialer: dialer, Config: &tls.Config{RootCAs: e.roots, ServerName: host, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}}
			conn, err := secure.DialContext(ctx, network, address)
			return &breaking{Conn: conn}, err
		},
	}
	return lossy
}

// breaking is a connection of which nothing is ever read: what would be read first closes it.
type breaking struct {
	net.Conn
	broken atomic.Bool
}

var errBroken = fmt.Errorf("verify: the connection was cut at the answer's first byte")

// Read waits for the first byte and throws it away with the connection.
func (b *breaking) Read(p []byte) (int, error) {
	if b.broken.Load() {
		return 0, errBroken
	}
	if _, err := b.Conn.Read(p[:min(1, len(p))]); err != nil {
		return 0, err
	}
	b.broken.Store(true)
	_ = b.Close()
	return 0, errBroken
}
