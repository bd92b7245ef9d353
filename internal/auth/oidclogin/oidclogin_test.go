package oidclogin_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/oidclogin"
	"invoicebridge/internal/problem"
)

// user is somebody of whom the provider says what change makes of it.
type user struct {
	mockoidc.MockUser
	change func(jwt.MapClaims)
}

// Claims implements mockoidc.User.
func (u *user) Claims(_ []string, base *mockoidc.IDTokenClaims) (jwt.Claims, error) {
	claims := jwt.MapClaims{
		"iss": base.Issuer, "sub": base.Subject, "aud": base.Audience[0], "exp": base.ExpiresAt.Unix(), "iat": base.IssuedAt.Unix(),
		"nonce": base.Nonce, "email": u.Email, "email_verified": true,
	}
	if u.change != nil {
		u.change(claims)
	}
	return claims, nil
}

// started is a running provider; around, if given, sees every request to it.
func started(t *testing.T, around func(http.Handler) http.Handler) *mockoidc.MockOIDC {
	t.Helper()
	m, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if around != nil {
		if err := m.AddMiddleware(around); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(listener, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Shutdown() })
	return m
}

func client(m *mockoidc.MockOIDC) *oidclogin.Provider {
	return oidclogin.New(oidclogin.Config{
		Issuer: m.Issuer(), ClientID: m.ClientID, ClientSecret: m.ClientSecret, Redirect: "https://public.test/back",
	})
}

// login goes all the way.
func login(t *testing.T, m *mockoidc.MockOIDC, p *oidclogin.Provider, change func(jwt.MapClaims)) (auth.OIDCPerson, error) {
	t.Helper()
	flow, address, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.QueueUser(&user{mockoidc.MockUser{Subject: "s-1", Email: "jo@acme.example"}, change})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	back, err := url.Parse(answer.Header.Get("Location"))
	if err != nil || back.Query().Get("code") == "" {
		t.Fatalf("the provider answers %d to %q", answer.StatusCode, back)
	}
	return p.Finish(t.Context(), flow, back.Query())
}

func TestOIDCTokenCountsOnlyIfItIsForThisClientByThisProviderAndNow(t *testing.T) {
	t.Parallel()
	m := started(t, nil)
	p := client(m)
	for name, c := range map[string]struct {
		change  func(jwt.MapClaims)
		refused bool
	}{
		"as it is":            {nil, false},
		"for us and others":   {func(c jwt.MapClaims) { c["aud"], c["azp"] = []string{m.ClientID, "x"}, m.ClientID }, false},
		"for another":         {func(c jwt.MapClaims) { c["aud"] = "x" }, true},
		"made for another":    {func(c jwt.MapClaims) { c["azp"] = "x" }, true},
		"for many, by nobody": {func(c jwt.MapClaims) { c["aud"] = []string{m.ClientID, "x"} }, true},
		"of another issuer":   {func(c jwt.MapClaims) { c["iss"] = "https://evil.test" }, true},
		"expired":             {func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Minute).Unix() }, true},
		"without a nonce":     {func(c jwt.MapClaims) { delete(c, "nonce") }, true},
	} {
		got, err := login(t, m, p, c.change)
		want := auth.OIDCPerson{Issuer: m.Issuer(), Subject: "s-1", Email: "jo@acme.example", EmailVerified: true}
		if c.refused {
			want = auth.OIDCPerson{}
		}
		if got != want || problem.Is(err, problem.Unauthenticated) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestOIDCMailIsVerifiedOnlyIfTheProviderSaysTrue(t *testing.T) {
	t.Parallel()
	m := started(t, nil)
	p := client(m)
	for _, verified := range []any{false, "true", 1, nil} {
		got, err := login(t, m, p, func(c jwt.MapClaims) { c["email_verified"] = verified })
		if err != nil || got.EmailVerified || got.Subject != "s-1" {
			t.Errorf("email_verified %v: %+v, %v", verified, got, err)
		}
	}
}

func TestOIDCTokenWithAnotherSignatureIsRefused(t *testing.T) {
	t.Parallel()
	stranger, err := mockoidc.RandomKeypair(2048)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := stranger.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	m := started(t, func(next http.Handler) http.Handler { // the keys are not those that it signs with
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == mockoidc.JWKSEndpoint {
				_, _ = w.Write(keys)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	if got, err := login(t, m, client(m), nil); !problem.Is(err, problem.Unauthenticated) {
		t.Errorf("somebody else's signature: %+v, %v", got, err)
	}
}

// A provider changes its keys from time to time.
func TestOIDCProvidersNewKeyIsLookedUp(t *testing.T) {
	t.Parallel()
	m := started(t, nil)
	p := client(m)
	if _, err := login(t, m, p, nil); err != nil {
		t.Fatal(err)
	}
	fresh, err := mockoidc.RandomKeypair(2048)
	if err != nil {
		t.Fatal(err)
	}
	fresh.Kid = "another" // as a provider names it
	m.Keypair = fresh
	if _, err := login(t, m, p, nil); err != nil {
		t.Errorf("after the provider has changed its key: %v", err)
	}
}

func TestOIDCProviderThatFailsAtTheCodeIsUnavailableAndSaysNothingToThePerson(t *testing.T) {
	t.Parallel()
	m := started(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == mockoidc.TokenEndpoint {
				http.Error(w, "evil words", http.StatusBadGateway)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	p := client(m)
	_, err := login(t, m, p, nil)
	if !problem.Is(err, problem.Unavailable) || strings.Contains(err.Error(), "evil") || !p.Away() {
		t.Errorf("502 at the code: %v, away %t", err, p.Away())
	}
}

// Some gateways show what they could not pass on.
func TestOIDCProviderThatRepeatsWhatItWasAskedGetsNoneOfItIntoTheLog(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusInternalServerError, http.StatusBadRequest} {
		var seen atomic.Value // the code
		seen.Store("")
		m := started(t, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != mockoidc.TokenEndpoint {
					next.ServeHTTP(w, r)
					return
				}
				asked, err := httputil.DumpRequest(r, true)
				if err != nil {
					t.Error(err)
				}
				seen.Store(r.FormValue("code"))
				w.WriteHeader(status)
				_, _ = w.Write(asked)
			})
		})
		var log bytes.Buffer
		p := oidclogin.New(oidclogin.Config{
			Issuer: m.Issuer(), ClientID: m.ClientID, ClientSecret: m.ClientSecret, Redirect: "https://public.test/back",
			Logger: slog.New(slog.NewJSONHandler(&log, nil)),
		})
		_, err := login(t, m, p, nil)
		code := seen.Load().(string)
		if err == nil || code == "" {
			t.Fatalf("%d at the code %q: %v", status, code, err)
		}
		told := log.String()
		if !strings.Contains(told, strconv.Itoa(status)) {
			t.Errorf("nobody who reads the log knows that it was %d: %s", status, told)
		}
		basic := base64.StdEncoding.EncodeToString([]byte(m.ClientID + ":" + m.ClientSecret))
		for what, secret := range map[string]string{"code": code, "client secret": m.ClientSecret, "client secret in base64": basic} {
			if strings.Contains(told, secret) {
				t.Errorf("%d: the log has the %s: %s", status, what, told)
			}
		}
	}
}

func TestOIDCProviderThatIsAwayIsLeftAloneForAWhile(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer broken.Close()
	now := time.Now()
	p := oidclogin.New(oidclogin.Config{Issuer: broken.URL, ClientID: "x", ClientSecret: "y", Redirect: "https://public.test/back", Now: func() time.Time { return now }})
	for range 3 {
		if _, _, err := p.Begin(t.Context()); !problem.Is(err, problem.Unavailable) {
			t.Fatalf("a broken provider: %v", err)
		}
	}
	now = now.Add(time.Minute)
	gone, cancel := context.WithCancel(t.Context())
	cancel() // a browser that goes away does not end a look-up that is for all
	if _, _, err := p.Begin(gone); !problem.Is(err, problem.Unavailable) || errors.Is(err, context.Canceled) {
		t.Errorf("after a while: %v", err)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the provider was asked %d times, want 2", n)
	}
}

func TestOIDCAnswerWithoutAnEndIsNotReadToIt(t *testing.T) {
	t.Parallel()
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		block := bytes.Repeat([]byte(" "), 64<<10)
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	p := oidclogin.New(oidclogin.Config{Issuer: endless.URL, ClientID: "x", ClientSecret: "y", Redirect: "https://public.test/back"})
	if _, _, err := p.Begin(t.Context()); !problem.Is(err, problem.Unavailable) {
		t.Errorf("an answer without an end: %v", err)
	}
}
