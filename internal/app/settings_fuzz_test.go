package app

import (
	"net"
	"strings"
	"testing"

	"invoicebridge/internal/target"
)

// Whatever a setting holds, it is taken, or refused with its variable's name and without the secret that it may hold; and what is taken
// is of the form that the rest relies on.
func FuzzSettings(f *testing.F) {
	const hush, quiet = "hush5secret", "quiet7secret" // in the setting, and in the file or variable that it names
	for _, text := range []string{
		"", "postgres://user:HUSH@localhost:5432/crm", "postgres://user:HUSH@host:port/crm", "postgres://u:p:HUSH@h:x", "postgres://u:p/HUSH@h", "postgres://h/d?password=HUSH&connect_timeout=x", "postgres://h/%zz?x=HUSH",
		"host=h password=HUSH port=x", "host=h password = 'HUSH' port=x", "password='a HUSH", `password=a\ HUSH port=x`, "HUSH", "postgresql:/u:HUSH@h", "//u:HUSH@h", "host=h passfile=/HUSH sslmode=x",
		"https://a:HUSH@erp.example", "https://HUSH@erp.example", "https://erp.example", "http://[::1]:80/", "https://erp.example?x=HUSH", "https://erp.example#HUSH", "://HUSH",
		"10.0.0.0/8", "10.0.0.1/8, ::1/128", "::ffff:10.0.0.0/104", "10.0.0.0/33", "acme=HUSH", "acme=HUSH;acme=x", "acme=@/file", "acme=HUSH x;b=\xff", "=HUSH", "HUSH=", ";;", "env:HUSH", "env:X", "file:/x", "file:x", "file:HUSH",
	} {
		f.Add(text, "QUIET\n")
		f.Add(text, "")
	}
	f.Add("file:/x", "two QUIET")
	f.Add("acme=@/x", "\nQUIET\r\n")
	f.Add("acme=@/x", strings.Repeat("QUIET", 4000))
	f.Fuzz(func(t *testing.T, text, content string) {
		withSecret, content := strings.ReplaceAll(text, "HUSH", hush), strings.ReplaceAll(content, "QUIET", quiet)
		readFile := func(string) ([]byte, error) { return []byte(content), nil }
		refused := func(err error, names string, secret string) {
			t.Helper()
			if err == nil {
				return
			}
			if names != "" && !strings.HasPrefix(err.Error(), names) {
				t.Fatalf("%q: %v, which does not name %s", withSecret, err, names)
			}
			if secret != "" && strings.Contains(err.Error(), secret) {
				t.Fatalf("%q: the error tells the secret: %v", withSecret, err)
			}
		}
		refused(validateDatabaseURL("CRM_DATABASE_URL", withSecret), "CRM_DATABASE_URL: ", hush)

		refused(AccessConfig{PublicURL: withSecret}.check("ERP_"), "ERP_PUBLIC_URL: ", hush)
		refused(checkOIDCAddress(withSecret), "", hush)

		access := AccessConfig{TrustedProxies: strings.Split(text, ",")}
		networks, err := access.proxies()
		if (err == nil) != (access.check("ERP_") == nil) || err == nil && len(networks) != len(access.TrustedProxies) {
			t.Fatalf("%q gives %v, %v", text, networks, err)
		}
		for _, network := range networks {
			if _, again, err := net.ParseCIDR(network.String()); err != nil || again.String() != network.String() {
				t.Fatalf("%q gives %s, that %s (%v)", text, network, again, err)
			}
		}

		entries, secret := strings.Split(withSecret, ";"), hush
		for _, entry := range entries {
			if tenant, _, found := strings.Cut(entry, "="); found && strings.Contains(tenant, hush) {
				secret = "" // a tenant is told
			}
		}
		tokens, err := readERPTokens(entries, readFile)
		refused(err, "ERP_TOKENS: ", secret)
		refused(err, "", quiet)
		for tenant, token := range tokens {
			if tenant == "" || strings.TrimSpace(tenant) != tenant || token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Fatalf("%q (files: %q) gives %q to %q", withSecret, content, token, tenant)
			}
		}

		credential, err := target.ResolveCredential(withSecret, func(string) string { return content }, readFile)
		refused(err, "", quiet)
		if !strings.HasPrefix(text, "env:") && !strings.HasPrefix(text, "file:/") {
			refused(err, "", hush)
		}
		if value := credential.Reveal(); (err == nil) != (value != "") || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) || value != "" && value != strings.Trim(content, "\r\n") {
			t.Fatalf("%q (%q) gives %q, %v", withSecret, content, value, err)
		}

		password, err := readPassword(strings.NewReader(content))
		refused(err, "", quiet)
		if err == nil && (strings.ContainsAny(password, "\r\n") || !strings.HasPrefix(content, password) || len(content)-len(password) > 2 && len(content) <= maxPasswordInput) {
			t.Fatalf("%q is the password %q", content, password)
		}
	})
}
