package app

import (
	"errors"
	"fmt"
	"strings"
)

// erpTokens are the ERP's tokens by tenant.
type erpTokens map[string]string

// of is the token of a tenant, "" if none is configured.
func (t erpTokens) of(tenant string) string { return t[tenant] }

// String keeps the tokens out of logs.
func (t erpTokens) String() string { return fmt.Sprintf("(%d tokens)", len(t)) }

// readERPTokens reads entries of the form tenant=token or tenant=@path. A mistake is told with the tenant, never with
// the token.
func readERPTokens(entries []string, readFile func(path string) ([]byte, error)) (erpTokens, error) {
	tokens := erpTokens{}
	var mistakes []error
	for i, entry := range entries {
		tenant, token, found := strings.Cut(entry, "=")
		tenant, token = strings.TrimSpace(tenant), strings.TrimSpace(token)
		switch {
		case strings.TrimSpace(entry) == "": // a semicolon at the end
			continue
		case !found || tenant == "" || token == "" || token == "@":
			mistakes = append(mistakes, mistake("ERP_TOKENS", "entry %d is not of the form tenant=token or tenant=@path", i+1))
			continue
		case tokens[tenant] != "":
			mistakes = append(mistakes, mistake("ERP_TOKENS", "tenant %q has two tokens", tenant))
			continue
		}
		if path, isFile := strings.CutPrefix(token, "@"); isFile {
			content, err := readFile(path)
			if err != nil {
				mistakes = append(mistakes, mistake("ERP_TOKENS", "the token of tenant %q: %v", tenant, err))
				continue
			}
			token = strings.TrimSpace(string(content))
		}
		if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			mistakes = append(mistakes, mistake("ERP_TOKENS", "the token of tenant %q is empty or no token: it holds other than visible ASCII characters", tenant))
			continue
		}
		tokens[tenant] = token
	}
	return tokens, errors.Join(mistakes...)
}
