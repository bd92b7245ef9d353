package oidclogin_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/oidclogin"
	"invoicebridge/internal/problem"
)

// saying is a provider that answers with whatever it is given, and signs any claims.
type saying struct {
	*httptest.Server
	key    *ecdsa.PrivateKey
	status atomic.Int64
	answer atomic.Pointer[[]byte] // of the token endpoint
}

func newSaying(f *testing.F) *saying {
	f.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		f.Fatal(err)
	}
	p := &saying{key: key}
	encode := base64.RawURLEncoding.EncodeToString
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/keys":
			fmt.Fprintf(w, `{"keys":[{"kty":"EC","crv":"P-256","kid":"1","alg":"ES256","use":"sig","x":%q,"y":%q}]}`, encode(point[1:33]), encode(point[33:]))
		case "/token":
			w.WriteHeader(int(p.status.Load()))
			_, _ = w.Write(*p.answer.Load())
		default:
			fmt.Fprintf(w, `{"issuer":%[1]q,"authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token","jwks_uri":"%[1]s/keys","id_token_signing_alg_values_supported":["ES256"]}`, p.URL)
		}
	}))
	f.Cleanup(p.Close)
	return p
}

func (p *saying) signed(t *testing.T, claims []byte) string {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"ES256","kid":"1"}`)) + "." + encode(claims)
	signature, err := jwt.SigningMethodES256.Sign(text, p.key)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + encode(signature)
}

// Whatever a provider says, and whatever a browser brings back: nobody is known but by claims for this client, of this provider, this
// log-in and now; a mail address counts as verified by a true alone; refusals are problems; and neither they nor the log tell a secret.
func FuzzClaims(f *testing.F) {
	p := newSaying(f)
	var log bytes.Buffer
	now := time.Unix(1772442000, 0)
	client := oidclogin.New(oidclogin.Config{
		Issuer: p.URL, ClientID: "bridge", ClientSecret: "hush-secret", Redirect: "https://public.test/back", Now: func() time.Time { return now },
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	flow := oidclogin.Flow{State: "S", Nonce: "N", Verifier: "hush-verifier-hush-verifier-hush-verifier-x"}
	whole := `{"iss":"ISSUER","sub":"s-1","aud":"bridge","exp":1772442060,"iat":1772442000,"nonce":"N","email":"jo@acme.example","email_verified":true}`
	for _, change := range []string{
		``, `"sub":"s-1"|"sub":"s-1","sub":"s-2"`, `"sub":"s-1"|"sub":"s-1","SUB":"s-2"`, `"sub":"s-1"|"sub":"\u0000"`, `"sub":"s-1"|"sub":1`, `"sub":"s-1"|"x":1`, `"bridge"|["bridge","other"]`, `"bridge"|["bridge"],"azp":"other"`,
		`"bridge"|["other","bridge"],"azp":"bridge"`, `"bridge"|[]`, `:true|:"true"`, `:true|:1`, `:true|:false,"email_verified":true`, `:true|:false,"Email_Verified":true`, `1772442060|1772441999`, `1772442060|1e400`, `1772442060|"x"`, `"N"|"M"`, `"N"|"N","nonce":"M"`,
		`"N"|"M","NONCE":"N"`, `"iat"|"nbf"`, `"jo@|"jo\ud800@`, `{|[`, `ISSUER|https://evil.test`,
	} {
		old, replacement, _ := strings.Cut(change, "|")
		f.Add([]byte(strings.Replace(whole, old, replacement, 1)), 200, []byte(nil), "S", "", "")
	}
	for _, answer := range []string{``, `{`, `null`, `{}`, `{"id_token":1}`, `{"id_token":"a.b.c"}`, `{"access_token":"x","id_token":"hush-secret"}`, `{"error":"hush-secret"}`, `{"access_token":"x","expires_in":1e99}`, `access_token=x&id_token=y`} {
		f.Add([]byte(whole), 200, []byte(answer), "S", "", "")
		f.Add([]byte(whole), 400, []byte(answer), "S", "", "")
	}
	f.Add([]byte(whole), 503, []byte("hush-verifier"), "S", "", "")
	f.Add([]byte(whole), 200, []byte(nil), "T", "", "")
	f.Add([]byte(whole), 200, []byte(nil), "S", "access_denied", "\x00")
	f.Add([]byte(whole), 200, []byte(nil), "S", "server_error", "https://evil.test")
	f.Fuzz(func(t *testing.T, claims []byte, status int, answer []byte, state, refusal, issuer string) {
		claims = bytes.ReplaceAll(claims, []byte("ISSUER"), []byte(p.URL))
		signed := len(answer) == 0
		if signed {
			answer = fmt.Appendf(nil, `{"access_token":"x","token_type":"Bearer","id_token":%q}`, p.signed(t, claims))
		}
		if status < 200 || status > 599 {
			status = 200
		}
		p.status.Store(int64(status))
		p.answer.Store(&answer)
		log.Reset()
		person, err := client.Finish(t.Context(), flow, url.Values{"state": {state}, "error": {refusal}, "iss": {issuer}, "code": {"hush-code"}})
		told := fmt.Sprint(log.String(), err)
		for _, secret := range []string{"hush-secret", flow.Verifier, "hush-code"} {
			if strings.Contains(told, secret) && !bytes.Contains(claims, []byte("hush")) && !strings.Contains(refusal, "hush") && !bytes.Contains(answer, []byte(secret)) {
				t.Fatalf("%d %q: %s", status, answer, told)
			}
		}
		if err != nil {
			if person != (auth.OIDCPerson{}) || !problem.Is(err, problem.Unauthenticated) && !problem.Is(err, problem.MalformedRequest) && !problem.Is(err, problem.Unavailable) {
				t.Fatalf("%q: %+v, %v", claims, person, err)
			}
			return
		}
		if !signed || state != flow.State || refusal != "" || issuer != "" && issuer != p.URL || status > 299 {
			t.Fatalf("%d %q, state %q, error %q, issuer %q: %+v", status, answer, state, refusal, issuer, person)
		}
		// Each claim by its very name: one that stands there in another case is another one.
		var all map[string]json.RawMessage
		if err := json.Unmarshal(claims, &all); err != nil {
			t.Fatalf("%q: %v", claims, err)
		}
		text := func(name string) (s string) {
			_ = json.Unmarshal(all[name], &s)
			return s
		}
		var audience []string
		if one := text("aud"); one != "" {
			audience = []string{one}
		} else {
			_ = json.Unmarshal(all["aud"], &audience)
		}
		var ends float64
		_ = json.Unmarshal(all["exp"], &ends)
		if text("iss") != p.URL || text("nonce") != flow.Nonce || !slices.Contains(audience, "bridge") || len(audience) > 1 && text("azp") != "bridge" || ends < float64(now.Unix()) {
			t.Fatalf("%q: %+v", claims, person)
		}
		if want := (auth.OIDCPerson{Issuer: text("iss"), Subject: text("sub"), Email: text("email"), EmailVerified: string(all["email_verified"]) == "true"}); person != want {
			t.Fatalf("%q: %+v, want %+v", claims, person, want)
		}
	})
}
