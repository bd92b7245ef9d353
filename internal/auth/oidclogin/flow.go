package oidclogin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/oauth2"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/problem"
)

// Flow is one log-in under way. It stays with the browser that began it, and with nobody else.
type Flow struct {
	// State comes back with the browser, Nonce within what the provider signs, and Verifier goes to the provider with the
	// code: whoever steals one of these ways has not the others.
	State, Nonce, Verifier string
}

// Begin begins a flow and gives the provider's address for the browser to go to. Problem unavailable if the provider can't be
// reached.
func (p *Provider) Begin(ctx context.Context) (Flow, string, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return Flow{}, "", err
	}
	flow := Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	address := found.oauth.AuthCodeURL(flow.State, oidc.Nonce(flow.Nonce), oauth2.S256ChallengeOption(flow.Verifier))
	return flow, address, nil
}

// Finish takes what the browser brought back from the provider and says who the person is. Nothing of the answer is believed
// before its state is the flow's, and nobody is known before the provider itself has exchanged the code and signed for it.
//
// Refusals are problems: malformed-request if this is not the answer to the flow, unauthenticated if the provider does not vouch
// for the person, unavailable if it can't be reached.
func (p *Provider) Finish(ctx context.Context, flow Flow, answer url.Values) (auth.OIDCPerson, error) {
	if flow.State == "" || flow.Nonce == "" || flow.Verifier == "" || !same(answer.Get("state"), flow.State) {
		return auth.OIDCPerson{}, problem.New(problem.MalformedRequest,
			"This log-in was not begun in this browser, took too long, or was done already. Begin it again.")
	}
	if iss := answer.Get("iss"); iss != "" && iss != p.config.Issuer { // RFC 9207
		return auth.OIDCPerson{}, problem.New(problem.MalformedRequest, "This is the answer of another identity provider.")
	}
	if code := answer.Get("error"); code != "" {
		// Its words are not repeated to the person: anybody can write them into an address.
		p.log.InfoContext(ctx, "the OIDC provider refused a log-in", "error", clipped(code), "description", clipped(answer.Get("error_description")))
		if code == "temporarily_unavailable" || code == "server_error" {
			return auth.OIDCPerson{}, problem.New(problem.Unavailable, "The identity provider can't log anybody in just now.")
		}
		return auth.OIDCPerson{}, problem.New(problem.Unauthenticated, "The identity provider did not log you in.")
	}
	found, err := p.discover(ctx)
	if err != nil {
		return auth.OIDCPerson{}, err
	}
	token, err := p.exchange(ctx, found, flow, answer.Get("code"))
	if err != nil {
		return auth.OIDCPerson{}, err
	}
	return p.person(ctx, found, flow, token)
}

// exchange gives the code to the provider, for the ID token.
func (p *Provider) exchange(ctx context.Context, found *endpoints, flow Flow, code string) (idToken string, err error) {
	tokens, err := found.oauth.Exchange(p.calling(ctx), code, oauth2.VerifierOption(flow.Verifier))
	if err != nil {
		// The error's own text has the whole answer, and who answers may repeat what was asked, the code and the secret.
		var refused *oauth2.RetrieveError
		switch {
		case !errors.As(err, &refused):
		case refused.Response.StatusCode < http.StatusInternalServerError:
			// invalid_grant is a code that was used or is too old; anything else is our set-up, for those who run this.
			p.log.ErrorContext(ctx, "the OIDC provider does not take the code", "status", refused.Response.StatusCode, "error", clipped(refused.ErrorCode))
			return "", problem.New(problem.Unauthenticated, "The identity provider does not take its own answer back: it may have been used already. Begin again.")
		default:
			err = fmt.Errorf("exchange the code: status %d, error %q", refused.Response.StatusCode, clipped(refused.ErrorCode))
		}
		return "", p.unreachable(ctx, err)
	}
	p.away.Store(false)
	idToken, _ = tokens.Extra("id_token").(string)
	return idToken, nil
}

// claims are what is read of an ID token besides what the library reads. That takes a member in any case, and the last of several
// for a claim; what it has read of the first three must be what stands there by the very name, once.
type claims struct {
	Issuer  string `json:"iss"`
	Subject string `json:"sub"`
	Nonce   string `json:"nonce"`
	Email   string `json:"email"`
	// Verified is a boolean by the standard; a text "true" is not taken for one.
	Verified any    `json:"email_verified"`
	Party    string `json:"azp"`
}

// person checks the ID token: signature, issuer, audience, time, nonce.
func (p *Provider) person(ctx context.Context, found *endpoints, flow Flow, idToken string) (auth.OIDCPerson, error) {
	token, err := found.verifier.Verify(p.calling(ctx), idToken)
	var c claims
	if err == nil {
		c, err = readClaims(token)
	}
	switch {
	case err != nil:
	case c.Issuer != token.Issuer || c.Subject != token.Subject || c.Nonce != token.Nonce:
		err = errors.New("a claim stands there in two ways")
	case !same(token.Nonce, flow.Nonce):
		err = errors.New("the nonce is another log-in's")
	case (c.Party != "" || len(token.Audience) > 1) && c.Party != p.config.ClientID: // OpenID Connect Core 1.0, 3.1.3.7
		err = errors.New("the token was made for another client")
	}
	if err != nil {
		p.log.ErrorContext(ctx, "the OIDC provider's token does not hold", "issuer", p.config.Issuer, "error", clipped(err.Error()))
		return auth.OIDCPerson{}, problem.New(problem.Unauthenticated, "What the identity provider says of you could not be confirmed. Begin again.")
	}
	return auth.OIDCPerson{Issuer: token.Issuer, Subject: token.Subject, Email: c.Email, EmailVerified: c.Verified == true}, nil
}

func readClaims(token *oidc.IDToken) (c claims, err error) {
	var text jsontext.Value
	if err := token.Claims(&text); err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// clipped cuts what anybody may have written to what a log needs of it.
func clipped(text string) string {
	return text[:min(len(text), 200)]
}
