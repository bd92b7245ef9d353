package app

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// TLSConfig is the certificate that a service serves with, from files. Both empty: it serves without TLS, as behind a
// proxy that has the certificate.
type TLSConfig struct {
	Cert string `name:"tls-cert" env:"TLS_CERT" placeholder:"FILE" help:"Certificate in PEM form, its own first, then those up to the root; serves HTTPS (TLS 1.2 or later, HTTP/2) and nothing else. A replaced file is taken up without a restart."`
	Key  string `name:"tls-key" env:"TLS_KEY" placeholder:"FILE" help:"Key of the certificate, in PEM form."`
}

// Set says whether the service has a certificate.
func (c TLSConfig) Set() bool { return c.Cert != "" || c.Key != "" }

// check tries the pair, so that a service does not start with one that no client would get.
func (c TLSConfig) check(prefix string) error {
	switch {
	case !c.Set():
		return nil
	case c.Cert == "":
		return mistake(prefix+"TLS_CERT", "is not set, but %sTLS_KEY is: both or none", prefix)
	case c.Key == "":
		return mistake(prefix+"TLS_KEY", "is not set, but %sTLS_CERT is: both or none", prefix)
	}
	if _, err := readPair(c.Cert, c.Key); err != nil {
		variable := prefix + "TLS_CERT"
		if errors.Is(err, errKeyUnreadable) {
			variable = prefix + "TLS_KEY"
		}
		return mistake(variable, "%v", err)
	}
	return nil
}

// server is the configuration of the listening side. It fails if the pair can't be read or does not fit together.
func (c TLSConfig) server(log *slog.Logger) (*tls.Config, error) {
	if !c.Set() {
		return nil, nil
	}
	served, err := newCertificate(c.Cert, c.Key, time.Now, log)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: served.get}, nil
}

// lookInterval is how often, at most, a handshake looks at the files.
const lookInterval = 2 * time.Second

var errKeyUnreadable = errors.New("the key can't be read")

// pair is what two files hold.
type pair struct{ cert, key []byte }

func (p pair) equal(other pair) bool {
	return bytes.Equal(p.cert, other.cert) && bytes.Equal(p.key, other.key)
}

func readPair(certFile, keyFile string) (p pair, err error) {
	if p.cert, err = os.ReadFile(certFile); err != nil {
		return pair{}, err
	}
	if p.key, err = os.ReadFile(keyFile); err != nil {
		return pair{}, fmt.Errorf("%w: %w", errKeyUnreadable, err)
	}
	if _, err = tls.X509KeyPair(p.cert, p.key); err != nil {
		return p, fmt.Errorf("%s and %s: %w", certFile, keyFile, err)
	}
	return p, nil
}

// certificate is a certificate and its key in two files, which somebody replaces before it expires. The files are read,
// not watched: a handshake in every few seconds does so, whatever way they are replaced in (moved, written, a link
// turned round), and only another content counts.
type certificate struct {
	certFile, keyFile string
	now               func() time.Time
	log               *slog.Logger

	mu     sync.Mutex
	served *tls.Certificate
	looked time.Time
	read   pair   // of the last look, good or bad
	said   string // the mistake that the log was told of
}

func newCertificate(certFile, keyFile string, now func() time.Time, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, now: now, log: log}
	read, err := readPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	c.looked = now()
	return c, c.take(read)
}

// get is for tls.Config.GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) >= lookInterval || now.Before(c.looked) {
		c.looked = now
		c.look()
	}
	return c.served, nil
}

// look takes up a new pair. What can't be used is told once, and the old pair goes on being served: half a replacement
// is seen, too, before its other half comes.
func (c *certificate) look() {
	read, err := readPair(c.certFile, c.keyFile)
	if err == nil && !read.equal(c.read) {
		err = c.take(read)
	}
	switch {
	case err == nil:
		c.said = ""
	case err.Error() != c.said:
		c.said = err.Error()
		c.log.Error("the new TLS certificate can't be used, the one from before is served", "error", err)
	}
}

func (c *certificate) take(read pair) error {
	certificate, err := tls.X509KeyPair(read.cert, read.key)
	if err != nil {
		return err
	}
	c.served, c.read = &certificate, read
	leaf := certificate.Leaf
	c.log.Info("serving with TLS certificate", "names", leaf.DNSNames, "serial", leaf.SerialNumber.String(), "not_after", leaf.NotAfter.UTC())
	if c.now().After(leaf.NotAfter) {
		c.log.Error("the TLS certificate has expired, clients will refuse it", "not_after", leaf.NotAfter.UTC())
	}
	return nil
}
