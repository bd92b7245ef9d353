package app

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// authority signs certificates for "localhost" and 127.0.0.1; each has another serial number.
type authority struct {
	t      *testing.T
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, serial: 100}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

// issue gives a new certificate and its key in PEM form, and the serial number.
func (a *authority) issue() (cert, key []byte, serial int64) {
	a.t.Helper()
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	private := a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), a.serial
}

// client speaks to a server as to localhost.
func (a *authority) client(change func(*tls.Config)) *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	config := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	change(config)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
}

// tlsBench is a server with a certificate out of files, and a clock of the test's own for looking at them.
type tlsBench struct {
	t         *testing.T
	authority *authority
	cert, key string // files
	addr      string
	log       *lockedBuffer
	mu        sync.Mutex
	clock     time.Time
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

func startTLS(t *testing.T) (b *tlsBench, serial int64) {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	b = &tlsBench{
		t: t, authority: newAuthority(t), cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"),
		log: &lockedBuffer{}, clock: time.Now(),
	}
	serial = b.replace()
	log := slog.New(slog.NewTextHandler(b.log, nil))
	served, err := newCertificate(b.cert, b.key, b.now, log)
	if err != nil {
		t.Fatal(err)
	}
	config, err := TLSConfig{Cert: b.cert, Key: b.key}.server(log)
	if err != nil {
		t.Fatal(err)
	}
	config.GetCertificate = served.get // the same, by the test's clock
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	server := Server{
		Name: "test", Listen: "127.0.0.1:0", Log: log, TLS: config, RequestTimeout: time.Minute, ShutdownTimeout: 10 * time.Second,
		Ready:   func(addr string) { ready <- addr },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Spoken", r.Proto) }),
	}
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	b.addr = <-ready
	return b, serial
}

func (b *tlsBench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.clock
}

// later lets the time pass after which the files are looked at again.
func (b *tlsBench) later() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock = b.clock.Add(lookInterval)
}

func (b *tlsBench) write(file string, content []byte) {
	b.t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tlsBench) replace() (serial int64) {
	b.t.Helper()
	cert, key, serial := b.authority.issue()
	b.write(b.cert, cert)
	b.write(b.key, key)
	return serial
}

// get shakes hands anew and says what was served, and how it was spoken.
func (b *tlsBench) get(change func(*tls.Config)) (serial int64, spoken string, err error) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, "https://"+b.addr+"/", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	client := b.authority.client(change)
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	answer.Body.Close()
	return answer.TLS.PeerCertificates[0].SerialNumber.Int64(), answer.Header.Get("Spoken"), nil
}

func (b *tlsBench) wantServed(want int64) {
	b.t.Helper()
	if got, _, err := b.get(func(*tls.Config) {}); err != nil || got != want {
		b.t.Errorf("certificate %d is served, want %d (%v)", got, want, err)
	}
}

func TestAReplacedCertificateIsServedWithoutARestart(t *testing.T) {
	b, first := startTLS(t)
	b.wantServed(first)
	second := b.replace()
	b.wantServed(first) // the files are looked at once in a while
	b.later()
	b.wantServed(second)
	// As a mounted secret is replaced: a link is turned round.
	dir := t.TempDir()
	cert, key, third := b.authority.issue()
	b.write(filepath.Join(dir, "cert.pem"), cert)
	b.write(filepath.Join(dir, "key.pem"), key)
	for _, file := range []string{b.cert, b.key} {
		if err := os.Symlink(filepath.Join(dir, filepath.Base(file)), file+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	b.later()
	b.wantServed(third)
}

func TestABrokenCertificateKeepsTheOldOneAndIsToldOnce(t *testing.T) {
	b, first := startTLS(t)
	const told = "the new TLS certificate can't be used"
	cert, key, second := b.authority.issue()
	b.write(b.cert, cert) // its key has not come yet
	for range 3 {
		b.later()
		b.wantServed(first)
	}
	if n := b.log.count(told); n != 1 {
		t.Errorf("the first mistake was told %d times", n)
	}
	if err := os.Remove(b.key); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b.later()
		b.wantServed(first)
	}
	if n := b.log.count(told); n != 2 {
		t.Errorf("two mistakes were told %d times", n)
	}
	b.write(b.key, key)
	b.later()
	b.wantServed(second)
	b.write(b.cert, []byte("no certificate"))
	b.later()
	b.wantServed(second)
	if n := b.log.count(told); n != 3 {
		t.Errorf("three mistakes were told %d times", n)
	}
	if b.log.count("PRIVATE KEY") != 0 {
		t.Error("the key is in the log")
	}
}

func TestTLSIsSpokenFromVersion1Point2OnAndByHTTP2(t *testing.T) {
	b, _ := startTLS(t)
	if _, spoken, err := b.get(func(*tls.Config) {}); err != nil || spoken != "HTTP/2.0" {
		t.Errorf("spoken is %q (%v)", spoken, err)
	}
	if _, _, err := b.get(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }); err != nil {
		t.Errorf("TLS 1.2: %v", err)
	}
	if _, _, err := b.get(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
}

func TestABrokenCertificateIsRefusedAtTheStartByName(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t), t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, key, _ := a.issue()
	_, other, _ := a.issue()
	good, its, foreign := file("cert", cert), file("key", key), file("other", other)
	for name, c := range map[string]struct {
		config TLSConfig
		want   string
	}{
		"key alone":           {TLSConfig{Key: its}, "CRM_TLS_CERT: is not set"},
		"certificate alone":   {TLSConfig{Cert: good}, "CRM_TLS_KEY: is not set"},
		"no such certificate": {TLSConfig{Cert: good + "x", Key: its}, "CRM_TLS_CERT: open"},
		"no such key":         {TLSConfig{Cert: good, Key: its + "x"}, "CRM_TLS_KEY: the key can't be read"},
		"another's key":       {TLSConfig{Cert: good, Key: foreign}, "CRM_TLS_CERT: " + good + " and " + foreign},
		"turned round":        {TLSConfig{Cert: its, Key: good}, "CRM_TLS_CERT: "},
		"good":                {TLSConfig{Cert: good, Key: its}, ""},
		"none":                {TLSConfig{}, ""},
	} {
		err := c.config.check("CRM_")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil {
			if _, err := c.config.server(slog.New(slog.DiscardHandler)); err == nil {
				t.Errorf("%s: served all the same", name)
			}
		}
	}
}
