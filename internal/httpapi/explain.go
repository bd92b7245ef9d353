package httpapi

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

// explanation is what a problem's page says, to a person who has just met it.
type explanation struct {
	means        string
	when         []string
	sameKeyShort string // for the list
	sameKey      string
	next         []string
	members      []web.Fact
	detail       string // of the example
	example      document
}

// explain has an explanation for every type of the table.
func explain(t problem.Type) explanation {
	if e, ok := explainRequest(t); ok {
		return e
	}
	if e, ok := explainConflict(t); ok {
		return e
	}
	return explainService(t)
}

func errorsMember() web.Fact {
	return web.Fact{Heading: "errors", Text: "What is wrong, one entry for each place: a JSON pointer (RFC 6901) into the request, and a sentence."}
}

// explainRequest has the problems that the request itself is the cause of.
func explainRequest(t problem.Type) (explanation, bool) {
	switch t {
	case problem.MalformedRequest:
		return explanation{
			means: "The request could not be read without guessing, so nothing was done and nothing was stored.",
			when: []string{
				"The body is empty, is cut off, is not one JSON object, or something follows it.",
				"A member is not documented, stands twice, or is written in another case.",
				"A member has another JSON type than documented, or a text is not valid UTF-8 or holds U+0000.",
				"A list was asked for with a parameter that is not known, stands twice, or has a value that can't be read.",
			},
			sameKeyShort: "after correcting", sameKey: "Yes, with the corrected request: the key was not used.",
			next:    []string{"Read detail and errors, correct the program that makes the request, and send it again."},
			members: []web.Fact{errorsMember()},
			detail:  "The body is not one JSON object of the documented form: unknown member Unit_Price.",
			example: document{Errors: []problem.FieldError{{Pointer: "/lines/0/Unit_Price", Detail: "unknown member Unit_Price"}}},
		}, true
	case problem.IdempotencyKeyMissing:
		return explanation{
			means:        "Issuing an invoice needs a key, so that a repeated request can be told from a second one.",
			when:         []string{"The header Idempotency-Key is missing or empty.", "In a batch: an item has no idempotency_key, or an empty one."},
			sameKeyShort: "yes, with a key", sameKey: "Send the request again, with a key.",
			next: []string{
				"Make a key for the intention (a UUID is fine), and store it before the first attempt.",
				"Send every attempt of that intention with this key.",
			},
			detail: "The header Idempotency-Key is missing.",
		}, true
	case problem.IdempotencyKeyInvalid:
		return explanation{
			means: "The header Idempotency-Key can't be read as one key.",
			when: []string{
				"The key is longer than 255 characters, or has characters other than printable ASCII.",
				"The header holds a list or stands twice.",
				"The key is quoted and the quotes don't match.",
				"It stands in the header of a batch, whose items have keys of their own.",
			},
			sameKeyShort: "no: make a valid one", sameKey: "No, this text can be no key. A valid key for this intention has not been used yet.",
			next: []string{
				"Make a key of 1 to 255 printable ASCII characters, store it with the task, and send the request with it.",
				"Keys may stand bare or in double quotes: k-1 and \"k-1\" are the same key.",
			},
			detail: "A key has at most 255 characters.",
		}, true
	case problem.ContentTooLarge:
		return explanation{
			means: "The body is larger than this service reads. Nothing was done.",
			when: []string{
				"The body has more than 1 MiB, as sent or unpacked from gzip.",
				"A batch has more than 10 MiB or more than 1,000 items, or one of its items has more than 1 MiB.",
			},
			sameKeyShort: "after correcting", sameKey: "Yes, with a smaller request: the key was not used.",
			next:   []string{"Send less: merge lines, shorten texts, or split the order into parts with their own sequence."},
			detail: "The body may have at most 1048576 bytes, unpacked.",
		}, true
	case problem.UnsupportedMediaType:
		return explanation{
			means: "The body is in a form this service does not read. Nothing was done.",
			when: []string{
				"The header Content-Type is missing or is not application/json.",
				"The header Content-Encoding names something other than gzip.",
			},
			sameKeyShort: "after correcting", sameKey: "Yes, with the corrected request: the key was not used.",
			next:   []string{"Send JSON with Content-Type: application/json, plain or packed with gzip."},
			detail: "The body must be sent with Content-Type: application/json.",
		}, true
	case problem.InvalidInvoice:
		return explanation{
			means: "The request was understood, but no invoice may be issued from it. Nothing was stored and no number was taken.",
			when: []string{
				"A member is missing or has a value that is not allowed, for example a currency that does not exist.",
				"A VAT category lacks what EN 16931 demands of it: a reason, a VAT id, a rate of zero.",
				"The computed gross differs from expected_gross.",
				"The invoice would exceed order_total, or a credit note the invoice it corrects.",
			},
			sameKeyShort: "yes, corrected", sameKey: "Yes, with the corrected request: nothing was stored under the key.",
			next: []string{
				"Correct every place that errors names, where the data comes from, and send the request again.",
				"If totals differ, compare how both sides round: per VAT rate, half away from zero, to the currency's decimals.",
			},
			members: []web.Fact{errorsMember()},
			detail:  "The invoice is not valid.",
			example: document{Errors: []problem.FieldError{{Pointer: "/lines/0/vat_rate", Detail: "must be given for category S"}}},
		}, true
	case problem.InvalidOrder:
		return explanation{
			means: "The request was understood, but the order can't be taken as it is. Nothing was stored.",
			when: []string{
				"A member of the order is missing or has a value that is not allowed.",
				"One of several orders sent together is refused: then none of them is taken.",
			},
			sameKeyShort: "yes, corrected", sameKey: "Yes, with the corrected order: nothing was stored.",
			next:    []string{"Correct every place that errors names and send the orders again. Those that were right change nothing when repeated."},
			members: []web.Fact{errorsMember()},
			detail:  "1 of 2 orders is not valid; none was stored.",
			example: document{Errors: []problem.FieldError{{Pointer: "/1/currency", Detail: "is not a currency of ISO 4217"}}},
		}, true
	}
	return explanation{}, false
}

// explainConflict has the problems that come from what is there already.
func explainConflict(t problem.Type) (explanation, bool) {
	switch t {
	case problem.OperationInProgress:
		return explanation{
			means:        "Another request with this key is at work right now. Whether it will succeed is not known yet.",
			when:         []string{"Two attempts overlap, and the first had not ended after a wait of two seconds."},
			sameKeyShort: "yes, later", sameKey: "Yes, and only this key: another one would be another intention.",
			next: []string{
				"Wait at least as long as the header Retry-After says, then send the same request with the same key.",
				"The answer will be the first request's own, or, if that failed, this request is carried out.",
			},
			detail: "A request with this key is being carried out.",
		}, true
	case problem.AlreadyInvoiced:
		return explanation{
			means: "This source, order, role and sequence has its invoice already, made under another key. No second one was issued.",
			when: []string{
				"The same intention was given a second key, for example after its first key was lost.",
				"Two systems, or two people, ask for the same invoice.",
			},
			sameKeyShort: "no: take that invoice", sameKey: "No. The invoice exists; it is named in the answer.",
			next: []string{
				"If same_content is true, this is the invoice that was asked for: store its id and number, and close the task as done.",
				"If same_content is false, somebody has to look: the order is invoiced with other content. Correct it by a credit note or a correction, never by force.",
				"A further part of an order needs a sequence of its own.",
			},
			members: []web.Fact{
				{Heading: "invoice", Text: "The invoice there is: id, number, and the operation_key that made it."},
				{Heading: "same_content", Text: "Whether this request asks for exactly that invoice."},
			},
			detail: "Order SO-1001 of source crm-1 has its final invoice already.",
			example: document{Invoice: &problem.InvoiceRef{
				ID: "01983b1c-6a52-7a10-9d3e-5b8f0c2d4e6f", Number: "INV-2026-000042", OperationKey: "0197f0a4-0b5e-7c3d-8a91-2f4b6d8e0a1c",
			}, SameContent: new(true)},
		}, true
	case problem.IdempotencyKeyReused:
		return explanation{
			means: "This key was used for another request before. The stored answer belongs to that one and is not told.",
			when: []string{
				"A program made the same key for two intentions.",
				"The data changed between two attempts, and the second was built anew from it instead of being sent again as stored.",
			},
			sameKeyShort: "no", sameKey: "No. It stays with the request that used it first, for ever.",
			next: []string{
				"Look at differences: they name the members that are not as they were.",
				"If it was meant as a repeat, send the first request's exact content. GET /v1/operations/{key} tells what became of it.",
				"If it is a new intention, give it a new key. If it is a change of an invoiced order, a person has to decide.",
			},
			members: []web.Fact{{Heading: "differences", Text: "JSON pointers (RFC 6901) of the members that differ from the first request. Values are not told."}},
			detail:  "The key was used for a request with other content.",
			example: document{Differences: []string{"/lines/0/unit_price"}},
		}, true
	case problem.VersionConflict:
		return explanation{
			means:        "This version of the order is known, with other content. A version's content never changes.",
			when:         []string{"The source changed an order and did not raise its version."},
			sameKeyShort: "no", sameKey: "No: the order needs a new version.",
			next:    []string{"Send the changed order with a higher version."},
			members: []web.Fact{errorsMember()},
			detail:  "Version 3 of order SO-1001 is known with other content.",
		}, true
	}
	return explainState(t)
}

func explainState(t problem.Type) (explanation, bool) {
	if t != problem.WrongState {
		return explanation{}, false
	}
	return explanation{
		means: "What is there is not in a state in which this may be done. Nothing was changed.",
		when: []string{
			"A registration is to be tried again that has come to its end, is being worked on, or is queued already.",
			"A registration is to be settled by hand that is not unknown, or that somebody works on.",
		},
		sameKeyShort: "does not matter", sameKey: "Yes. This request uses no key.",
		next:   []string{"Look at it again: it may have come to its end meanwhile.", "If it is still open after that, send the request again."},
		detail: "This registration is already queued.",
	}, true
}

// explainService has the problems of access and of the service itself.
func explainService(t problem.Type) explanation {
	switch t {
	case problem.Unauthenticated:
		return explanation{
			means:        "The request does not prove who sends it. It was not read any further.",
			when:         []string{"The header Authorization is missing, stands twice, or has another scheme than Bearer.", "The token is wrong or was revoked."},
			sameKeyShort: "yes, with the right token", sameKey: "Yes, with a valid token: the key was not used.",
			next:   []string{"Send Authorization: Bearer followed by a token of your tenant.", "A lost token can't be shown again: an administrator makes a new one with the command token create."},
			detail: "The bearer token is missing, wrong or revoked.",
		}
	case problem.Forbidden:
		return explanation{
			means:        "The token is valid, but its role does not allow this. Nothing was done.",
			when:         []string{"A reader's token is used to issue an invoice."},
			sameKeyShort: "yes, with the right token", sameKey: "Yes, with a token of the needed role: the key was not used.",
			next:   []string{"Use a token with the role that detail names. Roles are reader, writer and admin; each includes the one before."},
			detail: "This needs a token with role writer; this one's is reader.",
		}
	case problem.NotFound:
		return explanation{
			means:        "There is nothing under this address, at least not for this tenant. Other tenants' things do not exist.",
			when:         []string{"The id or key is unknown, or belongs to another tenant.", "The path is misspelt, or ends with a slash."},
			sameKeyShort: "does not matter", sameKey: "Yes. A look-up uses no key.",
			next:   []string{"Check the path, and whether the token belongs to the tenant that owns the thing.", "An operation that is not found may still be on its way: not found proves nothing while a request may be running."},
			detail: "There is no invoice with this id.",
		}
	case problem.MethodNotAllowed:
		return explanation{
			means:        "The path exists, the method does not.",
			when:         []string{"For example PUT on /v1/invoices: an issued invoice never changes."},
			sameKeyShort: "yes", sameKey: "Yes: the key was not used.",
			next:   []string{"Use a method that the header Allow names."},
			detail: "See the header Allow for the methods this path has.",
		}
	case problem.TooManyRequests:
		return explanation{
			means:        "More requests of this tenant came at once than its share of what this service takes. This one was not begun.",
			when:         []string{"The tenant's programs send over many connections at the same time.", "Somebody tried to log in too often with a wrong password."},
			sameKeyShort: "yes, later", sameKey: "Yes: the key was not used.",
			next:   []string{"Wait at least as long as the header Retry-After says, then send the same request with the same key.", "Send from fewer connections."},
			detail: "256 requests of this tenant are at work or waiting already.",
		}
	case problem.Overloaded:
		return explanation{
			means:        "More requests came at once than this service takes. This one was turned away before it was looked at.",
			when:         []string{"Many callers send at the same time.", "The database is slow, so that requests pile up."},
			sameKeyShort: "yes, later", sameKey: "Yes: the key was not used.",
			next:   []string{"Wait at least as long as the header Retry-After says, then send the same request with the same key.", "If it stays, the operator can add processes, or find out what is slow."},
			detail: "512 such requests are at work or waiting already.",
		}
	case problem.Unavailable:
		return explanation{
			means:        "The service can't do its work right now: its database is away, it is stopping, or the request took too long.",
			when:         []string{"The database restarts or can't be reached.", "The service is being stopped or replaced.", "The request ran into its time limit, usually behind others."},
			sameKeyShort: "yes, later", sameKey: "Yes, and it must be this key: whether the request took effect may not be known.",
			next:   []string{"Wait at least as long as the header Retry-After says, then send the same request with the same key."},
			detail: "The database can't be reached right now.",
		}
	}
	return explanation{
		means:        "A fault of this service. Its cause was written to the log, under the id that the answer names.",
		when:         []string{"Something happened that nobody had thought of."},
		sameKeyShort: "yes, later", sameKey: "Yes, and it must be this key: whether the request took effect may not be known.",
		next:   []string{"Send the same request with the same key again, a little later.", "If it stays, tell the operator the value of instance."},
		detail: internalDetail,
	}
}

// exampleDocument is a document of this type as a caller sees it.
func exampleDocument(k kind, text explanation) (string, error) {
	d := text.example
	d.Type, d.Title, d.Status, d.Detail = ProblemPath(k.problemType), k.title, k.status, text.detail
	d.Instance = "urn:uuid:0b0f3f0e-5a53-4f0c-9f0a-3c1f6d1c2b7a"
	out, err := json.Marshal(d, json.Deterministic(true), jsontext.WithIndent("  "))
	return string(out), err
}
