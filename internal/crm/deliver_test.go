package crm_test

import (
	"net/http"
	"testing"
	"time"

	"invoicebridge/internal/erpapi/erpsim"
	"invoicebridge/internal/problem"
)

func TestDeliverySucceedsOnceAndIsThenLeftAlone(t *testing.T) {
	d := setupDelivery(t)
	id := d.operation("SO-1001")
	if !d.deliver(id).Done {
		t.Fatal("not done")
	}
	d.wantState(id, "succeeded", "", "delivered")
	if !d.deliver(id).Done {
		t.Error("a delivered operation has something left to do")
	}
	d.wantOneKeyAndBody(id, 1)
	d.wantOneInvoice(id)
	if got := d.erp.Posts()[0].Authorization; got != "Bearer "+deliverToken {
		t.Errorf("authorization is %q", got)
	}
}

// CASES A1: the answer is lost after the commit in three ways; the fourth attempt runs in another process with other
// settings.
func TestAnswersLostAfterTheCommitLeadToOneInvoice(t *testing.T) {
	d := setupDelivery(t)
	d.client.AttemptTimeout = 300 * time.Millisecond
	d.erp.OnPost(func(c *erpsim.Call) {
		answer := c.Commit()
		switch c.N {
		case 1:
			c.Reset()
		case 2:
			c.Hold()
		case 3:
			c.Refuse(http.StatusBadGateway, problem.Internal)
		default:
			c.Send(answer)
		}
	})
	id := d.operation("SO-1001")
	for range 3 {
		if d.deliver(id).Done {
			t.Fatal("done without an answer")
		}
		d.makeDue(id)
	}
	d.wantState(id, "unknown", "server_error", "lost lost lost")
	d.client.AttemptTimeout = 10 * time.Second
	d.deliver(id)
	d.wantState(id, "succeeded", "", "lost lost lost replayed")
	d.wantOneKeyAndBody(id, 4)
	d.wantOneInvoice(id)
}
