package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrongOIDCSettingsAreNamed(t *testing.T) {
	t.Parallel()
	file := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret := file("secret", "s3cret\n")
	good := OIDCConfig{Issuer: "https://id.example", ClientID: "erp", ClientSecretFile: secret}
	for name, c := range map[string]struct {
		change func(*OIDCConfig)
		public string
		names  string // the variable; "": nothing is wrong
	}{
		"all set":               {func(c *OIDCConfig) { c.Name = "Acme ID" }, "https://erp.example", ""},
		"none":                  {func(c *OIDCConfig) { *c = OIDCConfig{} }, "", ""},
		"on this machine":       {func(c *OIDCConfig) { c.Issuer = "http://127.0.0.1:5556/oidc" }, "http://localhost:8080", ""},
		"no public address":     {func(*OIDCConfig) {}, "", "PUBLIC_URL"},
		"public address open":   {func(*OIDCConfig) {}, "http://erp.example", "PUBLIC_URL"},
		"public address broken": {func(*OIDCConfig) {}, "https://erp.example/path", "PUBLIC_URL"},
		"only a name":           {func(c *OIDCConfig) { *c = OIDCConfig{Name: "Acme ID", ClientID: "erp", ClientSecretFile: secret} }, "https://erp.example", "OIDC_ISSUER"},
		"issuer in the open":    {func(c *OIDCConfig) { c.Issuer = "http://id.example" }, "https://erp.example", "OIDC_ISSUER"},
		"issuer with a query":   {func(c *OIDCConfig) { c.Issuer = "https://id.example?x=1" }, "https://erp.example", "OIDC_ISSUER"},
		"issuer is no address":  {func(c *OIDCConfig) { c.Issuer = "id.example" }, "https://erp.example", "OIDC_ISSUER"},
		"no client":             {func(c *OIDCConfig) { c.ClientID = "" }, "https://erp.example", "OIDC_CLIENT_ID"},
		"no secret":             {func(c *OIDCConfig) { c.ClientSecretFile = "" }, "https://erp.example", "OIDC_CLIENT_SECRET_FILE"},
		"no such file":          {func(c *OIDCConfig) { c.ClientSecretFile = secret + ".not" }, "https://erp.example", "OIDC_CLIENT_SECRET_FILE"},
		"an empty file":         {func(c *OIDCConfig) { c.ClientSecretFile = file("empty", "\n") }, "https://erp.example", "OIDC_CLIENT_SECRET_FILE"},
		"two lines":             {func(c *OIDCConfig) { c.ClientSecretFile = file("two", "a\nb\n") }, "https://erp.example", "OIDC_CLIENT_SECRET_FILE"},
		"a long name":           {func(c *OIDCConfig) { c.Name = strings.Repeat("x", 61) }, "https://erp.example", "OIDC_NAME"},
	} {
		config := good
		c.change(&config)
		err := AccessConfig{PublicURL: c.public, OIDC: config}.check("CRM_")
		if (err == nil) != (c.names == "") || err != nil && !strings.HasPrefix(err.Error(), "CRM_"+c.names+": ") {
			t.Errorf("%s: %v, want a mistake in %q", name, err, c.names)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the secret is repeated", name)
		}
	}
	if got, err := good.secret(); err != nil || got != "s3cret" {
		t.Errorf("the secret is read as %q, %v", got, err)
	}
	if got, err := (OIDCConfig{}).login("", nil, nil); got != nil || err != nil {
		t.Errorf("without settings there is %v, %v", got, err)
	}
}
