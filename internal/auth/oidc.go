package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/problem"
)

// OIDCPerson is who somebody is by the word of an OIDC provider, whose signature was checked.
type OIDCPerson struct {
	// Issuer and Subject together are one person for ever; a subject means nothing without its issuer.
	Issuer, Subject string
	Email           string
	// EmailVerified: the provider vouches that the address is the person's.
	EmailVerified bool
}

// check refuses what the database could not keep (OpenID Connect Core 1.0, 2: a subject has at most 255 ASCII characters).
func (p OIDCPerson) check() error {
	strange := func(r rune) bool { return r < 0x20 || r > unicode.MaxASCII || r == 0x7f }
	if p.Subject == "" || len(p.Subject) > 255 || strings.ContainsFunc(p.Subject, strange) {
		return problem.New(problem.Unauthenticated, "The identity provider names you in a way that can't be kept.")
	}
	return nil
}

// loginName is the name of the account that is the person's at the first log-in; empty if it can't be told. Only ASCII is made
// lower case: folding more would make one name of two addresses, such as a k of the Kelvin sign.
func (p OIDCPerson) loginName() string {
	if strings.ContainsFunc(p.Email, func(r rune) bool { return r > unicode.MaxASCII }) {
		return ""
	}
	if name := strings.ToLower(p.Email); strings.Contains(name, "@") && accountForm.MatchString(name) {
		return name
	}
	return ""
}

// AccountByOIDC gives the account of a person whom a provider vouches for. At the first log-in that is the account whose name
// is the person's verified e-mail address; it is tied to issuer and subject then, once, with an audit entry, in one
// transaction, and the address does not count any more. No account is ever made here, and of the provider's word nothing else
// counts: tenant and role are the account's.
//
// by is where the log-in comes from; the person is filled in. Refusals are problems, unauthenticated.
func (a *Admin) AccountByOIDC(ctx context.Context, person OIDCPerson, by audit.By) (account Account, err error) {
	if err := person.check(); err != nil {
		return Account{}, err
	}
	err = a.store.InTx(ctx, func(tx AdminTx) error {
		account, err = tx.GetAccountByOIDC(ctx, person.Issuer, person.Subject)
		if errors.Is(err, ErrAccountUnknown) {
			account, err = tieAccount(ctx, tx, person, by)
		}
		if err != nil {
			return err
		}
		if account.DisabledAt != nil {
			return problem.New(problem.Unauthenticated, "The account %s is disabled.", account.Name)
		}
		return nil
	})
	if err != nil {
		return Account{}, fmt.Errorf("find the account of a person of the identity provider: %w", err)
	}
	return account, nil
}

// tieAccount finds the account by the verified address and ties it.
func tieAccount(ctx context.Context, tx AdminTx, person OIDCPerson, by audit.By) (Account, error) {
	name := person.loginName()
	switch {
	case !person.EmailVerified:
		return Account{}, problem.New(problem.Unauthenticated, "The identity provider does not say that your e-mail address is verified, "+
			"so it can't be told which account is yours.")
	case name == "":
		return Account{}, problem.New(problem.Unauthenticated, "The identity provider does not give an e-mail address that could be the name of an account.")
	}
	account, err := tx.GetAccount(ctx, name)
	if errors.Is(err, ErrAccountUnknown) {
		return Account{}, problem.New(problem.Unauthenticated, "There is no account %s here. Whoever runs this service makes one.", name)
	}
	if err != nil || account.DisabledAt != nil {
		return account, err
	}
	tied, err := tx.BindOIDC(ctx, account.ID, person.Issuer, person.Subject)
	if err != nil {
		return Account{}, fmt.Errorf("tie an account to the identity provider: %w", err)
	}
	if !tied { // the same person's other tab may just have done it
		account, err = tx.GetAccountByOIDC(ctx, person.Issuer, person.Subject)
		if errors.Is(err, ErrAccountUnknown) {
			return Account{}, problem.New(problem.Unauthenticated, "The account %s is tied to somebody else at an identity provider.", name)
		}
		return account, err
	}
	account.Issuer, account.Subject = person.Issuer, person.Subject
	by.Actor, by.Account, by.Via = account.Name, account.ID, audit.ViaConsole
	by.Reason = fmt.Sprintf("first log-in by OIDC, as %s of %s", person.Subject, person.Issuer)
	return account, writeAudit(ctx, tx, by, AuditEntry{Tenant: account.Tenant, Action: "account.tie", Subject: account.Name})
}
