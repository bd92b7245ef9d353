package invoice

import (
	"fmt"
	"sync"

	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/target"
)

// openTargets keeps one client for each target, for as long as its settings and its secret are the same.
type openTargets struct {
	kinds      TargetKinds
	credential func(ref string) (target.Secret, error)

	mu   sync.Mutex
	open map[targetID]openTarget
}

type targetID struct{ tenant, id string }

type openTarget struct {
	kind, baseURL, secret string
	client                Target
}

func newOpenTargets(opts RegistrarOptions) *openTargets {
	return &openTargets{kinds: opts.Kinds, credential: opts.Credential, open: map[targetID]openTarget{}}
}

// get gives the target's client. The secret is read each time, so that a new one is taken without a restart.
func (o *openTargets) get(row erpdb.RegistrationGetStandingRow) (Target, target.Secret, error) {
	secret, err := o.credential(row.CredentialRef)
	if err != nil {
		return nil, secret, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	id := targetID{row.TenantID, row.TargetID}
	was, found := o.open[id]
	if found && was.kind == row.Kind && was.baseURL == row.BaseUrl && was.secret == secret.Reveal() {
		return was.client, secret, nil
	}
	kind, known := o.kinds.Kinds[row.Kind]
	if !known {
		return nil, secret, fmt.Errorf("this program knows no targets of kind %s", row.Kind)
	}
	client, err := kind.Open(row.BaseUrl, secret)
	if err != nil {
		return nil, secret, err
	}
	if found {
		was.client.Close()
	}
	o.open[id] = openTarget{row.Kind, row.BaseUrl, secret.Reveal(), client}
	return client, secret, nil
}

func (o *openTargets) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.open {
		t.client.Close()
	}
	clear(o.open)
}
